"""When tone and pulse of the board on native USB come, to the cycle, and what its stamps mean on a busy bus."""

from __future__ import annotations

import numpy as np
import pytest

from firmware.emulated import check_tones
from firmware.test_usb import request
from firmware.usb_board import MS, UsbBoard
from rig.domain.waveforms import STIMULI, board_samples
from rig.sim.emulator import CYCLES_A_TICK


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


# --- the lights --------------------------------------------------------------------------------------------------


def test_the_second_light_follows_the_pulse_too() -> None:
    rx_led, port_b = 0x01, 0x25
    with UsbBoard() as board:
        (start, _) = board.fire("chirp", 400_000)
        assert board.emulator.peek(port_b) & rx_led  # dark: it is lit by a low
        board.run((start - board.cycle) / MS + 1)
        assert not board.emulator.peek(port_b) & rx_led
        board.run(5)
        assert board.emulator.peek(port_b) & rx_led
