"""A long two-channel recording, written a piece at a time: memory stays flat whatever its length."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile

RATE_HZ = 48_000
SPACING_S = 2.0
LATENCY_S = 0.18
PIECE_S = 20


def chirp() -> np.ndarray:
    """100 ms, 200 to 7500 Hz, 5 ms raised-cosine ends, peak 1; float32."""
    n = RATE_HZ // 10
    t = np.arange(n) / RATE_HZ
    wave = np.sin(2 * np.pi * (200.0 * t + 0.5 * 73_000.0 * t**2))
    ramp = np.ones(n)
    edge = RATE_HZ // 200
    ramp[:edge] = 0.5 - 0.5 * np.cos(np.pi * np.arange(edge) / edge)
    ramp[-edge:] = ramp[:edge][::-1]
    return (wave * ramp).astype(np.float32)


def onsets(duration_s: float, seed: int, spacing_s: float = SPACING_S) -> np.ndarray:
    """First frames of the stimuli: one to each `spacing_s`, uneven by up to 0.3 s."""
    rng = np.random.default_rng(seed)
    count = int((duration_s - 1.3) / spacing_s)
    return ((1.0 + spacing_s * np.arange(count) + rng.uniform(0.0, 0.3, count)) * RATE_HZ).astype(np.int64)


def write(path: Path, duration_s: float, seed: int = 1, spacing_s: float = SPACING_S) -> int:
    """Writes the recording as 16-bit WAV; returns the number of stimuli. Ear SNR about 25 dB, white noise."""
    rng = np.random.default_rng([seed, 1])
    wave = chirp()
    starts = onsets(duration_s, seed, spacing_s)
    lag = round(LATENCY_S * RATE_HZ)
    n_frames = int(duration_s * RATE_HZ)
    piece = PIECE_S * RATE_HZ
    with soundfile.SoundFile(path, "w", RATE_HZ, 2, "PCM_16") as out:
        for first in range(0, n_frames, piece):
            count = min(piece, n_frames - first)
            block = rng.standard_normal((count, 2), dtype=np.float32) * np.array([5e-4, 6e-3], dtype=np.float32)
            for channel, shift, gain in ((0, 0, 0.5), (1, lag, 0.15)):
                for start in starts[(starts + shift > first - wave.size) & (starts + shift < first + count)]:
                    at = int(start) + shift - first
                    a, b = max(at, 0), min(at + wave.size, count)
                    block[a:b, channel] += gain * wave[a - at : b - at]
            out.write(block)
    return int(starts.size)
