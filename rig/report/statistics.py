"""The median of a run and over runs, with a 95 % interval that may be believed.

One run. From 6 trials on the interval is the order-statistic interval of the median, which assumes no law for the
jitter, with the interpolation of Hettmansperger and Sheather (Statistics and Probability Letters 4, 1986, 75-79);
Nyblom (same journal 14, 1992, 129-131) found its coverage close to nominal over a wide class of laws. Below 6 trials no
such interval reaches 95 %, and Student's t about the mean stands in; it always contains the median there.

Two things widen it. Where the trials agree much more closely than the estimator's own noise can explain (ties, luck),
the interval is that of the noise of the median, 1.2533 u / sqrt(n). And the terms that are common to all trials (type B
lines of the budget) do not average out: they are added in quadrature, expanded by 1.96 (GUM, JCGM 100:2008, clause 6).

Over runs the runs are the units, because the latency changes from start to start more than within one. While the run
medians differ no more than their own intervals explain (Cochran's Q, Biometrics 10, 1954, 101-129, p >= 0.5) all
trials are pooled; else the interval also spans Student's t on the run medians with runs - 1 degrees of freedom. The
level 0.5 is deliberate: with 3 runs, pooling at the usual 0.05 lets the coverage fall under 85 % when the spread
between runs is about as large as the uncertainty of one; at 0.5 it stays above 91 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from rig.domain.records import RunAnalysis
from rig.domain.report import BetweenRuns, LatencyStatistics, Spread
from rig.report.laws import NORMAL_95, chi_squared_above, coin_at_most, student_quantile
from rig.report.series import creep_per_run, effective_count

Values = npt.NDArray[np.float64]

COVERAGE = 0.95
MEDIAN_EFFICIENCY = math.sqrt(math.pi / 2.0)
"""Standard deviation of the median over that of the mean, normal law, many trials: 1.2533."""

MIN_ORDER_STATISTICS = 6
"""The range of 6 trials covers the median with 96.9 %, that of 5 with 93.8 %: below, no order statistics reach 95 %."""

STUDENT_COVERAGE = 0.96
"""Level of Student's t below 6 trials. The jitter of frames and buffers is flat, not normal, and for flat laws the 95 %
interval covers 92 to 93.5 %; this one covers 94 to 96 % of flat and normal laws alike."""

MIN_BEYOND = 1.0
"""A percentile is shown once this many trials are expected beyond it, n (1 - p): p95 from 20 trials on, p99 from 100.
Under that it would be the maximum by another name."""

COLLAPSED = 0.5
"""An interval shorter than this share of the one that the estimator's noise gives has collapsed. At 1 the longer of two
fair intervals would be taken each time, and pure noise would be covered with 98.5 % instead of 95 to 96 %."""

RUNS_AGREE_P = 0.5


@dataclass(frozen=True, slots=True)
class RunSample:
    """The accepted trials of one run: latencies in s in the order of the trials, noise of one and common u in s."""

    latencies_s: Values
    u_noise_s: float
    u_common_s: float


def sample_of(run: RunAnalysis) -> RunSample:
    """Takes the accepted trials of a run. The noise of a trial is the median over those that state one, else 0."""
    accepted = [t for t in run.trials if t.valid and t.latency_s is not None]
    noises = [t.u_noise_s for t in accepted if t.u_noise_s is not None]
    return RunSample(
        latencies_s=np.array([t.latency_s for t in accepted], dtype=np.float64),
        u_noise_s=float(np.median(noises)) if noises else 0.0,
        u_common_s=math.sqrt(math.fsum(line.u_s**2 for line in run.budget if line.kind == "B")),
    )


def order_statistic_interval(values: Values, coverage: float = COVERAGE) -> tuple[float, float]:
    """Hettmansperger-Sheather interval of the median of at least 6 values, any order, any unit."""
    n = values.size
    if n < MIN_ORDER_STATISTICS:
        raise ValueError(f"an order-statistic interval of 95 % needs {MIN_ORDER_STATISTICS} values, got {n}")
    depth, weight = _depth_and_weight(n, coverage)
    x = np.sort(values)
    low = (1.0 - weight) * x[depth - 1] + weight * x[depth]
    high = (1.0 - weight) * x[n - depth] + weight * x[n - depth - 1]
    return float(low), float(high)


@cache
def _depth_and_weight(n: int, coverage: float) -> tuple[int, float]:
    """Order statistic to start from, counted from the outside, and the share of the way to the next one inside."""
    depth = 1
    while depth + 1 <= n // 2 and 1.0 - 2.0 * coin_at_most(depth, n) >= coverage:
        depth += 1
    outer = 1.0 - 2.0 * coin_at_most(depth - 1, n)
    inner = 1.0 - 2.0 * coin_at_most(depth, n)
    share = (outer - coverage) / (outer - inner)
    return depth, (n - depth) * share / (depth + (n - 2 * depth) * share)


def student_interval(values: Values, coverage: float = COVERAGE) -> tuple[float, float]:
    """Student-t interval of the mean of at least 2 values. For 2 to 5 values it always contains their median."""
    n = values.size
    half = student_quantile(coverage, n - 1) * float(values.std(ddof=1)) / math.sqrt(n)
    middle = float(values.mean())
    return middle - half, middle + half


def median_interval(sample: RunSample) -> tuple[float, float, str, float]:
    """95 % interval of the median of one run before the common terms: (low, high, method, effective count)."""
    values = sample.latencies_s
    if values.size >= MIN_ORDER_STATISTICS:
        (low, high), method = order_statistic_interval(values), "order_statistics"
    else:
        (low, high), method = student_interval(values, STUDENT_COVERAGE), "student"
    n_effective = effective_count(values)
    return _widened(values, low, high, method, n_effective, sample.u_noise_s)


def run_statistics(sample: RunSample) -> LatencyStatistics:
    """Statistics of one run of at least 2 accepted trials."""
    low, high, method, n_effective = median_interval(sample)
    return _statistics(sample.latencies_s, low, high, method, n_effective, sample.u_noise_s, sample.u_common_s)


def pooled_statistics(samples: Sequence[RunSample]) -> LatencyStatistics:
    """Statistics over the accepted trials of runs of at least 3 each; one run gives what `run_statistics` gives."""
    if len(samples) == 1:
        return run_statistics(samples[0])
    values = np.concatenate([s.latencies_s for s in samples])
    n_effective = math.fsum(effective_count(s.latencies_s) for s in samples)
    u_noise_s = float(np.median([s.u_noise_s for s in samples]))
    u_common_s = max(s.u_common_s for s in samples)
    low, high = order_statistic_interval(values)
    low, high, method, _ = _widened(values, low, high, "order_statistics", n_effective, u_noise_s)
    medians = np.array([np.median(s.latencies_s) for s in samples])
    if not _agree(samples, medians):
        between_low, between_high = student_interval(medians)
        low, high, method = min(low, between_low), max(high, between_high), "between_runs"
    return _statistics(values, low, high, method, n_effective, u_noise_s, u_common_s)


def between_runs(samples: Sequence[RunSample]) -> BetweenRuns | None:
    """How the run medians differ; None with fewer than two runs."""
    if len(samples) < 2:
        return None
    medians = np.array([np.median(s.latencies_s) for s in samples])
    return BetweenRuns(
        n=len(samples),
        sd_s=float(medians.std(ddof=1)),
        range_s=float(np.ptp(medians)),
        agree=_agree(samples, medians),
        slope_s_per_run=creep_per_run(medians),
    )


def spread_within(samples: Sequence[RunSample]) -> Spread | None:
    """Robust spread inside the runs, s: 1.4826 times the median distance from the own run's median, corrected for the
    medians taken. Where over half of the trials tie that is 0 and the plain standard deviation is given instead."""
    residuals = np.concatenate([s.latencies_s - np.median(s.latencies_s) for s in samples])
    freedom = residuals.size - len(samples)
    if freedom < 1:
        return None
    robust = 1.4826 * float(np.median(np.abs(residuals))) * math.sqrt(residuals.size / freedom)
    if robust > 0.0:
        return Spread(robust, "mad")
    return Spread(math.sqrt(float(np.sum(residuals**2)) / freedom), "sd")


def percentile(values: Values, p: float) -> float | None:
    """Median-unbiased percentile (type 8 of Hyndman and Fan, American Statistician 50, 1996), None where n (1 - p) < 1.

    `p` as a share from 0 to 1; under 0.5 the rule is mirrored."""
    if values.size * min(p, 1.0 - p) < MIN_BEYOND - 1e-9:
        return None
    return float(np.quantile(values, p, method="median_unbiased"))


def _agree(samples: Sequence[RunSample], medians: Values) -> bool:
    """Cochran's Q of the run medians against their own intervals; common terms shift all alike and stay out."""
    halves = np.array([0.5 * (high - low) for low, high, *_ in map(median_interval, samples)])
    if np.any(halves <= 0.0):
        return bool(np.ptp(medians) == 0.0)
    weights = (NORMAL_95 / halves) ** 2
    q = float(np.sum(weights * (medians - np.average(medians, weights=weights)) ** 2))
    return chi_squared_above(q, len(samples) - 1) >= RUNS_AGREE_P


