"""Where a stimulus of known shape is on each channel, how loud and which way up: what a calibration reads.

Unlike a measurement it knows what was played and about when, so the ideal shape is the template, and each channel is
read by itself. Lags count from the frame that the interface was asked to play at, positive when the sound is later.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.analyse.refine import LocalPair, NoiseModel
from rig.analyse.spectrum import VOICE_BAND, Real, median_psd
from rig.analyse.tops import flat_top
from rig.domain.levels import rail_samples
from rig.domain.seams import FrameSource

BEFORE_S, AFTER_S = 0.06, 0.4
"""Where a stimulus is looked for around the frame asked for: from this long before it to this long after."""

MIN_Z = 12.0
"""A peak of the correlation that stands less than this many standard deviations out is noise."""

SEARCH_FRAMES = 6.0


@dataclass(frozen=True, slots=True)
class Heard:
    """One stimulus on one channel. `lag` in frames: the peak of the correlation; `envelope_lag`: by the definition of a
    latency, the peak of the band's envelope, None where it has none. `gain` against the shape as asked, signed;
    `level`: the same whatever the path does to the phase. `peak`: of the samples, against full scale. `top`: the
    height at which they stand still, None where they follow the shape up to its peak. `rails`: samples at the rail."""

    lag: float
    envelope_lag: float | None
    gain: float
    level: float
    peak: float
    top: float | None
    z: float
    rails: int


@dataclass(frozen=True, slots=True)
class Channel:
    """All stimuli on one channel, in order; None where one was not heard. `noise` is the RMS before them, `limit_db`
    the level against the shape as asked below which a stimulus would not be heard; None where there is no noise."""

    stimuli: tuple[Heard | None, ...]
    noise: float
    limit_db: float | None = None

    @property
    def heard(self) -> tuple[Heard, ...]:
        return tuple(h for h in self.stimuli if h is not None)

    @property
    def present(self) -> bool:
        """Whether the stimulus is on this channel: four fifths of it were heard."""
        return len(self.heard) >= max(1, math.ceil(0.8 * len(self.stimuli)))

    @property
    def level_db(self) -> float | None:
        """Median level against the shape as asked; None where it is not there."""
        return 20.0 * math.log10(float(np.median([h.level for h in self.heard]))) if self.heard else None


def hear(source: FrameSource, channel: int, asked_frames: tuple[int, ...], wave: Real) -> Channel:
    """Reads one channel (zero-based) around every frame of the recording in `asked_frames`; `wave` of shape (n,)."""
    found = []
    noises, floors = [], []
    wave = np.asarray(wave, dtype=np.float64)
    for frame in asked_frames:
        before, after = round(BEFORE_S * source.rate_hz), round(AFTER_S * source.rate_hz)
        first = max(0, frame - before)
        samples = source.read(first, before + len(wave) + after)[:, channel].astype(np.float64)
        quiet = samples[: round(0.8 * before)]
        floor = _floor(quiet, wave, float(source.rate_hz))
        noises.append(float(np.std(quiet)) if len(quiet) else 0.0)
        floors.append(floor)
        found.append(_one(samples, first - frame, wave, float(source.rate_hz), source.full_scale, quiet, floor))
    least = MIN_Z * float(np.median(floors)) / float(np.dot(wave, wave)) if floors else 0.0
    return Channel(
        tuple(found),
        float(np.median(noises)) if noises else 0.0,
        20.0 * math.log10(least) if least > 0.0 else None,
    )


def _one(
    samples: Real, first_lag: int, wave: Real, rate_hz: float, full_scale: float | None, quiet: Real, floor: float
) -> Heard | None:
    n, size = len(wave), 1 << (len(samples) + len(wave)).bit_length()
    if len(samples) <= n or float(np.ptp(samples)) == 0.0:
        return None
    centred = samples - samples.mean()
    correlation = np.fft.irfft(np.fft.rfft(centred, size) * np.conj(np.fft.rfft(wave, size)), size)
    correlation = correlation[: len(samples) - n]
    at = int(np.argmax(np.abs(correlation)))
    z = abs(float(correlation[at])) / floor if floor > 0.0 else math.inf
    if z < MIN_Z:
        return None
    noise = NoiseModel(*median_psd(quiet, rate_hz, segments=9))
    pair = LocalPair(wave, samples, first_lag, at + first_lag, rate_hz)
    precise = pair.precision(noise, float(at + first_lag), SEARCH_FRAMES)
    if precise is None:
        return None
    arrival = pair.arrival(VOICE_BAND, noise, 4.0 * SEARCH_FRAMES)
    gain, level = pair.gain_at(precise.lag)
    heard = samples[at : at + n]
    return Heard(
        lag=precise.lag,
        envelope_lag=None if arrival is None else arrival.lag,
        gain=gain,
        level=level,
        peak=float(np.max(np.abs(heard))),
        top=flat_top(heard, wave, precise.lag - (at + first_lag)),
        z=z,
        rails=rail_samples(heard, full_scale),
    )


def _floor(quiet: Real, wave: Real, rate_hz: float) -> float:
    """Standard deviation of the correlation where there is noise alone: from the pause, by the density of its noise."""
    if len(quiet) < 64:
        return float(np.std(quiet)) * float(np.linalg.norm(wave)) if len(quiet) else 0.0
    frequency_hz, power = median_psd(quiet, rate_hz, segments=9)
    spectrum = np.abs(np.fft.rfft(wave)) ** 2
    density = np.interp(np.fft.rfftfreq(len(wave), 1.0 / rate_hz), frequency_hz, power)
    return math.sqrt(2.0 * float(np.sum(spectrum * density)) / len(wave))
