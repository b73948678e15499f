"""`rig report`: a session or a recording as one HTML file; of several, the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rig.cli.options import (
    Against,
    Ear,
    Limit,
    MaxLatency,
    MinLatency,
    Quiet,
    Ref,
    check_channels,
    check_window,
    known_lines,
)
from rig.errors import UsageError


def report(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SESSION...", help="session folders, WAV or FLAC files, an experiment; two: a comparison"
        ),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="the page  [default: SESSION-report.html beside it]")
    ] = None,
    ref: Ref = None,
    ear: Ear = None,
    min_latency: MinLatency = None,
    max_latency: MaxLatency = None,
    limit: Limit = None,
    against: Against = None,
    quiet: Quiet = False,
) -> None:
    """Write one HTML file that opens offline: figures, plots, and every trial to judge by eye.

    Prints the name of the file, and exits as rig analyze does. Several sessions give their comparison with the first.
    """
    check_channels(ref, ear)
    check_window(min_latency, max_latency)

    from rig.cli.experiment import exit_code
    from rig.cli.experiment_page import is_experiment, results_of, write_experiment_page
    from rig.cli.page_file import page_path, write_page
    from rig.cli.pipeline import Choices, report_on, report_with_exhibits
    from rig.cli.progress import open_display
    from rig.report.summary import EXIT_CODES

    for source in sources:
        if not source.exists():
            raise UsageError(f"{source} does not exist", "a session folder, or a WAV or FLAC file", "check the path")
    if is_experiment(sources[0]):
        if len(sources) > 1:
            raise UsageError("an experiment stands alone on its page", "one folder", "name the experiment alone")
        found_so_far = results_of(sources[0], quiet)
        print(write_experiment_page(sources[0], found_so_far, out))
        raise typer.Exit(exit_code(found_so_far))
    names = [source.resolve().name for source in sources]
    if out is None and len(sources) > 1:
        out = sources[0].resolve().with_name("-against-".join(reversed(names[:2])) + "-report.html")
    path = page_path(sources[0], out)
    choices = Choices(ref, ear, min_latency, max_latency, limit, known_lines(against))
    with open_display(quiet) as display:
        if len(sources) == 1:
            from rig.report.html.page import render_page

            found, exhibits = report_with_exhibits(sources[0], choices, display)
            text, outcomes = render_page(found, exhibits), [found.outcome]
        else:
            from rig.report.html.comparison import render_comparison

            named = [(name, report_on(source, choices, display)) for name, source in zip(names, sources, strict=True)]
            text, outcomes = render_comparison(named), [one.outcome for _, one in named]
    write_page(path, text)
    print(path)
    raise typer.Exit(max(EXIT_CODES[outcome] for outcome in outcomes))
