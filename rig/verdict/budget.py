"""Limits for a measurement, and whether it keeps them. A limit on something that was not measured is not kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rig.errors import BadInput

Json = dict[str, Any]

FIGURES = ("median", "p95", "p99", "range")
STAGE_FIGURES = (*FIGURES, "undeclared")
MAX_STAGES = 64


class Kept(StrEnum):
    """How a limit fared. UNSURE: the figure keeps it, the upper end of its 95 % interval does not."""

    WITHIN = "within"
    UNSURE = "within, interval over"
    OVER = "over"
    NOT_MEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Limit:
    """At most `limit_s` for `figure` of `stage`; the total where `stage` is None."""

    stage: str | None
    figure: str
    limit_s: float

    @property
    def name(self) -> str:
        return f"{self.stage or 'total'} {self.figure}"


@dataclass(frozen=True, slots=True)
class Row:
    """A limit and what was measured; `high_s`: upper end of a median's interval. None: not measured, not known."""

    limit: Limit
    value_s: float | None
    high_s: float | None
    kept: Kept
    strict: bool

    @property
    def failed(self) -> bool:
        return self.kept in (Kept.OVER, Kept.NOT_MEASURED) or (self.strict and self.kept is Kept.UNSURE)


def limits_of(raw: Json, name: str, duration_s: Callable[[str], float]) -> tuple[Limit, ...]:
    """The limits in the tables of a budget file; `duration_s` reads "300ms" and raises ValueError or a RigError.

    Closed schema: raises BadInput naming the file and the key for whatever is unknown, mistyped or empty."""
    found: list[Limit] = []
    for key, table in raw.items():
        if key == "total":
            found += _table(table, None, "total", FIGURES, name, duration_s)
        elif key == "stages" and isinstance(table, dict) and len(table) <= MAX_STAGES:
            for stage, inner in table.items():
                found += _table(inner, stage, f"stages.{stage}", STAGE_FIGURES, name, duration_s)
        else:
            raise _bad(name, key, "[total] and [stages.NAME]")
    if not found:
        raise BadInput(f"{name} sets no limit", 'at least one, such as median = "300ms" under [total]', "write one")
    return tuple(found)


def check(document: Json, limits: tuple[Limit, ...], strict: bool) -> tuple[Row, ...]:
    """Each limit against a document that has a valid figure."""
    stages = {stage["stage"]: stage for stage in document["stages"] or ()}
    return tuple(_row(limit, _figure(document, stages, limit), strict) for limit in limits)


def _row(limit: Limit, figure: tuple[float | None, float | None], strict: bool) -> Row:
    value_s, high_s = figure
    if value_s is None:
        kept = Kept.NOT_MEASURED
    elif value_s > limit.limit_s:
        kept = Kept.OVER
    else:
        kept = Kept.UNSURE if high_s is not None and high_s > limit.limit_s else Kept.WITHIN
    return Row(limit, value_s, high_s, kept, strict)


def _figure(document: Json, stages: dict[str, Json], limit: Limit) -> tuple[float | None, float | None]:
    """(value, upper end of its interval) in s."""
    if limit.stage is None:
        latency = document["latency_s"]
        return latency.get(limit.figure), latency["high"] if limit.figure == "median" else None
    stage = stages.get(limit.stage, {})
    value_s, u95_s = stage.get(f"{limit.figure}_s"), stage.get("u95_s")
    if limit.figure not in ("median", "undeclared") or value_s is None or u95_s is None:
        return value_s, None
    return value_s, value_s + u95_s


def _table(
    table: Any, stage: str | None, key: str, figures: tuple[str, ...], name: str, duration_s: Callable[[str], float]
) -> list[Limit]:
    if not isinstance(table, dict):
        raise _bad(name, key, f"a table [{key}]")
    found = []
    for figure, text in table.items():
        if figure not in figures:
            raise _bad(name, f"{key}.{figure}", ", ".join(figures))
        if not isinstance(text, str):
            raise _bad(name, f"{key}.{figure} = {text!r}", 'a time with its unit in quotes: "300ms"')
        found.append(Limit(stage, figure, duration_s(text)))
    return found


def _bad(name: str, what: str, expected: str) -> BadInput:
    return BadInput(f"{name}: {what[:80]} is no limit", expected, "docs/comparing.md shows a budget")
