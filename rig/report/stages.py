"""The stages of all runs as one table, and whether their sum is the latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rig.domain.records import RunAnalysis
from rig.domain.report import ColdStart, RunStage, StageFrame, StageRow, StageTable
from rig.domain.stages import RunStages, StageSample
from rig.report.stage_words import stage_words
from rig.report.statistics import RunSample, pooled_statistics, run_statistics

Values = npt.NDArray[np.float64]

MIN_VALUES = 3
"""A run needs so many values of a stage to take part, as it needs so many accepted trials for its latency."""

RESAMPLES = 500
COLD_S = 1e-3
"""A beginning that differs by less is not told; nor is one within three times the spread of what follows."""


def stage_table(runs: Sequence[RunStages], latencies_s: dict[int, dict[int, float]]) -> StageTable | None:
    """One table of the runs that have stages. `latencies_s`: by run and trial, of the accepted trials.

    Where some runs tell capture and output apart, the others are left out: a median over both would be of neither.
    None where no run has enough.
    """
    usable = [r for r in runs if r.run in latencies_s and _is_enough(r)]
    if not usable:
        return None
    apart = [r for r in usable if r.no_split_because is None]
    chosen = apart or usable
    names = [s.name for s in chosen[0].samples]
    chosen = [r for r in chosen if [s.name for s in r.samples] == names]
    resolution_s = max((r.resolution_s for r in chosen if r.resolution_s is not None), default=None)
    by_stage = [[r.samples[k] for r in chosen] for k in range(len(names))]
    rows = tuple(_row(samples, chosen, resolution_s) for samples in by_stage)
    hidden = None
    if apart:
        hidden = _row([r.hidden for r in chosen if r.hidden is not None], chosen, None)
    trials = {r.run: _trials(r) for r in chosen}
    total = np.concatenate([[latencies_s[run][t] for t in own] for run, own in trials.items()])
    sum_s = float(np.sum([row.statistics.median_s for row in rows]))
    low_s, high_s = _residual_interval(chosen, latencies_s)
    residuals = [v for r in chosen for v in r.residuals_s]
    table = StageTable(
        rows=rows,
        hidden=hidden,
        n_trials=len(total),
        runs=tuple(r.run for r in chosen),
        total_s=float(np.median(total)),
        sum_s=sum_s,
        residual_s=float(np.median(total)) - sum_s,
        residual_low_s=low_s,
        residual_high_s=high_s,
        trial_residual_s=float(np.median(residuals)) if residuals else None,
        tie=chosen[0].tie,
        half_width_s=max((r.half_width_s for r in chosen if r.half_width_s is not None), default=None),
        resolution_s=resolution_s,
        frame_s=lengths.pop() if len(lengths := {r.frame_s for r in chosen}) == 1 else None,
        no_split_because=None if apart else chosen[0].no_split_because,
        missing=tuple((r.run, r.missing) for r in runs if r.missing and r.run in latencies_s),
        carriers=tuple((r.run, _frames(r)) for r in chosen),
        cold=_cold(chosen),
        words=(),
        notes=_notes(runs, chosen),
    )
    return replace(table, words=stage_words(table))


def stage_table_of(stages: Sequence[RunStages], runs: Sequence[RunAnalysis]) -> StageTable | None:
    """The same, with the latencies of the runs' accepted trials."""
    return stage_table(
        stages,
        {r.run: {t.index: t.latency_s for t in r.trials if t.valid and t.latency_s is not None} for r in runs},
    )


def _is_enough(run: RunStages) -> bool:
    return bool(run.samples) and all(len(s.values_s) >= MIN_VALUES for s in run.samples)


def _trials(run: RunStages) -> tuple[int, ...]:
    """The trials that the run's stages speak of: those of its rig stages, which are always of single trials."""
    return next(s.trials for s in reversed(run.samples) if s.trials)


def _frames(run: RunStages) -> tuple[StageFrame, ...]:
    by_trial = [dict(zip(s.trials, s.values_s, strict=True)) if s.trials else {} for s in run.samples]
    fillings: Sequence[float | None] = run.fillings_s or (None,) * len(run.carriers)
    return tuple(
        StageFrame(trial, seq, filled_s, tuple(own.get(trial) for own in by_trial))
        for (trial, seq), filled_s in zip(run.carriers, fillings, strict=True)
    )


