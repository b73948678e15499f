"""A measurement as a trace for the Perfetto UI and chrome://tracing: JSON in the Trace Event Format, `traceEvents`.

A run is a process. What was heard has tracks of its own: the stimulus and the first arrival as moments, the latency
between them as a slice, refused trials as moments with their reason. docs/trace.schema.json is the part of the format
that is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rig.export.timeline import RunOnTime, TrialOnTime, heading, runs_on_time

Event = dict[str, Any]

STIMULUS, LATENCY, ARRIVAL, REFUSED, LANES = 1, 2, 3, 4, 10
"""Thread numbers of the tracks. Latencies longer than the spacing overlap, and go to further lanes."""

_NAMES = {
    STIMULUS: "heard: stimulus at the reference",
    LATENCY: "mouth to ear",
    ARRIVAL: "heard: first arrival at the ear",
    REFUSED: "refused trials",
}


def perfetto_trace(document: dict[str, Any]) -> str:
    """The trace of a report's document, as JSON text. Times are microseconds after the measurement began."""
    events: list[Event] = []
    for run in runs_on_time(document):
        events += _process(run)
        events += _trials(run)
    trace = {"displayTimeUnit": "ms", "otherData": heading(document), "traceEvents": events}
    return json.dumps(trace, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def _process(run: RunOnTime) -> Iterator[Event]:
    name = f"run {run.run}" if run.start_known else f"run {run.run} (from its own first frame)"
    yield {"ph": "M", "name": "process_name", "pid": run.run, "tid": 0, "args": {"name": name}}
    yield {"ph": "M", "name": "process_sort_index", "pid": run.run, "tid": 0, "args": {"sort_index": run.run}}


def _trials(run: RunOnTime) -> Iterator[Event]:
    free_s: list[float] = []  # when each lane of slices is free again
    used: set[int] = set()
    for trial in run.trials:
        arrived_s = trial.arrived_s
        tracks: list[Event] = [_moment(STIMULUS, "stimulus", trial.stimulus_s, {"trial": trial.index})]
        if arrived_s is None:
            tracks.append(_moment(REFUSED, str(trial.facts["reason"]), trial.stimulus_s, _args(trial)))
        else:
            lane = next((i for i, until_s in enumerate(free_s) if until_s <= trial.stimulus_s), len(free_s))
            free_s[lane:] = [arrived_s, *free_s[lane + 1 :]]
            thread = LATENCY if lane == 0 else LANES + lane
            tracks.append(
                {
                    "ph": "X",
                    "name": "mouth to ear",
                    "cat": "heard",
                    "tid": thread,
                    "ts": _us(trial.stimulus_s),
                    "dur": _us(arrived_s - trial.stimulus_s),
                    "args": _args(trial),
                }
            )
            tracks.append(_moment(ARRIVAL, "first arrival", arrived_s, {"trial": trial.index}))
            latency_ms = {"ms": trial.facts["latency_s"] * 1e3}
            tracks.append({"ph": "C", "name": "latency of the last accepted trial, ms", "args": latency_ms})
            tracks[-1].update(tid=0, ts=_us(trial.stimulus_s))
        for event in tracks:
            if event["tid"] not in used and event["tid"]:
                used.add(event["tid"])
                yield from _track(run.run, event["tid"])
            yield {**event, "pid": run.run}


def _track(pid: int, thread: int) -> Iterator[Event]:
    name = _NAMES.get(thread, _NAMES[LATENCY])
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": thread, "args": {"sort_index": thread}}


def _moment(thread: int, name: str, at_s: float, args: dict[str, Any]) -> Event:
    return {"ph": "i", "s": "t", "name": name, "cat": "heard", "tid": thread, "ts": _us(at_s), "args": args}


def _args(trial: TrialOnTime) -> dict[str, Any]:
    names = ("latency_s", "u_s", "unconfirmed_s", "reason", "snr_db", "polarity", "note")
    facts = {name: trial.facts[name] for name in names if trial.facts[name] is not None}
    return {"trial": trial.index, **facts}


def _us(seconds: float) -> float:
    return round(seconds * 1e6, 3)
