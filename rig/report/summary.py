"""From analysed runs to a report: which runs carry a figure, what the figure is, and why others carry none."""

from __future__ import annotations

from collections.abc import Sequence

from rig.domain.records import Reason, RunAnalysis
from rig.domain.report import MeasurementFacts, Outcome, RefusalCount, Report, RunReport, StageTable
from rig.errors import EXIT_OVER_LIMIT, Refused
from rig.report.caveats import caveats_of
from rig.report.groups import Placed, group_trials, is_mixture
from rig.report.remedies import REMEDIES
from rig.report.series import describe_series
from rig.report.statistics import between_runs, pooled_statistics, run_statistics, sample_of, spread_within

MIN_ACCEPTED = 3
"""A run needs this many accepted trials, and half of its trials, to carry a figure."""

EXIT_CODES = {Outcome.MEASURED: 0, Outcome.OVER_LIMIT: EXIT_OVER_LIMIT, Outcome.REFUSED: Refused.exit_code}


def summarise(runs: Sequence[RunAnalysis], facts: MeasurementFacts, stages: StageTable | None = None) -> Report:
    """The report of a measurement. Pure: the same runs and facts give the same report. A measurement without a figure
    has no stages either."""
    reports = tuple(_run_report(run) for run in runs)
    figured = [r.analysis for r in reports if r.latency is not None]
    samples = [sample_of(run) for run in figured]
    latency = pooled_statistics(samples) if samples else None
    between = between_runs(samples)
    grouping = group_trials(
        [Placed(r.run, t.index, t.latency_s) for r in figured for t in r.trials if t.valid and t.latency_s is not None]
    )
    spread = spread_within(samples) if samples else None
    return Report(
        facts=facts,
        outcome=_outcome(latency.median_s if latency is not None else None, facts.limit_s),
        latency=latency,
        mixture=grouping is not None and is_mixture(grouping),
        runs=reports,
        spread=spread,
        between=between,
        grouping=grouping,
        refusals=_refusals(reports),
        polarity=_polarity(figured),
        caveats=caveats_of(facts, reports, latency, spread, between, grouping),
        stages=None if latency is None else stages,
    )


def _run_report(run: RunAnalysis) -> RunReport:
    accepted = sum(t.valid for t in run.trials)
    refusal, detail = run.refusal, run.refusal_detail
    if refusal is None and not run.trials:
        refusal, detail = Reason.NO_STIMULUS, detail or "no stimulus was found"
    if refusal is None and (accepted < MIN_ACCEPTED or 2 * accepted < len(run.trials)):
        refusal, detail = Reason.TOO_FEW, f"{accepted} of {len(run.trials)} trials accepted"
    steps, trend = describe_series(run) if refusal is None else ((), None)
    return RunReport(
        analysis=run,
        n_trials=len(run.trials),
        n_accepted=accepted,
        latency=run_statistics(sample_of(run)) if refusal is None else None,
        refusal=refusal,
        refusal_detail=detail,
        steps=steps,
        trend=trend,
    )


def _outcome(median_s: float | None, limit_s: float | None) -> Outcome:
    if median_s is None:
        return Outcome.REFUSED
    return Outcome.OVER_LIMIT if limit_s is not None and median_s > limit_s else Outcome.MEASURED


def _refusals(runs: Sequence[RunReport]) -> tuple[RefusalCount, ...]:
    """Reasons that occurred, the most frequent first; whole runs count before single trials."""
    counts = []
    for reason in Reason:
        n_trials = sum(t.reason is reason for r in runs for t in r.analysis.trials if not t.valid)
        n_runs = sum(r.refusal is reason for r in runs)
        if n_trials or n_runs:
            counts.append(RefusalCount(reason, n_trials, n_runs, *REMEDIES[reason]))
    return tuple(sorted(counts, key=lambda c: (-c.n_runs, -c.n_trials, c.reason.value)))


def _polarity(runs: Sequence[RunAnalysis]) -> int | None:
    found = {t.polarity for r in runs for t in r.trials if t.valid and t.polarity is not None}
    return found.pop() if len(found) == 1 else None
