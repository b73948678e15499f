"""The statistics in a dump of webrtc-internals: by report, by member, the values of each second.

A dump holds one entry a member, `REPORT-MEMBER`, whose `values` are a list written as text. The browser keeps the last
thousand of each. Members in brackets are computed by the page that made the dump, from others, and are not read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rig import strictjson
from rig.imports.opened import wrong

MOST_VALUES = 100_000
_STATS = "an object of statistics as webrtc-internals writes it"


@dataclass(slots=True)
class Report:
    """One report of getStats over time. Values of two members belong together where `ends` are the same."""

    ident: str
    kind: str  # inbound-rtp, media-playout, …
    values: dict[str, list[Any]] = field(default_factory=dict)
    ends: dict[str, str] = field(default_factory=dict)

    def numbers(self, member: str) -> list[float | None]:
        """The values of a member, None where one is no number."""
        return [
            float(v) if isinstance(v, int | float) and not isinstance(v, bool) else None
            for v in self.values.get(member, [])
        ]

    def last_text(self, member: str) -> str | None:
        """The last value, where it is text."""
        value = next(reversed(self.values.get(member, [])), None)
        return value[:200] if isinstance(value, str) else None

    def is_audio(self) -> bool:
        return "audio" in (self.last_text("kind"), self.last_text("mediaType"))


def reports_of(stats: Any, name: str, place: str) -> tuple[list[Report], list[str]]:
    """The reports in `stats` of one connection, and what is to be said of entries that cannot be read: a bad one costs
    itself alone. Raises BadInput where there is no object of them."""
    if not isinstance(stats, dict):
        raise wrong(name, f"{place}: stats", stats, _STATS)
    found: dict[str, Report] = {}
    bad: list[str] = []
    for key, entry in stats.items():
        ident, _, member = key.rpartition("-")
        if not ident or member.endswith("]") or "[" in member:
            continue
        kind = entry.get("statsType") if isinstance(entry, dict) else None
        values = _values(entry.get("values")) if isinstance(entry, dict) else None
        if not isinstance(kind, str) or values is None:
            bad.append(key[:80])
            continue
        report = found.setdefault(ident, Report(ident, kind[:60]))
        report.values[member] = values
        report.ends[member] = str(entry.get("endTime"))[:40]
    said = []
    if bad:
        said.append(f"{len(bad)} entries of {place} cannot be read and are left out ({'; '.join(bad[:3])})")
    return list(found.values()), said


def _values(given: Any) -> list[Any] | None:
    """The list behind a text, or as it is; None for anything else."""
    if isinstance(given, str):
        try:
            given = strictjson.parse(given.encode("utf-8", "replace"))
        except strictjson.NotJson:
            return None
    return given if isinstance(given, list) and len(given) <= MOST_VALUES else None


@dataclass(frozen=True, slots=True)
class Course:
    """A running total over a running count: `steps` are the means of its intervals; `totals` the pairs themselves."""

    mean: float
    steps: tuple[float, ...]
    totals: tuple[tuple[float, float], ...]
    restarts: int


def course(report: Report, total: str, count_report: Report, count: str) -> Course | None:
    """How a total grew with its count, from the first snapshot to the last. None where the two are not there, do not
    belong together, or never grow. A total that falls has begun again: that interval is left out and counted."""
    if report.ends.get(total) != count_report.ends.get(count):
        return None
    both = zip(reversed(report.numbers(total)), reversed(count_report.numbers(count)), strict=False)
    pairs = [(t, n) for t, n in reversed(list(both)) if t is not None and n is not None]
    if not pairs:
        return None
    steps, grown, counted, restarts = [], 0.0, 0.0, 0
    for (t0, n0), (t1, n1) in pairwise(pairs):
        if t1 < t0 or n1 < n0:
            restarts += 1
        elif n1 > n0:
            steps.append((t1 - t0) / (n1 - n0))
            grown, counted = grown + t1 - t0, counted + n1 - n0
    if not steps:
        t, n = pairs[-1]
        return Course(t / n, (t / n,), tuple(pairs), restarts) if n > 0.0 else None
    return Course(grown / counted, tuple(steps), tuple(pairs), restarts)
