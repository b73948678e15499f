"""What came before the dominant arrival, averaged over a run: a path too weak to be seen in one noisy trial.

Each trial's response is taken as power relative to its dominant arrival, aligned at that arrival. Noise averages to a
smooth floor, a real path does not: with K trials its threshold comes down from seven sigma towards the floor itself.
Memory is flat: sums only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.analyse.spectrum import Real

STEP_S = 0.00015
REACH_S = 0.2
POINTS = round(REACH_S / STEP_S)
SIGNIFICANT_POWER = 0.12
"""-9 dB: an earlier path this strong must be visible in the run's average, or nothing is certain there."""

CERTAIN = 6.0
SUSPECTED = 5.0
FLOOR_HALF_POINTS = 60
LEAST_POWER = 0.05
"""-13 dB: a stacked path below this is below what counts as a first arrival (10 dB), with room for its spread."""


@dataclass(frozen=True, slots=True)
class Before:
    """What the run's average shows before the dominant arrival: the distances (s) of paths there, and whether a path
    10 dB below the dominant one would have been seen."""

    paths_s: tuple[float, ...]
    suspected: bool  # something stands there, perhaps by chance
    sees_enough: bool

    @property
    def clear(self) -> bool:
        return self.sees_enough and not self.suspected


class Stack:
    """Feed profiles of accepted trials; ask for the distances before the dominant arrival at which a path stands."""

    def __init__(self) -> None:
        self.count = 0
        self._power = np.zeros(POINTS)
        self._null = np.zeros(POINTS)
        self._lobes = np.zeros(POINTS)

    def add(self, profile: Real) -> None:
        """`profile`: shape (3, POINTS), relative power of the response, of the decoy's response, of the own lobes;
        column k is k * STEP_S before the dominant arrival."""
        self.count += 1
        self._power += profile[0]
        self._null += profile[1]
        self._lobes += profile[2]

    def before(self, guard_s: float) -> Before:
        """Looks for paths more than `guard_s` before the dominant arrival.

        A path must exceed the local floor by six standard errors, twice the decoy's level there, and its own lobes; one
        that exceeds it by five is suspected. Of some 600 independent places one reaches five by chance in a run in
        twenty, six in a run in five hundred (the mean of K exponentials, K about 10).
        """
        if self.count < 3:
            return Before((), False, False)
        power = self._power / self.count
        floor = _running_median(power, FLOOR_HALF_POINTS)
        null = _running_mean(self._null / self.count, FLOOR_HALF_POINTS)
        others = np.maximum(np.maximum(2.0 * null, 4.0 * self._lobes / self.count), LEAST_POWER)
        error = floor / math.sqrt(self.count)
        first = max(1, math.ceil(guard_s / STEP_S))
        paths = _peaks(power, np.maximum(floor + CERTAIN * error, others), first)
        limit = np.maximum(floor + SUSPECTED * error, others)
        # A path adds its power to the floor: it is seen when the two together reach the limit.
        seen = float(np.percentile((limit - floor)[first:], 75)) <= SIGNIFICANT_POWER
        return Before(paths, bool(_peaks(power, limit, first)), seen)


def _peaks(power: Real, limit: Real, first: int) -> tuple[float, ...]:
    inner = power[first + 1 : -1]
    higher = (inner >= power[first:-2]) & (inner > power[first + 2 :]) & (inner >= limit[first + 1 : -1])
    return tuple(float((k + first + 1) * STEP_S) for k in np.nonzero(higher)[0])


def _running_median(values: Real, half: int) -> Real:
    blocks = np.array_split(values, max(1, len(values) // half))
    centres = np.cumsum([len(b) for b in blocks]) - 0.5 * np.array([len(b) for b in blocks])
    return np.asarray(np.interp(np.arange(len(values)), centres, [float(np.median(b)) / math.log(2.0) for b in blocks]))


def _running_mean(values: Real, half: int) -> Real:
    kernel = np.ones(2 * half + 1) / (2 * half + 1)
    return np.asarray(np.convolve(values, kernel, mode="same"))
