"""Exact resampling: spectra of sampled signals on another clock's grid, windowed-sinc kernels, analogue filters.

A tone is resampled by evaluating its Fourier transform exactly at the frequencies of the interface's grid (a chirp-z
transform, Bluestein 1970), so neither a fractional start nor a board clock thousands of ppm off costs any accuracy.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy import fft

Floats = npt.NDArray[np.float64]
Spectrum = npt.NDArray[np.complex128]

PASSBAND = 5.0 / 12.0
"""Cycles per frame up to which the interface's converters are flat (20 kHz at 48 kHz); they fade to 0 at 0.5."""

KERNEL_HALF = 48
"""Half length in samples of the windowed-sinc kernels."""


def fast_length(n: int) -> int:
    """The smallest even length >= n whose FFT is fast."""
    return 2 * int(fft.next_fast_len((n + 1) // 2, real=True))


def transform_at(samples: Floats, spacing_frames: float, start_frame: float, n_fft: int) -> Spectrum:
    """Fourier transform of impulses `samples[n]` at frame `start_frame + n * spacing_frames`, on an rfft grid.

    Returns shape (n_fft // 2 + 1,): sum over n of samples[n] * exp(-2j*pi * k / n_fft * (start + n * spacing)).
    """
    n, m = len(samples), n_fft // 2 + 1
    step = spacing_frames / n_fft  # cycles per (n * k)
    size = int(fft.next_fast_len(n + m - 1))
    index = np.arange(max(n, m), dtype=np.float64)
    # n*k = (n^2 + k^2 - (k-n)^2) / 2; the squares are exact in double precision up to 9e7 samples.
    chirp = np.exp(-2j * np.pi * np.fmod(0.5 * step * index * index, 1.0))
    kernel = np.zeros(size, dtype=np.complex128)
    kernel[:m] = np.conj(chirp[:m])
    kernel[size - n + 1 :] = np.conj(chirp[n - 1 : 0 : -1])
    product = fft.ifft(fft.fft(samples * chirp[:n], size) * fft.fft(kernel))[:m]
    return np.asarray(product * chirp[:m] * delay(n_fft, start_frame), dtype=np.complex128)


def delay(n_fft: int, frames: float) -> Spectrum:
    """The spectrum of a pure delay by `frames` (fractional, may be negative) on an rfft grid."""
    cycles = np.arange(n_fft // 2 + 1) * (frames / n_fft)
    return np.asarray(np.exp(-2j * np.pi * np.fmod(cycles, 1.0)), dtype=np.complex128)


def hold(n_fft: int, spacing_frames: float) -> Spectrum:
    """The spectrum of a zero-order hold of `spacing_frames`: what an output does that keeps each sample to the next."""
    cycles = np.arange(n_fft // 2 + 1) * (spacing_frames / n_fft)
    return np.asarray(spacing_frames * np.sinc(cycles) * np.exp(-1j * np.pi * cycles), dtype=np.complex128)


@lru_cache(maxsize=16)
def converter(n_fft: int) -> Floats:
    """The converters' decimation filter: flat to PASSBAND, raised cosine to 0 at half the rate, zero phase."""
    cycles = np.arange(n_fft // 2 + 1) / n_fft
    x = np.clip((cycles - PASSBAND) / (0.5 - PASSBAND), 0.0, 1.0)
    gain = 0.5 + 0.5 * np.cos(np.pi * x)
    gain.setflags(write=False)
    return np.asarray(gain, dtype=np.float64)


def analogue(zeros: npt.ArrayLike, poles: npt.ArrayLike, gain: float, n_fft: int, rate_hz: float) -> Spectrum:
    """An analogue filter (zeros, poles in rad/s) evaluated on an rfft grid of `rate_hz`; exact, no warping."""
    s = 2j * np.pi * np.arange(n_fft // 2 + 1) * (rate_hz / n_fft)
    response = np.full(len(s), gain, dtype=np.complex128)
    for zero in np.atleast_1d(np.asarray(zeros, dtype=np.complex128)):
        response *= s - zero
    for pole in np.atleast_1d(np.asarray(poles, dtype=np.complex128)):
        response /= s - pole
    return response


def rc_lowpass(corner_hz: float, n_fft: int, rate_hz: float) -> Spectrum:
    """One resistor and one capacitor: 1 / (1 + j f / corner)."""
    f_hz = np.arange(n_fft // 2 + 1) * (rate_hz / n_fft)
    return np.asarray(1.0 / (1.0 + 1j * f_hz / corner_hz), dtype=np.complex128)


def kernel(fraction: float, order: int = 0) -> Floats:
    """Windowed-sinc interpolation kernel k(m - fraction), m = -KERNEL_HALF .. KERNEL_HALF, or its derivative.

    `order` 0 to 3 is the derivative with respect to m, by central differences. Blackman-Harris window (Harris
    1978), flat within 1e-4 up to PASSBAND. Shape (2 * KERNEL_HALF + 1,).
    """
    u = np.arange(-KERNEL_HALF, KERNEL_HALF + 1, dtype=np.float64) - fraction
    weights = _DIFFERENCES[order]
    taps = np.zeros(len(u))
    for offset, weight in weights:
        taps += weight * _sinc_kernel(u + offset * _STEP)
    return np.asarray(taps / _STEP**order, dtype=np.float64)


_STEP = 0.02  # samples; the kernel is smooth: differences are within 1e-4 of the derivatives
_DIFFERENCES = {
    0: ((0, 1.0),),
    1: ((-2, 1 / 12), (-1, -8 / 12), (1, 8 / 12), (2, -1 / 12)),
    2: ((-1, 1.0), (0, -2.0), (1, 1.0)),
    3: ((-2, -0.5), (-1, 1.0), (1, -1.0), (2, 0.5)),
}


def _sinc_kernel(u: Floats) -> Floats:
    cutoff = 0.5 * (PASSBAND + 0.5)  # cycles per sample, in the middle of the converters' fade
    x = np.pi * np.clip(u / (KERNEL_HALF + 1), -1.0, 1.0)
    window = 0.35875 + 0.48829 * np.cos(x) + 0.14128 * np.cos(2 * x) + 0.01168 * np.cos(3 * x)
    return np.asarray(2 * cutoff * np.sinc(2 * cutoff * u) * window, dtype=np.float64)


def place_impulses(at_frames: Floats, gains: Floats, n_frames: int) -> Floats:
    """An impulse response with band-limited impulses at fractional `at_frames`; shape (n_frames,).

    Impulses nearer than KERNEL_HALF to frame 0 keep their part before frame 0 wrapped to the end of the array, which
    is where a circular convolution wants it. Impulses past the end are left out. Kernels come from a table of
    1/512 frame with linear interpolation between its rows (error under 1e-5 of an impulse).
    """
    table = _kernel_table()
    response = np.zeros(n_frames)
    keep = at_frames < n_frames - 2 * KERNEL_HALF
    at_frames, gains = at_frames[keep], gains[keep]
    whole = np.floor(at_frames).astype(np.int64)
    u = np.arange(-KERNEL_HALF, KERNEL_HALF + 1)
    for start in range(0, len(whole), 4096):
        part = slice(start, start + 4096)
        at_row = (at_frames[part] - whole[part]) * (len(table) - 1)
        row = np.minimum(at_row.astype(np.int64), len(table) - 2)
        weight = (at_row - row)[:, None]
        taps = gains[part, None] * ((1.0 - weight) * table[row] + weight * table[row + 1])
        frames = (whole[part, None] + u[None, :]) % n_frames
        response += np.bincount(frames.ravel(), weights=taps.ravel(), minlength=n_frames)
    return response


@lru_cache(maxsize=1)
def _kernel_table() -> Floats:
    u = np.arange(-KERNEL_HALF, KERNEL_HALF + 1)
    return _sinc_kernel(u[None, :] - (np.arange(513) / 512.0)[:, None])


def local_rate(reading_0: float, reading_1: float, seconds: float) -> float:
    """Counts per second between two readings of a clock; raises ValueError for a clock that does not advance."""
    rate = (reading_1 - reading_0) / seconds
    if not math.isfinite(rate) or rate <= 0:
        raise ValueError(f"a clock that goes from {reading_0} to {reading_1} in {seconds} s does not advance")
    return rate
