"""Two or more measurements on one page: how far they lie apart, and what else differs between them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from rig.domain.report import Report
from rig.report.difference import Json, Named, difference_s, settings_apart
from rig.report.digits import ABSENT, decimals_for, plain
from rig.report.html import charts
from rig.report.html.markup import Child, Markup, el, join, section, table, time
from rig.report.html.page import document_of
from rig.report.html.sections import against
from rig.report.html.svg import run_kind
from rig.report.render_json import render_json
from rig.report.render_text import opening


def render_comparison(reports: Sequence[tuple[str, Report]]) -> str:
    """The page for two or more named reports; each is compared with the first."""
    named: list[Named] = [(name, json.loads(render_json(report))) for name, report in reports]
    differing = settings_apart(named)
    body = join(
        el("header", el("h1", f"Comparison of {len(named)} measurements")),
        el(
            "ul",
            [el("li", el("strong", name), ": ", opening(report.facts)) for name, report in reports],
            class_="bench",
        ),
        el("section", [_verdict(named[0], other) for other in named[1:]], id="headline", aria_label="Result"),
        section("apart", "What else differs", _settings(named, differing)),
        section("measurements", "The measurements", _intervals(named), _table(named), _against(reports)),
        section(
            "time",
            "Each against time",
            [join(el("h3", name), charts.against_time(d, opens=False)) for name, d in named],
        ),
    )
    return document_of(" against ".join(name for name, _ in reversed(named)), body, None)


def _verdict(first: Named, other: Named) -> Markup:
    (a_name, a), (b_name, b) = first, other
    missing = [name for name, d in (first, other) if d["latency_s"] is None]
    if missing:
        return el("p", f"No difference: {' and '.join(missing)}; no valid figure there.", class_="bad")
    if a["mode"] != b["mode"]:
        return el(
            "p", f"No difference: {a_name} is a {a['mode']}, {b_name} a {b['mode']}; they are not the same quantity."
        )
    d, low, high = difference_s(a["latency_s"], b["latency_s"])
    digits = decimals_for(0.5 * (high - low))
    if low <= 0.0 <= high:
        words = "not distinguishable from 0"
    else:
        words = f"{b_name} is {'slower' if d > 0.0 else 'faster'}"
    mixture = [name for name, doc in (first, other) if doc["mixture"]]
    return join(
        el(
            "p",
            el("span", time(d, digits, signed=True), class_="big difference"),
            el("span", " ms", class_="unit"),
            class_="headline",
        ),
        el("p", f"{b_name} minus {a_name}: {words}", class_="what"),
        el("p", "95 % interval ", time(low, digits, signed=True), " to ", time(high, digits, signed=True, unit=True)),
        el("p", f"The median of {' and of '.join(mixture)} is taken over groups: look at the runs first.", class_="bad")
        if mixture
        else None,
    )


def _against(reports: Sequence[tuple[str, Report]]) -> list[Markup]:
    return [join(el("h3", name), lines) for name, report in reports if (lines := against(report)) is not None]


def _settings(named: Sequence[Named], differing: list[tuple[str, list[Any]]]) -> Markup:
    if not differing:
        return el("p", "Nothing that is recorded differs but their samples.")
    rows: list[list[Child]] = [[key, *(plain(v) for v in values)] for key, values in differing]
    more_than_one = len(differing) > 1
    return join(
        el("p", "A difference has one cause only where one thing was changed; here more than one was.")
        if more_than_one
        else None,
        table(
            "Circumstances that differ", ["", *(name for name, _ in named)], rows, left=tuple(range(1, len(named) + 1))
        ),
    )


def _intervals(named: Sequence[Named]) -> Markup:
    """Every run of every measurement on one axis, and the pooled medians."""
    rows: list[tuple[str, Json, int | None]] = []
    for position, (name, d) in enumerate(named):
        if d["latency_s"] is not None:
            rows.append((name, d["latency_s"], None))
            figured = [r for r in d["runs"] if r["latency_s"] is not None]
            if 1 < len(figured) <= charts.MOST_ROWS:
                rows += [(f"run {r['run']}", r["latency_s"], run_kind(position)) for r in figured]
    if not rows:
        return Markup("")
    return charts.intervals("Medians", "95 % interval (thick) and range of the trials (thin), run by run.", rows)


def _table(named: Sequence[Named]) -> Markup:
    rows: list[list[Child]] = []
    for name, d in named:
        latency = d["latency_s"]
        accepted = f"{sum(r['n_accepted'] for r in d['runs'])} of {sum(r['n_trials'] for r in d['runs'])}"
        if latency is None:
            rows.append([name, ABSENT, ABSENT, ABSENT, ABSENT, ABSENT, accepted])
            continue
        digits = decimals_for(latency["u95"])
        between = d["between_runs_s"]
        rows.append(
            [
                name,
                time(latency["median"], digits),
                join(time(latency["low"], digits), " to ", time(latency["high"], digits)),
                join(time(latency["min"], digits), " to ", time(latency["max"], digits)),
                time(d["spread_within_s"], decimals_for(d["spread_within_s"])),
                ABSENT if between is None else time(between["sd"], decimals_for(between["sd"])),
                accepted,
            ]
        )
    heads = [
        "",
        "median, ms",
        "95 % interval, ms",
        "range, ms",
        "spread within runs, ms",
        "between runs, ms",
        "accepted",
    ]
    return table("Figures", heads, rows)
