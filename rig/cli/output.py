"""The report to stdout, which carries nothing else; and the exit code that goes with it."""

from __future__ import annotations

import os
import sys

from rig.domain.report import Report
from rig.report.render_json import render_json
from rig.report.render_text import render_text
from rig.report.summary import EXIT_CODES


def emit(report: Report, as_json: bool, verbose: bool) -> int:
    """Prints the report and returns the exit code of its outcome."""
    show(render_json(report) if as_json else render_text(report, verbose=verbose, colour=wants_colour(sys.stdout)))
    return EXIT_CODES[report.outcome]


def show(text: str) -> None:
    """Writes text to stdout, whatever its alphabet."""
    try:
        sys.stdout.write(text)
    except UnicodeEncodeError:  # the name of a file or a device is not in its alphabet
        sys.stdout.write(text.encode("ascii", "backslashreplace").decode("ascii"))
    sys.stdout.flush()


def wants_colour(stream: object) -> bool:
    """Colour belongs on a terminal that can show it, where nobody has asked for none (no-color.org)."""
    isatty = getattr(stream, "isatty", None)
    return bool(isatty and isatty()) and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
