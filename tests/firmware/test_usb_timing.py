"""When tone and pulse of the board on native USB come, to the cycle, and what its stamps mean on a busy bus."""

from __future__ import annotations

import numpy as np
import pytest

from firmware.emulated import check_tones
from firmware.test_usb import request
from firmware.usb_board import MS, UsbBoard
from rig.acquire import wire
from rig.domain.waveforms import STIMULI, board_samples
from rig.sim.emulator import CYCLES_A_TICK, SILENCE


def traffic(board: UsbBoard, what: str, rng: np.random.Generator) -> None:
    """Something on the bus for about a millisecond."""
    if what == "requests":  # other programs look at the device while it plays
        board.emulator.control_later(request(0x80, 6, 0x0200, 0, 255))
        board.emulator.control_later(request(0x80, 6, 0x0303, 0x0409, 255))
    elif what == "garbage":
        board.write(rng.bytes(60))
    elif what == "close to it":  # a command so that it arrives at any phase of the sample
        board.emulator.receive([(board.cycle + int(rng.integers(1000)), byte) for byte in board.command("ping")])
    else:
        board.write(board.command(what))


@pytest.mark.parametrize("what", ["status", "identify", "close to it", "garbage", "requests"])
@pytest.mark.parametrize("kind", STIMULI)
def test_a_busy_bus_moves_nothing_by_a_cycle(what: str, kind: str, rng: np.random.Generator) -> None:
    with UsbBoard() as board:
        shortest = len(board_samples(kind, 1.0)) * 64 + 4000
        spacings = [int(shortest + extra) for extra in rng.integers(0, 40_000, 2)]
        starts = board.fire(kind, *spacings)
        while board.cycle < starts[-1] + CYCLES_A_TICK * shortest:
            traffic(board, what, rng)
            board.run(float(rng.uniform(0.3, 1.5)))
        board.run(300)
        check_tones(board, kind, starts)
        assert board.emulator.mistakes == []


def stamps(board: UsbBoard, n: int, rng: np.random.Generator) -> tuple[list[int], list[int]]:
    """(how late a ping's packet was stamped, how early a pong was stamped before the host took it), in cycles."""
    late, early = [], []
    for _ in range(n):
        board.run(float(rng.uniform(0.05, 2.0)))
        n_heard, n_events = len(board.heard), len(board.events)
        board.write(board.command("ping"))
        board.run(6)
        heard = zip(board.heard[n_heard:], board.heard_at[n_heard:], strict=True)
        ((pong, begun),) = [(message, cycle) for message, cycle in heard if message.name == "pong"]
        (packet,) = [event for event in board.events[n_events:] if event.kind == "packet"]
        late.append(board.ticks_from + CYCLES_A_TICK * pong["received_tick"] - packet.cycle)
        early.append(begun - board.ticks_from - CYCLES_A_TICK * pong["sent_tick"])
    return late, early


def test_a_ping_is_stamped_as_it_arrives_and_a_pong_before_it_leaves(rng: np.random.Generator) -> None:
    with UsbBoard() as board:
        poll = 320
        late, early = stamps(board, 150, rng)
        # To the tick: its stamp is the lower end of a tick, and the interrupt comes after the instruction that runs.
        assert min(late) > -CYCLES_A_TICK
        assert max(late) <= 6 * CYCLES_A_TICK
        assert min(early) >= 0
        assert max(early) <= poll + 300


def test_a_host_that_asks_once_a_frame_takes_a_pong_up_to_a_frame_later(rng: np.random.Generator) -> None:
    with UsbBoard() as board:
        board.emulator.poll_every(0)
        late, early = stamps(board, 60, rng)
        assert max(late) <= 6 * CYCLES_A_TICK
        assert 0 <= min(early) < 0.3 * MS
        assert 0.7 * MS < max(early) <= MS + 300


def test_while_it_plays_its_stamps_stay_on_their_side(rng: np.random.Generator) -> None:
    # Other interrupts come first, and a pong may be made too late for the tick that it carries: never too early.
    with UsbBoard() as board:
        board.fire("chirp", 220_000, 220_000, 220_000, 220_000)
        late, early = stamps(board, 60, rng)
        assert min(late) > -CYCLES_A_TICK
        assert max(late) <= 50 * CYCLES_A_TICK
        assert min(early) >= 0
        assert max(early) <= 300 * CYCLES_A_TICK


@pytest.mark.parametrize("high", [0xFFFF, 0x7FFF])
def test_stamps_are_right_where_the_ticks_start_anew(high: int, rng: np.random.Generator) -> None:
    with UsbBoard(high=high) as board:
        for _ in range(30):
            before = board.cycle
            tick = board.ask("status")["tick"]
            elapsed = (tick - (high << 16)) % 2**32 * CYCLES_A_TICK
            assert before <= board.ticks_from + elapsed <= board.cycle
        assert board.cycle - board.ticks_from > CYCLES_A_TICK << 16


# --- safe state, watchdog, self-test -------------------------------------------------------------------------------


def test_after_any_reset_it_is_silent_and_dark(rng: np.random.Generator) -> None:
    for way in ("reset", "hang"):
        with UsbBoard() as board:
            (start, _) = board.fire("chirp", 400_000)
            board.run((start - board.cycle) / MS + float(rng.uniform(0.1, 1.9)))
            assert board.events[-1].kind == "pwm"
            board.emulator.reset() if way == "reset" else board.emulator.hang()
            n = len(board.events)
            board.run(1000)
            after = board.events[n:]
            if way == "hang":  # what is in the ring is played, then it is silent until the watchdog bites
                (bite,) = [event.cycle for event in after if event.kind == "reset"]
                assert 400 * MS < bite - start < 600 * MS
                after = [event for event in after if event.cycle >= bite]
            assert [event for event in after if event.kind in ("pulse", "led") and event.value] == []
            levels = [event.value for event in after if event.kind == "pwm"]
            assert levels == list(range(SILENCE + 1))
            assert wire.STATES[board.ask("status")["state"]] == "idle"


def test_both_lights_follow_the_pulse() -> None:
    rx_led, port_b = 0x01, 0x25
    with UsbBoard() as board:
        (start, _) = board.fire("chirp", 400_000)
        assert board.emulator.peek(port_b) & rx_led  # dark: it is lit by a low
        board.run((start - board.cycle) / MS + 1)
        assert not board.emulator.peek(port_b) & rx_led
        board.run(5)
        assert board.emulator.peek(port_b) & rx_led
        lit = [(event.cycle, event.value) for event in board.events if event.kind == "led"]
        assert [value for _, value in lit[-2:]] == [1, 0]
        assert abs(lit[-2][0] - start) < 300
        assert abs(lit[-1][0] - board.edges(0)[0]) < 300


def test_the_self_test_times_the_pulse_where_it_is_wired_back() -> None:
    with UsbBoard() as board:
        for wired in (False, True):
            board.emulator.wire_capture(wired)
            for kind, name in enumerate(wire.KINDS):
                board.write(board.command("self_test", kind=kind))
                board.run(200)
                done = board.heard[-1]
                assert done.name == "self_tested", name
                assert done["failed_bits"] == (0x80 if wired else 0)
