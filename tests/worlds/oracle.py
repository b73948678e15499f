"""The truth, by the definition that the instrument declares, from the known impulse response and nothing else.

Latency is the delay of the first significant arrival of the band-limited impulse response: its analytic form under a
spectral taper over the declared band; the arrival is a local maximum of the envelope, the first one that is within
10 dB of the largest. Evaluated noise-free, refined on the exact Fourier sum.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import next_fast_len

from worlds import RATE_HZ
from worlds.paths import Path
from worlds.stimuli import Samples


@dataclass(frozen=True)
class Arrivals:
    """Delays in samples after time zero, earliest first, with levels in dB of the largest. `first` is the truth."""

    delays: Samples
    levels_db: Samples

    @property
    def first(self) -> float:
        """Delay of the first significant arrival, samples."""
        return float(self.delays[0])

    @property
    def dominant(self) -> float:
        """Delay of the strongest arrival, samples."""
        return float(self.delays[int(np.argmax(self.levels_db))])


def taper(f: Samples, band_hz: tuple[float, float], shape: str) -> Samples:
    """Spectral weight over the band: "cosine" is half a cycle, "sine-1.5" its power of 1.5, "hann" its square."""
    u = (f - band_hz[0]) / (band_hz[1] - band_hz[0])
    inside = (u > 0.0) & (u < 1.0)
    half_cosine = np.where(inside, np.sin(np.pi * np.clip(u, 0.0, 1.0)), 0.0)
    if shape == "cosine":
        return half_cosine
    if shape == "sine-1.5":
        return half_cosine**1.5
    if shape == "hann":
        return half_cosine**2
    raise ValueError(f"no taper is called {shape!r}")


def arrivals(path: Path, band_hz: tuple[float, float], shape: str = "sine-1.5", back_db: float = 10.0) -> Arrivals:
    """All arrivals within `back_db` of the largest, to about 1e-4 sample."""
    pad = 2400  # the band-limited pulse rings before and after; keep its circular images away
    n = next_fast_len(path.ir.size + 2 * pad)
    f = np.fft.rfftfreq(n, 1.0 / RATE_HZ)
    weight = taper(f, band_hz, shape)
    used = np.flatnonzero(weight)
    placed = np.zeros(n)
    placed[pad : pad + path.ir.size] = path.ir
    spectrum = np.fft.rfft(placed)[used] * weight[used]
    analytic = np.zeros(n, dtype=complex)
    analytic[used] = spectrum
    envelope = np.abs(np.fft.ifft(analytic))
    floor = float(envelope.max()) * 10 ** (-(back_db + 0.5) / 20)
    peaks = 1 + np.flatnonzero(
        (envelope[1:-1] >= envelope[:-2]) & (envelope[1:-1] > envelope[2:]) & (envelope[1:-1] >= floor)
    )
    found = [_refine(int(k), spectrum, used / n) for k in peaks]
    delays = np.array([d for d, _ in found]) - pad - path.zero
    levels = 20 * np.log10(np.array([v for _, v in found]) / max(v for _, v in found))
    keep = levels >= -back_db
    return Arrivals(delays[keep], levels[keep])


def _refine(k: int, spectrum: np.ndarray, cycles: Samples) -> tuple[float, float]:
    """Maximum of the envelope near index `k` by three rounds of a parabola on the exact Fourier sum."""
    centre, step = float(k), 0.5
    value = 0.0
    for _ in range(4):
        t = centre + step * np.array([-1.0, 0.0, 1.0])
        e = np.abs(np.exp(2j * np.pi * np.outer(t, cycles)) @ spectrum)
        bend = e[0] - 2 * e[1] + e[2]
        shift = 0.5 * (e[0] - e[2]) / bend if bend < 0 else 0.0
        centre += step * float(np.clip(shift, -1.0, 1.0))
        step /= 4
        value = float(e.max())
    return centre, value


def is_stable(path: Path, band_hz: tuple[float, float]) -> bool:
    """True where thresholds of 8 and 12 dB name the same first arrival: the definition is not on a knife's edge."""
    first = [arrivals(path, band_hz, back_db=back_db).first for back_db in (8.0, 10.0, 12.0)]
    return max(first) - min(first) < 6.0


def crlb_samples(wave: Samples, sigma: float) -> float:
    """Cramer-Rao bound of the delay of a known `wave` in white noise of deviation `sigma` per sample, in samples.

    sigma / ||s'||, the derivative taken in the spectrum.
    """
    n = 2 * wave.size
    omega = 2 * np.pi * np.arange(n // 2 + 1) / n
    slope = np.fft.irfft(1j * omega * np.fft.rfft(wave, n), n)
    return float(sigma / np.sqrt(np.sum(slope**2)))
