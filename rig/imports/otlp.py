"""Spans of OpenTelemetry, as OTLP JSON, to marks: stages that are spans, and moments that are events of a span.

A span is a stage where its attribute `rig.stage` or else its name says so, and an event is a mark where its name is
one; both need the number of their frame, `rig.seq` or `seq`. What ends a stage makes the mark behind it; where no span
ends there, what begins the next one does.
Method: opentelemetry-proto 1.x in its JSON mapping, as files or as one request a line. Times are Unix time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rig.errors import BadInput
from rig.imports.found import MARK_NAMES, Figure, Found, FoundPart
from rig.imports.opened import wrong

STAGES = ("encode", "send", "network", "play")
"""Between one mark and the next, by the names of docs/reconcile.md."""

JOIN = " + "
CLOCK = "OTLP time stamps"
BEFORE_NS = 1_000_000_000
"""How long before the first moment the zero of the marks' clock is put: 0 is no time in a file of marks."""

MOST_SPANS = 1_000_000
LEAST_GAP_NS = 1_000
CALENDAR = (
    "the times of spans are the calendar's: a clock that is set meanwhile moves them, and nothing ties it to rig's"
)
EVENT, END, BEGIN = 0, 1, 2  # what a mark comes from, the best first
_FROM = ("events", "ends of spans", "beginnings of spans")


def is_otlp(documents: list[Any]) -> bool:
    """Are these export requests of spans?"""
    return all(isinstance(d, dict) and ("resourceSpans" in d or d == {}) for d in documents) and any(documents)


def read_otlp(documents: list[Any], name: str) -> Found:
    """Everything of use in the requests. Raises BadInput with the file and the place where they break the format."""
    frames: dict[str, dict[int, _Frame]] = {}
    abouts: dict[str, str] = {}
    n_spans = n_used = 0
    for span in _spans(documents, name):
        n_spans += 1
        if n_spans > MOST_SPANS:
            raise BadInput(f"{name} holds more than {MOST_SPANS} spans", "those of one measurement", "cut the file")
        own = frames.setdefault(span.session, {})
        abouts[span.session] = span.about
        n_used += _take(span, own)
    parts = [_part(session, own, abouts[session]) for session, own in frames.items() if own]
    notes = [f"{n_used} of {n_spans} spans are stages of a frame, or have events that are marks of one"]
    return Found(
        "OTLP spans", tuple(parts), ("claims: a span states what was, not what somebody claims",), tuple(notes)
    )


@dataclass(slots=True)
class _Span:
    place: str
    session: str
    about: str
    name: str
    begun_ns: int | None
    ended_ns: int | None
    facts: dict[str, Any]
    events: list[tuple[str, int | None, dict[str, Any]]]


@dataclass(slots=True)
class _Frame:
    """The marks of one frame: for each the time and what it comes from. `apart`: a better source differs."""

    marks: dict[int, tuple[int, int]] = field(default_factory=dict)
    more: dict[str, Any] = field(default_factory=dict)
    apart: int = 0

    def put(self, position: int, at_ns: int, source: int) -> None:
        known = self.marks.get(position)
        if known is None:
            self.marks[position] = (at_ns, source)
            return
        self.apart += abs(known[0] - at_ns) > LEAST_GAP_NS
        # Of equal sources the first that happened: a span that was sent again must not move what it says.
        if source < known[1] or (source == known[1] and at_ns < known[0]):
            self.marks[position] = (at_ns, source)


def _take(span: _Span, frames: dict[int, _Frame]) -> bool:
    """Adds what a span says; False where it says nothing of a frame."""
    used = False
    own_seq = _seq(span.facts)
    between = _between(span)
    if own_seq is not None and between is not None:
        frame = frames.setdefault(own_seq, _Frame())
        for position, at_ns, source in ((between[0], span.begun_ns, BEGIN), (between[1], span.ended_ns, END)):
            if at_ns is not None:
                frame.put(position, at_ns, source)
                used = True
        frame.more |= _more(span.facts)
    for name, at_ns, facts in span.events:
        seq = own_seq if _seq(facts) is None else _seq(facts)
        if name in MARK_NAMES and at_ns is not None and seq is not None:
            frame = frames.setdefault(seq, _Frame())
            frame.put(MARK_NAMES.index(name), at_ns, EVENT)
            frame.more |= _more(facts) | ({} if between is not None else _more(span.facts))
            used = True
    return used


def _between(span: _Span) -> tuple[int, int] | None:
    """The marks between which a span lies; None where it is none of the software's stages."""
    given = span.facts.get("rig.stage", span.name)
    names = given.split(JOIN) if isinstance(given, str) else []
    if not names or any(name not in STAGES for name in names):
        return None
    return STAGES.index(names[0]), STAGES.index(names[-1]) + 1


def _seq(facts: dict[str, Any]) -> int | None:
    value = facts.get("rig.seq", facts.get("seq"))
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 16:
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _more(facts: dict[str, Any]) -> dict[str, Any]:
    """What else a row of marks may hold, from attributes of the same names."""
    found: dict[str, Any] = {}
    for name in ("frame_ms", "peak"):
        value = facts.get(f"rig.{name}")
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[name] = value
    at = facts.get("rig.peak_at")
    if isinstance(at, int) and not isinstance(at, bool) and at >= 0:
        found["peak_at"] = at
    return found


