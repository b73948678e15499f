"""Noise, hum and dither as pure functions of the frame number, so that block sizes never change a sample."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import fft

from rig.sim.bandlimited import Floats, Spectrum

CHUNK = 8192
_COLOUR_TAPS = 2048


def generator(seed: int, *cause: int) -> np.random.Generator:
    """A generator of its own for each cause, so that adding a cause does not reshuffle the others."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([seed, *cause])))


class FrameNoise:
    """Gaussian noise of RMS `sigma`, drawn in chunks that are keyed by the frame number.

    `colour` is "white", or "room": flat to 300 Hz, then falling by 3 dB per octave to 24 kHz, as air handling does.
    """

    def __init__(self, seed: int, cause: int, sigma: float, colour: str = "white") -> None:
        if colour not in ("white", "room"):
            raise ValueError(f"noise is white or room, not {colour}")
        self._seed = seed
        self._cause = cause
        self._sigma = sigma
        self._colour = colour
        self._chunks: dict[int, Floats] = {}
        self._raw: dict[int, Floats] = {}

    def read(self, first: int, count: int) -> Floats:
        """Frames [first, first + count), shape (count,)."""
        if self._sigma == 0.0 or count <= 0:
            return np.zeros(max(count, 0))
        parts = []
        for index in range(first // CHUNK, (first + count - 1) // CHUNK + 1):
            low, high = max(first - index * CHUNK, 0), min(first + count - index * CHUNK, CHUNK)
            parts.append(self._chunk(index)[low:high])
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def _white(self, index: int) -> Floats:
        if index not in self._raw:
            rng = generator(self._seed, self._cause, index + 2**31)
            self._raw[index] = rng.standard_normal(CHUNK)
            for old in [k for k in self._raw if k < index - 2]:
                del self._raw[old]
        return self._raw[index]

    def _chunk(self, index: int) -> Floats:
        if index not in self._chunks:
            if self._colour == "white":
                chunk = self._white(index)
            else:
                both = np.concatenate((self._white(index - 1)[-_COLOUR_TAPS:], self._white(index)))
                size = CHUNK + _COLOUR_TAPS
                chunk = fft.irfft(fft.rfft(both) * _colour_spectrum(size), size)[_COLOUR_TAPS:]
            self._chunks[index] = self._sigma * chunk
            for old in [k for k in self._chunks if k < index - 2]:
                del self._chunks[old]
        return self._chunks[index]


@lru_cache(maxsize=2)
def _colour_spectrum(size: int) -> Spectrum:
    """Spectrum of a causal FIR of _COLOUR_TAPS taps and unit power with the shape of `FrameNoise`'s room colour."""
    cycles = np.arange(_COLOUR_TAPS // 2 + 1) / _COLOUR_TAPS
    corner = 300.0 / 48000.0
    magnitude = np.sqrt(np.where(cycles > corner, corner / np.maximum(cycles, 1e-9), 1.0))
    magnitude[0] = 0.0
    taps = np.roll(fft.irfft(magnitude, _COLOUR_TAPS), _COLOUR_TAPS // 2) * np.hanning(_COLOUR_TAPS)
    taps /= np.sqrt(np.sum(taps**2))
    return np.asarray(fft.rfft(taps, size), dtype=np.complex128)
