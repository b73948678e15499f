"""Level facts of a recording, metered block by block: peak, noise, offset, hum, flat tops, digital silence."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from rig.analyse.spectrum import Real
from rig.domain.levels import dbfs, rail_samples
from rig.domain.records import ChannelLevel
from rig.domain.seams import Frames

HUM_BLOCKS = 4
"""Blocks whose spectrum is searched for mains hum; hum does not come and go."""


class LevelMeter:
    """Feed frames of shape (n, 2) (reference, ear); ask for the two `ChannelLevel`s at the end."""

    def __init__(self, rate_hz: float, full_scale: float | None) -> None:
        self._rate_hz = rate_hz
        self._full_scale = full_scale
        self._count = 0
        self._sum = np.zeros(2)
        self._high = np.full(2, -np.inf)
        self._low = np.full(2, np.inf)
        self._rails = [0, 0]
        self._floors: tuple[list[float], list[float]] = ([], [])
        self._hums: tuple[list[float], list[float]] = ([], [])

    def feed(self, frames: Frames) -> None:
        if not len(frames):
            return
        self._count += len(frames)
        hop = max(8, round(0.02 * self._rate_hz))
        for channel in (0, 1):
            samples = frames[:, channel]
            high, low = float(samples.max()), float(samples.min())
            mean = float(samples.mean(dtype=np.float64))
            self._sum[channel] += mean * len(samples)
            self._high[channel] = max(self._high[channel], high)
            self._low[channel] = min(self._low[channel], low)
            rail = 0.999 * self._full_scale if self._full_scale is not None else None
            if rail is None or max(high, -low) >= rail:
                self._rails[channel] += rail_samples(samples, self._full_scale)
            hops = len(samples) // hop
            if hops:
                shaped = samples[: hops * hop].reshape(hops, hop)
                power = np.einsum("ij,ij->i", shaped, shaped) / hop
                means = shaped.mean(axis=1)
                quiet = float(np.percentile(np.maximum(power - means**2, 0.0), 20))
                self._floors[channel].append(quiet)
            if len(self._hums[channel]) < HUM_BLOCKS and len(samples) > 0.9 * self._rate_hz:
                self._hums[channel].append(_hum(samples, self._rate_hz))

    def levels(self) -> tuple[ChannelLevel, ChannelLevel] | None:
        """Reference and ear; None when nothing was fed."""
        if not self._count:
            return None
        return self._level(0), self._level(1)

    def is_constant(self, channel: int) -> bool:
        """True when every sample of the channel had the same value: digital silence, whatever its offset."""
        return bool(self._count > 0 and self._high[channel] == self._low[channel])

    def _level(self, channel: int) -> ChannelLevel:
        peak = max(abs(self._high[channel]), abs(self._low[channel]))
        noise = math.sqrt(float(np.median(self._floors[channel]))) if self._floors[channel] else 0.0
        hum = float(np.median(self._hums[channel])) if self._hums[channel] else 0.0
        return ChannelLevel(
            peak_dbfs=dbfs(float(peak)),
            noise_dbfs=dbfs(noise),
            dc=float(self._sum[channel] / self._count),
            hum_dbfs=dbfs(hum) if hum > 1e-4 else None,
            clipped_samples=self._rails[channel],
            digital_silence=self.is_constant(channel),
        )


@lru_cache(maxsize=2)
def _hann(n: int) -> Real:
    """The window of `n` samples, not to be written to. It costs as much as the spectrum, and all blocks of a file but
    the last have one length."""
    return np.hanning(n)


def _hum(samples: Real, rate_hz: float) -> float:
    """RMS of the stronger of 50 and 60 Hz (or its harmonic), where it stands 15 dB out of its surroundings; else 0."""
    n = len(samples)
    window = _hann(n)
    power = np.abs(np.fft.rfft((samples - samples.mean()) * window)) ** 2 / (np.sum(window) ** 2) * 2.0
    step = rate_hz / n
    strongest = 0.0
    for mains in (50.0, 60.0):
        for harmonic in (1, 2, 3):
            k = round(mains * harmonic / step)
            near = power[max(0, k - 3) : k + 4]
            around = np.concatenate((power[max(0, k - 24) : max(0, k - 5)], power[k + 6 : k + 25]))
            if len(near) and len(around) and near.max() > 30.0 * np.median(around):
                strongest = max(strongest, math.sqrt(float(near.max())))
    return strongest
