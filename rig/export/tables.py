"""Rows of the exported tables, and CSV text of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any

from rig.export.columns import MEASUREMENT, STAGE_TRIALS, STAGES, TRIALS, Table
from rig.export.timeline import AFTER, runs_on_time

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
        [{**common, **stage, "n_values": stage.get("n")}.get(column.name) for column in STAGES.columns]
        for stage in document.get("stages") or []
    ]


def stage_trial_rows(document: Document) -> list[Row]:
    """One row for each stage of each trial whose frame was found, in the order of `STAGE_TRIALS.columns`. A frame's
    filling, which is in two places, is one row that begins with the first of them."""
    common, rows = _measurement(document), []
    for run in runs_on_time(document):
        for trial in run.trials:
            if trial.frame is None:
                continue
            for stage in trial.frame.stages:
                if stage.part == AFTER:
                    continue
                values = {
                    **common,
                    "run": run.run,
                    "trial": trial.index,
                    "seq": trial.frame.seq,
                    "stage": stage.name,
                    "by": stage.by,
                    "value_s": stage.length_s if stage.part is None else trial.frame.length_s,
                    "begun_s": None if stage.begun_s is None else round(stage.begun_s - trial.stimulus_s, 10),
                }
                rows.append([values[column.name] for column in STAGE_TRIALS.columns])
    return rows


def tables_of(document: Document) -> list[tuple[Table, list[Row]]]:
    """The tables that a measurement has, with their rows: always trials, and those of stages where there are any."""
    more = [(STAGES, stage_rows(document)), (STAGE_TRIALS, stage_trial_rows(document))]
    return [(TRIALS, trial_rows(document)), *((table, rows) for table, rows in more if rows)]


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
