"""A noise suppressor that lets speech pass and eats what is not: bare chirps, tones, noise bursts.

It knows nothing of what is played. Each 10 ms it judges the last 40 ms of samples: speech is a voice (periodic with a
pitch of 70 to 400 Hz, several harmonics, energy mostly below 1 kHz), and it is believed after two thirds of a tenth of
a second of it. While speech is believed, and for a hangover after it, everything passes; otherwise everything is
turned down, in the short-time spectrum, as a learnt suppressor does with sounds that it never met in speech.
"""

from __future__ import annotations

import numpy as np
from scipy import fft

from rig.sim.bandlimited import Floats

RATE_HZ = 48_000
HOP = 480
WINDOW = 2 * HOP
_ANALYSIS = 1920  # 40 ms: at least two periods of the lowest pitch
_SLOW = 6  # judged at 8 kHz
_PITCH_LAGS = (20, 114)  # 400 to 70 Hz at 8 kHz
HANGOVER_S = 0.6
_BELIEF = 7  # voiced judgements (10 ms each), less half of the unvoiced ones between them
CLOSED_DB = -60.0


class DenoiserProcessor:
    """Overlap-add with sine windows of 20 ms, every 10 ms; delay 10 ms. Keeps its state between frames.

    While speech is believed each bin has its Wiener gain against the background; otherwise all have CLOSED_DB.
    """

    delay_samples = float(HOP)

    def __init__(self) -> None:
        n = np.arange(WINDOW)
        self._window = np.sin(np.pi * (n + 0.5) / WINDOW)
        self._past = np.zeros(_ANALYSIS)
        self._overlap = np.zeros(HOP)
        self._belief = 0.0
        self._open_hops = 0
        self._gain = np.full(WINDOW // 2 + 1, 10.0 ** (CLOSED_DB / 20.0))
        self._background = np.full(WINDOW // 2 + 1, 1.0)  # power in each bin: down at once, up by 3 dB a second

    @property
    def speaking(self) -> bool:
        """Whether speech is believed to go on, hangover included."""
        return self._open_hops > 0

    def process(self, frame: Floats) -> Floats:
        """One frame, a multiple of HOP samples long."""
        return np.concatenate([self._hop(frame[k : k + HOP]) for k in range(0, len(frame), HOP)])

    def _hop(self, samples: Floats) -> Floats:
        self._past = np.concatenate((self._past[HOP:], samples))
        self._judge()
        spectrum = fft.rfft(self._past[-WINDOW:] * self._window)
        power = spectrum.real**2 + spectrum.imag**2 + 1e-12
        self._background = np.minimum(0.3 * power + 0.7 * self._background, 1.007 * self._background)
        closed = 10.0 ** (CLOSED_DB / 20.0)
        target = (
            np.maximum(1.0 - 2.0 * self._background / power, closed) if self.speaking else np.full_like(power, closed)
        )
        self._gain += (target - self._gain) * np.where(target > self._gain, 0.8, 0.3)
        cleaned = fft.irfft(spectrum * self._gain, WINDOW) * self._window
        ready = self._overlap + cleaned[:HOP]
        self._overlap = cleaned[HOP:]
        return np.asarray(ready, dtype=np.float64)

    def _judge(self) -> None:
        power = float(np.mean(self._past[-HOP:] ** 2))
        background = float(self._background.sum()) / (WINDOW / 2.0) / (WINDOW / 2.0)  # as power of the samples
        voiced = power > 4.0 * min(background, 1e-3) and is_voiced(self._past)
        self._belief = min(self._belief + 1.0, 2.0 * _BELIEF) if voiced else max(self._belief - 0.5, 0.0)
        if voiced and self._belief >= _BELIEF:
            self._open_hops = round(HANGOVER_S * RATE_HZ / HOP)
        else:
            self._open_hops = max(self._open_hops - 1, 0)


def is_voiced(samples: Floats) -> bool:
    """Whether 40 ms of sound (shape (1920,), 48 kHz) is a voice: pitched, of several harmonics, dark."""
    slow = samples.reshape(-1, _SLOW).mean(axis=1)  # crude decimation: what folds down is far weaker than a voice
    slow = slow - slow.mean()
    n_fft = 1024
    spectrum = np.abs(fft.rfft(slow * np.hanning(len(slow)), n_fft)) ** 2
    total = float(spectrum.sum())
    if total <= 0.0:
        return False
    hz = np.arange(len(spectrum)) * (RATE_HZ / _SLOW / n_fft)
    dark = float(spectrum[hz < 1000.0].sum()) / total
    if dark < 0.5:
        return False
    padded = fft.rfft(slow, n_fft)
    correlation = fft.irfft(np.abs(padded) ** 2, n_fft)[: _PITCH_LAGS[1] + 1]
    lags = np.arange(len(correlation))
    normal = correlation / (correlation[0] * (1.0 - lags / len(slow)) + 1e-20)
    low, high = _PITCH_LAGS
    if float(normal[low : high + 1].max()) < 0.6:
        return False
    # A pure or gliding tone puts nearly everything into one line; a voice spreads over its harmonics.
    top = int(np.argmax(spectrum))
    line = float(spectrum[max(top - 7, 0) : top + 8].sum()) / total
    return line < 0.85
