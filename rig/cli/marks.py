"""`rig marks`: is a file of marks usable, and what does the software say of its own stages?"""

from __future__ import annotations

import statistics
import textwrap
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from rig.domain.marks import INSTANTS, MarkPart
from rig.errors import Refused

STAGES = ("encode", "send", "network + server", "play")
"""What lies between two instants that follow each other."""


def marks(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="marks as JSON lines or in the log form")],
    strict: Annotated[bool, typer.Option("--strict", help="refuse a file with a line that cannot be read")] = False,
) -> None:
    """Check the marks that a system wrote, and show its own stages.

    The times are the software's word: no physical event is in them.
    """
    from rig.report.digits import WIDTH
    from rig.session.marks import read_marks

    found = read_marks(file, strict=strict)
    for part in found.parts:
        for line in describe(part):
            print(line)
    for note in found.notes:
        print(textwrap.fill(note, WIDTH, initial_indent="  - ", subsequent_indent="    ", break_on_hyphens=False))
    rows = [row for part in found.parts for row in part.rows]
    if rows and not any(row.problem is None for row in rows):
        raise Refused(
            f"no row of {file.name} can be used",
            "rows whose instants stand in their order",
            "mend what the lines above name, in the system that writes the marks",
        )


def describe(part: MarkPart) -> list[str]:
    """The lines on one part: its clock, how many rows may be used, its stages and claims in ms."""
    from rig.analyse.claims import buffer_note
    from rig.report.digits import ABSENT, ms, table

    usable = [row for row in part.rows if row.problem is None]
    grid = "" if part.resolution_s is None else f", in steps of {part.resolution_s * 1e3:.4g} ms"
    lines = [
        f"session {part.session_id or ABSENT}, clock {part.clock}{grid}",
        f"  {len(usable)} of {len(part.rows)} rows can be used; {len(part.exchanges)} clock exchanges",
    ]
    rows = [["stage", "n", "median ms", "range ms", ""]]
    known = [k for k in range(len(INSTANTS)) if any(row.instants_s[k] is not None for row in usable)]
    for start, end in pairwise(known):
        pairs = ((row.instants_s[start], row.instants_s[end]) for row in usable)
        lengths = [after - before for before, after in pairs if before is not None and after is not None]
        if not lengths:
            continue
        median_s = statistics.median(lengths)
        below = part.resolution_s is not None and median_s < part.resolution_s
        remark = "below the clock's resolution" if below else ""
        if end - start > 1:
            remark = ", ".join(["not separated", *([remark] if remark else [])])
        name = " + ".join(STAGES[start:end])
        rows.append([name, str(len(lengths)), ms(median_s, 3), ms(max(lengths) - min(lengths), 3), remark])
    lines += table(rows) if len(rows) > 1 else []
    for claim in dict.fromkeys(part.claims):
        value = claim.problem if claim.value_s is None else f"{ms(claim.value_s)} ms"
        lines.append(f"  claimed {claim.name} by {claim.source}: {value}")
    held = buffer_note(part)
    return [*lines, f"  {held}"] if held is not None else lines
