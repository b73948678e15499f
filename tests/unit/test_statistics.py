"""The statistics of a report against laws of which the answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import scipy.stats
from report_cases import run_of

from rig.report.groups import Placed, group_trials
from rig.report.laws import chi_squared_above, coin_at_most, normal_outside, student_outside, student_quantile
from rig.report.series import creep_per_run, describe_series, effective_count, find_steps
from rig.report.statistics import (
    RunSample,
    between_runs,
    order_statistic_interval,
    percentile,
    pooled_statistics,
    run_statistics,
    spread_within,
    student_interval,
)

Rng = np.random.Generator
MS = 1e-3


def sample(values_s: np.ndarray | list[float], u_noise_s: float = 0.0, u_common_s: float = 0.0) -> RunSample:
    return RunSample(np.asarray(values_s, dtype=np.float64), u_noise_s, u_common_s)


@pytest.mark.parametrize("df", [1, 2, 3, 4, 5, 10, 29, 30, 400])
def test_laws_agree_with_scipy(df: int) -> None:
    for x in (0.0, 0.1, 0.7, 1.0, 2.5, 6.0, 40.0):
        assert student_outside(x, df) == pytest.approx(2.0 * scipy.stats.t.sf(x, df), abs=1e-12)
        assert chi_squared_above(x, df) == pytest.approx(scipy.stats.chi2.sf(x, df), rel=1e-9, abs=1e-12)
        assert normal_outside(x) == pytest.approx(2.0 * scipy.stats.norm.sf(x), rel=1e-9, abs=1e-300)
    assert student_quantile(0.95, df) == pytest.approx(scipy.stats.t.ppf(0.975, df), rel=1e-9)
    assert coin_at_most(df // 3, df) == pytest.approx(scipy.stats.binom.cdf(df // 3, df, 0.5), rel=1e-9)


LAWS: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(0.0, 5 * MS, n),
    "uniform over a frame": lambda rng, n: rng.uniform(-10 * MS, 10 * MS, n),
    # eight playback blocks of 128 frames at 48 kHz, read with a little noise
    "quantised": lambda rng, n: (rng.integers(0, 8, n) - 3.5) * 128 / 48_000 + rng.normal(0.0, 1e-6, n),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("n", [5, 10, 20, 30])
def test_interval_of_a_run_covers_the_median_as_often_as_it_says(law: str, n: int, rng: Rng) -> None:
    worlds = 2000
    hits = 0
    for _ in range(worlds):
        got = run_statistics(sample(LAWS[law](rng, n), u_noise_s=1e-6))
        hits += got.low_s <= 0.0 <= got.high_s
    # the binomial error of 2000 worlds is 0.5 %; 93 to 98 % is what is promised
    assert 0.93 - 0.005 <= hits / worlds <= 0.98, f"{law}, {n} trials: covers {100 * hits / worlds:.1f} %"


def test_estimator_noise_alone_is_covered_and_not_far_more(rng: Rng) -> None:
    worlds, u_noise_s = 2000, 0.5e-6
    hits = replaced = 0
    for _ in range(worlds):
        got = run_statistics(sample(0.15 + rng.normal(0.0, u_noise_s, 20), u_noise_s))
        hits += got.low_s <= 0.15 <= got.high_s
        replaced += got.method == "estimator_noise"
    assert replaced / worlds < 0.1
    assert 0.93 <= hits / worlds <= 0.98, f"covers {100 * hits / worlds:.1f} %"


@pytest.mark.parametrize("n", [3, 6, 20])
def test_ties_do_not_collapse_the_interval(n: int) -> None:
    got = run_statistics(sample([0.15] * n, u_noise_s=2e-6))
    assert got.method == "estimator_noise"
    assert got.u95_s == pytest.approx(1.96 * 1.2533 * 2e-6 / math.sqrt(n), rel=1e-3)


def test_common_terms_do_not_average_out() -> None:
    few = run_statistics(sample([0.15] * 5, 1e-6, u_common_s=50e-6))
    many = run_statistics(sample([0.15] * 500, 1e-6, u_common_s=50e-6))
    assert many.u95_s == pytest.approx(1.96 * 50e-6, rel=1e-3)
    assert many.u95_s <= few.u95_s
    runs = pooled_statistics([sample([0.15] * 20, 1e-6, u_common_s=50e-6)] * 4)
    assert runs.u95_s == pytest.approx(1.96 * 50e-6, rel=1e-3)
    assert runs.instrument_u95_s == pytest.approx(runs.u95_s)


def test_small_samples_use_student_and_contain_the_median(rng: Rng) -> None:
    for n in (2, 3, 4, 5):
        for _ in range(200):
            values = rng.exponential(1.0, n) ** 3
            low, high = student_interval(values)
            assert low <= np.median(values) <= high
    with pytest.raises(ValueError, match="needs 6"):
        order_statistic_interval(np.arange(5.0))


def test_order_statistic_interval_of_six_values_is_just_inside_their_range() -> None:
    low, high = order_statistic_interval(np.array([3.0, 1.0, 2.0, 6.0, 5.0, 4.0]))
    assert 1.0 < low < 1.5
    assert low + high == pytest.approx(7.0)


@pytest.mark.parametrize("tau", [0.0, 1.0, 10.0])
def test_interval_over_runs_honours_the_spread_between_runs(tau: float, rng: Rng) -> None:
    """`tau` is the spread between starts, in units of the uncertainty of one run's median."""
    worlds, n, runs = 1000, 20, 3
    u_run = 1.2533 / math.sqrt(n)
    hits = pooled_hits = 0
    for _ in range(worlds):
        parts = [sample((rng.normal(tau * u_run * rng.normal(), 1.0, n)) * MS) for _ in range(runs)]
        got = pooled_statistics(parts)
        hits += got.low_s <= 0.0 <= got.high_s
        low, high = order_statistic_interval(np.concatenate([p.latencies_s for p in parts]))
        pooled_hits += low <= 0.0 <= high
    assert 0.91 <= hits / worlds <= 0.985, f"covers {100 * hits / worlds:.1f} %"
    if tau == 10.0:
        assert pooled_hits / worlds < 0.6  # what ignoring the runs would have claimed


