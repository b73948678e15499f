"""Lists and trends of sessions as text of 80 columns, and as JSON documents."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from datetime import datetime, tzinfo
from typing import Any

from rig.report.digits import ABSENT, WIDTH, decimals_for, ms, table
from rig.shelf.baselines import baseline_for
from rig.shelf.rows import NOT_FINISHED, Row, difference_s
from rig.shelf.trend import Trend

LIST_SCHEMA = "rig.sessions/1"
TREND_SCHEMA = "rig.trend/1"

PLOT_COLUMNS = 42
BUILD_COLUMNS = 12


def list_text(rows: Sequence[Row], every: Sequence[Row], marked: Sequence[str], zone: tzinfo | None) -> str:
    """The rows, two lines each: when and how long, then which. `every` holds the baselines, shown or not.

    Dates are of `zone` (None: the machine's own)."""
    lines = [f"  {'date':<16}  {'median':>8}  {'95 % interval, ms':>20}  {'accepted':>8}  outcome"]
    for row in rows:
        digits = decimals_for(row.u95_s)
        median = ms(row.median_s, digits)
        interval = ABSENT if row.low_s is None else f"{ms(row.low_s, digits)} to {ms(row.high_s, digits)}"
        accepted = ABSENT if row.n_trials is None else f"{row.n or 0} of {row.n_trials}"
        outcome = row.outcome.replace("_", " ") + (", cut" if row.cut_short else "")
        star = "*" if row.session in marked else " "
        lines.append(f"{star} {_when(row, zone):<16}  {median:>8}  {interval:>20}  {accepted:>8}  {outcome}")
        baseline = baseline_for(row, every, marked)
        change = None if baseline is None else difference_s(row, baseline)
        parts = [row.folder.name, row.device, row.build and f"build {row.build}", row.mode, row.stimulus, row.problem]
        if row.outcome == NOT_FINISHED:
            parts.append(f"rig analyze {row.folder} reports what there is")
        text = ", ".join(_plain(part) for part in parts if part)
        lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 4, break_on_hyphens=False)
        if change is not None:
            lines.append(f"    {_change(*change)} ms against the baseline")
    if any(row.session in marked for row in rows):
        lines.append("* baseline of its kind of measurement")
    return "\n".join([*lines, *_legend(rows), ""])


def list_document(rows: Sequence[Row], every: Sequence[Row], marked: Sequence[str]) -> dict[str, Any]:
    """The rows as a document: seconds, null for what is not known, dates in UTC."""
    return {"schema": LIST_SCHEMA, "sessions": [_entry(row, every, marked) for row in rows]}


def trend_text(found: Sequence[Trend], marked: Sequence[str], zone: tzinfo | None) -> str:
    """Each trend as a plot of its sessions with their intervals, and a table of its builds where there are several."""
    return "\n".join(line for trend in found for line in _one_trend(trend, marked, zone))


def trend_document(found: Sequence[Trend], marked: Sequence[str]) -> dict[str, Any]:
    """The trends as a document."""
    entries = []
    for trend in found:
        bench, mode, device, stimulus = trend.kind
        builds = [
            {
                "build": point.build,
                "sessions": point.n_sessions,
                "median_s": point.median_s,
                "low_s": point.low_s,
                "high_s": point.high_s,
                "change_s": point.change_s,
                "change_u95_s": point.change_u95_s,
            }
            for point in trend.builds
        ]
        kind = {"bench": bench, "mode": mode, "device": device, "stimulus": stimulus}
        entries.append({**kind, "builds": builds, "sessions": [_entry(row, trend.rows, marked) for row in trend.rows]})
    return {"schema": TREND_SCHEMA, "trends": entries}