def _row(samples: Sequence[StageSample], runs: Sequence[RunStages], resolution_s: float | None) -> StageRow:
    drawn = [RunSample(np.array(s.values_s), s.u_noise_s, s.u_common_s) for s in samples]
    statistics = pooled_statistics(drawn)
    own = []
    for run, sample in zip(runs, drawn, strict=True):
        s = run_statistics(sample)
        own.append(RunStage(run.run, s.n, s.median_s, s.min_s, s.max_s, s.range_s, s.u95_s))
    claims = [s.claimed_s for s in samples if s.claimed_s is not None]
    claimed_s = float(np.median(claims)) if claims else None
    undeclared_s = None if claimed_s is None else statistics.median_s - claimed_s
    return StageRow(
        name=samples[0].name,
        by=samples[0].by,
        statistics=statistics,
        runs=tuple(own),
        runs_apart_s=float(np.ptp([r.median_s for r in own])) if len(own) > 1 else None,
        claimed_s=claimed_s,
        claimed_by=next((s.claimed_by for s in samples if s.claimed_by is not None), None),
        problem=next((s.problem for s in samples if s.problem is not None), None),
        undeclared_s=undeclared_s,
        distinct=None if undeclared_s is None else abs(undeclared_s) > statistics.u95_s,
        below_resolution=resolution_s is not None and statistics.median_s < resolution_s,
    )


def _residual_interval(runs: Sequence[RunStages], latencies_s: dict[int, dict[int, float]]) -> tuple[float, float]:
    """95 % interval of the median latency minus the sum of the stages' medians, by resampling the trials of each run
    (Efron's percentile bootstrap, always the same draws)."""
    rng = np.random.default_rng(0)
    latency: list[Values] = []
    stages: list[list[Values]] = [[] for _ in runs[0].samples]
    for run in runs:
        trials = _trials(run)
        drawn = rng.integers(0, len(trials), (RESAMPLES, len(trials)))
        latency.append(np.array([latencies_s[run.run][t] for t in trials])[drawn])
        for k, sample in enumerate(run.samples):
            # Values of rows, not of trials: every tenth part of thousands of rows says as much, at a tenth of the cost.
            values = np.array(sample.values_s)[:: 1 if sample.trials else max(1, len(sample.values_s) // 100)]
            own = drawn if sample.trials else rng.integers(0, len(values), (RESAMPLES, len(values)))
            stages[k].append(values[own])
    off = np.median(np.concatenate(latency, axis=1), axis=1)
    off = off - np.sum([np.median(np.concatenate(own, axis=1), axis=1) for own in stages], axis=0)
    low, high = np.quantile(off, (0.025, 0.975))
    return float(low), float(high)


def _cold(runs: Sequence[RunStages]) -> tuple[ColdStart, ...]:
    """Stages whose beginning differs: the first stimulus of the runs from their others, the first run from the rest."""
    found = []
    for k, sample in enumerate(runs[0].samples):
        own = [r.samples[k] for r in runs]
        firsts, rests, spreads = [], [], []
        for s in own:
            if len(s.values_s) > MIN_VALUES and s.trials and min(s.trials) == s.trials[0] == 0:
                rest = np.array(s.values_s[1:])
                firsts.append(s.values_s[0])
                rests.append(float(np.median(rest)))
                spreads.append(1.4826 * float(np.median(np.abs(rest - np.median(rest)))))
        if firsts and len(firsts) == len(own):
            differences = np.array(firsts) - np.array(rests)
            least = max(COLD_S, 3.0 * max(spreads))
            if np.all(differences > least) or np.all(differences < -least):
                found.append(
                    ColdStart(sample.name, "first stimulus", float(np.median(firsts)), float(np.median(rests)))
                )
        medians = [float(np.median(s.values_s)) for s in own]
        if len(medians) >= 3:
            rest = np.array(medians[1:])
            least = max(COLD_S, 3.0 * float(np.ptp(rest)))
            if abs(medians[0] - float(np.median(rest))) > least:
                found.append(ColdStart(sample.name, "first run", medians[0], float(np.median(rest))))
    return tuple(found)


def _notes(runs: Sequence[RunStages], chosen: Sequence[RunStages]) -> tuple[str, ...]:
    said = []
    for run in runs:
        if not any(run is c for c in chosen):
            why = run.no_split_because if run.samples else "no marks of its own were found"
            said.append(f"run {run.run} is not in the stages: {why or 'its marks hold other instants, or too few'}")
    by_note: dict[str, list[int]] = {}
    for run in runs:
        for note in run.notes:
            by_note.setdefault(note, []).append(run.run)
    for note, numbers in by_note.items():
        where = "" if len(numbers) == len(runs) else f"run {', '.join(str(n) for n in numbers)}: "
        said.append(f"{where}{note}")
    return tuple(said)
