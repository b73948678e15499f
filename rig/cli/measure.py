"""`rig measure`: record a session on a bench, then report on it as `rig analyze` would."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from rig.cli.options import (
    Against,
    AsJson,
    Backend,
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
    duration_s,
    known_lines,
    one_of,
    split_settings,
    split_stimulus,
)
from rig.errors import EXIT_INTERRUPTED, AcquisitionLost, UsageError

MODES = ("call",)
MODES_TO_COME = ("turn", "barge-in")


def measure(
    device: Annotated[
        str,
        typer.Option(
            "--device", metavar="NAME|sim[:SCENARIO]", help="the interface (rig devices), or a scenario (rig sim list)"
        ),
    ],
    seed: Annotated[int, typer.Option("--seed", min=0, help="of the spacing, and of a simulated world")] = 1,
    port: Annotated[
        str, typer.Option("--port", metavar="auto|PATH|none", help="the board; none: the interface plays the stimulus")
    ] = "auto",
    backend: Backend = "sounddevice",
    rate: Annotated[int, typer.Option("--rate", min=8000, max=192_000, help="sample rate in Hz")] = 48_000,
    runs: Annotated[int, typer.Option("--runs", min=1, max=1000, help="starts of the system under test")] = 3,
    stimuli: Annotated[int, typer.Option("--stimuli", min=1, max=10_000, help="stimuli in each run")] = 20,
    stimulus: Annotated[
        str, typer.Option("--stimulus", metavar="chirp|chirp-nb|click|mls|wav:FILE", help="what is played")
    ] = "chirp",
    lead_in: Annotated[
        str, typer.Option("--lead-in", metavar="speech|none", help="speech-like sound before each stimulus")
    ] = "none",
    spacing: Annotated[
        float | None,
        typer.Option("--spacing", parser=duration_s, metavar="DURATION", help="least time between stimuli: 3s"),
    ] = None,
    mode: Annotated[
        str, typer.Option("--mode", metavar="call", help="what the ear hears: a call's delayed copy")
    ] = "call",
    sut: Annotated[str | None, typer.Option("--sut", metavar="CMD", help="command that starts the system")] = None,
    sut_ready: Annotated[
        str | None,
        typer.Option("--sut-ready", metavar="TEXT", help="wait for a line of its output that begins so; else 2 s"),
    ] = None,
    marks: Annotated[
        Path | None,
        typer.Option(
            "--marks", metavar="FILE|listen[:HOST:PORT]", help="where the system writes its marks, or sends them"
        ),
    ] = None,
    world: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="a setting of the simulated world (rig sim show); repeatable"),
    ] = None,
    build: Annotated[
        str | None, typer.Option("--build", metavar="TEXT", help="which build of the system this is: kept, and listed")
    ] = None,
    ref: Ref = None,
    ear: Ear = None,
    min_latency: MinLatency = None,
    max_latency: MaxLatency = None,
    limit: Limit = None,
    against: Against = None,
    calibration: CalibrationFolder = None,
    needs: Needs = None,
    blank: Annotated[bool, typer.Option("--blank/--no-blank", help="first a run with the system muted")] = True,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="folder for the session")] = None,
    page: Annotated[bool, typer.Option("--report", help="also write an HTML page beside the session")] = False,
    page_to: Annotated[
        Path | None, typer.Option("--report-to", metavar="FILE", help="the same, to a file of your choice")
    ] = None,
    as_json: AsJson = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Measure the mouth-to-ear latency of a system.

    The recording is kept as a session; rig analyze gives the same report from it.
    """
    ref_channel, ear_channel = 1 if ref is None else ref, 2 if ear is None else ear
    check_channels(ref_channel, ear_channel)
    check_window(min_latency, max_latency)
    check_mode(mode)
    kind, wav = split_stimulus(stimulus)
    settings = split_settings(world or ())
    lead = one_of("--lead-in", lead_in, ("speech", "none"))

    from rig.cli.bench_choice import BenchOptions
    from rig.cli.calibrated import CalibrationChoice, calibration_for, planned
    from rig.cli.documents import keep, key_of
    from rig.cli.output import emit
    from rig.cli.page_file import page_path, write_page
    from rig.cli.pipeline import Choices, report_on, report_with_exhibits
    from rig.cli.progress import open_display
    from rig.cli.record import MeasureOptions, open_bench, record, session_folder
    from rig.cli.system_facts import system_facts

    options = MeasureOptions(
        seed=seed,
        rate_hz=rate,
        runs=runs,
        stimuli=stimuli,
        stimulus=kind,
        wav=wav,
        lead_in=None if lead == "none" else lead,
        ref=ref_channel,
        ear=ear_channel,
        min_latency_s=min_latency,
        max_latency_s=max_latency,
        limit_s=limit,
        against=known_lines(against),
        spacing_s=spacing,
        mode=mode,
        build=build,
        blank=blank,
        out=out,
        system=system_facts(sut, world=settings),
    )
    choice = CalibrationChoice.of(calibration, needs)
    page_file = None if page_to is None else page_path(Path(), page_to)
    plays = port == "none" or options.lead_in is not None or wav is not None
    inputs = max(2, ref_channel, ear_channel)
    wanted = BenchOptions(device, port, sut, seed, backend, inputs, plays, sut_ready, marks, settings)
    with contextlib.ExitStack() as stack:
        bench = stack.enter_context(open_bench(wanted))
        known = calibration_for(choice, planned(options, bench))
        folder = session_folder(options, bench)
        display = stack.enter_context(open_display(quiet))
        try:
            record(options, bench, display, folder, known)
        except KeyboardInterrupt:
            print(f"rig: stopped; {_kept(folder)}", file=sys.stderr)
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except AcquisitionLost as error:
            error.remedy = f"{error.remedy}; {_kept(folder)}"
            raise
        key = key_of(folder)
        if not page and page_file is None:
            report = report_on(folder, Choices(), display)
        else:
            from rig.report.html.page import render_page

            page_file = page_file or page_path(folder, None)
            report, exhibits = report_with_exhibits(folder, Choices(), display)
            write_page(page_file, render_page(report, exhibits))
    keep(key, report)
    if page_file is not None and not quiet:
        print(f"page written to {page_file}", file=sys.stderr)
    if not quiet:
        print(f"session kept in {folder}", file=sys.stderr)
    raise typer.Exit(emit(report, as_json, verbose))


def check_mode(mode: str) -> None:
    """Raises UsageError for a mode that is not there, or not yet."""
    if mode in MODES_TO_COME:
        raise UsageError(
            f"--mode {mode} is not in this version", "call, the only mode so far", "leave --mode out to measure a call"
        )
    one_of("--mode", mode, MODES)


def _kept(folder: Path) -> str:
    return f"what was recorded is kept: rig analyze {folder}"
