"""The latency as it is defined, computed from a known impulse response. Independent of the estimators on purpose.

Definition: the first significant arrival of the band-limited impulse response from the reference channel to the ear
channel, at the peak of its Hilbert envelope. Significant: within 10 dB of the largest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import fft

from rig.sim.bandlimited import Floats

DEFAULT_BAND_HZ = (300.0, 3400.0)
Taper = Literal["hann", "sine-1.5", "cosine"]
DEFAULT_TAPER: Taper = "sine-1.5"
POWERS: dict[Taper, float] = {"hann": 2.0, "sine-1.5": 1.5, "cosine": 1.0}
SIGNIFICANT_DB = 10.0


@dataclass(frozen=True, slots=True)
class PathResponse:
    """Impulse response of the way from reference to ear. Sample k is at lag (`first_lag_frames` + k) / `rate_hz`.

    `samples` has shape (n,), float64. `nominal` is True where the system is not linear: this is its linear part then.
    """

    samples: Floats
    first_lag_frames: float
    rate_hz: float
    nominal: bool = False

    def defined_latency_s(self, band_hz: tuple[float, float] = DEFAULT_BAND_HZ, taper: Taper = DEFAULT_TAPER) -> float:
        """The latency as defined, in seconds of the interface's clock."""
        return (self.first_lag_frames + first_arrival_frames(self.samples, self.rate_hz, band_hz, taper)) / self.rate_hz


def band_taper(f_hz: Floats, band_hz: tuple[float, float], taper: Taper) -> Floats:
    """Weight of each frequency: 0 outside the band and at its edges, 1 at its centre.

    Half a wave of a cosine over the band ("cosine"), its square ("hann"), or its power of 1.5 ("sine-1.5").
    """
    low, high = band_hz
    x = (f_hz - low) / (high - low)
    half_wave = np.where((x > 0.0) & (x < 1.0), np.sin(np.pi * np.clip(x, 0.0, 1.0)), 0.0)
    return np.asarray(half_wave ** POWERS[taper], dtype=np.float64)


def first_arrival_frames(
    response: Floats,
    rate_hz: float,
    band_hz: tuple[float, float] = DEFAULT_BAND_HZ,
    taper: Taper = DEFAULT_TAPER,
    significant_db: float = SIGNIFICANT_DB,
) -> float:
    """Position (fractional frames into `response`) of the earliest local maximum of the envelope that is significant.

    The envelope is that of the analytic signal of the tapered band, on a grid 32 times as fine by zero-padding the
    spectrum, then a parabola through three points (error below 1e-4 frame). Raises ValueError for a silent response.
    """
    n_fft = int(fft.next_fast_len(len(response) + round(rate_hz * 0.05)))  # room for the band's own ringing
    spectrum = fft.rfft(response, n_fft)
    f_hz = np.arange(len(spectrum), dtype=np.float64) * (rate_hz / n_fft)
    fine = 32
    one_sided = np.zeros(n_fft * fine, dtype=np.complex128)
    one_sided[: len(spectrum)] = spectrum * band_taper(f_hz, band_hz, taper)
    envelope = np.abs(fft.ifft(one_sided))
    largest = float(envelope.max())
    if largest == 0.0:
        raise ValueError(f"the response is silent between {band_hz[0]:g} and {band_hz[1]:g} Hz")
    before, after = np.roll(envelope, 1), np.roll(envelope, -1)
    significant = envelope >= largest * 10.0 ** (-significant_db / 20.0)
    peaks = np.flatnonzero((envelope >= before) & (envelope > after) & significant)
    # What rings before frame 0 is wrapped to the very end: those positions are negative.
    positions = np.where(peaks > (n_fft - round(rate_hz * 0.02)) * fine, peaks - n_fft * fine, peaks)
    first = int(np.argmin(positions))
    peak = peaks[first]
    low, mid, high = before[peak], envelope[peak], after[peak]
    curve = low - 2.0 * mid + high
    shift = 0.5 * (low - high) / curve if curve != 0.0 else 0.0
    return float((positions[first] + shift) / fine)
