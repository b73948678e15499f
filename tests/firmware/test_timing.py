"""When tone and pulse come, to the CPU cycle, whatever goes on on the line: what docs/protocol.md promises."""

from __future__ import annotations

import numpy as np
import pytest

from firmware.board import Board
from firmware.emulated import check_tones
from rig.domain.waveforms import STIMULI, board_samples
from rig.sim.emulator import CYCLES_A_TICK


def traffic(board: Board, what: str, rng: np.random.Generator) -> bytes:
    if what == "garbage":
        return rng.integers(0, 256, 30).astype(np.uint8).tobytes()
    return board.command(what)


def play(board: Board, what: str, gap_cycles: int, n_cycles: int, rng: np.random.Generator) -> None:
    """Runs the board while the line carries `what`, with gaps of up to `gap_cycles` between."""
    end = board.cycle + n_cycles
    while board.cycle < end:
        there = board.line(traffic(board, what, rng), int(rng.integers(0, gap_cycles + 1)))
        board.run_cycles(max(there - 20_000 - board.cycle, 1))
    board.run_cycles(400_000)


@pytest.mark.parametrize("what", ["ping", "identify", "status", "garbage"])
@pytest.mark.parametrize("kind", STIMULI)
def test_a_line_that_never_falls_silent_moves_nothing_by_a_cycle(what: str, kind: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Board() as board:
        shortest = len(board_samples(kind, 1.0)) * 64 + 4000
        spacings = tuple(int(shortest + extra) for extra in rng.integers(0, 60_000, 2))
        starts = board.fire(kind, *spacings)
        play(board, what, 0, CYCLES_A_TICK * (sum(spacings) + shortest), rng)
        check_tones(board, kind, starts)


def test_pings_now_and_then_are_answered_and_move_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Board() as board:
        spacings = tuple(int(extra) for extra in rng.integers(250_000, 350_000, 11))
        starts = board.fire("chirp", *spacings)
        play(board, "ping", 200_000, CYCLES_A_TICK * (sum(spacings) + 250_000), rng)
        check_tones(board, "chirp", starts)
        assert sum(message.name == "pong" for message in board.heard) > 100


@pytest.mark.parametrize("high", [0xFFFF, 0xFFFC, 0x7FFF])
def test_stamps_are_right_where_the_ticks_start_anew(high: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    with Board(high) as board:
        spacings = tuple(int(extra) for extra in rng.integers(14_000, 16_000, 23))
        starts = board.fire("click", *spacings)
        play(board, "ping", 60_000, CYCLES_A_TICK * (sum(spacings) + 40_000), rng)
        check_tones(board, "click", starts)
        pongs = [message for message in board.heard if message.name == "pong"]
        stamps = [pong[name] for pong in pongs for name in ("received_tick", "sent_tick")]
        assert len(stamps) > 20
        elapsed = [(stamp - (board.high << 16)) % 2**32 for stamp in stamps]
        assert all(0 < received < sent for received, sent in zip(elapsed[::2], elapsed[1::2], strict=True))
        assert elapsed[1::2] == sorted(elapsed[1::2])
        assert max(elapsed) < (board.cycle - board.ticks_from) // CYCLES_A_TICK


def test_the_stamps_of_a_pong_are_those_of_its_bytes_on_the_line(seed: int) -> None:
    """Received: at most 3 us after the last bit, on a quiet board. Sent: at most 1 us before the start bit."""
    rng = np.random.default_rng(seed)
    with Board() as board:
        for _ in range(100):
            board.run_cycles(int(rng.integers(1000, 30_000)))
            n_heard = len(board.heard)
            there = board.line(board.command("ping"))
            starts = [event.cycle for event in board.run_cycles(there + 80_000 - board.cycle) if event.kind == "tx"]
            (pong,) = board.heard[n_heard:]
            late = (board.cycle_of(pong["received_tick"]) - there, starts[0] - board.cycle_of(pong["sent_tick"]))
            assert -CYCLES_A_TICK < late[0] <= 6 * CYCLES_A_TICK
            assert 0 <= late[1] <= 2 * CYCLES_A_TICK
