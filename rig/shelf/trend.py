"""How the latency went from session to session and from build to build, each kind of measurement by itself."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass

from rig.shelf.rows import Row


@dataclass(frozen=True, slots=True)
class BuildPoint:
    """A build's sessions as one figure: the median of their medians. Several sessions have no interval of their own to
    rely on, so `low_s` to `high_s` spans all of theirs. `change_s` is against the build before, positive: slower;
    `change_u95_s` its half interval, the two taken as independent. None for the first build."""

    build: str | None
    n_sessions: int
    median_s: float
    low_s: float
    high_s: float
    change_s: float | None
    change_u95_s: float | None


@dataclass(frozen=True, slots=True)
class Trend:
    """Sessions of one kind with a figure, the oldest first, and their builds in the order of their first session."""

    kind: tuple[str | None, str | None, str | None, str | None]  # as `Row.kind`
    rows: tuple[Row, ...]
    builds: tuple[BuildPoint, ...]


def trends(rows: Iterable[Row]) -> list[Trend]:
    """One trend for each kind, that with the newest session first. Rows without a figure are left out."""
    by_kind: dict[tuple[str | None, str | None, str | None, str | None], list[Row]] = {}
    for row in sorted(rows, key=lambda row: row.at):
        if row.median_s is not None:
            by_kind.setdefault(row.kind, []).append(row)
    found = [Trend(kind, tuple(of_kind), _builds(of_kind)) for kind, of_kind in by_kind.items()]
    return sorted(found, key=lambda trend: trend.rows[-1].at, reverse=True)


def _builds(rows: list[Row]) -> tuple[BuildPoint, ...]:
    by_build: dict[str | None, list[Row]] = {}
    for row in rows:
        by_build.setdefault(row.build, []).append(row)
    points: list[BuildPoint] = []
    for build, of_build in by_build.items():
        median_s = statistics.median(row.median_s for row in of_build if row.median_s is not None)
        low_s = min((row.low_s for row in of_build if row.low_s is not None), default=median_s)
        high_s = max((row.high_s for row in of_build if row.high_s is not None), default=median_s)
        change_s = u95_s = None
        if points:
            before = points[-1]
            change_s = median_s - before.median_s
            u95_s = math.hypot((high_s - low_s) / 2.0, (before.high_s - before.low_s) / 2.0)
        points.append(BuildPoint(build, len(of_build), median_s, low_s, high_s, change_s, u95_s))
    return tuple(points)
