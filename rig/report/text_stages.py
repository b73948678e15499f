"""The stages in the text report: a table in 80 columns, the runs beside each other, and the words."""

from __future__ import annotations

from rig.domain.report import Report, StageRow, StageTable
from rig.report.digits import ABSENT, decimals_for, ms, table
from rig.report.stage_words import title

MOST_RUNS = 5
"""So many runs fit beside each other."""


def stage_lines(report: Report) -> list[str]:
    """The table of stages with its sum; nothing where there are none."""
    found = report.stages
    if found is None:
        return []
    rows = [["stage", "median", "+/-", "range", "claimed", "undeclared", "seen by"]]
    rows += [_row(row) for row in found.rows]
    digits = decimals_for(max(row.statistics.u95_s for row in found.rows))
    rows.append(["sum of medians", ms(found.sum_s, digits), "", "", "", "", ""])
    rows.append(["latency", ms(found.total_s, digits), "", "", "", "", f"{found.n_trials} trials"])
    rows.append(["not explained", ms(found.residual_s, digits, signed=True), "", "", "", "", _interval(found)])
    return table(rows)


def run_lines(report: Report) -> list[str]:
    """The medians of the runs beside each other; nothing for one run, or for too many."""
    found = report.stages
    if found is None or not 2 <= len(found.runs) <= MOST_RUNS:
        return []
    rows = [["stage", *(f"run {run}" for run in found.runs), ""]]
    for row in found.rows:
        digits = decimals_for(row.statistics.u95_s)
        rows.append([title(row.name), *(ms(own.median_s, digits) for own in row.runs), ""])
    return table(rows)


def _row(row: StageRow) -> list[str]:
    s = row.statistics
    digits = decimals_for(s.u95_s)
    by = f"{row.by}; under one step of its clock" if row.below_resolution else row.by
    return [
        title(row.name),
        ms(s.median_s, digits),
        ms(s.u95_s, digits) if s.u95_s > 0.0 else ABSENT,
        ms(s.range_s, digits),
        ms(row.claimed_s),
        ms(row.undeclared_s, digits, signed=True),
        by,
    ]


def _interval(found: StageTable) -> str:
    digits = decimals_for(0.5 * (found.residual_high_s - found.residual_low_s))
    return f"{ms(found.residual_low_s, digits, signed=True)} to {ms(found.residual_high_s, digits, signed=True)}"
