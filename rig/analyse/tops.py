"""Flat tops: the height at which an input stands still though more is played, wherever full scale is."""

from __future__ import annotations

import math

import numpy as np

from rig.analyse.spectrum import Real

SOFT = 0.3
"""Samples below this share of the shape's peak are taken to follow it, however hard the peaks are clipped."""

OVER = 1.1
"""A sample that should be this many times as high as the top stands on it for certain."""

FEWEST = 24


def flat_top(samples: Real, wave: Real, late: float) -> float | None:
    """Mean height of the flat top of a stimulus; None where it follows its shape up to the peak.

    `samples`: as recorded, shape (n,). `wave`: the shape as asked, shape (n,), whose first sample is `late` frames
    (a fraction) after the first of `samples`. The gain is that of the soft parts, so the top's height is the mean of
    many samples, which noise does not raise as it raises the largest one.
    """
    x = samples - float(np.mean(samples))
    turn = np.exp(-2j * np.pi * np.fft.rfftfreq(len(wave)) * late)
    shape = np.fft.irfft(np.fft.rfft(wave) * turn, len(wave))
    height = float(np.max(np.abs(shape)))
    soft = np.abs(shape) < SOFT * height
    energy = float(np.dot(shape[soft], shape[soft]))
    if energy <= 0.0:
        return None
    expected = shape * (float(np.dot(x[soft], shape[soft])) / energy)
    upright = x * np.sign(expected)
    loudest = np.abs(expected) > 0.95 * float(np.max(np.abs(expected)))
    top = float(np.median(upright[loudest]))
    for _ in range(3):  # from the loudest samples to all that stand on the top
        over = np.abs(expected) > OVER * max(top, 0.0)
        if np.count_nonzero(over) < FEWEST or not top > 0.0:
            return None
        top = float(np.mean(upright[over]))
    return top if math.isfinite(top) else None
