"""How fast one clock runs against another, from events that both have stamped, and how its rate wanders. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.analyse.known import Found, student

MIN_SPAN_S = 60.0
"""A rate over less than this says little of the next minute."""

MIN_EVENTS = 16
_BLOCK = 8  # events that a cubic is laid through: wander bends no more than that over a few seconds

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClockRate:
    """`found` in ppm, positive: the sample clock is fast. `phase_s`, shape (n,): time by the other clock less time by
    the sample clock at its nominal rate, each from its first, at `at_s` of the recording."""

    found: Found
    at_s: Floats
    phase_s: Floats


def rate_between(other_s: Floats, audio_s: Floats) -> ClockRate | None:
    """The rate from the first event to the last, both of shape (n,) and growing. None over less than `MIN_SPAN_S`.

    The noise of a stamp is what is left beside cubics through a few neighbours each: wander is none of it, however
    large, and enters the rate between the ends as it was."""
    n = len(other_s)
    if n < MIN_EVENTS or audio_s[-1] - audio_s[0] < MIN_SPAN_S:
        return None
    phase_s = (other_s - other_s[0]) - (audio_s - audio_s[0])
    squares, freedom = 0.0, 0
    for first in range(0, n - _BLOCK + 1, _BLOCK):
        x, y = audio_s[first : first + _BLOCK], phase_s[first : first + _BLOCK]
        x = (x - x.mean()) / np.ptp(x)
        rest = y - np.polyval(np.polyfit(x, y - y[0], 3), x) - y[0]
        squares, freedom = squares + float(np.dot(rest, rest)), freedom + _BLOCK - 4
    length_s = float(other_s[-1] - other_s[0])
    u = math.sqrt(2.0 * squares / freedom) / length_s * student(freedom)
    ppm = 1e6 * (float(audio_s[-1] - audio_s[0]) / length_s - 1.0)
    return ClockRate(Found(ppm, max(1e6 * u, 1e-6), n), audio_s, phase_s)


def even_phase(rate: ClockRate) -> tuple[float, Floats]:
    """The phase on an even grid: (s between two, shape (m,)). Events closer than half a second are averaged over a
    second each; a second without one is bridged by a straight line."""
    step_s = float(np.median(np.diff(rate.at_s)))
    step_s = step_s if step_s >= 0.5 else 1.0
    place = np.floor((rate.at_s - rate.at_s[0]) / step_s + (0.5 if step_s != 1.0 else 0.0)).astype(np.intp)
    counts = np.bincount(place)
    slope = float(np.polyfit(rate.at_s, rate.phase_s, 1)[0])  # taken out: places in a second differ, and it would show
    sums = np.bincount(place, weights=rate.phase_s - slope * (rate.at_s - rate.at_s[0]))
    held = np.flatnonzero(counts)
    even = np.interp(np.arange(len(counts)), held, sums[held] / counts[held])
    return step_s, even + slope * step_s * np.arange(len(counts))