def _part(session: str, frames: dict[int, _Frame], about: str) -> FoundPart:
    """One start of the system, on the clock of one resource. Its zero is a second before the first moment."""
    zero_ns = min(at for frame in frames.values() for at, _ in frame.marks.values()) - BEFORE_NS
    header = {"marks": 1, "session_id": session, "clock": CLOCK, "unit": "ns", "note": CALENDAR}
    rows = [
        {"seq": seq, **{MARK_NAMES[k]: frame.marks[k][0] - zero_ns for k in sorted(frame.marks)}, **frame.more}
        for seq, frame in sorted(frames.items())
    ]
    sources = [source for frame in frames.values() for _, source in frame.marks.values()]
    missing = [
        f"{name}: no event of that name, and no span that ends or begins there"
        for k, name in enumerate(MARK_NAMES)
        if not any(k in frame.marks for frame in frames.values())
    ]
    missing += [
        f"rig.{name} on a span: {why}"
        for name, why in (
            ("frame_ms", "the frame's filling is not set apart"),
            ("peak", "nobody can tell which frame carried a sound: capture and output stay together"),
        )
        if not any(name in frame.more for frame in frames.values())
    ]
    apart = sum(frame.apart > 0 for frame in frames.values())
    where = [f"{sources.count(kind)} {words}" for kind, words in enumerate(_FROM) if kind in sources]
    notes = [f"{len(frames)} frames; their marks are {' and '.join(where)}"]
    if apart:
        notes.append(
            f"in {apart} frames one stage ends and the next begins apart: what lies between is the later one's"
        )
    return FoundPart(
        session, (about,) if about else (), _figures(frames), (header, *rows), tuple(missing), tuple(notes)
    )


def _figures(frames: dict[int, _Frame]) -> tuple[Figure, ...]:
    """The stages between the marks that follow each other."""
    known = [k for k in range(len(MARK_NAMES)) if any(k in frame.marks for frame in frames.values())]
    found = []
    for a, b in pairwise(known):
        values = [1e-9 * (f.marks[b][0] - f.marks[a][0]) for f in frames.values() if a in f.marks and b in f.marks]
        if values:
            source = f"{JOIN.join(STAGES[a:b])}: {MARK_NAMES[a]} to {MARK_NAMES[b]}"
            found.append(Figure(source, sum(values) / len(values), min(values), max(values), len(values), "marks"))
    return tuple(found)


# --- the format -----------------------------------------------------------------------------------------------------


def _spans(documents: list[Any], name: str) -> Iterator[_Span]:
    for number, document in enumerate(documents, start=1):
        line = "" if len(documents) == 1 else f"request {number}, "
        for r, resource in enumerate(_list(document, "resourceSpans", name, line or "the request")):
            where = f"{line}resourceSpans {r}"
            about = _facts(_object(resource, "resource", name, where), name, f"{where} resource")
            for s, scope in enumerate(_list(resource, "scopeSpans", name, where)):
                for k, span in enumerate(_list(scope, "spans", name, f"{where} scopeSpans {s}")):
                    yield _span(span, about, name, f"{where} scopeSpans {s} spans {k}")


def _span(span: Any, about: dict[str, Any], name: str, place: str) -> _Span:
    if not isinstance(span, dict):
        raise wrong(name, place, span, "an object of a span")
    facts = _facts(span, name, place)
    events = []
    for k, event in enumerate(_list(span, "events", name, place)):
        where = f"{place} events {k}"
        if not isinstance(event, dict):
            raise wrong(name, where, event, "an object of an event")
        at_ns = _time(event, "timeUnixNano", name, where)
        events.append((str(event.get("name"))[:60], at_ns, _facts(event, name, where)))
    begun, ended = (_time(span, f"{end}TimeUnixNano", name, place) for end in ("start", "end"))
    keys = ("service.name", "service.instance.id", "host.id", "host.name")
    known = [str(about[key])[:60] for key in keys if key in about]
    run = facts.get("rig.run")
    session = f"run {run}" if isinstance(run, int) else " ".join(known) or "spans"
    return _Span(place, session, " ".join(known), str(span.get("name"))[:60], begun, ended, facts, events)


def _list(value: Any, key: str, name: str, place: str) -> list[Any]:
    if not isinstance(value, dict):
        raise wrong(name, place, value, "an object")
    found = value.get(key)
    if found is not None and not isinstance(found, list):
        raise wrong(name, f"{place} {key}", found, "a list")
    return found or []


def _object(value: Any, key: str, name: str, place: str) -> dict[str, Any]:
    found = value.get(key) if isinstance(value, dict) else value
    if found is not None and not isinstance(found, dict):
        raise wrong(name, f"{place} {key}", found, "an object")
    return found or {}


def _time(value: dict[str, Any], key: str, name: str, place: str) -> int | None:
    """Unix time in ns, as text or number; None where it is absent or 0, which is "not set" in the protocol."""
    given = value.get(key)
    if isinstance(given, str) and given.isascii() and given.isdigit() and len(given) <= 19:
        given = int(given)
    if given in (None, ""):
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given < 2**63:
        raise wrong(name, f"{place} {key}", given, "Unix time in nanoseconds, as digits")
    return given or None


def _facts(value: dict[str, Any], name: str, place: str) -> dict[str, Any]:
    """The attributes of a span, event or resource, their values plain; those of other kinds are left out."""
    found: dict[str, Any] = {}
    for k, pair in enumerate(_list(value, "attributes", name, place)):
        if not isinstance(pair, dict) or not isinstance(pair.get("key"), str):
            raise wrong(name, f"{place} attributes {k}", pair, "a key and its value")
        typed = _object(pair, "value", name, f"{place} attributes {k}")
        whole = typed.get("intValue")
        if isinstance(whole, str) and whole.lstrip("-").isdigit() and len(whole) < 20:
            found[pair["key"]] = int(whole)
            continue
        given = next(
            (typed[kind] for kind in ("stringValue", "doubleValue", "boolValue", "intValue") if kind in typed), None
        )
        if isinstance(given, str | int | float):
            found[pair["key"]] = given
    return found
