"""Tones on their way: what the board or the interface plays, as spectra on the grid of whoever samples it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.sim.bandlimited import Floats, Spectrum, hold, transform_at

LEAD_FRAMES = 192
"""Frames rendered before a tone's first sample: the converters' zero-phase filter rings that early (below 1e-6)."""


@dataclass(slots=True)
class Tone:
    """One firing. `rate_hz` is the true rate of `samples` (full scale 1.0); `held`: each lasts until the next one.

    `told_s` is the true time from which the world knew of it: frames before are as they were. `undoes` is the tone
    whose rest this one cancels (a board that is told to stop).
    """

    index: int
    start_s: float
    samples: Floats
    rate_hz: float
    held: bool
    told_s: float
    source: str
    undoes: Tone | None = None
    cut_s: float | None = None

    @property
    def called_off(self) -> bool:
        """Whether it was cut off before it began: it never sounds."""
        return self.cut_s is not None and self.cut_s <= self.start_s

    @property
    def length_s(self) -> float:
        return len(self.samples) / self.rate_hz

    def rest_after(self, cut_s: float, index: int) -> Tone:
        """The tone that cancels everything of this one from `cut_s` on."""
        first = max(0, math.ceil((cut_s - self.start_s) * self.rate_hz))
        return Tone(
            index=index,
            start_s=self.start_s + first / self.rate_hz,
            samples=-self.samples[first:],
            rate_hz=self.rate_hz,
            held=self.held,
            told_s=cut_s,
            source=self.source,
            undoes=self,
        )

    def spectrum(self, rate_hz: float, start_frame: float, n_fft: int) -> Spectrum:
        """Spectrum on a grid of `rate_hz` (true frames per second) with the first sample at `start_frame`."""
        spacing = rate_hz / self.rate_hz
        spectrum = transform_at(self.samples, spacing, start_frame, n_fft)
        return np.asarray(spectrum * (hold(n_fft, spacing) if self.held else spacing), dtype=np.complex128)


@dataclass(slots=True)
class Rendered:
    """Samples that begin at frame `base`, heard only in frames [first, last)."""

    base: int
    samples: Floats
    first: int
    last: int | None = None

    @property
    def end(self) -> int:
        end = self.base + len(self.samples)
        return end if self.last is None else min(end, self.last)

    def add_to(self, out: Floats, at_frame: int) -> None:
        """Adds what falls into frames [at_frame, at_frame + len(out)) to `out`."""
        low = max(at_frame, self.base, self.first)
        high = min(at_frame + len(out), self.end)
        if low < high:
            out[low - at_frame : high - at_frame] += self.samples[low - self.base : high - self.base]
