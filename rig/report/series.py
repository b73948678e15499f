"""The trials of a run as a series in time: do they resemble their neighbours, do they jump, do they slide?

A median over a series that jumps or slides is true of no moment. What is found here is told beside it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rig.domain.records import RunAnalysis
from rig.domain.report import Step, Trend
from rig.report.laws import normal_outside, student_outside

Values = npt.NDArray[np.float64]

NOTABLE_S = 0.1e-3
"""Jumps and slides under this are not told: no listener and no budget of a voice system knows 0.1 ms."""

MIN_SEGMENT = 3
"""Trials that a level must hold before it counts as a level: a single late trial is a hiccup, not a step."""

STEP_P = 1e-3
TREND_P = 0.01
MIN_FOR_CORRELATION = 10
MIN_FOR_TREND = 8
MIN_FOR_CREEP = 5


def effective_count(values: Values) -> float:
    """How many independent trials the series is worth: n (1 - r) / (1 + r), between 2 and n.

    r is the correlation of neighbours taken on ranks, so that one late trial does not hide it, corrected for its bias
    of -(1 + 3 r) / n (Marriott and Pope, Biometrika 41, 1954, 390-402). It counts only where it is positive beyond
    chance (one-sided 5 %, standard error 1/sqrt(n)); under 10 trials it cannot be told and n is returned. For the mean
    of a first-order autoregressive series the formula is exact for large n; for the median it errs to the safe side.
    Steps are told as steps; they are taken out first, level by level.
    """
    n = values.size
    levels = np.split(values, find_steps(values))
    rest = np.concatenate([level - np.median(level) for level in levels]) if len(levels) > 1 else values
    if n < MIN_FOR_CORRELATION or np.ptp(rest) == 0.0:
        return float(n)
    ranks = _ranks(rest)
    ranks -= ranks.mean()
    r = float(ranks[1:] @ ranks[:-1] / (ranks @ ranks))
    if r + 1.0 / n <= 1.645 / math.sqrt(n):
        return float(n)
    corrected = min(0.95, (r + 1.0 / n) / (1.0 - 3.0 / n))
    return max(2.0, n * (1.0 - corrected) / (1.0 + corrected))


def describe_series(run: RunAnalysis) -> tuple[tuple[Step, ...], Trend | None]:
    """Steps, or else a trend, among the accepted trials of a run. The one that leaves less unexplained is told."""
    accepted = [t for t in run.trials if t.valid and t.latency_s is not None]
    values = np.array([t.latency_s for t in accepted], dtype=np.float64)
    times = run.first_frame_s + np.array([t.reference_frame for t in accepted], dtype=np.float64) / run.rate_hz
    cuts = find_steps(values)
    trend = find_trend(times, values)
    if trend is not None and (not cuts or _unexplained_by_line(times, values) < _unexplained_by_steps(values, cuts)):
        slope, change = trend
        return (), Trend(run.run, slope, change)
    steps = []
    edges = [0, *cuts, values.size]
    for left, cut, right in zip(edges, edges[1:], edges[2:], strict=False):
        before, after = float(np.median(values[left:cut])), float(np.median(values[cut:right]))
        steps.append(Step(run.run, accepted[cut].index, float(times[cut]), before, after, after - before))
    return tuple(steps), None


def find_steps(values: Values) -> list[int]:
    """Positions at which a new level begins, ascending.

    Binary segmentation: the cut with the largest two-sample t, levels of at least 3 trials, significant at 0.1 % after
    Bonferroni's correction for the cuts tried, and of at least 0.1 ms between the medians; then each side again.
    """
    return sorted(_cuts(values, 0))


def find_trend(times_s: Values, values_s: Values) -> tuple[float, float] | None:
    """Slope (s per s) and change from first to last trial, s; None where none stands out.

    Slope by Theil and Sen (Sen, JASA 63, 1968, 1379-1389), significance by Mann and Kendall with its correction for
    ties, 1 % two-sided; at least 8 trials and 0.1 ms of change.
    """
    n = values_s.size
    if n < MIN_FOR_TREND or _kendall_p(values_s) >= TREND_P:
        return None
    slope = _theil_sen(times_s, values_s)
    change = slope * float(times_s[-1] - times_s[0])
    return (slope, change) if abs(change) >= NOTABLE_S else None


def creep_per_run(medians_s: Sequence[float] | Values) -> float | None:
    """Slope of the run medians, s per run, where 5 runs or more creep one way beyond chance; else None."""
    medians = np.asarray(medians_s, dtype=np.float64)
    n = medians.size
    if n < MIN_FOR_CREEP or _kendall_p(medians) >= 0.05:
        return None
    slope = _theil_sen(np.arange(n, dtype=np.float64), medians)
    return slope if abs(slope) * (n - 1) >= NOTABLE_S else None


def _cuts(values: Values, offset: int) -> list[int]:
    n = values.size
    if n < 2 * MIN_SEGMENT:
        return []
    cuts = np.arange(MIN_SEGMENT, n - MIN_SEGMENT + 1)
    sums = np.cumsum(values - values.mean())
    best = int(cuts[np.argmax(sums[cuts - 1] ** 2 * (1.0 / cuts + 1.0 / (n - cuts)))])  # least left unexplained
    left, right = values[:best], values[best:]
    if abs(float(np.median(right) - np.median(left))) < NOTABLE_S:
        return []
    gap = abs(float(right.mean() - left.mean()))
    error = math.sqrt((_rss(left) + _rss(right)) / (n - 2) * (1.0 / left.size + 1.0 / right.size))
    if error > 0.0 and student_outside(gap / error, n - 2) * cuts.size >= STEP_P:
        return []
    return [*_cuts(left, offset), offset + best, *_cuts(right, offset + best)]


def _rss(values: Values) -> float:
    return float(np.sum((values - values.mean()) ** 2))


def _unexplained_by_steps(values: Values, cuts: Sequence[int]) -> float:
    return math.fsum(_rss(part) for part in np.split(values, list(cuts)))


def _unexplained_by_line(times_s: Values, values_s: Values) -> float:
    return _rss(values_s - _theil_sen(times_s, values_s) * (times_s - times_s[0]))


def _theil_sen(x: Values, y: Values) -> float:
    """Median of the slopes of all pairs; long series are thinned evenly to 400 points to keep the pairs few."""
    keep = np.unique(np.linspace(0, x.size - 1, min(x.size, 400)).astype(int))
    i, j = np.triu_indices(keep.size, 1)
    dx = x[keep][j] - x[keep][i]
    dy = y[keep][j] - y[keep][i]
    return float(np.median(dy[dx > 0.0] / dx[dx > 0.0]))


def _kendall_p(values: Values) -> float:
    """Two-sided p of the Mann-Kendall test against no trend, normal approximation with continuity correction."""
    n = values.size
    score = sum(int(np.sum(np.sign(values[i + 1 :] - values[i]))) for i in range(n - 1))
    counts = np.unique(values, return_counts=True)[1].astype(np.float64)
    variance = (n * (n - 1) * (2 * n + 5) - float(np.sum(counts * (counts - 1) * (2 * counts + 5)))) / 18.0
    if variance <= 0.0:
        return 1.0
    return normal_outside(max(0.0, abs(score) - 1.0) / math.sqrt(variance))


def _ranks(values: Values) -> Values:
    """Ranks from 0, ties sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts) - 1.0
    return np.asarray((last - (counts - 1) / 2.0)[place], dtype=np.float64)
