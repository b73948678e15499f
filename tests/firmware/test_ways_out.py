"""What both boards do when they stop, flash and test themselves: safe on every way out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from firmware.board import Board
from firmware.emulated import EmulatedBoard
from firmware.usb_board import MS, UsbBoard
from rig.acquire import wire
from rig.sim.emulator import SILENCE

Make = Callable[[], EmulatedBoard]
BOARDS = [pytest.param(Board, id="atmega328p"), pytest.param(UsbBoard, id="atmega32u4")]


@pytest.mark.parametrize("make", BOARDS)
@pytest.mark.parametrize("way", ["reset", "hang"])
def test_after_any_reset_it_is_silent_and_dark(make: Make, way: str, rng: np.random.Generator) -> None:
    with make() as board:
        (start, _) = board.fire("chirp", 400_000)
        board.run_cycles(start - board.cycle + int(rng.uniform(0.1, 1.9) * MS))
        assert board.events[-1].kind == "pwm"
        board.emulator.reset() if way == "reset" else board.emulator.hang()
        n = len(board.events)
        board.run_cycles(1000 * MS)
        after = board.events[n:]
        if way == "hang":  # what is in the ring is played, then it is silent until the watchdog bites
            (bite,) = [event.cycle for event in after if event.kind == "reset"]
            assert 400 * MS < bite - start < 600 * MS
            after = [event for event in after if event.cycle >= bite]
        assert [event for event in after if event.kind in ("pulse", "led") and event.value] == []
        levels = [event.value for event in after if event.kind == "pwm"]
        assert levels == list(range(SILENCE + 1))
        assert wire.STATES[board.ask("status")["state"]] == "idle"


@pytest.mark.parametrize("make", BOARDS)
def test_the_light_follows_the_pulse(make: Make) -> None:
    with make() as board:
        (start, _) = board.fire("chirp", 400_000)
        board.run_cycles(start - board.cycle + 6 * MS)
        lit = [(event.cycle, event.value) for event in board.events if event.kind == "led"]
        assert [value for _, value in lit[-2:]] == [1, 0]
        assert abs(lit[-2][0] - start) < 300
        assert abs(lit[-1][0] - board.edges(0)[0]) < 300


@pytest.mark.parametrize("make", BOARDS)
def test_the_self_test_times_the_pulse_where_it_is_wired_back(make: Make) -> None:
    with make() as board:
        for wired in (False, True):
            board.emulator.wire_capture(wired)
            for kind, name in enumerate(wire.KINDS):
                board.say(board.command("self_test", kind=kind))
                board.run_cycles(200 * MS)
                done = board.heard[-1]
                assert done.name == "self_tested", name
                assert done["failed_bits"] == (0x80 if wired else 0)
