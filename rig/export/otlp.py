"""A measurement as OpenTelemetry spans: one OTLP/JSON export request, which any collector reads.

One trace for a measurement: the measurement, in it its runs, in them a span `mouth to ear` from the stimulus to the
first arrival for every accepted trial, and in that one span for each stage of the frame that carried the sound, where
marks were joined with the measurement and the stage has a place in time. A refused trial has no end and so no span: it
is an event of its run, with its reason.
Identities follow from the session, so that the same measurement exported twice is the same trace.
Method: opentelemetry-proto 1.x, `ExportTraceServiceRequest` in its JSON mapping (hexadecimal identities, 64-bit
integers as text).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from rig.export.timeline import RunOnTime, StageOnTime, TrialOnTime, heading, runs_on_time

Json = dict[str, Any]

INTERNAL = 1  # SpanKind
NAMESPACE = "rig."

UNDATED_NS = 1_000_000_000
"""Where a measurement without a date begins: one second after the epoch, since 0 means "not set" in the protocol."""


def otlp_spans(document: Json) -> str:
    """The spans of a report's document, as JSON text of one export request."""
    origin_ns = _origin_ns(document["started"])
    resource = {
        "service.name": "rig",
        "service.version": document["rig_version"],
        "rig.time_origin": "the host's calendar" if origin_ns > UNDATED_NS else "none: the measurement has no date",
    }
    # A recording from elsewhere has no identity: what was found on it is its own.
    who = document["session"] or json.dumps(document["runs"], sort_keys=True)
    maker = _Maker(hashlib.sha256(who.encode("utf-8", "backslashreplace")).hexdigest()[:32], origin_ns)
    spans = maker.spans(document)
    scope = {"scope": {"name": "rig", "version": document["rig_version"]}, "spans": spans}
    request = {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}]}
    return json.dumps(request, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


class _Maker:
    """Spans of one trace; `origin_ns` is Unix time of the measurement's beginning."""

    def __init__(self, trace: str, origin_ns: int) -> None:
        self._trace = trace
        self._origin_ns = origin_ns

    def spans(self, document: Json) -> list[Json]:
        runs = runs_on_time(document)
        begun_s = min((run.begun_s for run in runs), default=0.0)
        ended_s = max((run.ended_s for run in runs), default=0.0)
        spans = [self._span("measurement", "", "measurement", begun_s, ended_s, heading(document))]
        for run in runs:
            where = f"run {run.run}"
            facts = {"run": run.run, "refusal": run.facts["refusal"], "stimulus": run.facts["stimulus"]}
            span = self._span(where, "measurement", where, run.begun_s, run.ended_s, facts)
            span["events"] = [self._refusal(trial) for trial in run.trials if trial.arrived_s is None]
            spans.append(span)
            for trial in run.trials:
                if trial.arrived_s is not None:
                    spans += [self._heard(run, trial), *self._stages(run, trial)]
        return spans

    def _heard(self, run: RunOnTime, trial: TrialOnTime) -> Json:
        own = f"run {run.run} trial {trial.index}"
        names = ("latency_s", "u_s", "snr_db", "polarity", "note")
        facts = {"run": run.run, "trial": trial.index, **{name: trial.facts[name] for name in names}}
        end_s = trial.stimulus_s + trial.facts["latency_s"]
        frame = trial.frame
        if frame is not None:
            facts["seq"] = frame.seq
            facts |= {f"{s.name}_s": s.length_s for s in frame.stages if s.begun_s is None}
        span = self._span(own, f"run {run.run}", "mouth to ear", trial.stimulus_s, end_s, facts)
        negative = [] if frame is None else [s for s in frame.stages if s.begun_s is not None and s.length_s < 0.0]
        if frame is not None and negative:
            span["events"] = [self._negative(stage, frame.seq) for stage in negative]
        return span

    def _stages(self, run: RunOnTime, trial: TrialOnTime) -> Iterator[Json]:
        """A span for each stage with a place in time. A negative one cannot be a span: it is an event of its trial."""
        own, frame = f"run {run.run} trial {trial.index}", trial.frame
        for stage in () if frame is None else frame.stages:
            if frame is not None and stage.begun_s is not None and stage.length_s >= 0.0:
                facts = {"run": run.run, "trial": trial.index, "seq": frame.seq, **_told(stage)}
                facts["frame_ms"] = None if frame.length_s is None else 1e3 * frame.length_s
                name = " ".join([own, stage.name, stage.part or ""])
                yield self._span(name, own, stage.name, stage.begun_s, stage.begun_s + stage.length_s, facts)

    def _negative(self, stage: StageOnTime, seq: int) -> Json:
        facts = _own({"seq": seq, **_told(stage)})
        return {"timeUnixNano": self._at(stage.begun_s or 0.0), "name": "negative stage", "attributes": facts}

    def _refusal(self, trial: TrialOnTime) -> Json:
        facts = {"trial": trial.index, "reason": trial.facts["reason"], "note": trial.facts["note"]}
        return {"timeUnixNano": self._at(trial.stimulus_s), "name": "trial refused", "attributes": _own(facts)}

    def _span(self, own: str, parent: str, name: str, begun_s: float, ended_s: float, facts: Json) -> Json:
        return {
            "traceId": self._trace,
            "spanId": self._identity(own),
            **({"parentSpanId": self._identity(parent)} if parent else {}),
            "name": name,
            "kind": INTERNAL,
            "startTimeUnixNano": self._at(begun_s),
            "endTimeUnixNano": self._at(ended_s),
            "attributes": _own(facts),
        }

    def _identity(self, name: str) -> str:
        return hashlib.sha256(f"{self._trace} {name}".encode()).hexdigest()[:16]

    def _at(self, seconds: float) -> str:
        return str(self._origin_ns + round(seconds * 1e9))


def _origin_ns(started: str | None) -> int:
    """Unix time in ns of an ISO 8601 time (UTC where it names no zone), to the ms; UNDATED_NS where there is none."""
    try:
        at = datetime.fromisoformat(started or "")
    except ValueError:
        return UNDATED_NS
    at = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return max(UNDATED_NS, round((at - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds() * 1e3) * 1_000_000)


def _told(stage: StageOnTime) -> Json:
    facts = {"stage": stage.name, "part": stage.part, "seen_by": stage.by}
    return {**facts, "length_s": stage.length_s, "claimed_s": stage.claimed_s}


def _own(facts: Json) -> list[Json]:
    return _attributes({NAMESPACE + name: value for name, value in facts.items()})


def _attributes(facts: Json) -> list[Json]:
    """Key and typed value of each fact that is known."""
    found = []
    for name, value in facts.items():
        if value is not None:
            kind = "boolValue" if isinstance(value, bool) else "doubleValue" if isinstance(value, float) else None
            kind = kind or ("intValue" if isinstance(value, int) else "stringValue")
            found.append({"key": name, "value": {kind: str(value) if kind in ("intValue", "stringValue") else value}})
    return found
