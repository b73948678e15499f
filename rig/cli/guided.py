"""`rig calibrate --device NAME`: teach the rig a device, step by step, and write down what was found."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rig.cli.options import AsJson, Backend, Ear, Quiet, Ref, check_channels
from rig.errors import EXIT_INTERRUPTED, AcquisitionLost, BenchNotReady, CalibrationError, UsageError

if TYPE_CHECKING:
    from rig.cli.guide_bench import GuideBench
    from rig.domain.calibration import Used
    from rig.domain.seams import ProgressSink

FOLDER = Path("calibration")

Quantities = Annotated[
    str | None, typer.Option("--quantity", metavar="QUANTITY,...", help="only these, also where they are known already")
]
Yes = Annotated[bool, typer.Option("--yes", help="nobody is there: take every wiring as it is")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="of the spacing, and of a simulated device")]
Rate = Annotated[int, typer.Option("--rate", min=8000, max=192_000, help="sample rate in Hz")]
Out = Annotated[Path | None, typer.Option("--out", metavar="DIR", help="folder for the sessions")]
Records = Annotated[Path, typer.Option("--calibration", metavar="DIR", help="the folder of calibrations")]


def calibrate(
    context: typer.Context,
    device: Annotated[
        str | None, typer.Option("--device", metavar="NAME|sim[:SCENARIO]", help="the interface (rig devices)")
    ] = None,
    quantity: Quantities = None,
    yes: Yes = False,
    mouth: Annotated[
        str | None, typer.Option("--mouth-distance", metavar="LENGTH", help="mouth to the system's microphone: 8cm")
    ] = None,
    ear_away: Annotated[
        str | None, typer.Option("--ear-distance", metavar="LENGTH", help="system's loudspeaker to the ear: 5cm+-1cm")
    ] = None,
    away: Annotated[
        str | None,
        typer.Option("--distance", metavar="LENGTH", help="mouth to the ear's microphone: 30cm"),
    ] = None,
    temperature: Annotated[
        str | None, typer.Option("--temperature", metavar="DEGREES", help="of the air, in degrees Celsius: 21")
    ] = None,
    seed: Seed = 1,
    backend: Backend = "sounddevice",
    rate: Rate = 48_000,
    ref: Ref = None,
    ear: Ear = None,
    folder: Records = FOLDER,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Teach the rig a device: each step says what to connect, checks it, measures, and writes down what was found.

    What is known already is left out, so that it can be gone on with. The verbs below are about the records.
    """
    if context.invoked_subcommand is not None:
        return
    if device is None:
        raise UsageError(
            "rig calibrate needs to know which device", "--device NAME, or a verb", "rig devices lists what there is"
        )
    ref_channel, ear_channel = 1 if ref is None else ref, 2 if ear is None else ear
    check_channels(ref_channel, ear_channel)

    import json
    from datetime import UTC, datetime

    from rig.cli.guide import Guide, GuideOptions
    from rig.cli.guide_bench import open_guide_bench
    from rig.cli.guide_records import closing_table, document, exit_code
    from rig.cli.guide_talk import distance as length
    from rig.cli.guide_talk import talk_for
    from rig.cli.guide_talk import temperature as degrees
    from rig.cli.output import show

    told = {"mouth": mouth, "ear": ear_away, "air": away}
    now = datetime.now(UTC)
    options = GuideOptions(
        quantities=_names(quantity),
        rate_hz=rate,
        ref=ref_channel,
        ear=ear_channel,
        folder=folder,
        sessions=out if out is not None else _sessions(device, now.strftime("%Y-%m-%d-%H%M%S")),
        distances={place: length(text) for place, text in told.items() if text is not None},
        temperature=None if temperature is None else degrees(temperature),
    )
    talk = talk_for(yes, quiet)
    with contextlib.ExitStack() as stack:
        bench: GuideBench = open_guide_bench(
            device, ref_channel - 1, ear_channel - 1, rate_hz=rate, seed=seed, backend=backend, stack=stack
        )
        guide = Guide(bench, talk, options, now.date(), lambda: _display(quiet))
        try:
            guide.run()
        except KeyboardInterrupt:
            guide.ended = True
        except AcquisitionLost as error:
            error.remedy = f"{error.remedy}; what was found before is kept, and calibrating again goes on there"
            raise
    sessions = options.sessions if options.sessions.is_dir() else None
    if as_json:
        found = document(bench.identity, guide.entries, guide.ended, sessions)
        show(json.dumps(found, indent=1, ensure_ascii=False) + "\n")
    else:
        show(closing_table(bench.identity, guide.entries, folder, sessions))
    if guide.ended:
        print("rig: ended; what was found is kept, and calibrating again goes on there", file=sys.stderr)
    raise typer.Exit(exit_code(guide.entries, guide.ended))


