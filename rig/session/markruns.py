"""Which marks are of which run: by the lines that came during it, else by the starts of the system, else undecided."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from rig.domain.marks import MarkPart, Marks
from rig.domain.stages import RunMarks
from rig.session.events import MarkLines

MOST_SETTINGS, MOST_VALUES, MOST_CHARACTERS = 64, 8, 200
"""Of what a system says of itself; more than that is no setting."""


def marks_by_run(marks: Marks, lines: Mapping[int, MarkLines], runs: Sequence[int]) -> dict[int, RunMarks]:
    """The marks of each run. `lines` of the file that came during each; empty for a file that came from elsewhere.

    Without them a file with as many starts of the system as there are runs has one for each, in order. Where that does
    not hold each run is given everything, and host times and the pattern of its stimuli must tell.
    """
    if lines:
        return {run: RunMarks(_within(marks.parts, lines.get(run))) for run in runs}
    starts = list(dict.fromkeys(part.session_id for part in marks.parts))
    if len(starts) == len(runs) and (None not in starts or len(marks.parts) == len(runs)):
        by_start = {start: tuple(p for p in marks.parts if p.session_id == start) for start in starts}
        return {run: RunMarks(by_start[start]) for run, start in zip(runs, starts, strict=True)}
    return {run: RunMarks(marks.parts, own=False) for run in runs}


def settings_said(marks: Marks) -> tuple[tuple[str, str], ...]:
    """The settings that the system wrote into its marks, as text, by name; of one that changed every value it had."""
    found: dict[str, list[str]] = {}
    for part in marks.parts:
        for name, value in part.config.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            values = found.setdefault(name[:MOST_CHARACTERS], [])
            if len(values) < MOST_VALUES and text[:MOST_CHARACTERS] not in values:
                values.append(text[:MOST_CHARACTERS])
    return tuple((name, ", ".join(values)) for name, values in sorted(found.items())[:MOST_SETTINGS])


def _within(parts: Sequence[MarkPart], lines: MarkLines | None) -> tuple[MarkPart, ...]:
    if lines is None:
        return ()
    cut = [
        replace(p, rows=tuple(r for r in p.rows if lines.first <= r.line < lines.first + lines.count)) for p in parts
    ]
    return tuple(part for part in cut if part.rows)
