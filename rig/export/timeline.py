"""When things happened, read from a report's document: what the trace and the spans have in common.

Times are seconds after the measurement's `started`. Within a run they are frames of the recording over its rate, so
that stimulus and arrival stand to each other as measured; where a run begins is known by the host's clock, within the
delay of its input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

FILL = "frame_fill"
BEFORE, AFTER = "before t_capture", "after t_first_play"
"""The two parts of a frame's filling: the wait until it is complete, and the sound's place in it when it is played."""


@dataclass(frozen=True, slots=True)
class StageOnTime:
    """One stage of one trial. `begun_s` is None where nothing says when in the trial it was. `length_s` may be
    negative: a hidden delay keeps its sign. `part`: BEFORE or AFTER of the filling, which is in two places."""

    name: str
    by: str
    begun_s: float | None
    length_s: float
    claimed_s: float | None  # of the measurement
    part: str | None = None


@dataclass(frozen=True, slots=True)
class FrameOnTime:
    """The frame that carried a trial's sound through the software, and what became of it, in the sound's order."""

    seq: int
    stages: tuple[StageOnTime, ...]
    length_s: float | None  # of the frame

    @property
    def ended_s(self) -> float | None:
        """When its last stage ended, where that is known."""
        return max((s.begun_s + s.length_s for s in self.stages if s.begun_s is not None), default=None)


@dataclass(frozen=True, slots=True)
class TrialOnTime:
    """One trial. `arrived_s` is None exactly when it was refused: a refused trial has no end. `frame`: None where the
    system wrote no marks, or none that are surely of this trial."""

    index: int
    stimulus_s: float
    arrived_s: float | None
    facts: dict[str, Any]  # of the document
    frame: FrameOnTime | None = None


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
    stages = document.get("stages") or []
    told = (document.get("reconciliation") or {}).get("carriers") or []
    frames = {run["run"]: {frame["trial"]: frame for frame in run["frames"]} for run in told}
    return [_run(run, stages, frames.get(run["run"], {})) for run in document["runs"]]


def _run(run: dict[str, Any], stages: list[dict[str, Any]], frames: dict[int, dict[str, Any]]) -> RunOnTime:
    begun_s = run["start_s"] or 0.0
    trials = []
    for trial in run["trials"]:
        stimulus_s = begun_s + trial["reference_frame"] / run["rate_hz"]
        latency_s = trial["latency_s"]
        arrived_s = None if latency_s is None else stimulus_s + latency_s
        frame = None if arrived_s is None else _frame(stimulus_s, stages, frames.get(trial["index"]))
        trials.append(TrialOnTime(trial["index"], stimulus_s, arrived_s, trial, frame))
    ended_s = begun_s + run["n_frames"] / run["rate_hz"]
    return RunOnTime(run["run"], begun_s, ended_s, run["start_s"] is not None, tuple(trials), run)


def _frame(stimulus_s: float, stages: list[dict[str, Any]], frame: dict[str, Any] | None) -> FrameOnTime | None:
    """The stages of a trial one after the other, from the sound at the mouth on."""
    if frame is None:
        return None
    filled_s, made, fill_s = frame["filled_s"], [], None
    at_s: float | None = None if filled_s is None else stimulus_s
    known = [(stage, value) for stage, value in zip(stages, frame["stages_s"], strict=True) if value is not None]
    for position, (stage, value_s) in enumerate(known):
        if stage["stage"] == FILL:
            fill_s = value_s
            if at_s is not None:
                made.append(StageOnTime(FILL, stage["by"], at_s, filled_s, None, BEFORE))
                at_s += filled_s
            else:
                made.append(StageOnTime(FILL, stage["by"], None, value_s, None))
            continue
        if at_s is not None and fill_s is not None and position == len(known) - 1:
            made.append(StageOnTime(FILL, "software", at_s, fill_s - filled_s, None, AFTER))
            at_s += fill_s - filled_s
        made.append(StageOnTime(stage["stage"], stage["by"], at_s, value_s, stage["claimed_s"]))
        at_s = None if at_s is None else at_s + value_s
    return FrameOnTime(frame["seq"], tuple(made), fill_s)


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
