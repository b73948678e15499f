"""The recording half of `rig measure`: from options to a plan, and through the bench into a session folder."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rig.acquire.board import Link
from rig.bench import BenchPlan, plan_runs, run_plan
from rig.bench.plan import check_fits, check_plan, playback
from rig.cli.bench_choice import BenchOptions, ChosenBench, choose_bench, is_simulated
from rig.cli.calibrated import to_manifest
from rig.cli.progress import Display
from rig.cli.quiet import quiet_libraries
from rig.domain.calibration import Calibration
from rig.domain.records import BenchKind, ChannelRoles, StimulusPlan, StreamSpec
from rig.environment import environment
from rig.errors import RigError
from rig.session import SessionWriter
from rig.session.read import hash_file

AMPLITUDE = 0.5
"""Of full scale: 6 dB of room for loudspeakers and inputs."""

LATENCY_EXPECTED_S = 1.6
"""Stimuli are this far apart at least, beyond their own length, unless --max-latency asks for more."""

SPACING_VARIES_S = 0.5
MARGIN_S = 0.2
SESSIONS = "sessions"


@dataclass(frozen=True, slots=True)
class MeasureOptions:
    """`rig measure`, parsed and checked; channels one-based, times in s."""

    seed: int
    rate_hz: int
    runs: int
    stimuli: int
    stimulus: str
    wav: str | None
    lead_in: str | None
    ref: int
    ear: int
    min_latency_s: float | None
    max_latency_s: float | None
    limit_s: float | None
    spacing_s: float | None
    mode: str
    build: str | None
    blank: bool
    out: Path | None
    system: Mapping[str, str] = field(default_factory=dict)  # what `system_facts` knows of the system under test
    against: tuple[str, ...] = ()
    experiment: Mapping[str, Any] | None = None  # which round of which plan this is


def make_plan(options: MeasureOptions, bench: ChosenBench) -> BenchPlan:
    """The plan of the measurement. What the board cannot play (a lead-in, a file) the interface plays.

    Raises UsageError for a plan that cannot be carried out, before anything is put on disk."""
    by_board = bench.pipe is not None and options.lead_in is None and options.wav is None
    source = "mcu" if by_board else "interface"
    one = StimulusPlan(options.stimulus, 1, (), AMPLITUDE, source, options.lead_in, options.wav)
    sounds_s = len(playback(one, options.rate_hz, 0).wave) / options.rate_hz
    latency_s = max(LATENCY_EXPECTED_S, (options.max_latency_s or 0.0) + MARGIN_S)
    least_s = sounds_s + latency_s if options.spacing_s is None else options.spacing_s
    plan = BenchPlan(
        stream=StreamSpec(bench.device, options.rate_hz, max(2, options.ref, options.ear)),
        roles=ChannelRoles(options.ref - 1, options.ear - 1),
        stimuli=plan_runs(
            options.seed,
            options.runs,
            options.stimuli,
            options.stimulus,
            min_spacing_s=least_s,
            max_spacing_s=least_s + SPACING_VARIES_S,
            amplitude=AMPLITUDE,
            source=source,
            lead_in=options.lead_in,
            wav=options.wav,
        ),
        mode=options.mode,
        blank=options.blank,
        tail_s=latency_s + bench.board_late_s,
        response_s=min(latency_s, 1.0),
    )
    check_plan(plan, has_board=bench.pipe is not None)
    for stimuli in plan.stimuli:
        check_fits(stimuli, sounds_s)
    return plan


def record(
    options: MeasureOptions, bench: ChosenBench, display: Display, folder: Path, known: Calibration | None = None
) -> None:
    """Records the measurement into `folder`, with the calibration that is to be applied.

    Raises what the bench raises; what was recorded until then is kept."""
    plan = make_plan(options, bench)
    manifest = {
        "bench": bench.kind,
        "device": bench.device,
        "backend": bench.audio.name,
        "build": options.build,
        "system": dict(options.system),
        "scenario": bench.scenario,
        "seed": options.seed,
        "mode": options.mode,
        "roles": {"ref": plan.roles.ref, "ear": plan.roles.ear},
        "runs_planned": options.runs,
        "options": {
            "stimuli": options.stimuli,
            "stimulus": options.stimulus,
            "lead_in": options.lead_in,
            "wav": None if options.wav is None else Path(options.wav).name,
            "wav_sha256": None if options.wav is None else hash_file(Path(options.wav)),
            "spacing_s": options.spacing_s,
            "blank": options.blank,
            "board": bench.pipe is not None,
        },
        # A simulated measurement is the same whenever it is made; a real one is not, and its identity says so.
        "started": None if bench.kind is BenchKind.SIMULATED else datetime.now(UTC).isoformat(timespec="milliseconds"),
        "host_clock": bench.time.timebase.identity,
        "started_host_s": bench.time.now().seconds,  # the same moment by the clock that stamps the events
        "choices": {
            "min_latency_s": options.min_latency_s,
            "max_latency_s": options.max_latency_s,
            "limit_s": options.limit_s,
            "against": list(options.against),
        },
        "environment": environment(),
    }
    if options.experiment is not None:
        manifest["experiment"] = dict(options.experiment)
    writer = SessionWriter.create(folder, manifest, bench.time)
    # Neither makes it another session: the same bench gives the same recording whatever is known of it.
    writer.note(identity=asdict(bench.identity), calibration=to_manifest(known))
    try:
        link = None if bench.pipe is None else Link(bench.pipe, bench.time, on_frame=writer.serial_frame)
        if link is not None:
            try:
                writer.note(board=link.identify())
            except RigError:
                writer.finish("lost")  # else the empty session would read as one that was killed
                raise
        display.expect_runs(options.runs)
        if bench.truth is None:
            run_plan(plan, bench.audio, link, bench.system, bench.time, writer, display.bench, bench.marks)
            return

        def progress(event: str, facts: dict[str, object]) -> None:
            # The truth must be on disk before the session is finished and hashed: it is written after each run.
            if event in ("run_done", "armed") and bench.truth is not None:
                writer.write_truth(bench.truth())
            display.bench(event, facts)

        run_plan(plan, bench.audio, link, bench.system, bench.time, writer, progress, bench.marks)
    finally:
        if bench.pipe is not None:
            bench.pipe.close()


@contextlib.contextmanager
def open_bench(wanted: BenchOptions) -> Iterator[ChosenBench]:
    """The bench that the options name, with chatting libraries kept quiet and the address for marks told on stderr."""
    with contextlib.ExitStack() as stack:
        chatter = None if is_simulated(wanted.device) else stack.enter_context(quiet_libraries())
        bench = choose_bench(wanted, chatter)
        if bench.marks is not None:
            stack.callback(bench.marks.close)
            if bench.marks.address is not None:
                print(f"marks go to {bench.marks.address}", file=sys.stderr)
        yield bench


def session_folder(options: MeasureOptions, bench: ChosenBench) -> Path:
    """Where the session goes: --out, or a new folder below `sessions/` named by date and device."""
    if options.out is not None:
        return options.out
    named = re.sub(r"[^\w.]+", "-", bench.device).strip("-")  # a device may be called anything
    stem = f"{datetime.now():%Y-%m-%d-%H%M%S}-{named}"
    folder, number = Path(SESSIONS) / stem, 1
    while folder.exists():
        number += 1
        folder = Path(SESSIONS) / f"{stem}-{number}"
    return folder
