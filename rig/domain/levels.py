"""Levels of samples: what a figure in dBFS means, and when samples are clipped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.floating[Any]]


def dbfs(value: float) -> float | None:
    """A level in dB of full scale, which is 1.0. None for 0 and below: silence has no level in dB."""
    return 20.0 * math.log10(value) if value > 0.0 else None


def rail_samples(samples: Real, full_scale: float | None) -> int:
    """Samples in flat tops: runs of 3 or more at the same extreme value.

    For integer formats the extreme is the rail; float formats may exceed 1.0 without harm, there any flat top of the
    clip's own extreme counts, from 0.5 of full scale on.
    """
    if len(samples) < 3:
        return 0
    top = float(np.max(np.abs(samples)))
    rail = 0.999 * full_scale if full_scale is not None else max(0.5, top * (1.0 - 1e-6))
    if top < rail:
        return 0
    count = 0
    for sign in (1.0, -1.0):
        at = sign * samples >= rail
        if full_scale is None:
            at &= sign * samples >= top * (1.0 - 1e-6)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], at, [False])).astype(np.int8)))
        runs = edges[1::2] - edges[::2]
        count += int(runs[runs >= 3].sum())
    return count
