"""Has the range of a measurement grown against another's by more than chance explains?

The unit is the run, because the latency changes from start to start more than within one: trials of one run are no
independent witnesses. So whole runs are exchanged between the two measurements, each measured from its own side's
median (a permutation test: Fisher, The Design of Experiments, 1935; Good, Permutation Tests, 2000). With three runs a
side there are 20 ways to deal them, and the range has grown where no other deal tells them apart as clearly: 1 in 20
by chance.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

LEVEL = 0.05
MIN_RUNS = 3
"""With two runs a side there are 6 deals: none could reach the level."""

MOST_DEALS = 5000
_ROUNDING_S = 1e-9

Run = tuple[float, float]
"""Earliest and latest trial of a run, s."""


@dataclass(frozen=True, slots=True)
class Growth:
    """`growth_s`: how much wider the second range is, negative: narrower. `share`: the part of all deals that tells the
    sides apart at least as clearly; None where there are too few runs for a test. `grew`: None likewise."""

    growth_s: float
    share: float | None
    grew: bool | None


def growth(before: Sequence[Run], before_median_s: float, after: Sequence[Run], after_median_s: float) -> Growth:
    """Compares the ranges over all runs of two measurements, one run at least on each side."""
    centred = [_moved(run, before_median_s) for run in before] + [_moved(run, after_median_s) for run in after]
    own = range(len(before), len(centred))
    seen_s = _difference_s(centred, own)
    if min(len(before), len(after)) < MIN_RUNS:
        return Growth(seen_s, None, None)
    clear = deals = 0
    for deal in _deals(len(centred), len(after)):
        deals += 1
        clear += _difference_s(centred, deal) >= seen_s - _ROUNDING_S
    share = clear / deals
    return Growth(seen_s, share, seen_s > _ROUNDING_S and share <= LEVEL + 1e-12)


def _moved(run: Run, median_s: float) -> Run:
    return run[0] - median_s, run[1] - median_s


def _difference_s(runs: Sequence[Run], after: Sequence[int]) -> float:
    chosen = set(after)
    return _range_s([r for k, r in enumerate(runs) if k in chosen]) - _range_s(
        [r for k, r in enumerate(runs) if k not in chosen]
    )


def _range_s(runs: Sequence[Run]) -> float:
    return max(high for _, high in runs) - min(low for low, _ in runs)


def _deals(n: int, k: int) -> Iterator[Sequence[int]]:
    """Every way to choose k of n; of very many a sample, always the same one, and the one that was seen."""
    if math.comb(n, k) <= MOST_DEALS:
        yield from itertools.combinations(range(n), k)
        return
    yield range(n - k, n)
    draw = random.Random(0)
    for _ in range(MOST_DEALS - 1):
        yield draw.sample(range(n), k)
