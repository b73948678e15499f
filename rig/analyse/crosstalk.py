"""What of the reference is in the ear channel though nothing is plugged there.

It is far below the noise of one stimulus, as a rule, but in step with the reference: each stimulus is read off at the
reference's own place, amplitude and phase, and what is the same in all of them stands out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.analyse.heard import Channel
from rig.analyse.known import Found, in_db, student
from rig.analyse.spectrum import Real
from rig.domain.seams import FrameSource

MIN_RATIO = 8.0
"""A mean that is less than this many times its standard uncertainty is nothing that was heard."""


@dataclass(frozen=True, slots=True)
class Crosstalk:
    """`found` in dB against the reference channel, None where it was not heard; then it is below `limit_db`."""

    found: Found | None
    limit_db: float


def crosstalk_db(
    source: FrameSource, ear_channel: int, asked_frames: tuple[int, ...], wave: Real, reference: Channel
) -> Crosstalk | None:
    """Level of the reference in channel `ear_channel` (zero-based). `reference` is what `hear` says of the same stimuli
    on the reference channel. None where fewer than three stimuli stand on it, or the ear is digital silence."""
    wave = np.asarray(wave, dtype=np.float64)
    places = [(f + h.lag, h.gain) for f, h in zip(asked_frames, reference.stimuli, strict=True) if h is not None]
    ratios = [_at(source, ear_channel, place, wave) / gain for place, gain in places]
    if len(ratios) < 3 or not any(ratios):
        return None
    values = np.array(ratios)
    n = len(values)
    mean = complex(values.mean())
    spread = math.sqrt(float(np.sum(np.abs(values - mean) ** 2)) / (2.0 * (n - 1)))  # of one quadrature
    u = max(spread / math.sqrt(n) * student(2 * n - 2), 1e-9)
    limit_db = 20.0 * math.log10(MIN_RATIO * u)
    if abs(mean) < MIN_RATIO * u:
        return Crosstalk(None, limit_db)
    # The quadrature's noise makes the amplitude of a sum larger, on the average, by this.
    return Crosstalk(in_db(Found(math.sqrt(abs(mean) ** 2 - u**2), u, n), 20.0), limit_db)


def _at(source: FrameSource, channel: int, place: float, wave: Real) -> complex:
    """Amplitude and phase of the shape in the samples that begin at frame `place`, a fraction; against the shape's."""
    first = math.floor(place)
    samples = source.read(max(0, first), len(wave))[:, channel].astype(np.float64)
    if first < 0 or len(samples) < len(wave):
        return 0.0j
    shape = np.fft.rfft(wave)
    cycles = np.fft.rfftfreq(len(wave)) * (place - first)
    seen = np.fft.rfft(samples - samples.mean()) * np.conj(shape) * np.exp(2j * np.pi * cycles)
    return complex(seen[1:].sum()) / float(np.sum(np.abs(shape[1:]) ** 2))