def test_runs_that_agree_are_not_punished(rng: Rng) -> None:
    ratios = []
    for _ in range(300):
        parts = [sample(rng.normal(0.15, 1 * MS, 20)) for _ in range(3)]
        low, high = order_statistic_interval(np.concatenate([p.latencies_s for p in parts]))
        ratios.append(2.0 * pooled_statistics(parts).u95_s / (high - low))
    assert np.median(ratios) < 1.7
    assert min(ratios) >= 1.0 - 1e-9


def test_one_run_pooled_is_the_run(rng: Rng) -> None:
    one = sample(rng.normal(0.15, MS, 12), 1e-6, 10e-6)
    assert pooled_statistics([one]) == run_statistics(one)
    assert between_runs([one]) is None


def test_percentiles_only_where_a_trial_is_expected_beyond() -> None:
    values = np.arange(1.0, 101.0)
    assert percentile(values[:19], 0.95) is None
    assert percentile(values[:20], 0.95) is not None
    assert percentile(values[:99], 0.99) is None
    assert percentile(values, 0.99) == pytest.approx(99.66, abs=0.01)
    assert percentile(values[:19], 0.05) is None
    assert percentile(values[:20], 0.05) == pytest.approx(1.35, abs=0.01)


def test_spread_within_is_robust_and_unbiased(rng: Rng) -> None:
    parts = [sample(rng.normal(0.1 * r, 2 * MS, 200)) for r in range(5)]
    spread = spread_within(parts)
    assert spread is not None
    assert spread.method == "mad"
    assert spread.within_s == pytest.approx(2 * MS, rel=0.1)
    parts[0].latencies_s[0] += 1.0
    again = spread_within(parts)
    assert again is not None
    assert again.within_s == pytest.approx(spread.within_s, rel=0.01)


def test_spread_of_ties_falls_back_to_the_standard_deviation() -> None:
    spread = spread_within([sample([0.15] * 9 + [0.16])])
    assert spread is not None
    assert spread.method == "sd"
    assert spread.within_s == pytest.approx(10 * MS / 3.0)


def autoregressive(rng: Rng, n: int, rho: float) -> np.ndarray:
    x = np.zeros(n + 50)
    for i, e in enumerate(rng.normal(0.0, MS, n + 50)):
        x[i] = rho * x[i - 1] + e
    return x[50:]


def test_serial_correlation_widens_the_interval(rng: Rng) -> None:
    worlds, n = 600, 50
    hits = naive = 0
    for _ in range(worlds):
        values = autoregressive(rng, n, 0.5)
        got = run_statistics(sample(values))
        hits += got.low_s <= 0.0 <= got.high_s
        low, high = order_statistic_interval(values)
        naive += low <= 0.0 <= high
    assert naive / worlds < 0.87
    assert hits / worlds > 0.90, f"covers {100 * hits / worlds:.1f} %"


