"""What else the ear channel hears. Every generator returns `n` samples of unit RMS, except `dither`."""

from __future__ import annotations

import numpy as np
from scipy.signal import lfilter

from worlds import RATE_HZ
from worlds.stimuli import Samples, speech_like

KINDS = ("white", "pink", "speech", "music", "hum", "clicks", "dither")
"""All seven. `dither` is the idle noise of a 16-bit converter: absolute level, at most one step either side."""


def make(kind: str, rng: np.random.Generator, n: int) -> Samples:
    """`n` samples of the interferer called `kind`."""
    if kind == "dither":
        return np.asarray(np.round(rng.normal(0.0, 0.35, n)) / 32768.0)
    raw = _MAKERS[kind](rng, n)
    return np.asarray(raw / np.sqrt(np.mean(raw**2)))


def _white(rng: np.random.Generator, n: int) -> Samples:
    return rng.standard_normal(n)


def _pink(rng: np.random.Generator, n: int) -> Samples:
    size = 1 << (n - 1).bit_length()
    spectrum = np.fft.rfft(rng.standard_normal(size))
    f = np.fft.rfftfreq(size, 1.0 / RATE_HZ)
    return np.asarray(np.fft.irfft(spectrum / np.sqrt(np.maximum(f, 20.0)), size)[:n])


def _speech(rng: np.random.Generator, n: int) -> Samples:
    talk = speech_like(rng, n / RATE_HZ + 0.05)[:n]
    return np.asarray(talk + 0.001 * rng.standard_normal(n))


def _music(rng: np.random.Generator, n: int) -> Samples:
    """Plucked notes of an equal-tempered scale over a held chord, harmonics falling with their number."""
    t = np.arange(n) / RATE_HZ
    out = sum(
        0.15 * np.sin(2 * np.pi * 110 * 2 ** (k / 12) * t + rng.uniform(0, 6.28)) for k in rng.choice(24, 3, False)
    )
    at = 0
    while at < n:
        length = int(rng.uniform(0.15, 0.6) * RATE_HZ)
        m = min(length, n - at)
        tt = t[:m]
        f0 = 196.0 * 2 ** (int(rng.integers(0, 25)) / 12)
        note = sum(np.sin(2 * np.pi * f0 * h * tt + rng.uniform(0, 6.28)) / h**1.2 for h in range(1, 7))
        out[at : at + m] += note * np.exp(-tt / rng.uniform(0.08, 0.3)) * np.minimum(1.0, tt / 0.003)
        at += int(length * rng.uniform(0.4, 1.0))
    return np.asarray(out + 0.001 * rng.standard_normal(n))


def _hum(rng: np.random.Generator, n: int) -> Samples:
    t = np.arange(n) / RATE_HZ
    mains_hz = float(rng.choice([50.0, 60.0]))
    tones = sum(np.sin(2 * np.pi * mains_hz * h * t + rng.uniform(0, 6.28)) / h**1.3 for h in range(1, 9))
    return np.asarray(tones + 0.01 * rng.standard_normal(n))


def _clicks(rng: np.random.Generator, n: int) -> Samples:
    """About four hits a second (keyboard, table): short ringing bursts, each different, over a low noise."""
    out = 0.01 * rng.standard_normal(n)
    for _ in range(max(3, rng.poisson(4.0 * n / RATE_HZ))):
        at = int(rng.integers(0, max(1, n - 400)))
        radius = float(np.exp(-1.0 / rng.uniform(8.0, 60.0)))
        angle = 2 * np.pi * rng.uniform(600, 6000) / RATE_HZ
        burst = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], rng.standard_normal(6), zi=[0.0, 0.0])
        tail = lfilter([1.0], [1.0, -2 * radius * np.cos(angle), radius**2], np.zeros(394), zi=burst[1])[0]
        hit = np.concatenate([burst[0], tail])
        m = min(400, n - at)
        out[at : at + m] += (hit / np.max(np.abs(hit)) * rng.uniform(0.3, 1.0))[:m]
    return out


_MAKERS = {"white": _white, "pink": _pink, "speech": _speech, "music": _music, "hum": _hum, "clicks": _clicks}
