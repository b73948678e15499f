"""From analysed runs to a report: what carries a figure, what does not, and what is said beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from report_cases import CORRECTION, FACTS, FILE_FACTS, LEVEL, accepted, jittering_runs, refused, run_of

from rig.domain.records import BlankFloor, Reason, StreamGrant
from rig.domain.report import Outcome, Report
from rig.report.remedies import REMEDIES
from rig.report.summary import EXIT_CODES, summarise

MS = 1e-3


def said(report: Report, words: str) -> bool:
    return any(words in caveat for caveat in report.caveats)


def test_a_clean_measurement(seed: int) -> None:
    report = summarise(jittering_runs(seed), FACTS)
    assert report.outcome is Outcome.MEASURED
    assert report.latency is not None
    assert report.latency.n == 60
    assert report.latency.median_s == pytest.approx(0.150, abs=2 * MS)
    assert report.latency.low_s < report.latency.median_s < report.latency.high_s
    assert report.latency.p95_s is not None
    assert report.latency.p99_s is None
    assert report.polarity == 1
    assert report.refusals == ()
    assert report.spread is not None
    assert report.spread.within_s == pytest.approx(3 * MS, rel=0.4)
    assert report.between is not None
    assert report.between.n == 3


@pytest.mark.parametrize(
    ("n_accepted", "n_refused", "figure"), [(2, 0, False), (3, 0, True), (3, 3, True), (3, 4, False), (10, 11, False)]
)
def test_three_accepted_and_half_of_the_trials(n_accepted: int, n_refused: int, figure: bool) -> None:
    run = run_of([0.15 + 1e-5 * i for i in range(n_accepted)] + [Reason.LOW_SNR] * n_refused)
    report = summarise([run], FILE_FACTS)
    assert (report.latency is not None) is figure
    assert (report.outcome is Outcome.MEASURED) is figure
    assert report.runs[0].refusal is (None if figure else Reason.TOO_FEW)


def test_refused_counts_reasons_and_names_remedies() -> None:
    run = run_of([Reason.NO_ARRIVAL] * 5 + [Reason.CLIPPED] * 2 + [0.15])
    report = summarise([run], FILE_FACTS)
    assert EXIT_CODES[report.outcome] == 7
    assert report.latency is None
    assert report.spread is None
    counted = {c.reason: (c.n_trials, c.n_runs) for c in report.refusals}
    assert counted == {Reason.NO_ARRIVAL: (5, 0), Reason.CLIPPED: (2, 0), Reason.TOO_FEW: (0, 1)}
    assert [c.reason for c in report.refusals] == [Reason.TOO_FEW, Reason.NO_ARRIVAL, Reason.CLIPPED]
    assert all(c.remedy and c.meaning for c in report.refusals)


def test_a_refusal_of_the_whole_run_stands_whatever_its_trials_say() -> None:
    run = run_of([0.15] * 10, refusal=Reason.SAME_SIGNAL, refusal_detail="correlation 1.000 at lag 0")
    report = summarise([run], FILE_FACTS)
    assert report.latency is None
    assert report.runs[0].refusal_detail == "correlation 1.000 at lag 0"


def test_nothing_at_all() -> None:
    assert summarise([], FACTS).outcome is Outcome.REFUSED
    report = summarise([run_of([])], FILE_FACTS)
    assert report.runs[0].refusal is Reason.NO_STIMULUS


def test_a_run_without_figure_is_left_out_and_named(seed: int) -> None:
    good = jittering_runs(seed, runs=2)
    report = summarise([*good, run_of([Reason.NO_ARRIVAL] * 20, run=3)], FACTS)
    assert report.latency is not None
    assert report.latency.n == 40
    assert said(report, "run 3 carries no figure (too_few)")


def test_every_reason_has_a_remedy() -> None:
    assert set(REMEDIES) == set(Reason)


@pytest.mark.parametrize(("limit_s", "outcome"), [(0.2, Outcome.MEASURED), (0.1, Outcome.OVER_LIMIT)])
def test_limit(limit_s: float, outcome: Outcome, seed: int) -> None:
    report = summarise(jittering_runs(seed), replace(FACTS, limit_s=limit_s))
    assert report.outcome is outcome
    assert EXIT_CODES[outcome] == (0 if outcome is Outcome.MEASURED else 3)
    assert not said(report, "inside the 95 % interval")


def test_a_limit_inside_the_interval_is_no_clear_verdict(seed: int) -> None:
    runs = jittering_runs(seed)
    first = summarise(runs, FACTS)
    assert first.latency is not None
    report = summarise(runs, replace(FACTS, limit_s=first.latency.median_s + 1e-6))
    assert report.outcome is Outcome.MEASURED
    assert said(report, "inside the 95 % interval")


def test_no_figure_is_over_no_limit() -> None:
    assert summarise([run_of([Reason.LOW_SNR] * 5)], replace(FACTS, limit_s=0.1)).outcome is Outcome.REFUSED


def test_groups_are_not_averaged_in_silence(rng: np.random.Generator) -> None:
    runs = [run_of(at + rng.normal(0.0, 0.1 * MS, 20), run=r + 1) for r, at in enumerate((0.14, 0.16, 0.14))]
    report = summarise(runs, FACTS)
    assert report.mixture
    assert report.grouping is not None
    assert [(c.n, c.runs) for c in report.grouping.clusters] == [(40, (1, 3)), (20, (2,))]
    assert said(report, "fall into 2 groups")


def test_each_start_elsewhere_is_a_spread_between_runs_and_no_mixture(rng: np.random.Generator) -> None:
    places = (0.14, 0.16, 0.15)
    runs = [run_of(at + rng.normal(0.0, 0.1 * MS, 20), run=r + 1) for r, at in enumerate(places)]
    report = summarise(runs, FACTS)
    assert not report.mixture
    assert said(report, "each start lands somewhere else: run 1 at 1")
    assert report.latency is not None
    assert report.latency.method == "between_runs"
    assert report.latency.u95_s > 10 * MS
    assert report.between is not None
    assert not report.between.agree
    assert report.between.range_s == pytest.approx(20 * MS, abs=0.2 * MS)


def test_a_step_inside_a_run_is_told(rng: np.random.Generator) -> None:
    values = np.repeat([0.15, 0.17], 10) + rng.normal(0.0, 0.1 * MS, 20)
    report = summarise([run_of(values)], FILE_FACTS)
    assert [s.index for s in report.runs[0].steps] == [10]
    assert report.mixture
    assert said(report, "run 1: the latency steps from 1")


def test_a_single_late_trial_is_listed_and_kept(rng: np.random.Generator) -> None:
    values = 0.18 + rng.normal(0.0, 0.05 * MS, 20)
    values[7] = 0.095
    report = summarise([run_of(values)], FILE_FACTS)
    assert report.latency is not None
    assert report.latency.n == 20
    assert report.latency.min_s == pytest.approx(0.095)
    assert report.latency.median_s == pytest.approx(0.18, abs=0.1 * MS)
    assert not report.mixture
    assert report.grouping is not None
    assert [(o.run, o.index) for o in report.grouping.outliers] == [(1, 7)]
    assert said(report, "run 1 trial 7 at 95.00 ms")


def test_a_response_that_fades_points_to_the_systems_processing() -> None:
    run = run_of([0.2, 0.2, 0.2] + [Reason.NO_ARRIVAL] * 17)
    report = summarise([run], FILE_FACTS)
    assert report.latency is None
    assert said(report, "heard 3 times (15 %), at the start of a run only: echo cancellation")
    scattered = run_of([0.2, Reason.NO_ARRIVAL] * 10)
    report = summarise([scattered], FILE_FACTS)
    assert said(report, "heard 10 times (50 %): echo")
    assert said(report, "the figure stands for what passed")


def test_stimuli_that_are_not_on_the_reference_are_missed() -> None:
    report = summarise([run_of([0.15] * 12)], FACTS)
    assert said(report, "20 stimuli were commanded and 12 found")
    cut = replace(FACTS, cut_short="killed while recording", notes=("the session was cut short",))
    report = summarise([run_of([0.15] * 12)], cut)
    assert not said(report, "commanded")
    assert said(report, "the session was cut short")


def test_blank_run_or_why_not() -> None:
    runs = [run_of([0.15] * 20)]
    assert said(summarise(runs, FILE_FACTS), "no blank run")
    assert said(summarise(runs, replace(FILE_FACTS, no_blank_because="not asked for")), "no blank run (not asked for)")
    assert not said(summarise(runs, FACTS), "blank")
    leaky = replace(FACTS, blank=BlankFloor(2.9 * MS, -6.0, 5))
    assert said(summarise(runs, leaky), "hears the mouth after 2.90 ms, -6 dB")


def test_polarity() -> None:
    inverted = run_of([], run=1)
    inverted = replace(inverted, trials=tuple(accepted(i, 0.15, polarity=-1) for i in range(5)))
    assert summarise([inverted], FILE_FACTS).polarity == -1
    mixed = replace(inverted, trials=(*inverted.trials, accepted(5, 0.15)))
    report = summarise([mixed], FILE_FACTS)
    assert report.polarity is None
    assert said(report, "polarity is not the same")


def test_what_the_levels_say() -> None:
    ear = replace(LEVEL, clipped_samples=12, dc=-0.05, hum_dbfs=-22.0)
    report = summarise([run_of([0.15] * 5, levels=(LEVEL, ear))], FILE_FACTS)
    assert said(report, "at full scale on the ear channel: 12 in run 1")
    assert said(report, "ear channel carries a DC offset of -0.050")
    assert said(report, "mains hum of -22 dBFS on the ear channel")
    assert not said(report, "reference channel carries")


def test_an_echo_that_is_stronger_is_told() -> None:
    run = run_of([])
    run = replace(run, trials=tuple(accepted(i, 0.15, dominant_s=0.19) for i in range(5)))
    report = summarise([run], FILE_FACTS)
    assert said(report, "in 5 of 5 accepted trials another arrival is stronger")
    assert said(report, "+40.00 ms later")


def test_what_was_granted_and_lost() -> None:
    granted = StreamGrant("sim:default", "simulated", 44_100, 2, 256, None, None)
    report = summarise([run_of([0.15] * 20)], replace(FACTS, granted=granted, xruns=2))
    assert said(report, "asked for 2 channels at 48000 Hz, granted 2 at 44100 Hz")
    assert said(report, "lost samples 2 times")


def test_calibration_or_none() -> None:
    runs = [run_of([0.15] * 20)]
    assert said(summarise(runs, FACTS), "no calibration is applied")
    assert not said(summarise(runs, replace(FACTS, corrections=(CORRECTION,))), "no calibration")


def test_what_the_analysis_says_of_every_run_is_said_once() -> None:
    runs = [run_of([0.15] * 20, run=r, caveats=("the reference is loud",)) for r in (1, 2)]
    runs.append(run_of([0.15] * 20, run=3, caveats=("the reference is loud", "the end is missing")))
    report = summarise(runs, FACTS)
    assert report.caveats.count("the reference is loud") == 1
    assert "run 3: the end is missing" in report.caveats


def test_a_refused_trial_never_enters_the_statistics(seed: int) -> None:
    clean = [run_of([0.15 + i * 1e-5 for i in range(10)])]
    trials = [*clean[0].trials, refused(10, Reason.AMBIGUOUS, unconfirmed_s=0.002)]
    dirty = [replace(clean[0], trials=tuple(trials))]
    assert summarise(dirty, FILE_FACTS).latency == summarise(clean, FILE_FACTS).latency


def test_one_run_says_that_it_is_one() -> None:
    assert said(summarise([run_of([0.15] * 20)], FACTS), "one run only")
