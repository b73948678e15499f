"""Putting an image onto a board on native USB: its bootloader is called, found again, and never asked anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from rig.acquire.bootloader import PATIENCE_S, enter_bootloader
from rig.acquire.ports import BOOTLOADERS, KNOWN_ADAPTERS, PortInfo, candidates
from rig.cli.firmware import firmware_app
from rig.errors import PortNotFound, UsageError
from rig.firmware.flash import check_bootloader, flash_command, programmer_command
from rig.sim.clock import VirtualTime

BOARD = PortInfo("/dev/ttyACM0", 0x2341, 0x8036, "52494700000000a5", "1-2:1.0")
OTHER = PortInfo("/dev/ttyACM1", 0x2341, 0x8036, None, "1-3:1.0")
WAITING = PortInfo("/dev/ttyACM2", 0x2341, 0x0036, None, "1-4:1.0")
CALLED = PortInfo("/dev/ttyACM0", 0x2341, 0x0036, None, "1-2:1.0")


class Bus:
    """The ports there are: the board's goes away when it is touched, and that of its bootloader comes 1 s later."""

    def __init__(self, *ports: PortInfo, called: PortInfo | None = CALLED) -> None:
        self.time = VirtualTime()
        self.ports = list(ports)
        self.called = called
        self.touched: list[str] = []
        self._at_s = 0.0

    def touch(self, path: str) -> None:
        self.touched.append(path)
        self.ports = [port for port in self.ports if port.path != path]
        self._at_s = self.time.now_s + 1.0

    def list(self) -> list[PortInfo]:
        is_there = self.touched and self.called is not None and self.time.now_s >= self._at_s
        return [*self.ports, *([self.called] if is_there and self.called else [])]

    def enter(self, path: str) -> str:
        return enter_bootloader(path, self.list, self.touch, self.time)


def test_the_bootloader_is_found_where_the_board_was() -> None:
    bus = Bus(BOARD, OTHER, WAITING)
    assert bus.enter(BOARD.path) == CALLED.path
    assert bus.touched == [BOARD.path]
    assert 1.0 <= bus.time.now_s < 2.0


def test_another_path_is_found_by_the_place_on_the_bus() -> None:
    moved = PortInfo("/dev/ttyACM7", 0x1B4F, 0x9205, None, "1-2:1.0")
    assert Bus(BOARD, WAITING, called=moved).enter(BOARD.path) == moved.path


def test_without_a_place_the_bootloader_that_is_new_is_taken() -> None:
    board, waiting = PortInfo(BOARD.path, 0x2341, 0x8036), PortInfo(WAITING.path, 0x2341, 0x0036)
    called = PortInfo("/dev/ttyACM9", 0x2341, 0x0036)
    assert Bus(board, waiting, called=called).enter(BOARD.path) == called.path


def test_a_bootloader_that_waits_already_is_not_touched() -> None:
    bus = Bus(BOARD, WAITING)
    assert bus.enter(WAITING.path) == WAITING.path
    assert bus.touched == []


def test_the_bootloader_of_another_board_is_not_taken_for_it() -> None:
    bus = Bus(BOARD, WAITING, called=None)
    with pytest.raises(PortNotFound, match="no bootloader appeared") as raised:
        bus.enter(BOARD.path)
    assert "reset button" in raised.value.remedy
    assert bus.time.now_s == pytest.approx(PATIENCE_S, abs=0.2)


def test_a_bootloader_is_never_asked_who_it_is() -> None:
    assert not set(BOOTLOADERS) & set(KNOWN_ADAPTERS)
    assert candidates([BOARD, WAITING, CALLED]) == [BOARD]
    assert "bootloader" in WAITING.label


def test_avrdude_is_told_the_part_and_what_the_bootloader_speaks() -> None:
    image = Path("rig.hex")
    for name, facts in (
        ("uno", ["-p", "m328p", "-c", "arduino", "-P", "P", "-b", "115200"]),
        ("leonardo", ["-p", "m32u4", "-c", "avr109", "-P", "P", "-b", "57600"]),
    ):
        assert flash_command(image, "P", name)[1:9] == facts
    assert "efuse:w:0xC8:m" in programmer_command(image, "usbasp", part="atmega32u4")
    assert "efuse:w:0xFC:m" in programmer_command(image, "usbasp")
    with pytest.raises(UsageError, match="'uno' for the part atmega32u4"):
        check_bootloader("uno", "atmega32u4")


def test_a_dry_run_touches_nothing_and_says_what_would_be_done() -> None:
    done = CliRunner().invoke(firmware_app, ["flash", "--board", "leonardo", "--port", "/dev/none", "--dry-run"])
    assert done.exit_code == 0
    assert done.stdout.startswith("avrdude -p m32u4 -c avr109 -P /dev/none -b 57600 -D -U flash:w:")
    assert "1200 baud" in done.stderr
