"""Rows of the exported tables, and CSV text of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from rig.export.columns import MEASUREMENT, STAGES, TRIALS, Table

Document = dict[str, Any]
Row = list[Any]


def trial_rows(document: Document) -> list[Row]:
    """One row for each trial of every run, in the order of `TRIALS.columns`; refused ones too."""
    rows = []
    for run in document["runs"]:
        for trial in run["trials"]:
            values = {
                **_measurement(document),
                **trial,
                "run": run["run"],
                "run_refusal": run["refusal"],
                "trial": trial["index"],
                "stimulus_s": round(trial["reference_frame"] / run["rate_hz"], 10),
                "rate_hz": run["rate_hz"],
            }
            rows.append([values[column.name] for column in TRIALS.columns])
    return rows


def stage_rows(document: Document) -> list[Row]:
    """One row for each stage, in the order of `STAGES.columns`; none where the measurement has no stages."""
    common = _measurement(document)
    return [
        [{**common, **stage}.get(column.name) for column in STAGES.columns] for stage in document.get("stages") or []
    ]


def tables_of(document: Document) -> list[tuple[Table, list[Row]]]:
    """The tables that a measurement has, with their rows: always trials, and stages where there are any."""
    tables = [(TRIALS, trial_rows(document))]
    stages = stage_rows(document)
    return [*tables, (STAGES, stages)] if stages else tables


def to_csv(table: Table, rows: Iterable[Row]) -> str:
    """CSV text with a line of names: commas, `\\n`, quotes where needed; null is empty, a flag is true or false."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    for row in rows:
        writer.writerow(["true" if v is True else "false" if v is False else v for v in row])
    return out.getvalue()


def _measurement(document: Document) -> dict[str, Any]:
    return {column.name: document[column.name] for column in MEASUREMENT}
