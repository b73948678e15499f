"""A telephone: 8 kHz and G.711 mu-law between two linear-phase rate changes, as a frame processor."""

from __future__ import annotations

import numpy as np
from scipy import signal

from rig.sim.bandlimited import Floats

FACTOR = 6  # 48 kHz to 8 kHz
_HALF = 240  # half length of each rate changer's filter, samples at 48 kHz
_MU = 255.0


class NarrowbandProcessor:
    """Decimates by 6, codes with 8-bit mu-law (ITU-T G.711's curve), interpolates. Flat to 3.4 kHz, nothing above 4."""

    delay_samples = 2.0 * _HALF

    def __init__(self) -> None:
        self._taps = signal.firwin(2 * _HALF + 1, 3700.0, window=("kaiser", 8.0), fs=48_000.0)
        self._before = np.zeros(2 * _HALF)
        self._after = np.zeros(2 * _HALF)

    def process(self, frame: Floats) -> Floats:
        """One frame at 48 kHz, a multiple of 6 samples long."""
        extended = np.concatenate((self._before, frame))
        self._before = extended[len(frame) :]
        slow = signal.fftconvolve(extended, self._taps, "valid")[::FACTOR]
        raised = np.zeros(len(frame))
        raised[::FACTOR] = FACTOR * mu_law(slow)
        extended = np.concatenate((self._after, raised))
        self._after = extended[len(frame) :]
        return np.asarray(signal.fftconvolve(extended, self._taps, "valid"), dtype=np.float64)


def mu_law(samples: Floats) -> Floats:
    """Samples of full scale 1.0 through 8-bit mu-law and back: logarithmic steps, limits at 1.0."""
    bounded = np.clip(samples, -1.0, 1.0)
    compressed = np.sign(bounded) * np.log1p(_MU * np.abs(bounded)) / np.log1p(_MU)
    stepped = np.rint(compressed * 127.0) / 127.0
    return np.asarray(np.sign(stepped) * np.expm1(np.abs(stepped) * np.log1p(_MU)) / _MU, dtype=np.float64)