def test_independent_trials_count_in_full(rng: Rng) -> None:
    counts = [effective_count(rng.normal(0.0, 1.0, 30)) for _ in range(400)]
    assert np.mean([c == 30.0 for c in counts]) > 0.92
    assert effective_count(np.full(30, 0.15)) == 30.0
    assert effective_count(np.array([1.0, 2.0, 3.0])) == 3.0


def test_a_step_is_found_where_it_is(rng: Rng) -> None:
    values = np.concatenate([rng.normal(0.150, 0.2 * MS, 8), rng.normal(0.162, 0.2 * MS, 12)])
    steps, trend = describe_series(run_of(values, run=2))
    assert trend is None
    assert [(s.run, s.index) for s in steps] == [(2, 8)]
    assert steps[0].size_s == pytest.approx(12 * MS, abs=0.3 * MS)
    assert steps[0].at_s == pytest.approx(1.0 + 2.0 * 8)


def test_steps_up_and_down_are_two(rng: Rng) -> None:
    levels = np.repeat([0.150, 0.190, 0.170], 10)
    steps, _ = describe_series(run_of(levels + rng.normal(0.0, 0.5 * MS, 30)))
    assert [s.index for s in steps] == [10, 20]
    assert [round(s.size_s, 3) for s in steps] == pytest.approx([0.040, -0.020], abs=1 * MS)


def test_steps_without_any_noise() -> None:
    assert find_steps(np.repeat([0.150, 0.160], 5)) == [5]
    assert find_steps(np.full(10, 0.150)) == []
    assert find_steps(np.array([0.15] * 9 + [0.25])) == []  # one late trial is no level


def test_a_trend_is_a_trend_and_not_steps(rng: Rng) -> None:
    values = 0.150 + np.arange(20) * 0.5 * MS + rng.normal(0.0, 0.2 * MS, 20)
    steps, trend = describe_series(run_of(values))
    assert steps == ()
    assert trend is not None
    assert trend.slope_s_per_s == pytest.approx(0.25 * MS, rel=0.1)
    assert trend.change_s == pytest.approx(9.5 * MS, rel=0.1)


@pytest.mark.parametrize("n", [10, 20, 60])
def test_nothing_is_seen_in_pure_jitter(n: int, rng: Rng) -> None:
    worlds, steps, trends, groups = 200, 0, 0, 0
    for law in LAWS.values():
        for _ in range(worlds):
            values = 0.15 + law(rng, n)
            found, trend = describe_series(run_of(values))
            steps += bool(found)
            trends += trend is not None
            if law is not LAWS["quantised"]:
                grouping = group_trials([Placed(1, i, v) for i, v in enumerate(values)])
                groups += grouping is not None and len(grouping.clusters) > 1
    assert steps / (3 * worlds) <= 0.01
    assert trends / (3 * worlds) <= 0.03
    assert groups / (2 * worlds) <= 0.08


def test_runs_that_creep() -> None:
    assert creep_per_run([0.010 + 0.4 * MS * i for i in range(10)]) == pytest.approx(0.4 * MS)
    assert creep_per_run([0.010 + 0.4 * MS * i for i in range(4)]) is None
    assert creep_per_run([0.010, 0.012, 0.009, 0.011, 0.010, 0.012]) is None


def test_groups_and_who_stands_alone(rng: Rng) -> None:
    placed = [Placed(1, i, v) for i, v in enumerate(rng.normal(0.150, 0.3 * MS, 20))]
    placed += [Placed(2, i, v) for i, v in enumerate(rng.normal(0.160, 0.3 * MS, 19))]
    placed += [Placed(2, 19, 0.095)]
    grouping = group_trials(placed)
    assert grouping is not None
    assert [(c.n, c.runs) for c in grouping.clusters] == [(20, (1,)), (19, (2,))]
    assert [(o.run, o.index) for o in grouping.outliers] == [(2, 19)]
    assert grouping.outliers[0].distance_s == pytest.approx(-54 * MS, abs=2 * MS)


def test_groups_closer_than_a_millisecond_are_one() -> None:
    placed = [Placed(1, i, 0.150 + 0.9 * MS * (i % 2)) for i in range(20)]
    grouping = group_trials(placed)
    assert grouping is not None
    assert len(grouping.clusters) == 1


def test_no_group_among_two_trials() -> None:
    assert group_trials([Placed(1, 0, 0.1), Placed(1, 1, 0.2)]) is None
    assert group_trials([]) is None
