"""The emulated board at the pace of the real clock: what its stamps promise, and what it leaves behind."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from firmware import emulator_or_skip
from rig.acquire.link import Link, SerialPipe, SystemTime, open_link
from rig.domain.records import ClockExchange, StimulusPlan
from rig.domain.timebase import Duration
from rig.domain.waveforms import board_samples
from rig.errors import BenchNotReady, LinkLost, PortDenied, PortNotFound, UsageError
from rig.sim.emulator import CYCLES_A_SAMPLE, CYCLES_A_TICK, SILENCE, Event
from rig.sim.paced import PacedBoard
from rig.sim.pins import Pins, channel_of

PPM = 3000.0


@pytest.fixture
def board(tmp_path: Path) -> Iterator[PacedBoard]:
    with PacedBoard(emulator_or_skip(), tmp_path / "board", ppm=PPM) as running:
        yield running


@pytest.fixture
def link(board: PacedBoard) -> Iterator[Link]:
    opened = open_link(str(board.path), SystemTime())
    yield opened
    opened.close()


def told(pins: Pins, until: int) -> list[Event]:
    """Everything that the board tells up to a cycle."""
    events: list[Event] = []
    while pins.told_until < until and not pins.ended:
        events += pins.read(1.0)
    return events


def exchanges(link: Link, count: int) -> list[ClockExchange]:
    return [link.exchange_clock() for _ in range(count)]


def now_s() -> float:
    return SystemTime().now().seconds


def test_stamps_bound_each_other_as_those_of_a_real_board_do(board: PacedBoard, link: Link) -> None:
    pins = board.pins()
    clock = pins.clock
    assert clock.ppm == PPM
    asked = exchanges(link, 100)
    (start,) = [e.cycle for e in pins.read(1.0) if e.kind == "ticks"]
    for e in asked:
        received_s = clock.true_s(start + CYCLES_A_TICK * e.mcu_received_tick)
        sent_s = clock.true_s(start + CYCLES_A_TICK * e.mcu_sent_tick)
        assert e.host_sent_s <= received_s <= sent_s <= e.host_received_s
    pins.close()


def test_pins_show_the_very_tone_that_was_announced(board: PacedBoard, link: Link) -> None:
    pins = board.pins()
    link.arm(StimulusPlan("click", 2, (0.1,), 0.5, "mcu"))
    link.fire()
    fired: list[int] = []
    while len(fired) < 2:
        fired += [f.tick for f in link.poll(SystemTime().now().plus(Duration(1.0)))]
    events = told(pins, round(pins.clock.cycle_at(now_s())))
    (start,) = [e.cycle for e in events if e.kind == "ticks"]
    pulses = [e.cycle for e in events if e.kind == "pulse" and e.value == 1]
    firsts = [start + CYCLES_A_TICK * tick for tick in fired]
    assert [abs(pulse - first) <= CYCLES_A_TICK for pulse, first in zip(pulses, firsts, strict=True)] == [True, True]
    samples = board_samples("click", 0.5)
    first = pulses[0]
    changes = [(first - CYCLES_A_TICK, SILENCE)]
    changes += [(e.cycle, e.value) for e in events if e.kind == "pwm" and e.cycle > changes[0][0]]
    for k, sample in enumerate(samples):
        at = first + CYCLES_A_SAMPLE * k + CYCLES_A_SAMPLE // 2
        level = [value for cycle, value in changes if cycle <= at][-1]
        assert level - SILENCE == sample, f"sample {k}"
    pins.close()


def test_one_who_subscribes_late_is_told_how_things_stand(board: PacedBoard, link: Link) -> None:
    link.identify()
    with board.pins() as first:
        told(first, round(first.clock.cycle_at(now_s() + 0.3)))  # the ramp to silence after the reset is over
    pins = board.pins()
    standing = {e.kind: e for e in pins.read(1.0)}
    assert standing["pwm"].value == SILENCE
    tick = link.exchange_clock()
    stamped_s = pins.clock.true_s(standing["ticks"].cycle + CYCLES_A_TICK * tick.mcu_sent_tick)
    assert tick.host_sent_s < stamped_s < tick.host_received_s
    pins.close()


def test_it_never_runs_ahead_and_tells_that_nothing_happened(board: PacedBoard) -> None:
    pins = board.pins()
    before = -1
    for _ in range(50):
        pins.read(1.0)
        assert before < pins.told_until <= pins.clock.cycle_at(now_s())
        before = pins.told_until
    pins.close()


def test_after_a_stall_it_catches_up_and_says_how_far_behind_it_was(board: PacedBoard, link: Link) -> None:
    pins = board.pins()
    clock = pins.clock
    os.kill(board.pid, signal.SIGSTOP)
    stopped_s = now_s()
    SystemTime().sleep_until(SystemTime().now().plus(Duration(0.25)))
    os.kill(board.pid, signal.SIGCONT)
    told(pins, round(clock.cycle_at(stopped_s + 1.0)))
    assert pins.behind_s == pytest.approx(0.25, abs=0.1)
    after = link.exchange_clock()
    with board.pins() as late:
        (start,) = [e.cycle for e in late.read(1.0) if e.kind == "ticks"]
    received_s = clock.true_s(start + CYCLES_A_TICK * after.mcu_received_tick)
    assert after.host_sent_s <= received_s <= after.host_received_s
    board.close()
    assert board.pace is not None
    assert board.pace.behind_s >= pins.behind_s
    assert 0.0 < board.pace.cpu_s < board.pace.ran_s
    while not pins.ended:
        pins.read(1.0)
    pins.close()


@pytest.mark.parametrize("resets", [True, False])
def test_opening_the_port_resets_it_or_not(tmp_path: Path, resets: bool) -> None:
    with PacedBoard(emulator_or_skip(), tmp_path / "board", resets=resets) as board:
        pins, link = board.pins(), open_link(str(board.path), SystemTime())
        link.identify()
        link.close()
        link = open_link(str(board.path), SystemTime())  # at once: the board must not miss it
        assert link.identify().uid == "5249470000000003"
        events = told(pins, round(pins.clock.cycle_at(now_s())))
        assert len([e for e in events if e.kind == "reset"]) == (2 if resets else 0)
        link.close()
        pins.close()


def test_a_second_program_may_not_open_the_port(board: PacedBoard, link: Link) -> None:
    link.identify()
    with pytest.raises(PortDenied, match="open in another program"):
        SerialPipe(str(board.path), SystemTime())
    link.exchange_clock()


def test_the_side_channel_is_for_this_user_alone(board: PacedBoard) -> None:
    assert stat.S_IMODE(channel_of(board.path).stat().st_mode) == 0o600


def test_a_board_that_was_killed_is_gone_for_its_users_and_does_not_block_the_next(tmp_path: Path) -> None:
    board = PacedBoard(emulator_or_skip(), tmp_path / "board")
    board.start()
    pins, link = board.pins(), open_link(str(board.path), SystemTime())
    link.identify()
    os.kill(board.pid, signal.SIGKILL)
    with pytest.raises(LinkLost):
        exchanges(link, 100)
    while not pins.ended:
        pins.read(1.0)
    assert pins.read(1.0) == []
    link.close()
    pins.close()
    with pytest.raises(PortNotFound, match="does not run any more"):
        Pins(board.path)
    with PacedBoard(emulator_or_skip(), tmp_path / "board") as second:
        open_link(str(second.path), SystemTime()).close()
        board.close()  # takes nothing of the second one's away
        second.pins().close()
    assert list(tmp_path.iterdir()) == []
    assert board.pace is None


def test_two_boards_at_one_path_are_refused(board: PacedBoard) -> None:
    with pytest.raises(BenchNotReady, match=r"runs at .* already"):
        PacedBoard(emulator_or_skip(), board.path).start()
    board.pins().close()


@pytest.mark.parametrize("name", ["board", "board.events"])
def test_what_is_not_a_boards_is_never_removed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("precious")
    with pytest.raises(UsageError, match="not left by a board"):
        PacedBoard(emulator_or_skip(), tmp_path / "board").start()
    assert [(tmp_path / name).read_text(), len(list(tmp_path.iterdir()))] == ["precious", 1]


def test_paths_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="too long"):
        PacedBoard(["emu"], tmp_path / ("x" * 100)).start()
    with pytest.raises(UsageError, match="no board can be put"):
        PacedBoard(["emu"], "/proc/board").start()


def test_an_emulator_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    for command in (["/nonexistent"], [*emulator_or_skip()[:1], str(tmp_path / "none.hex")]):
        with pytest.raises(BenchNotReady, match="did not start"):
            PacedBoard(command, tmp_path / "board").start()
        assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_no_board_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no emulated board"):
        Pins("/dev/null")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "x.events"))
        other.listen(1)
        with pytest.raises(LinkLost, match="sends"):
            Pins(tmp_path / "x")
