"""When things happened, read from a report's document: what the trace and the spans have in common.

Times are seconds after the measurement's `started`. Within a run they are frames of the recording over its rate, so
that stimulus and arrival stand to each other as measured; where a run begins is known by the host's clock, within the
delay of its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class TrialOnTime:
    """One trial. `arrived_s` is None exactly when it was refused: a refused trial has no end."""

    index: int
    stimulus_s: float
    arrived_s: float | None
    facts: dict[str, Any]  # of the document


@dataclass(frozen=True, slots=True)
class RunOnTime:
    """One run with its trials, from its first frame to its last."""

    run: int
    begun_s: float
    ended_s: float
    start_known: bool  # False: nothing says when the run began, and it is put at 0
    trials: tuple[TrialOnTime, ...]
    facts: dict[str, Any]


def runs_on_time(document: dict[str, Any]) -> list[RunOnTime]:
    """The runs of a report's document."""
    return [_run(run) for run in document["runs"]]


def _run(run: dict[str, Any]) -> RunOnTime:
    begun_s = run["start_s"] or 0.0
    trials = []
    for trial in run["trials"]:
        stimulus_s = begun_s + trial["reference_frame"] / run["rate_hz"]
        latency_s = trial["latency_s"]
        trials.append(
            TrialOnTime(trial["index"], stimulus_s, None if latency_s is None else stimulus_s + latency_s, trial)
        )
    ended_s = begun_s + run["n_frames"] / run["rate_hz"]
    return RunOnTime(run["run"], begun_s, ended_s, run["start_s"] is not None, tuple(trials), run)


def heading(document: dict[str, Any]) -> dict[str, Any]:
    """What a reader of a trace must know of the measurement: where it comes from, and its figure. Nulls left out."""
    latency = document["latency_s"] or {}
    facts = {
        **{name: document[name] for name in ("schema", "rig_version", "session", "source", "bench", "mode", "device")},
        **{name: document[name] for name in ("build", "scenario", "started", "outcome")},
        "latency_median_s": latency.get("median"),
        "latency_low_s": latency.get("low"),
        "latency_high_s": latency.get("high"),
        "trials_accepted": latency.get("n"),
    }
    return {name: value for name, value in facts.items() if value is not None}
