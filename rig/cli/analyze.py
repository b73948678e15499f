"""`rig analyze`: the report from what is on disk, a session of rig's own or any recorder's two-channel file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rig.cli.options import (
    Against,
    AsJson,
    CalibrationFolder,
    Ear,
    Limit,
    MaxLatency,
    MinLatency,
    Needs,
    Quiet,
    Ref,
    Verbose,
    check_channels,
    check_window,
    known_lines,
)


def analyze(
    source: Annotated[Path, typer.Argument(metavar="SESSION|FILE", help="a session folder, or a WAV or FLAC file")],
    ref: Ref = None,
    ear: Ear = None,
    min_latency: MinLatency = None,
    max_latency: MaxLatency = None,
    limit: Limit = None,
    against: Against = None,
    calibration: CalibrationFolder = None,
    needs: Needs = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Report the latency from a session, or from any two-channel recording.

    A session remembers how it was measured; options given here take precedence.
    """
    check_channels(ref, ear)
    check_window(min_latency, max_latency)

    from rig.cli.calibrated import CalibrationChoice
    from rig.cli.documents import keep, key_of
    from rig.cli.output import emit
    from rig.cli.pipeline import Choices, report_on
    from rig.cli.progress import open_display

    lines = known_lines(against)
    choices = Choices(ref, ear, min_latency, max_latency, limit, lines, CalibrationChoice.of(calibration, needs))
    key = key_of(source) if choices == Choices() else None
    with open_display(quiet) as display:
        report = report_on(source, choices, display)
    keep(key, report)
    raise typer.Exit(emit(report, as_json, verbose))
