"""What only a run can decide: pairing, hidden paths, flat tops, level facts, budgets."""

from __future__ import annotations

import numpy as np
import pytest

from rig.analyse.clicks import without_clicks
from rig.analyse.examine import Evidence
from rig.analyse.levels import LevelMeter
from rig.analyse.locate import Location
from rig.analyse.pairing import pair_responses
from rig.analyse.refine import Arrival
from rig.analyse.stack import POINTS, STEP_S, Stack
from rig.analyse.uncertainty import budget, trial_uncertainty_s
from rig.domain.levels import rail_samples
from rig.domain.waveforms import ideal_waveform

RATE = 48_000.0


def evidence(index: int, start_s: float, lag_s: float) -> Evidence:
    lag = lag_s * RATE
    location = Location(lag, (), 100.0, 15.0, 0.9, 0.0, 34.0, -20.0, None, np.zeros((3, POINTS)))
    arrival = Arrival(lag, 0.1, 1.0, 1, 1.0)
    return Evidence(index, round(start_s * RATE), 4800, 96_000, location, arrivals=(arrival,), relative_db=(0.0,))


def run_of(starts_s: np.ndarray, arrivals_s: np.ndarray) -> list[Evidence]:
    """Each stimulus with the first arrival after it, as a window up to the next stimulus would see it."""
    found = []
    for k, start in enumerate(starts_s):
        later = arrivals_s[arrivals_s >= start]
        found.append(evidence(k, start, float(later[0] - start) if len(later) else 99.0))
    return found


def test_a_short_latency_belongs_to_the_stimulus_before_it(rng: np.random.Generator) -> None:
    starts = np.cumsum(rng.uniform(1.2, 2.2, 10))
    e = run_of(starts, starts + 0.18)
    assert pair_responses(e, [True] * 10, RATE).kind == "next"


def test_a_latency_beyond_the_spacing_is_paired_by_agreement(rng: np.random.Generator) -> None:
    starts = np.cumsum(rng.uniform(1.0, 1.8, 14))
    pairing = pair_responses(run_of(starts, starts + 2.7), [True] * 13 + [False], RATE)
    assert pairing.kind == "late"
    assert pairing.centre_s == pytest.approx(2.7, abs=0.02)


def test_an_arrival_before_its_stimulus_means_swapped_inputs(rng: np.random.Generator) -> None:
    starts = np.cumsum(rng.uniform(1.2, 2.2, 10))
    pairing = pair_responses(run_of(starts, starts - 0.15), [True] * 9 + [False], RATE)
    assert pairing.kind == "early"
    assert pairing.centre_s == pytest.approx(-0.15, abs=0.01)


def test_a_steady_beat_is_ambiguous_when_the_first_stimulus_has_no_response() -> None:
    starts = np.arange(12) * 0.5 + 1.0
    e = run_of(starts, starts + 0.2)
    assert pair_responses(e, [True] * 12, RATE).kind == "next"
    late = pair_responses(e, [False, False] + [True] * 10, RATE)
    assert late.kind == "ambiguous"
    assert late.candidates_s[:3] == pytest.approx((0.2, 0.7, 1.2), abs=1e-6)


def test_lags_that_agree_under_no_pairing_are_scattered(rng: np.random.Generator) -> None:
    starts = np.cumsum(rng.uniform(1.2, 2.2, 12))
    assert pair_responses(run_of(starts, starts + rng.uniform(0.05, 1.1, 12)), [True] * 12, RATE).kind == "scattered"


def test_the_stack_shows_a_path_that_no_single_trial_can() -> None:
    rng = np.random.default_rng(4)
    hidden, empty = Stack(), Stack()
    at = round(0.0213 / STEP_S)
    for _ in range(12):
        noise = rng.exponential(0.05, (3, POINTS))
        noise[2] = 0.0
        empty.add(noise)
        with_path = noise.copy()
        with_path[0, at] += 0.2  # 7 dB below the dominant arrival
        hidden.add(with_path)
    assert hidden.before(0.0007).paths_s == pytest.approx((0.0213,), abs=STEP_S)
    assert not hidden.before(0.0007).clear
    assert empty.before(0.0007).paths_s == ()
    assert empty.before(0.0007).sees_enough


def test_the_stack_of_two_trials_says_nothing() -> None:
    stack = Stack()
    for _ in range(2):
        stack.add(np.zeros((3, POINTS)))
    assert not stack.before(0.0007).sees_enough


@pytest.mark.parametrize(
    ("samples", "full_scale", "expected"),
    [
        ([0.0, 0.9999, 0.9999, 0.9999, 0.2], 0.9999, 3),
        ([0.0, 0.9999, 0.9999, 0.2], 0.9999, 0),
        ([0.0, -1.0, -1.0, -1.0, -1.0, 0.2], 0.9999, 4),
        ([0.1, 0.5, 1.3, 0.4, -0.2], None, 0),
        ([0.1, 1.3, 1.3, 1.3, -0.2], None, 3),
        ([0.1, 0.3, 0.3, 0.3, -0.2], None, 0),
    ],
    ids=["rail", "two are no flat top", "negative rail", "float over 1.0", "flat top in floats", "a quiet plateau"],
)
def test_flat_tops(samples: list[float], full_scale: float | None, expected: int) -> None:
    assert rail_samples(np.array(samples, dtype=np.float32), full_scale) == expected


def test_levels_of_a_known_signal(rng: np.random.Generator) -> None:
    n = 200_000
    t = np.arange(n) / RATE
    ear = 0.1 * np.sin(2 * np.pi * 50 * t) * np.sqrt(2) + 0.03 + rng.normal(0, 1e-3, n)
    meter = LevelMeter(RATE, 1.0)
    for start in range(0, n, 65_536):
        block = np.stack([np.zeros(n), ear], axis=1)[start : start + 65_536].astype(np.float32)
        meter.feed(block)
    levels = meter.levels()
    assert levels is not None
    reference, heard = levels
    assert reference.digital_silence
    assert reference.peak_dbfs is None
    assert not heard.digital_silence
    assert heard.dc == pytest.approx(0.03, abs=1e-3)
    assert heard.hum_dbfs == pytest.approx(-20.0, abs=1.0)
    assert meter.is_constant(0)


def test_the_budget_is_the_trial_uncertainty_in_parts() -> None:
    lines = budget(0.15, 2e-6)
    total = float(np.sqrt(sum(line.u_s**2 for line in lines)))
    assert total == pytest.approx(trial_uncertainty_s(0.15, 2e-6))
    assert [line.kind for line in lines] == ["A", "B", "B"]


def test_clicks_are_taken_out_and_a_stimulus_is_not(rng: np.random.Generator) -> None:
    ear = rng.normal(0.0, 0.01, 96_000).astype(np.float32)
    wave = ideal_waveform("chirp", int(RATE), 0.3)
    ear[40_000 : 40_000 + len(wave)] += wave
    spoilt = ear.copy()
    for at in (10_000, 41_500, 70_123):
        spoilt[at : at + 40] += rng.normal(0, 3.0, 40).astype(np.float32)
    kept = spoilt.copy()
    cleaned = without_clicks(spoilt, RATE)
    np.testing.assert_array_equal(spoilt, kept)  # the input is not modified
    assert float(np.abs(cleaned).max()) < 1.2
    np.testing.assert_array_equal(cleaned[50_000:65_000], ear[50_000:65_000])
    assert float(np.mean(cleaned[40_000:44_800] * ear[40_000:44_800])) > 0.9 * float(np.mean(ear[40_000:44_800] ** 2))
    assert without_clicks(ear, RATE) is ear  # nothing to take out
