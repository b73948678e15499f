"""The voice of a paced board in virtual time: its events over a real socket, a sound server with a clock of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from rig.errors import AudioLost
from rig.sim.clock import VirtualTime
from rig.sim.emulator import CPU_HZ
from rig.sim.pins import HELLO, Pins
from rig.sim.voice import LAG_S, MOST_LAG_S, SETTLE_S, FrameMap, Voice

RATE_HZ = 48000
KEPT_FRAMES = 9600


class Board:
    """The side channel of a board: it tells what has happened, and nothing before it has."""

    def __init__(self, path: Path, time: VirtualTime) -> None:
        self.time = time
        self.levels: list[tuple[float, int]] = []  # (s, level) to come
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(f"{path}.events")
            listener.listen(1)
            greeter = threading.Thread(target=self._greet, args=(listener,))
            greeter.start()
            self.pins = Pins(path)
            greeter.join()

    def _greet(self, listener: socket.socket) -> None:
        self._line, _ = listener.accept()
        self._line.sendall(f"{HELLO}\nclock 0 0 0\npwm 0 128 0\n".encode())

    def tell(self) -> None:
        lines = []
        while self.levels and self.levels[0][0] <= self.time.now_s:
            at_s, level = self.levels.pop(0)
            lines.append(f"pwm {round(at_s * CPU_HZ)} {level} 0")
        lines.append(f"at {int(self.time.now_s * CPU_HZ)}")
        self._line.sendall(("\n".join(lines) + "\n").encode())

    def close(self) -> None:
        self.pins.close()
        self._line.close()


class Server:
    """Takes frames as long as it has room, and plays a block of them every 20 ms of its own clock, `ppm` fast."""

    def __init__(self, time: VirtualTime, ppm: float) -> None:
        self.time, self.rate_hz = time, RATE_HZ * (1 + 1e-6 * ppm)
        self.begun_s = time.now_s
        self.kept = b""
        self.played: list[bytes] = []
        self.n_played = 0
        self.takes = True
        self.words: str | None = None

    def offer(self, data: bytes) -> int:
        self._play()
        n = min(len(data), 4 * KEPT_FRAMES - len(self.kept)) if self.takes else 0
        self.kept += data[:n]
        return n

    def complaint(self) -> str | None:
        return self.words

    def waiting_s(self) -> float | None:
        return len(self.kept) / 4 / self.rate_hz

    def _play(self) -> None:
        due = int((self.time.now_s - self.begun_s) * self.rate_hz) // 960 * 960
        while self.n_played < due:
            if len(self.kept) < 4 * 960:
                self.words = "it ran dry"
                return
            self.played.append(self.kept[: 4 * 960])
            self.kept = self.kept[4 * 960 :]
            self.n_played += 960

    def sound(self) -> np.ndarray:
        return np.frombuffer(b"".join(self.played), np.float32)


@pytest.fixture
def time() -> VirtualTime:
    return VirtualTime()


@pytest.fixture
def board(tmp_path: Path, time: VirtualTime) -> Iterator[Board]:
    made = Board(tmp_path / "b", time)
    yield made
    made.close()


def take_turns(board: Board, voice: Voice, until_s: float, each: Callable[[], None] = lambda: None) -> None:
    while board.time.now_s < until_s:
        board.tell()
        voice.turn()
        each()


@pytest.mark.parametrize("ppm", [0.0, 60.0])
def test_what_the_pin_does_is_heard_at_its_place_on_one_straight_line(
    board: Board, time: VirtualTime, ppm: float
) -> None:
    steps_s = np.arange(2.5, 38.0, 1.7)  # each a click of 2 ms
    board.levels = [(at + k * 0.002, level) for at in steps_s for k, level in enumerate((192, 128))]
    server = Server(time, ppm)
    voice = Voice(board.pins, server, time, RATE_HZ)
    after_s: list[float] = []

    def note() -> None:
        if voice.after_pins_s is not None:
            after_s.append(voice.after_pins_s)

    take_turns(board, voice, 40.0, note)
    assert server.complaint() is None
    sound = server.sound()
    up = np.flatnonzero((sound[1:] >= 0.125) & (sound[:-1] < 0.125))
    assert len(up) == len(steps_s)
    exact = up + (0.125 - sound[up]) / (sound[up + 1] - sound[up])  # where it is half up
    line = np.polyfit(steps_s, exact, 1)
    # The slope may be steered by some ppm while it goes on: a frame in forty seconds.
    assert np.abs(exact - np.polyval(line, steps_s)).max() < 1.0
    assert line[0] / RATE_HZ == pytest.approx(1.0, abs=50e-6)
    assert 0.2 < min(after_s) <= max(after_s) < 0.2 + LAG_S + 0.05
    true_late_s = exact / server.rate_hz - steps_s  # the server's clock began with the world's
    assert np.ptp(true_late_s) < 60e-6 * 40 + 0.001
    assert voice.after_pins_s == pytest.approx(true_late_s[-1], abs=0.025), "as it says, to a block"


def test_a_server_that_is_fast_is_followed_for_hours() -> None:
    """The loop alone: a lag that a clock 80 ppm off would use up in minutes stays within some ms."""
    frames = FrameMap(0.0, 0.0, RATE_HZ)
    lags_s = []
    for second in range(10, 4 * 3600, 10):
        lag_s = (float(frames.frame(float(second))) - second * RATE_HZ * (1 + 80e-6)) / RATE_HZ
        lags_s.append(lag_s)
        frames.steer(float(second), 10.0, lag_s)
    assert np.abs(lags_s).max() < 0.025
    assert abs(lags_s[-1]) < 1e-4
    assert frames.ppm == pytest.approx(80.0, abs=0.1)


def test_a_new_slope_goes_on_from_where_the_old_one_was() -> None:
    frames = FrameMap(1.0, 100.0, RATE_HZ)
    before = frames.frame(7.5)
    frames.steer(7.5, 10.0, 0.03)
    assert frames.frame(7.5) == pytest.approx(before, abs=1e-9)
    assert frames.ppm == pytest.approx(-100.0, abs=10.0), "less is made while more waits than should"


def test_a_server_that_ran_dry_ends_it(board: Board, time: VirtualTime) -> None:
    server = Server(time, 0.0)
    voice = Voice(board.pins, server, time, RATE_HZ)
    take_turns(board, voice, SETTLE_S + 1.0)
    time.advance_to_ns(time.now_ns + 300_000_000)  # a machine that stood still
    with pytest.raises(AudioLost, match="broke off: it ran dry"):
        take_turns(board, voice, time.now_s + 1.0)


def test_a_server_that_takes_nothing_ends_it(board: Board, time: VirtualTime) -> None:
    server = Server(time, 0.0)
    voice = Voice(board.pins, server, time, RATE_HZ)
    take_turns(board, voice, SETTLE_S + 1.0)
    server.takes = False
    server.begun_s += 1e3  # nor does it play
    begun_s = time.now_s
    with pytest.raises(AudioLost, match=r"taken nothing of the emulated board for 2\.0"):
        take_turns(board, voice, time.now_s + 3.0)
    assert time.now_s - begun_s < MOST_LAG_S + 0.1


def test_before_it_has_settled_nothing_is_said_of_its_delay(board: Board, time: VirtualTime) -> None:
    voice = Voice(board.pins, Server(time, 0.0), time, RATE_HZ)
    assert voice.after_pins_s is None
    take_turns(board, voice, SETTLE_S / 2)
    assert voice.after_pins_s is None
    assert voice.ppm == 0.0
