"""Between PortAudio's callback and the program: a ring of samples made beforehand, and the waves that are to be played.

The callback's side (`heard`, `fill`) copies into memory that is there already, takes no lock and never waits. The other
side (`next_block`, `play`) runs in the thread that writes the session. Counters are only ever advanced by one side.
"""

from __future__ import annotations

import threading

import numpy as np
import numpy.typing as npt

from rig.domain.seams import AudioBlock, Frames, HostTime
from rig.domain.timebase import HostClock, Instant
from rig.errors import AudioLost

RING_S = 20.0
"""The disk, or a board that does not answer, may keep the writing thread for this long before samples are lost."""

MAX_BLOCKS = 1 << 15
"""Blocks that the ring can hold: 20 s in blocks of 30 frames at 48 kHz."""

PLAY_MARGIN_S = 0.02
"""A wave is scheduled at least this far ahead of the last callback, so that its beginning cannot be missed."""


class CaptureRing:
    """Samples and facts of the last blocks, from the callback to one reader."""

    def __init__(self, channels: int, rate_hz: int, host: HostTime, ring_s: float = RING_S) -> None:
        self._host = host
        self._rate_hz = rate_hz
        self._size = round(ring_s * rate_hz)
        self._frames = np.empty((self._size, channels), np.float32)
        self._frames.fill(0.0)  # the memory is there now, not when the callback first touches it
        self._firsts = np.zeros(MAX_BLOCKS, np.int64)
        self._counts = np.zeros(MAX_BLOCKS, np.int64)
        self._flags = np.zeros((MAX_BLOCKS, 2), np.bool_)  # lost input, starved output
        self._times_s = np.zeros((MAX_BLOCKS, 3))  # arrived, ADC time claimed, now claimed; NaN where not given
        self._stream_frame = 0  # of the next block from the callback
        self._frames_in = 0
        self._frames_out = 0
        self._blocks_in = 0
        self._blocks_out = 0
        self._waves: tuple[tuple[int, Frames], ...] = ()
        self._failure: BaseException | None = None
        # Held while there is nothing to read. Only the callback releases it, only the reader takes it.
        self._nothing = threading.Lock()
        self._nothing.acquire()

    # --- the callback's side ---

    def heard(self, frames: Frames, adc_s: float | None, now_s: float | None, lost: bool, starved: bool) -> None:
        """Takes a block of shape (n, n_channels). Where the ring is full it is dropped: its frames are counted on, so
        that the next block shows how many are missing."""
        arrived_s = self._host.now().seconds
        first, n = self._stream_frame, len(frames)
        self._stream_frame = first + n
        if n > self._size - (self._frames_in - self._frames_out) or self._blocks_in - self._blocks_out >= MAX_BLOCKS:
            return
        at = self._frames_in % self._size
        head = min(n, self._size - at)
        self._frames[at : at + head] = frames[:head]
        self._frames[: n - head] = frames[head:]
        row = self._blocks_in % MAX_BLOCKS
        self._firsts[row], self._counts[row] = first, n
        self._flags[row, 0], self._flags[row, 1] = lost, starved
        times_s = self._times_s[row]
        times_s[0] = arrived_s
        times_s[1] = np.nan if adc_s is None else adc_s
        times_s[2] = np.nan if now_s is None else now_s
        self._frames_in += n
        self._blocks_in += 1  # last: from here on the reader may look
        self._wake()

    def fill(self, out: Frames) -> None:
        """Fills the output block that belongs to the input block which `heard` takes next: call it before `heard`."""
        out.fill(0.0)
        first, end = self._stream_frame, self._stream_frame + len(out)
        for start, wave in self._waves:
            begin, stop = max(first, start), min(end, start + len(wave))
            if begin < stop:
                out[begin - first : stop - first] += wave[begin - start : stop - start]

    def fail(self, error: BaseException) -> None:
        """Keeps an error of the callback for the reader, who raises it."""
        self._failure = error
        self._wake()

    def _wake(self) -> None:
        if self._nothing.locked():
            self._nothing.release()

    # --- the reader's side ---

    def next_block(self, deadline: Instant[HostClock]) -> AudioBlock | None:
        """The oldest block not yet read, None when none comes before the deadline. Raises AudioLost after a failure."""
        while self._blocks_out >= self._blocks_in:
            if self._failure is not None:
                raise AudioLost(
                    f"the audio callback failed: {type(self._failure).__name__}: {self._failure}",
                    "a stream that delivers",
                    "measure again; if it happens again it is a fault of rig",
                )
            rest_s = deadline.since(self._host.now()).seconds
            if rest_s <= 0.0:
                return None
            self._nothing.acquire(timeout=rest_s)
        row = self._blocks_out % MAX_BLOCKS
        n = int(self._counts[row])
        at = self._frames_out % self._size
        frames = self._frames[np.arange(at, at + n) % self._size] if at + n > self._size else self._frames[at : at + n]
        arrived_s, adc_s, now_s = (float(s) for s in self._times_s[row])
        block = AudioBlock(
            first_frame=int(self._firsts[row]),
            frames=frames.copy(),
            overflow=bool(self._flags[row, 0]),
            arrived=Instant(deadline.timebase, arrived_s),
            adc_time_claimed_s=None if np.isnan(adc_s) else adc_s,
            now_claimed_s=None if np.isnan(now_s) else now_s,
            underflow=bool(self._flags[row, 1]),
        )
        self._frames_out += n
        self._blocks_out += 1
        return block

    def play(self, wave: npt.NDArray[np.float32], at_frame: int) -> int:
        """Schedules mono `wave` for stream frame `at_frame`, later where that has passed; returns the frame."""
        now = self._stream_frame
        start = max(at_frame, now + round(PLAY_MARGIN_S * self._rate_hz))
        waiting = tuple(item for item in self._waves if item[0] + len(item[1]) > now)
        self._waves = (*waiting, (start, wave.astype(np.float32).reshape(-1, 1)))  # one assignment: the callback sees
        return start  # the old waves or the new ones
