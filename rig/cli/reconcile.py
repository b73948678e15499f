"""`rig reconcile`: the report on a session with a file of marks that came later. The session stays as it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rig.cli.options import Against, AsJson, Quiet, Verbose, known_lines
from rig.errors import Refused


def reconcile(
    session: Annotated[Path, typer.Argument(metavar="SESSION", help="a session folder")],
    marks: Annotated[Path, typer.Option("--marks", metavar="FILE", help="the marks that the system wrote meanwhile")],
    against: Against = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Report on a session with marks that came later: stages, claimed and true.

    Marks that the session holds itself are left out. Nothing is written into it.
    """
    from rig.cli.output import emit
    from rig.cli.pipeline import Choices, report_on
    from rig.cli.progress import open_display
    from rig.session import open_session

    open_session(session).close()  # a recording of another program has no runs that marks could belong to
    with open_display(quiet) as display:
        report = report_on(session, Choices(marks=marks, against=known_lines(against)), display)
    if report.latency is not None and report.stages is None:
        raise Refused(
            f"no mark of {marks.name} belongs to the stimuli of this session",
            "marks written while the session was recorded, two instants of a frame at least",
            f"check the file with rig marks {marks.name}",
        )
    raise typer.Exit(emit(report, as_json, verbose))
