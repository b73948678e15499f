"""The report as one JSON document of schema `rig.measurement/1` (docs/measurement.schema.json describes every field).

Seconds are numbers under names that end in `_s`; null is absent; there is no NaN. The document depends on the session
alone: no time of day, no path, and floats rounded to 0.1 ns or 9 digits, so that the same session gives the same bytes.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import numpy as np

import rig
from rig.domain.records import BlankFloor, ChannelLevel, ClockFacts, Correction, Reason, StreamGrant, StreamSpec, Trial
from rig.domain.report import LatencyStatistics, MeasurementFacts, Outcome, Report, RunReport
from rig.report.json_stages import reconciliation, stages_of
from rig.report.references import held_against

SCHEMA = "rig.measurement/1"

Json = dict[str, Any]


def render_json(report: Report) -> str:
    """The document, indented, ending in a newline."""
    return json.dumps(_rounded(document(report)), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(report: Report) -> Json:
    """The document as plain lists and dicts, not yet rounded."""
    facts = report.facts
    return {
        "schema": SCHEMA,
        "rig_version": rig.__version__,
        "outcome": report.outcome.value,
        "mode": facts.mode,
        "bench": facts.bench.value,
        "device": facts.device,
        "build": facts.build,
        "system": dict(facts.system),
        "config": dict(facts.config),
        "started": facts.started,
        "source": facts.source,
        "session": facts.session,
        "scenario": facts.scenario,
        "seed": facts.seed,
        "latency_s": _latency(report.latency),
        "mixture": report.mixture,
        "limit_s": facts.limit_s,
        "over_limit": None if report.latency is None or facts.limit_s is None else report.outcome is Outcome.OVER_LIMIT,
        "against": [
            {**asdict(held.line), "position": held.position, "not_compared_because": held.why}
            for held in held_against(facts.against, report.latency, facts.mode)
        ],
        "polarity": report.polarity,
        "spread_within_s": None if report.spread is None else report.spread.within_s,
        "between_runs_s": _between(report),
        "clusters": _clusters(report),
        "outliers": [] if report.grouping is None else [asdict(o) for o in report.grouping.outliers],
        "refusals": {reason.value: _count(report, reason) for reason in Reason},
        "remedies": [
            {
                "reason": c.reason.value,
                "trials": c.n_trials,
                "runs": c.n_runs,
                "meaning": c.meaning,
                "remedy": c.remedy,
            }
            for c in report.refusals
        ],
        "runs": [_run(run, dict(facts.run_starts_s)) for run in report.runs],
        "corrections": [_correction(c) for c in facts.corrections],
        "stages": stages_of(report.stages),
        "reconciliation": reconciliation(report.stages),
        "caveats": list(report.caveats),
        **_circumstances(facts),
    }


def _circumstances(facts: MeasurementFacts) -> Json:
    plan = facts.plan
    return {
        "asked": _asked(facts.asked),
        "granted": _granted(facts.granted),
        "claimed_s": None
        if facts.granted is None
        else {"input": facts.granted.input_latency_claimed_s, "output": facts.granted.output_latency_claimed_s},
        "plan": None
        if plan is None
        else {
            "runs": facts.runs_planned,
            "stimulus": plan.kind,
            "stimuli": plan.count,
            "amplitude": plan.amplitude,
            "stimulus_source": plan.source,
            "lead_in": plan.lead_in,
            "wav": None if facts.wav is None else facts.wav[0],
            "wav_sha256": None if facts.wav is None else facts.wav[1],
            "spacing_s": list(plan.spacing_s),
        },
        "channels": {"reference": facts.reference_channel, "ear": facts.ear_channel},
        "window_s": {"min": facts.min_latency_s, "max": facts.max_latency_s},
        "blank": _blank(facts.blank, facts.no_blank_because),
        "xruns": facts.xruns,
        "cut_short": facts.cut_short,
        "environment": dict(facts.environment),
    }


def _latency(latency: LatencyStatistics | None) -> Json | None:
    if latency is None:
        return None
    return {
        "median": latency.median_s,
        "low": latency.low_s,
        "high": latency.high_s,
        "u95": latency.u95_s,
        "instrument_u95": latency.instrument_u95_s,
        "mean": latency.mean_s,
        "min": latency.min_s,
        "max": latency.max_s,
        "range": latency.range_s,
        "p5": latency.p5_s,
        "p95": latency.p95_s,
        "p99": latency.p99_s,
        "n": latency.n,
        "n_effective": latency.n_effective,
        "interval_by": latency.method,
    }


def _between(report: Report) -> Json | None:
    between = report.between
    if between is None:
        return None
    return {
        "n": between.n,
        "sd": between.sd_s,
        "range": between.range_s,
        "agree": between.agree,
        "slope_per_run": between.slope_s_per_run,
    }


def _clusters(report: Report) -> list[Json]:
    return [] if report.grouping is None else [{**asdict(c), "runs": list(c.runs)} for c in report.grouping.clusters]


def _count(report: Report, reason: Reason) -> int:
    return next((c.n_trials for c in report.refusals if c.reason is reason), 0)


def _run(run: RunReport, starts_s: dict[int, float]) -> Json:
    analysis = run.analysis
    return {
        "run": analysis.run,
        "start_s": starts_s.get(analysis.run),
        "latency_s": _latency(run.latency),
        "n_trials": run.n_trials,
        "n_accepted": run.n_accepted,
        "refusal": None if run.refusal is None else run.refusal.value,
        "refusal_detail": run.refusal_detail,
        "stimulus": analysis.stimulus,
        "band_hz": None if analysis.band_hz is None else list(analysis.band_hz),
        "rate_hz": analysis.rate_hz,
        "n_frames": analysis.n_frames,
        "drift_ppm": analysis.drift_ppm,
        "latency_slope_ppm": analysis.latency_slope_ppm,
        "clocks": _clocks(analysis.clocks),
        "steps": [
            {
                "index": s.index,
                "at_s": s.at_s,
                "before_s": s.before_s,
                "after_s": s.after_s,
                "size_s": s.size_s,
            }
            for s in run.steps
        ],
        "trend": None
        if run.trend is None
        else {"slope_s_per_s": run.trend.slope_s_per_s, "change_s": run.trend.change_s},
        "levels": None
        if analysis.levels is None
        else {"reference": _level(analysis.levels[0]), "ear": _level(analysis.levels[1])},
        "budget": [asdict(line) for line in analysis.budget],
        "caveats": list(analysis.caveats),
        "trials": [_trial(trial) for trial in analysis.trials],
    }


def _clocks(clocks: ClockFacts | None) -> Json | None:
    """Drifts and spans as objects of value, low and high; the rest as it is."""
    if clocks is None:
        return None
    values = asdict(clocks)
    for name in ("audio_host", "mcu_host", "audio_mcu"):
        drift = values.pop(name)
        values[f"{name}_ppm"] = None if drift is None else {k.removesuffix("_ppm"): v for k, v in drift.items()}
        if drift is not None:
            values[f"{name}_ppm"]["value"] = values[f"{name}_ppm"].pop("ppm")
    for name in ("after_last_s", "after_first_s", "adc_claim_error_s", "output_s"):
        if values[name] is not None:
            values[name] = {k.removesuffix("_s"): v for k, v in values[name].items()}
    return values


def _trial(trial: Trial) -> Json:
    values = asdict(trial)
    values["reason"] = None if trial.reason is None else trial.reason.value
    return values


def _level(level: ChannelLevel) -> Json:
    return asdict(level)


def _correction(correction: Correction) -> Json:
    return asdict(correction)


def _asked(spec: StreamSpec | None) -> Json | None:
    return None if spec is None else asdict(spec)


def _granted(grant: StreamGrant | None) -> Json | None:
    if grant is None:
        return None
    values = asdict(grant)
    del values["input_latency_claimed_s"], values["output_latency_claimed_s"]
    return values


def _blank(blank: BlankFloor | None, because: str | None) -> Json:
    return {
        "made": blank is not None,
        "not_made_because": because if blank is None else None,
        "leak_lag_s": None if blank is None else blank.leak_lag_s,
        "leak_db": None if blank is None else blank.leak_db,
        "trials": None if blank is None else blank.n_trials,
    }


def _rounded(value: Any, name: str = "") -> Any:
    """Floats to 0.1 ns where the name says seconds, else to 9 significant digits; an infinite figure is absent."""
    if isinstance(value, dict):
        inherited = name if name.endswith("_s") else ""
        return {key: _rounded(item, key if key.endswith("_s") else inherited or key) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item, name) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, float):
        return value
    if value != value or value in (float("inf"), float("-inf")):
        return None
    rounded = round(value, 10) if name.endswith("_s") else float(f"{value:.9g}")
    return rounded + 0.0  # no minus zero
