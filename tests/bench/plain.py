"""A plain correlator with the interface of the estimator: the yardstick for speed, and the dummy that tests the judges.

It is told where the stimuli are and gives the interpolated peak of a full cross-correlation, accepting everything. A
benchmark that it passes where it should fail is not worth running.
"""

from __future__ import annotations

import numpy as np
from scipy.signal import correlate
from worlds import RATE_HZ
from worlds.oracle import crlb_samples
from worlds.recording import Recording
from worlds.stimuli import GUARD

from rig.domain.records import RunAnalysis, Trial


def correlation_peak(reference: np.ndarray, ear: np.ndarray) -> float:
    """Lag in samples, 0 or more, of the correlation's largest magnitude; 16 times interpolated, then a parabola."""
    r = correlate(ear, reference, mode="valid", method="fft")
    k = int(np.argmax(np.abs(r)))
    half = 256
    around = np.zeros(2 * half)
    a, b = max(0, k - half), min(r.size, k + half)
    around[a - (k - half) : b - (k - half)] = r[a:b] * np.sign(r[k])
    around *= np.hanning(2 * half)
    spectrum = np.fft.rfft(around)
    fine = np.fft.irfft(spectrum, 32 * half) * 16
    j = half * 16 - 16 + int(np.argmax(fine[half * 16 - 16 : half * 16 + 17]))
    before, at, after = fine[j - 1 : j + 2]
    return k + (j + 0.5 * (before - after) / (before - 2 * at + after)) / 16 - half


def analyse_plainly(recording: Recording, window_s: float = 1.0) -> RunAnalysis:
    """All trials accepted at the correlation peak within `window_s`; headline and precision figure are the same."""
    frames = recording.frames
    clip = recording.stimulus.wave.size
    sigma = float(
        np.hypot(recording.sigma_ear, recording.ear_scale / recording.scene.reference_peak * recording.sigma_reference)
    )
    bound_s = crlb_samples(recording.ear_scale * recording.stimulus.wave, sigma) / RATE_HZ
    trials = []
    for index, onset in enumerate(recording.onsets):
        start = int(onset) - GUARD
        stop = min(start + clip + int(window_s * RATE_HZ), frames.shape[0])
        lag_s = correlation_peak(frames[start : start + clip, 0], frames[start:stop, 1]) / RATE_HZ
        trials.append(
            Trial(
                index=index,
                reference_frame=float(onset),
                valid=True,
                reason=None,
                latency_s=lag_s,
                u_s=bound_s,
                u_noise_s=bound_s,
                precision_s=lag_s,
                crlb_s=bound_s,
            )
        )
    return RunAnalysis(
        run=1,
        trials=tuple(trials),
        refusal=None,
        refusal_detail=None,
        stimulus=recording.scene.kind,
        band_hz=None,
        rate_hz=RATE_HZ,
        n_frames=frames.shape[0],
        levels=None,
    )
