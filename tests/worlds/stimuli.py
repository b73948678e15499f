"""The sounds that are played: chirps, tone burst, maximum-length sequence, speech-like clips. Own generators.

Each is band-limited (nothing above 22.5 kHz) so that a phase ramp in the spectrum delays it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.signal import lfilter, max_len_seq
from scipy.signal.windows import hann, tukey

from worlds import RATE_HZ

Samples = npt.NDArray[np.float64]

GUARD = 128
"""Samples before the nominal start of a wave: room for the tails of the band limit."""

KINDS = ("chirp", "chirp-nb", "mls", "speech", "click")


@dataclass(frozen=True)
class Stimulus:
    """`wave[GUARD]` is the nominal first sample; `n_active` samples sound. The truth is read in `band_hz`."""

    kind: str
    wave: Samples
    n_active: int
    band_hz: tuple[float, float]

    @property
    def power(self) -> float:
        """Mean square over the active duration."""
        return float(np.sum(self.wave**2) / self.n_active)


def band_limited(wave: Samples, edge_hz: float = 20_000.0) -> Samples:
    """`wave` with GUARD samples either side, tapered to nothing between `edge_hz` and 22.5 kHz; no delay added."""
    padded = np.concatenate([np.zeros(GUARD), wave, np.zeros(GUARD)])
    n = 2 * padded.size
    f = np.fft.rfftfreq(n, 1.0 / RATE_HZ)
    taper = 0.5 + 0.5 * np.cos(np.pi * np.clip((f - edge_hz) / (22_500.0 - edge_hz), 0.0, 1.0))
    return np.asarray(np.fft.irfft(np.fft.rfft(padded, n) * taper, n)[: padded.size])


def _sweep(duration_s: float, low_hz: float, high_hz: float) -> Samples:
    n = round(duration_s * RATE_HZ)
    t = np.arange(n) / RATE_HZ
    phase = 2.0 * np.pi * (low_hz * t + 0.5 * (high_hz - low_hz) / duration_s * t**2)
    return np.asarray(np.sin(phase) * tukey(n, 0.1))


def speech_like(rng: np.random.Generator, duration_s: float) -> Samples:
    """Syllables at about 4 per second: pulses of a gliding pitch through three formants, fricatives, short pauses.

    Source-filter synthesis in its plainest form. It has what matters to a correlator: pauses (one syllable long at
    most), harmonics, level swings, a spectrum that falls by 30 to 40 dB to 3 kHz and is filled by fricatives now and
    then. It makes no claim to be intelligible. Peak 1.
    """
    n = round(duration_s * RATE_HZ)
    out = np.zeros(n)
    at, last, since_fricative = 0, "pause", 0
    while at < n:
        length = int(rng.uniform(0.09, 0.24) * RATE_HZ)
        stop = min(n, at + length)
        draw = rng.random()
        what = "vowel" if draw < 0.65 else "fricative" if draw < 0.85 else "pause"
        if what == "pause" and last == "pause":
            what = "vowel"
        if since_fricative >= 2:
            what = "fricative"
        since_fricative = 0 if what == "fricative" else since_fricative + 1
        if what == "vowel":
            out[at:stop] += (_vowel(rng, length) * rng.uniform(0.4, 1.0))[: stop - at]
        elif what == "fricative":
            out[at:stop] += (_fricative(rng, length) * rng.uniform(0.08, 0.25))[: stop - at]
        at, last = at + length, what
    return out / float(np.max(np.abs(out)))


def _vowel(rng: np.random.Generator, length: int) -> Samples:
    pitch_hz = np.linspace(rng.uniform(95, 230), rng.uniform(95, 230), length)
    cycles = np.cumsum(pitch_hz) / RATE_HZ
    pulses = np.diff(np.floor(cycles), prepend=0.0) + 0.01 * rng.standard_normal(length)
    for low, high, width_hz in ((280, 780, 90), (950, 2200, 120), (2400, 3300, 170)):
        radius = np.exp(-np.pi * width_hz / RATE_HZ)
        angle = 2.0 * np.pi * rng.uniform(low, high) / RATE_HZ
        pulses = lfilter([1.0 - radius], [1.0, -2.0 * radius * np.cos(angle), radius**2], pulses)
    shaped = pulses * tukey(length, 0.35)
    return np.asarray(shaped / np.max(np.abs(shaped)))


def _fricative(rng: np.random.Generator, length: int) -> Samples:
    """Noise round one broad resonance between 2 and 6 kHz."""
    radius = np.exp(-np.pi * 1500.0 / RATE_HZ)
    angle = 2.0 * np.pi * rng.uniform(2000, 6000) / RATE_HZ
    noise = lfilter([1.0, -1.0], [1.0, -2.0 * radius * np.cos(angle), radius**2], rng.standard_normal(length))
    shaped = noise * tukey(length, 0.35)
    return np.asarray(shaped / np.max(np.abs(shaped)))


def make(kind: str, rng: np.random.Generator | None = None, duration_s: float = 1.0) -> Stimulus:
    """The stimulus of that kind. `rng` and `duration_s` (0.5 to 2 s) serve speech, which differs with every draw."""
    if kind == "chirp":
        raw, band = _sweep(0.1, 200.0, 7500.0), (300.0, 3400.0)
    elif kind == "chirp-nb":
        raw, band = _sweep(0.05, 300.0, 3400.0), (300.0, 3400.0)
    elif kind == "mls":
        raw, band = np.repeat(2.0 * max_len_seq(10)[0] - 1.0, 6), (300.0, 3400.0)
    elif kind == "click":
        n = 240
        raw, band = np.sin(2.0 * np.pi * 1000.0 * np.arange(n) / RATE_HZ) * hann(n), (600.0, 1400.0)
    elif kind == "speech":
        raw, band = speech_like(rng if rng is not None else np.random.default_rng(1), duration_s), (300.0, 3400.0)
    else:
        raise ValueError(f"no stimulus is called {kind!r}")
    return Stimulus(kind, band_limited(raw), raw.size, band)