def _widened(
    values: Values, low: float, high: float, method: str, n_effective: float, u_noise_s: float
) -> tuple[float, float, str, float]:
    """Widens about the median for serial correlation, but not past the trials seen; puts the noise in a collapsed one's
    place."""
    n, median = values.size, float(np.median(values))
    inflation = math.sqrt(n / n_effective)
    low = min(low, max(float(values.min()), median - (median - low) * inflation))
    high = max(high, min(float(values.max()), median + (high - median) * inflation))
    floor = NORMAL_95 * MEDIAN_EFFICIENCY * u_noise_s / math.sqrt(n)
    if high - low < COLLAPSED * 2.0 * floor:
        return median - floor, median + floor, "estimator_noise", n_effective
    return low, high, method, n_effective


def _statistics(
    values: Values, low: float, high: float, method: str, n_effective: float, u_noise_s: float, u_common_s: float
) -> LatencyStatistics:
    median = float(np.median(values))
    common = NORMAL_95 * u_common_s
    low_s, high_s = median - math.hypot(median - low, common), median + math.hypot(high - median, common)
    noise = NORMAL_95 * MEDIAN_EFFICIENCY * u_noise_s / math.sqrt(values.size)
    return LatencyStatistics(
        n=int(values.size),
        median_s=median,
        mean_s=float(values.mean()),
        min_s=float(values.min()),
        max_s=float(values.max()),
        range_s=float(np.ptp(values)),
        p5_s=percentile(values, 0.05),
        p95_s=percentile(values, 0.95),
        p99_s=percentile(values, 0.99),
        low_s=low_s,
        high_s=high_s,
        u95_s=0.5 * (high_s - low_s),
        instrument_u95_s=math.hypot(common, noise),
        n_effective=n_effective,
        method=method,
    )