def check(
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME|sim[:SCENARIO]", help="the interface  [default: the only one known]"),
    ] = None,
    quantity: Annotated[
        str | None, typer.Option("--quantity", metavar="QUANTITY,...", help="of one wiring  [default: the quickest]")
    ] = None,
    yes: Yes = False,
    seed: Seed = 1,
    backend: Backend = "sounddevice",
    rate: Rate = 48_000,
    ref: Ref = None,
    ear: Ear = None,
    folder: Records = FOLDER,
    out: Out = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Repeat a quick one, and say whether what was written down still holds. Exit code 5 where it does not."""
    ref_channel, ear_channel = 1 if ref is None else ref, 2 if ear is None else ear
    check_channels(ref_channel, ear_channel)

    import json
    from datetime import UTC, datetime

    from rig.calibration.store import load
    from rig.cli.guide import GuideOptions, circumstances
    from rig.cli.guide_bench import open_guide_bench
    from rig.cli.guide_check import CHECKABLE, check_document, check_text, compare, to_check
    from rig.cli.guide_measure import Measurer, Unmeasured
    from rig.cli.guide_readings import Given
    from rig.cli.guide_talk import Answer, talk_for
    from rig.cli.output import show

    records = load(folder)
    if device is None:
        device, seed = _only_device(records, seed)
    now = datetime.now(UTC)
    sessions = out if out is not None else _sessions(device, now.strftime("%Y-%m-%d-%H%M%S"))
    names = _names(quantity, CHECKABLE)
    options = GuideOptions(names, rate, ref_channel, ear_channel, folder, sessions)
    talk = talk_for(yes, quiet)
    with contextlib.ExitStack() as stack:
        bench: GuideBench = open_guide_bench(
            device, ref_channel - 1, ear_channel - 1, rate_hz=rate, seed=seed, backend=backend, stack=stack
        )
        where = circumstances(bench, options, now.date())
        step, held = to_check(records, names, where)
        measurer = Measurer(bench, talk, (ref_channel, ear_channel), sessions, lambda: _display(quiet))
        given = Given(ref_channel, ear_channel, bench.host_clock_u_ppm)
        if measurer.ask_for(step) is not Answer.GO:
            raise typer.Exit(EXIT_INTERRUPTED)
        found = measurer.measure(step, tuple(dict.fromkeys(name for name, _ in held)), given)
    if isinstance(found, Unmeasured):
        raise BenchNotReady(found.what, f"{step.title}, as the step says", found.remedy)
    compared = compare(held, found, where)
    if as_json:
        show(json.dumps(check_document(compared, where), indent=1, ensure_ascii=False) + "\n")
    else:
        show(check_text(compared, where))
    if not all(one.verdict == "yes" for one in compared):
        raise CalibrationError(
            "a record does not hold any more",
            "what was found now within 3 combined standard uncertainties of it, and a record that is not stale",
            f"rig calibrate --device NAME --quantity {compared[0].used.record.quantity.name} supersedes it",
        )


def _only_device(records: list[Used], seed: int) -> tuple[str, int]:
    """The device that all records are of, as --device and --seed name it. Raises UsageError for several."""
    devices = list(dict.fromkeys(used.record.device for used in records))
    if len(devices) != 1:
        listed = "; ".join(device.words() for device in devices[:5]) or "none"
        raise UsageError(
            f"the records are of {len(devices)} devices",
            "--device, to know which one is meant",
            f"name one of: {listed}",
        )
    name, serial = devices[0].name, devices[0].serial or ""
    digits = serial.removeprefix("seed ")
    simulated = devices[0].bench == "simulated" and digits.isdecimal()
    return name, int(digits) if simulated else seed


@contextlib.contextmanager
def _display(quiet: bool) -> Iterator[ProgressSink]:
    from rig.cli.progress import open_display

    with open_display(quiet) as shown:
        yield shown.bench


def _names(given: str | None, allowed: tuple[str, ...] | None = None) -> tuple[str, ...] | None:
    """The quantities that were named. Raises UsageError for one that there is not, or that no step finds."""
    if given is None:
        return None
    from rig.calibration.choose import check_names
    from rig.calibration.steps import OBTAINABLE

    possible = OBTAINABLE if allowed is None else allowed
    names = check_names([name.strip() for name in given.split(",") if name.strip()])
    for name in names:
        if name not in possible:
            raise UsageError(f"no step of this finds {name}", f"one of {', '.join(possible)}", "leave it out")
    if not names:
        raise UsageError("--quantity names none", f"one of {', '.join(possible)}", "leave --quantity out")
    return names


def _sessions(device: str, stamp: str) -> Path:
    import re

    return Path("sessions") / f"calibration-{stamp}-{re.sub(r'[^A-Za-z0-9.]+', '-', device).strip('-')}"
