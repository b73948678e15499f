"""Do the accepted trials form one group, or several? And which stand alone?

Neighbours in order of latency belong together unless the gap between them is both over 1 ms and over 5 times the spread
inside the groups it would leave. The spread depends on the groups and the groups on the spread: the search starts at
4 times the median gap (1 ms at least) and widens until the two agree, so wide jitter is not cut at its chance gaps. A
group needs 3 trials; fewer that stand apart are outliers. They stay in the statistics: each trial is validated on its
own, and a real hiccup is what a percentile is about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.domain.report import Cluster, Grouping, Outlier

MIN_GAP_S = 1e-3
GAP_OVER_SPREAD = 5.0
START_OVER_MEDIAN_GAP = 4.0
MIN_GROUP = 3


@dataclass(frozen=True, slots=True)
class Placed:
    """An accepted trial and where it comes from."""

    run: int
    index: int
    latency_s: float


def group_trials(trials: Sequence[Placed]) -> Grouping | None:
    """Groups the accepted trials of all runs; None where no group reaches 3 trials."""
    ordered = sorted(trials, key=lambda t: (t.latency_s, t.run, t.index))
    gaps = np.diff([t.latency_s for t in ordered])
    gap_s = max(MIN_GAP_S, START_OVER_MEDIAN_GAP * float(np.median(gaps))) if gaps.size else MIN_GAP_S
    parts = _split(ordered, gap_s)
    while True:
        wider = max(MIN_GAP_S, GAP_OVER_SPREAD * _spread(parts))
        if wider <= gap_s:
            break
        gap_s = wider
        parts = _split(ordered, gap_s)
    groups = [part for part in parts if len(part) >= MIN_GROUP]
    if not groups:
        return None
    alone = [t for part in parts if len(part) < MIN_GROUP for t in part]
    return Grouping(
        gap_s=gap_s,
        clusters=tuple(_cluster(g) for g in groups),
        outliers=tuple(
            sorted(
                (Outlier(t.run, t.index, t.latency_s, _distance(t, groups)) for t in alone),
                key=lambda o: (o.run, o.index),
            )
        ),
    )


def is_mixture(grouping: Grouping) -> bool:
    """Do the groups cut across the runs, or gather some of them? Where every run is a group of its own, each start
    lands somewhere else, and the median over the runs is a fair figure for the next one."""
    clusters = grouping.clusters
    each_its_own = all(len(c.runs) == 1 for c in clusters) and len({c.runs for c in clusters}) == len(clusters)
    return len(clusters) > 1 and not each_its_own


def _split(ordered: Sequence[Placed], gap_s: float) -> list[list[Placed]]:
    parts: list[list[Placed]] = []
    for trial in ordered:
        if parts and trial.latency_s - parts[-1][-1].latency_s <= gap_s:
            parts[-1].append(trial)
        else:
            parts.append([trial])
    return parts


def _spread(parts: Sequence[Sequence[Placed]]) -> float:
    """Standard deviation inside the parts of at least 3 trials, pooled, s; 0 where there are none.

    Not a robust one: a group with long tails must count as wide."""
    squares, freedom = 0.0, 0
    for part in parts:
        if len(part) >= MIN_GROUP:
            values = np.array([t.latency_s for t in part])
            squares += float(np.sum((values - values.mean()) ** 2))
            freedom += len(part) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0


def _cluster(part: Sequence[Placed]) -> Cluster:
    values = np.array([t.latency_s for t in part])
    return Cluster(
        n=len(part),
        median_s=float(np.median(values)),
        min_s=float(values.min()),
        max_s=float(values.max()),
        runs=tuple(sorted({t.run for t in part})),
    )


def _distance(trial: Placed, groups: Sequence[Sequence[Placed]]) -> float:
    """Signed distance to the nearest trial of any group, s; positive: later than it."""
    distances = [trial.latency_s - t.latency_s for group in groups for t in (group[0], group[-1])]
    return min(distances, key=abs)
