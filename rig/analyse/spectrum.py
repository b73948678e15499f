"""Spectra, bands and tapers that every estimator here shares.

Conventions: `rate_hz` samples a second; a lag is positive when the ear channel is later than the reference; spectra
come from numpy's unnormalised forward transform.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.floating]
Complex = npt.NDArray[np.complexfloating]


@dataclass(frozen=True, slots=True)
class Band:
    """A frequency band, both edges in Hz."""

    low_hz: float
    high_hz: float

    @property
    def width_hz(self) -> float:
        return self.high_hz - self.low_hz


VOICE_BAND = Band(300.0, 3400.0)
"""The telephone band: what narrow-band and wide-band systems have in common, so that their figures compare."""


@lru_cache(maxsize=4096)
def fast_length(at_least: int, multiple_of: int = 1) -> int:
    """The smallest 2,3,5-smooth length not under `at_least` that is a multiple of `multiple_of` times such a number."""
    target = max(1, -(-at_least // multiple_of))
    best = 1 << max(0, math.ceil(math.log2(target)))
    five = 1
    while five < best:
        three = five
        while three < best:
            rest = -(-target // three)
            two = 1 << max(0, (rest - 1).bit_length())
            if target <= three * two < best:
                best = three * two
            three *= 3
        five *= 5
    return best * multiple_of


def band_taper(frequency_hz: Real, band: Band) -> Real:
    """Half a sine over the band, to the power of 1.5: 1 at its centre, 0 at and beyond its edges.

    Part of the definition of the headline figure. Between the half sine, whose side lobes let a louder echo lean on the
    direct sound, and Hann's taper, which costs precision: docs/decisions/0011-spectral-taper.md has the figures.
    """
    position = np.clip((frequency_hz - band.low_hz) / band.width_hz, 0.0, 1.0)
    return np.asarray(np.sin(np.pi * position) ** 1.5)


def flat_taper(frequency_hz: Real, band: Band, edge: float = 0.05) -> Real:
    """Tukey weight over the band: 1 inside, cosine flanks over `edge` of the width at either side, 0 outside."""
    position = (frequency_hz - band.low_hz) / band.width_hz
    ramp = np.clip(np.minimum(position, 1.0 - position) / edge, 0.0, 1.0)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * ramp))


def smooth(values: Real, half_width: int) -> Real:
    """Moving average over 2 * half_width + 1 neighbours, shortened at the ends. Same shape as `values`."""
    if half_width < 1:
        return values
    total = np.concatenate(([0.0], np.cumsum(values, dtype=np.float64)))
    index = np.arange(len(values))
    low = np.maximum(0, index - half_width)
    high = np.minimum(len(values), index + half_width + 1)
    return np.asarray((total[high] - total[low]) / (high - low))


def median_psd(signal: Real, rate_hz: float, segments: int = 48) -> tuple[Real, Real]:
    """Noise power density that a stimulus in a minority of the time does not disturb.

    Welch's method (1967) with the median over segments in place of the mean, divided by ln 2: the median of an
    exponentially distributed power is ln 2 times its mean. Returns (frequency_hz, power), where a white signal of
    variance s2 gives power s2 in every bin (power per sample, two-sided). Segments of about 21 ms, Hann window.
    """
    length = max(64, 1 << round(math.log2(0.0213 * rate_hz)))
    if len(signal) < length:
        length = max(16, 1 << int(math.log2(max(16, len(signal)))))
    count = len(signal) - length
    if count < 0:
        return np.array([0.0, rate_hz / 2]), np.zeros(2)
    starts = np.unique(np.linspace(0, count, num=min(segments, max(1, 2 * count // length + 1))).astype(np.intp))
    window = _hann(length)
    blocks = np.asarray(signal)[starts[:, None] + np.arange(length)[None, :]]
    spectra = np.fft.rfft((blocks - blocks.mean(axis=1, keepdims=True)) * window, axis=1)
    power = np.abs(spectra) ** 2
    # The median of few exponentials is biased upward: for an odd count n its mean is sum 1/k over the upper half.
    n = len(starts)
    bias = (
        sum(1.0 / k for k in range(n // 2 + 1, n + 1))
        if n % 2
        else (0.5 * (sum(1.0 / k for k in range(n // 2, n + 1)) + sum(1.0 / k for k in range(n // 2 + 1, n + 1))))
    )
    level = np.median(power, axis=0) / bias / float(np.sum(window**2))
    return np.fft.rfftfreq(length, 1.0 / rate_hz), np.asarray(level, dtype=np.float64)


@lru_cache(maxsize=32)
def _hann(length: int) -> Real:
    return np.asarray(0.5 - 0.5 * np.cos(2.0 * np.pi * np.arange(length) / length))


def envelope_sigma(envelope: Real) -> float:
    """Noise level of one quadrature from an envelope, robust against arrivals: Rayleigh median / 1.17741."""
    thinned = envelope[:: max(1, len(envelope) // 4000)]  # a median of thousands needs no more
    return float(np.median(thinned)) / 1.17741


def decibel(ratio: float) -> float | None:
    """20 lg of an amplitude ratio; None for 0 and below."""
    return 20.0 * math.log10(ratio) if ratio > 0.0 else None
