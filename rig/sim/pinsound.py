"""What a board's tone pin is as sound: the steps of its level, band-limited, on the frames of a converter.

A pin stays at a level until the next one, so between two frames there is more than a frame can hold. Each step is
drawn as the step response of the converter's filter at its own fractional frame, which is exact; the sum of them is
what an ideal converter records of the pin.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

HALF = 32
"""Half length of a step, in frames: so much of what comes must be known before a frame is made."""

CUTOFF = 0.4375
"""Cycles per frame in the middle of the filter's fade: flat to 19 kHz at 48 kHz, under -80 dB from 23 kHz on."""

COUPLING_HZ = 10.0
"""Corner of the capacitor between the pin and the mouth: the supply's half, at which the pin rests, stays behind."""

_BETA = 8.0  # of the Kaiser window
_ROWS = 512  # of the table, a frame; between them the step is a straight line, off by less than 1e-5


class PinSound:
    """Turns steps of a pin into frames, in order. Levels against full scale 1.0; `level` is that before frame 0."""

    def __init__(self, level: float = 0.0) -> None:
        self.next_frame = 0
        self._level = level  # of the pin now
        self._base = level  # of the pin where every step that has been added is over
        self._ahead = np.zeros(0)  # frames from next_frame on: what the steps add to _base

    def add(self, at_frames: Floats, levels: Floats) -> None:
        """From `at_frames` (fractional, growing, shape (n,)) on the pin is at `levels`.

        Raises ValueError for a step that should have been in frames that are out already.
        """
        if not len(at_frames):
            return
        whole = np.floor(at_frames).astype(np.int64)
        first = whole - (HALF - 1) - self.next_frame
        if int(first.min()) < 0:
            raise ValueError(f"a step at frame {float(at_frames.min()):.1f}; frames up to {self.next_frame} are out")
        sizes = np.diff(levels, prepend=self._level)
        self._level = float(levels[-1])
        # A step rises through 2 * HALF frames and stays up: what stays is the sum of those that have risen.
        rising = sizes[:, None] * _risen(at_frames - whole)
        places = first[:, None] + np.arange(2 * HALF)
        end = int(first.max()) + 2 * HALF
        drawn = np.bincount(places.ravel(), rising.ravel(), end + 1)
        drawn += np.cumsum(np.bincount(first + 2 * HALF, sizes, end + 1))
        self._grow(end + 1)
        self._ahead[: end + 1] += drawn
        self._ahead[end + 1 :] += drawn[-1]

    def take(self, until_frame: int) -> Floats:
        """Frames from the last call's end up to `until_frame`, not included. Every step before `until_frame + HALF`
        must have been added."""
        n = max(0, until_frame - self.next_frame)
        self._grow(n + 1)
        out = self._base + self._ahead[:n]
        self._ahead = self._ahead[n:]
        self.next_frame += n
        if len(self._ahead) == 1:  # nothing is rising: what has risen is the level
            self._base, self._ahead = self._level, np.zeros(0)
        return np.asarray(out, dtype=np.float64)

    def _grow(self, n: int) -> None:
        more = n - len(self._ahead)
        if more > 0:
            last = self._ahead[-1] if len(self._ahead) else 0.0
            self._ahead = np.concatenate([self._ahead, np.full(more, last)])


class Coupling:
    """A capacitor in the way: what stands still does not pass."""

    def __init__(self, rate_hz: float, corner_hz: float = COUPLING_HZ) -> None:
        self._keeps = float(np.exp(-2.0 * np.pi * corner_hz / rate_hz))
        self._charge: float | None = None  # None: charged to whatever comes first

    def through(self, frames: Floats) -> Floats:
        """The frames behind the capacitor; calls follow each other."""
        out = np.empty(len(frames))
        for start in range(0, len(frames), 1024):  # short, so that the powers of `keeps` stay within range
            part = frames[start : start + 1024]
            charge = float(part[0]) if self._charge is None else self._charge
            powers = self._keeps ** np.arange(1, len(part) + 1)
            charges = powers * (charge + (1.0 - self._keeps) * np.cumsum(part / powers))
            out[start : start + len(part)] = part - charges
            self._charge = float(charges[-1])
        return out


def _risen(fractions: Floats) -> Floats:
    """How far steps at these fractions of a frame have risen, HALF - 1 frames before to HALF after; (n, 2 HALF)."""
    table = _table()
    at = np.arange(1, 2 * HALF + 1) - fractions[:, None]  # frames since the step began to rise, 0 to 2 HALF
    row = np.minimum((at * _ROWS).astype(np.int64), len(table) - 2)
    weight = at * _ROWS - row
    return np.asarray((1.0 - weight) * table[row] + weight * table[row + 1])


@lru_cache(maxsize=1)
def _table() -> Floats:
    """The step response of a windowed sinc (Kaiser 1974), 0 to 1 over 2 HALF frames."""
    u = (np.arange(2 * HALF * _ROWS) + 0.5) / _ROWS - HALF
    taps = np.sinc(2.0 * CUTOFF * u) * np.i0(_BETA * np.sqrt(1.0 - (u / HALF) ** 2))
    risen = np.concatenate([[0.0], np.cumsum(taps)])
    return np.asarray(risen / risen[-1])
