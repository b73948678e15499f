"""The stages in the JSON document: one object a stage, and what holds for all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rig.domain.report import StageRow, StageTable

Json = dict[str, Any]


def stages_of(table: StageTable | None) -> list[Json] | None:
    """The list `stages`, in the order of the sound's way."""
    return None if table is None else [_stage(row) for row in table.rows]


def reconciliation(table: StageTable | None) -> Json | None:
    """The object `reconciliation`: the sum against the latency, the clocks behind the split, and the words."""
    if table is None:
        return None
    return {
        "runs": list(table.runs),
        "trials": table.n_trials,
        "total_s": table.total_s,
        "sum_s": table.sum_s,
        "residual_s": table.residual_s,
        "residual_low_s": table.residual_low_s,
        "residual_high_s": table.residual_high_s,
        "trial_residual_s": table.trial_residual_s,
        "hidden": None if table.hidden is None else _stage(table.hidden),
        "clock_tied_by": table.tie,
        "clock_half_width_s": table.half_width_s,
        "marks_resolution_s": table.resolution_s,
        "frame_s": table.frame_s,
        "not_split_because": table.no_split_because,
        "carriers": [
            {"run": run, "frames": [{**asdict(frame), "stages_s": list(frame.stages_s)} for frame in own]}
            for run, own in table.carriers
        ],
        "missing": [{"run": run, "trials": list(trials)} for run, trials in table.missing],
        "cold_start": [asdict(cold) for cold in table.cold],
        "words": list(table.words),
        "notes": list(table.notes),
    }


def _stage(row: StageRow) -> Json:
    s = row.statistics
    return {
        "stage": row.name,
        "by": row.by,
        "n": s.n,
        "median_s": s.median_s,
        "low_s": s.low_s,
        "high_s": s.high_s,
        "u95_s": s.u95_s,
        "min_s": s.min_s,
        "max_s": s.max_s,
        "range_s": s.range_s,
        "p95_s": s.p95_s,
        "p99_s": s.p99_s,
        "runs_apart_s": row.runs_apart_s,
        "claimed_s": row.claimed_s,
        "claimed_by": row.claimed_by,
        "claim_problem": row.problem,
        "undeclared_s": row.undeclared_s,
        "distinguishable": row.distinct,
        "below_resolution": row.below_resolution,
        "runs": [asdict(own) for own in row.runs],
    }
