"""A measurement as a trace for the Perfetto UI and chrome://tracing: JSON in the Trace Event Format, `traceEvents`.

A run is a process. What was heard has tracks of its own: the stimulus and the first arrival as moments, the latency
between them as a slice, refused trials as moments with their reason. Where marks were joined with it, the frame that
carried each sound has its software's stages on one track and the hidden ones, capture and output, on another; a stage
that nothing places in time is among the arguments of the latency. docs/trace.schema.json is the part of the format that
is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from rig.export.timeline import RunOnTime, TrialOnTime, heading, runs_on_time

Event = dict[str, Any]

STIMULUS, LATENCY, SOFTWARE, HIDDEN, ARRIVAL, REFUSED, LANES = 1, 2, 3, 4, 5, 6, 10
"""Thread numbers of the tracks. Trials longer than the spacing overlap, and go to further lanes, LANES apart."""

_NAMES = {
    STIMULUS: "heard: stimulus at the reference",
    LATENCY: "mouth to ear",
    SOFTWARE: "software: what its marks say",
    HIDDEN: "hidden: what no mark says",
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
            lane = next((i for i, until_s in enumerate(free_s) if until_s <= _begun_s(trial)), len(free_s))
            free_s[lane:] = [_ended_s(trial, arrived_s), *free_s[lane + 1 :]]
            tracks.append(_slice(LATENCY, lane, "heard", "mouth to ear", (trial.stimulus_s, arrived_s), _args(trial)))
            tracks += _stages(trial, lane)
            tracks.append(_moment(ARRIVAL, "first arrival", arrived_s, {"trial": trial.index}))
            latency_ms = {"ms": trial.facts["latency_s"] * 1e3}
            tracks.append({"ph": "C", "name": "latency of the last accepted trial, ms", "args": latency_ms})
            tracks[-1].update(tid=0, ts=_us(trial.stimulus_s))
        for event in tracks:
            if event["tid"] not in used and event["tid"]:
                used.add(event["tid"])
                yield from _track(run.run, event["tid"])
            yield {**event, "pid": run.run}


def _stages(trial: TrialOnTime, lane: int) -> Iterator[Event]:
    """The stages that have a place in time. A negative one cannot be a slice: it is a moment that says so."""
    if trial.frame is None:
        return
    for stage in trial.frame.stages:
        if stage.begun_s is None:
            continue
        thread, kind = (HIDDEN, "hidden") if stage.by == "rig" else (SOFTWARE, "software")
        args = {"trial": trial.index, "seq": trial.frame.seq, "seen_by": stage.by, "length_s": stage.length_s}
        more = {"claimed_s": stage.claimed_s, "part": stage.part}
        args |= {name: value for name, value in more.items() if value is not None}
        if stage.length_s >= 0.0:
            yield _slice(thread, lane, kind, stage.name, (stage.begun_s, stage.begun_s + stage.length_s), args)
        else:
            yield {**_moment(thread + LANES * lane, f"{stage.name}, negative", stage.begun_s, args), "cat": kind}


def _begun_s(trial: TrialOnTime) -> float:
    begun = [s.begun_s for s in trial.frame.stages if s.begun_s is not None] if trial.frame is not None else []
    return min([trial.stimulus_s, *begun])


def _ended_s(trial: TrialOnTime, arrived_s: float) -> float:
    ended_s = None if trial.frame is None else trial.frame.ended_s
    return arrived_s if ended_s is None else max(arrived_s, ended_s)


def _track(pid: int, thread: int) -> Iterator[Event]:
    name = _NAMES[thread % LANES]
    yield {"ph": "M", "name": "thread_name", "pid": pid, "tid": thread, "args": {"name": name}}
    yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": thread, "args": {"sort_index": thread}}


def _moment(thread: int, name: str, at_s: float, args: dict[str, Any]) -> Event:
    return {"ph": "i", "s": "t", "name": name, "cat": "heard", "tid": thread, "ts": _us(at_s), "args": args}


def _slice(thread: int, lane: int, kind: str, name: str, span_s: tuple[float, float], args: dict[str, Any]) -> Event:
    begun, ended = (_us(at_s) for at_s in span_s)
    where = {"tid": thread + LANES * lane, "ts": begun, "dur": ended - begun}
    return {"ph": "X", "name": name, "cat": kind, **where, "args": args}


def _args(trial: TrialOnTime) -> dict[str, Any]:
    names = ("latency_s", "u_s", "unconfirmed_s", "reason", "snr_db", "polarity", "note")
    facts = {name: trial.facts[name] for name in names if trial.facts[name] is not None}
    if trial.frame is not None:
        facts["seq"] = trial.frame.seq
        facts |= {f"{stage.name}_s": stage.length_s for stage in trial.frame.stages if stage.part is None}
        if trial.frame.length_s is not None:
            facts["frame_fill_s"] = trial.frame.length_s
    return {"trial": trial.index, **facts}


def _us(seconds: float) -> float:
    """Microseconds in eighths: exact as a float and as whole nanoseconds, so that no reader makes slices overlap that
    follow each other."""
    return round(seconds * 8e6) / 8.0
