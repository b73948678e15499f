"""Where sound stands on the reference channel: a streaming gate with flat memory.

The reference is an electrical copy, so a rise far above its own floor is enough here. Whether what rose is the stimulus
is decided later, by comparing the events with each other. The gate works on the difference of neighbouring samples,
which takes 26 dB off mains hum against 1 kHz and all of a constant offset.
"""

from __future__ import annotations

import itertools
from collections import deque
from dataclasses import dataclass

import numpy as np

from rig.analyse.spectrum import Real

RISE = 8.0
"""An event begins this far above the floor (18 dB); a usable reference stands 30 dB above it."""

FALL = 4.0
"""An event ends when the level is below this many floors, or 50 dB below its own top."""

SILENT_LEVEL = 2e-6
"""Floor of the floor: digital silence must not make dither an event."""


@dataclass(frozen=True, slots=True)
class Event:
    """Frames [start, stop) of the reference that stand out of its floor."""

    start: int
    stop: int
    peak: float  # highest RMS over about 1 ms, of the differenced signal
    floor: float


class Gate:
    """Feed blocks of the reference channel in order; take finished events out.

    `hold_s`: a pause shorter than this does not end an event (speech has pauses, trains of clicks do not).
    `silent`: the channel is digital silence between its sounds, see `is_silent_between`, so it has no floor of its own.
    """

    def __init__(self, rate_hz: float, hold_s: float, silent: bool = False) -> None:
        self._silent = silent
        self.hop = max(4, round(rate_hz / 1000.0))
        self.hold = max(1, round(hold_s * rate_hz / self.hop))
        self._carry = np.zeros(0, dtype=np.float32)
        self._last = np.float32(0.0)
        self._position = 0  # frame index of the carry's first sample
        self._floors: deque[float] = deque(maxlen=24)
        self._open: list[float] | None = None  # start hop, last loud hop, peak
        self._floor = 0.0
        self.finished: list[Event] = []

    def feed(self, block: Real) -> None:
        """`block`: shape (n,), the frames that follow those fed before."""
        if self._position == 0 and not len(self._carry) and len(block):
            self._last = block[0]
        difference = np.diff(block, prepend=self._last)
        if len(block):
            self._last = block[-1]
        samples = np.concatenate((self._carry, difference)) if len(self._carry) else difference
        hops = len(samples) // self.hop
        self._carry = samples[hops * self.hop :].copy()
        if not hops:
            return
        shaped = samples[: hops * self.hop].reshape(hops, self.hop)
        level = np.sqrt(np.einsum("ij,ij->i", shaped, shaped) / self.hop)
        first = self._position // self.hop
        self._position += hops * self.hop
        self._track(level, first)

    @property
    def open_since(self) -> int | None:
        """First frame of the event that is still going on, or None."""
        return None if self._open is None else int(self._open[0]) * self.hop

    def finish(self) -> None:
        """Ends an event that is still open at the end of the file."""
        if self._open is not None:
            self._close()

    def _track(self, level: Real, first: int) -> None:
        sounding = level[level > 0.0]  # a driver's leading zeros are no floor
        if len(sounding) > 0.1 * len(level) or not self._floors:
            self._floors.append(float(np.percentile(sounding, 20)) if len(sounding) else 0.0)
        # The lower quartile over recent blocks: a block full of speech must not lift the floor.
        own = 0.0 if self._silent else float(np.percentile(np.array(self._floors), 25))
        self._floor = max(own, SILENT_LEVEL)
        loud = np.nonzero(level > FALL * self._floor)[0]
        if self._open is None and not np.any(level > RISE * self._floor):
            return
        for k in loud:
            value = float(level[k])
            hop = first + int(k)
            if self._open is not None and hop - self._open[1] > self.hold:
                self._close()
            if self._open is None:
                if value > RISE * self._floor:
                    self._open = [hop, hop, value]
                continue
            if value > 3e-3 * self._open[2]:
                self._open[1] = hop
            self._open[2] = max(self._open[2], value)
        last = first + len(level) - 1
        if self._open is not None and last - self._open[1] > self.hold:
            self._close()

    def _close(self) -> None:
        if self._open is None:
            return
        start, stop, peak = self._open
        self._open = None
        self.finished.append(Event(int(start) * self.hop, (int(stop) + 1) * self.hop, float(peak), self._floor))


def is_silent_between(channel: Real, rate_hz: float) -> bool:
    """Is the channel exactly zero most of the time, once it has begun to sound?

    So are loops inside one computer. Leading zeros of a driver do not count, and short losses filled with zeros are
    outweighed by the noise around them.
    """
    hop = max(4, round(rate_hz / 1000.0))
    hops = len(channel) // hop
    sounding = np.any(channel[: hops * hop].reshape(hops, hop), axis=1)
    first = int(np.argmax(sounding)) if hops else 0
    return hops > 0 and bool(sounding[first]) and float(np.mean(sounding[first:])) < 0.5


def trim(clip: Real, rate_hz: float) -> tuple[int, int]:
    """The part of `clip` that holds the stimulus, as [start, stop) frames, to about a millisecond.

    Above its own noise and within 46 dB of its top, from the level over 1 ms of the clip without its mean. A loose trim
    costs precision (it correlates the reference's noise too), a tight one loses nothing.
    """
    hop = max(4, round(rate_hz / 1000.0))
    centred = clip - clip.mean()
    hops = len(centred) // hop
    if hops < 3:
        return 0, len(clip)
    shaped = centred[: hops * hop].reshape(hops, hop)
    level = np.sqrt(np.mean(shaped.astype(np.float64) ** 2, axis=1))
    floor = float(np.percentile(level, 10))
    top = float(level.max())
    above = np.nonzero(level > max(5e-3 * top, min(3.0 * floor, 0.1 * top)))[0]
    if not len(above):
        return 0, len(clip)
    return max(0, (int(above[0]) - 1) * hop), min(len(clip), (int(above[-1]) + 2) * hop)


def natural_hold_s(events: list[Event], rate_hz: float) -> float:
    """The pause that separates two stimuli from a pause inside one, read off a first pass with a short hold.

    The largest relative jump in the sorted pauses tells them apart; without a clear jump every event stands alone.
    """
    pauses = np.sort(np.array([b.start - a.stop for a, b in itertools.pairwise(events)]) / rate_hz)
    pauses = pauses[pauses > 0]
    if len(pauses) < 2:
        return 0.02
    ratio = pauses[1:] / pauses[:-1]
    k = int(np.argmax(ratio))
    if ratio[k] >= 2.5 and pauses[k] < 0.6:
        return float(np.sqrt(pauses[k] * pauses[k + 1]))
    return 0.02
