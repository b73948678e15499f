"""Lines between bounds against a general linear program, and what must hold for any bounds that a line keeps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from rig.analyse.clockbounds import Lines, lines_between
from rig.analyse.clockfit import fit_clocks
from rig.domain.records import ClockExchange

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(2, 50)


def draw(
    seed: int, n: int, late_s: float = 1e-3
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Bounds around a line: (x, low, x2, high), its slope, and its value at x = 0."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 100.0, n))
    x2 = x + rng.uniform(0.0, 0.02, n)
    slope, start = 1.0 + 5e-3 * rng.standard_normal(), rng.uniform(-1e5, 1e5)
    low = start + slope * x - late_s * rng.standard_exponential(n)
    high = start + slope * x2 + late_s * rng.standard_exponential(n)
    return x, low, x2, high, slope, start


def largest_margin(x: np.ndarray, low: np.ndarray, x2: np.ndarray, high: np.ndarray) -> float:
    """The same program, solved by a general solver (in ms, and about the middle, so that it keeps its digits)."""
    k = float(np.mean(high))
    rows = np.vstack(
        [
            np.column_stack([-(x - 50.0), -np.ones_like(x), np.ones_like(x)]),
            np.column_stack([x2 - 50.0, np.ones_like(x), np.ones_like(x)]),
        ]
    )
    limits = 1e3 * np.concatenate([-(low - k - (x - 50.0)), high - k - (x2 - 50.0)])
    solved = linprog([0.0, 0.0, -1.0], A_ub=rows, b_ub=limits, bounds=[(None, None)] * 3, method="highs")
    assert solved.status == 0
    return 1e-3 * float(solved.x[2])


@given(seed=SEEDS, n=COUNTS)
def test_the_margin_is_that_of_a_general_solver(seed: int, n: int) -> None:
    x, low, x2, high, _, _ = draw(seed, n)
    lines = lines_between(x, low, x2, high)
    assert lines is not None
    assert lines.margin_s == pytest.approx(largest_margin(x, low, x2, high), abs=1e-9)
    kept = min(float(np.min(lines.at(x) - low)), float(np.min(high - lines.at(x2))))
    assert kept == pytest.approx(lines.margin_s, abs=1e-9), "the line does not keep the margin it states"


@given(seed=SEEDS, n=COUNTS)
def test_the_interval_is_reached_and_never_left(seed: int, n: int) -> None:
    x, low, x2, high, slope, start = draw(seed, n)
    lines = lines_between(x, low, x2, high)
    assert lines is not None
    at = np.linspace(-20.0, 120.0, 29)
    least, largest = lines.interval(at)
    assert np.all((least <= start + slope * at + 1e-9) & (start + slope * at <= largest + 1e-9))
    assert np.all((least <= lines.at(at) + 1e-9) & (lines.at(at) <= largest + 1e-9))
    assert lines.slope_range[0] - 1e-12 <= slope <= lines.slope_range[1] + 1e-12
    for a, b_low, b_high in zip(lines.slopes, lines.lows_s, lines.highs_s, strict=True):
        for b in (
            b_low,
            b_high,
        ):  # every corner is a line that keeps all bounds, so the interval is no wider than need be
            value = Lines(lines.x0_s, float(b), float(a), 0.0, lines.slopes, lines.lows_s, lines.highs_s)
            assert np.min(value.at(x) - low) > -1e-8
            assert np.min(high - value.at(x2)) > -1e-8


@given(seed=SEEDS, n=st.integers(4, 50), early_s=st.floats(1e-6, 1e-2))
def test_bounds_that_no_line_keeps_give_none(seed: int, n: int, early_s: float) -> None:
    x, low, x2, high, slope, start = draw(seed, n)
    # Three bounds on one side of a line and the middle of the other side beyond it.
    k = n // 2
    low[[0, -1]] = start + slope * x[[0, -1]]
    high[k] = start + slope * x2[k] - early_s
    assert lines_between(x, low, x2, high) is None


@settings(max_examples=30)
@given(seed=SEEDS, n=st.integers(2, 50), shift_s=st.floats(-1e6, 1e6))
def test_moving_a_clock_moves_the_lines_and_nothing_else(seed: int, n: int, shift_s: float) -> None:
    x, low, x2, high, _, _ = draw(seed, n)
    here, there = lines_between(x, low, x2, high), lines_between(x, low + shift_s, x2, high + shift_s)
    assert here is not None
    assert there is not None
    assert there.margin_s == pytest.approx(here.margin_s, abs=2e-9)
    at = np.array([3.0, 50.0])
    # Near-parallel edges may trade places by rounding, so slopes agree less well than what the lines reach.
    for a, b in zip(here.interval(at), there.interval(at), strict=True):
        assert b - shift_s == pytest.approx(a, abs=1e-7)


def test_bounds_that_do_not_overlap_are_refused() -> None:
    x = np.array([1.0, 2.0])
    with pytest.raises(ValueError, match="do not overlap"):
        lines_between(x, x, x + 10.0, x + 10.0)


def test_of_equal_margins_the_middle_line_is_taken() -> None:
    x = np.array([0.0, 5.0, 10.0])
    lines = lines_between(x, np.array([-1.0, 5.0, 9.0]), x, np.array([1.0, 5.0, 11.0]))
    assert lines is not None
    assert lines.margin_s == 0.0
    assert lines.slope == pytest.approx(1.0)
    assert lines.slope_range == pytest.approx((0.8, 1.2))


TIMES = st.floats(-1e9, 1e9) | st.floats(0.0, 100.0)
TICKS = st.integers(-(2**70), 2**70) | st.integers(0, 100_000_000)
EXCHANGES = st.builds(ClockExchange, TIMES, TICKS, TICKS, TIMES)


@settings(max_examples=300)
@given(
    exchanges=st.lists(
        EXCHANGES | st.builds(ClockExchange, st.just(1.0), st.just(5), st.just(5), st.just(2.0)), max_size=40
    ),
    pulses=st.lists(st.integers(0, 10**9), max_size=12, unique=True),
    seed=SEEDS,
)
def test_stamps_of_any_kind_end_in_maps_or_a_refusal(
    exchanges: list[ClockExchange], pulses: list[int], seed: int
) -> None:
    ticks = sorted(pulses)
    heard = np.cumsum(np.random.default_rng(seed).exponential(1.0, len(ticks)) + 1e-6)
    found = fit_clocks(exchanges, 1e6, ticks, heard.tolist())
    assert (found.refusal is None) == bool(found.windows)
    mapped = found.mcu_host(np.linspace(0.0, 1000.0, 50))
    known = ~np.isnan(mapped.s)
    assert np.all(mapped.low_s[known] <= mapped.high_s[known] + 1e-6)
    for drift in (found.audio_host_drift, found.mcu_host_drift, found.audio_mcu_drift):
        assert drift is None or drift.low_ppm <= drift.ppm <= drift.high_ppm


def test_one_stamp_from_years_ahead_costs_no_memory() -> None:
    """A board whose count lies: its stamp is 142 years on, and the time between holds nothing to fit."""
    exchanges = [ClockExchange(1.0 * i, 1_000_000 * i, 1_000_000 * i + 5, 1.0 * i + 0.01) for i in range(20)]
    lying = ClockExchange(30.0, 2**52, 2**52 + 9, 30.1)
    assert len(fit_clocks([*exchanges, lying], 1e6).windows) < 10