def _entry(row: Row, every: Sequence[Row], marked: Sequence[str]) -> dict[str, Any]:
    baseline = baseline_for(row, every, marked)
    change = None if baseline is None else difference_s(row, baseline)
    return {
        "folder": row.folder.name,
        "session": row.session,
        "at": row.at.isoformat(timespec="milliseconds"),
        "dated": row.dated,
        "outcome": row.outcome,
        "problem": row.problem,
        "cut_short": row.cut_short,
        "bench": row.bench,
        "mode": row.mode,
        "device": row.device,
        "build": row.build,
        "stimulus": row.stimulus,
        "median_s": row.median_s,
        "low_s": row.low_s,
        "high_s": row.high_s,
        "n": row.n,
        "trials": row.n_trials,
        "baseline": row.session in marked,
        "change_s": None if change is None else round(change[0], 10),
        "change_u95_s": None if change is None else round(change[1], 10),
    }


def _legend(rows: Sequence[Row]) -> list[str]:
    return [] if all(row.dated for row in rows) else ["~ has no date of its own: when its manifest was written"]


def _one_trend(trend: Trend, marked: Sequence[str], zone: tzinfo | None) -> list[str]:
    bench, mode, device, stimulus = trend.kind
    lines = [", ".join(_plain(part) for part in (device, mode, stimulus, bench) if part)]
    least_s = min(row.median_s if row.low_s is None else row.low_s for row in trend.rows if row.median_s is not None)
    most_s = max(row.median_s if row.high_s is None else row.high_s for row in trend.rows if row.median_s is not None)
    span = f"{ms(least_s, 1)} ms"
    scale = span + f"{ms(most_s, 1)} ms".rjust(PLOT_COLUMNS - len(span))
    lines.append(f"  {'date':<11}  {'build':<{BUILD_COLUMNS}} {'median':>8}  {scale}")
    at = next((row.median_s for row in reversed(trend.rows) if row.session in marked), None)
    for row in trend.rows:
        star = "*" if row.session in marked else " "
        name = _plain(row.build or ABSENT, BUILD_COLUMNS)
        median = ms(row.median_s, decimals_for(row.u95_s))
        plot = _plot(row, least_s, most_s, at).rstrip()
        lines.append(
            f"{star} {_when(row, zone)[:11].rstrip():<11}  {name:<{BUILD_COLUMNS}} {median:>8}  {plot}".rstrip()
        )
    if len(trend.builds) > 1:
        rows = [["build", "sessions", "median ms", "interval", "change from the build before"]]
        for point in trend.builds:
            digits = decimals_for((point.high_s - point.low_s) / 2.0)
            change = ABSENT
            if point.change_s is not None and point.change_u95_s is not None:
                change = f"{_change(point.change_s, point.change_u95_s)} ms"
            interval = f"{ms(point.low_s, digits)} to {ms(point.high_s, digits)}"
            name = _plain(point.build or ABSENT, 2 * BUILD_COLUMNS)
            rows.append([name, str(point.n_sessions), ms(point.median_s, digits), interval, change])
        lines += ["", *table(rows)]
    return [*lines, *_legend(trend.rows), ""]


def _plot(row: Row, least_s: float, most_s: float, baseline_s: float | None) -> str:
    """The interval as dashes, the median as o, the baseline's median as a colon in every line."""

    def column(value_s: float) -> int:
        return round((value_s - least_s) / (most_s - least_s) * (PLOT_COLUMNS - 1)) if most_s > least_s else 0

    cells = [" "] * PLOT_COLUMNS
    if row.low_s is not None and row.high_s is not None:
        first, last = column(row.low_s), column(row.high_s)
        cells[first : last + 1] = "-" * (last + 1 - first)
    if baseline_s is not None:
        cells[column(baseline_s)] = ":"
    if row.median_s is not None:
        cells[column(row.median_s)] = "o"
    return "".join(cells)


def _change(change_s: float, u95_s: float) -> str:
    digits = decimals_for(u95_s)
    return f"{ms(change_s, digits, signed=True)} +/- {ms(u95_s, digits)}"


def _when(row: Row, zone: tzinfo | None) -> str:
    at: datetime = row.at.astimezone(zone)
    return f"{at:%Y-%m-%d %H:%M}" if row.dated else f"~{at:%Y-%m-%d}"


def _plain(text: str, most: int = 200) -> str:
    """A name from a manifest, fit for a terminal: nothing that moves the cursor, and not too long."""
    text = "".join(c if c.isprintable() else "?" for c in text)
    return text if len(text) <= most else text[: most - 1] + "…"
