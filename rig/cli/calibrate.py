"""`rig calibrate`: the records of what is known of a device."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rig.cli.options import AsJson
from rig.errors import CalibrationError

if TYPE_CHECKING:
    from rig.domain.calibration import Used

FOLDER = Path("calibration")
WIDTH = 80

calibrate_app = typer.Typer(help="What is known of a device: its records.", no_args_is_help=True)

Folder = Annotated[Path, typer.Option("--calibration", metavar="DIR", help="the folder of calibrations")]


@calibrate_app.command("list")
def list_records(folder: Folder = FOLDER, as_json: AsJson = False) -> None:
    """List the records: of which device, of what, how large, until when."""
    import json

    from rig.calibration.store import load
    from rig.cli.output import show
    from rig.report.digits import table

    found = load(folder)
    if as_json:
        show(json.dumps({"schema": "rig.calibrations/1", "records": [_plain(u) for u in found]}, indent=1) + "\n")
        return
    if not found:
        show(f"{folder}: no records\n")
        return
    lines: list[str] = []
    for device in dict.fromkeys(u.record.device.words() for u in found):
        lines += ["", *textwrap.wrap(device, WIDTH)] if lines else textwrap.wrap(device, WIDTH)
        rows = [["quantity", "value", "+/- (95 %)", "unit", "good until", "record"]]
        for used in found:
            if used.record.device.words() == device:
                rows.append(_row(used))
        lines += table(rows)
    show("\n".join(lines) + "\n")


@calibrate_app.command("show")
def show_record(
    record: Annotated[
        str, typer.Argument(metavar="ID|FILE", help="a record as rig calibrate list names it, or a file")
    ],
    folder: Folder = FOLDER,
) -> None:
    """Show one record: its value, what it means and where it comes from."""
    from rig.calibration.store import load, load_file
    from rig.cli.output import show

    path = Path(record)
    if path.suffix == ".toml":
        show("\n".join(describe(load_file(path))) + "\n")
        return
    named = [u for u in load(folder) if record in (u.id, u.id.rsplit("/", 1)[-1])]
    if len(named) != 1:
        raise CalibrationError(
            f"{len(named)} records are called {record!r}", "one record", "rig calibrate list names them: device/record"
        )
    show("\n".join(describe(named[0])) + "\n")


@calibrate_app.command("check-file")
def check_file(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="records to check")]) -> None:
    """Check that files are records: every key known, in its place and of its type."""
    from rig.calibration.store import load_file
    from rig.cli.output import show

    for path in files:
        used = load_file(path)
        show(f"{path.name}: {used.record.quantity.title}, {amount(used)}\n")


def describe(used: Used) -> list[str]:
    """The lines on one record."""
    record = used.record
    evidence = "entered by hand" if record.evidence is None else f"session with manifest {record.evidence[:12]}"
    channel = "" if record.channel is None else f", channel {record.channel}"
    facts = [
        ("value", amount(used)),
        ("sign", record.quantity.sign),
        ("device", record.device.words()),
        ("method", record.method),
        ("made on", f"{record.made_on}, good until {record.good_until}"),
        ("evidence", evidence),
        *((name, f"{value:g}" if isinstance(value, float) else value) for name, value in record.conditions),
        *((f"wander {span_s:g} s", f"{deviation:.2e} (Allan deviation)") for span_s, deviation in record.wander),
        ("sha256", used.sha256),
    ]
    lines = [f"{used.id}: {record.quantity.title}{channel}"]
    for name, text in facts:
        lines += textwrap.wrap(
            text, WIDTH, initial_indent=f"  {name:<18} ", subsequent_indent=" " * 21, break_on_hyphens=False
        )
    return lines


def amount(used: Used) -> str:
    """Value and expanded uncertainty with the unit."""
    value, half, unit = _row(used)[1:4]
    return f"{value} {unit}".strip() if used.record.quantity.unit == "sign" else f"{value} +/- {half} {unit} (95 %)"


UNITS = {"frames": "frames", "s": "ms", "ppm": "ppm", "dbfs": "dBFS", "db": "dB", "sign": ""}


def _row(used: Used) -> list[str]:
    from rig.report.digits import decimals_for

    record, unit = used.record, used.record.quantity.unit
    name = record.quantity.name + ("" if record.channel is None else f" ch{record.channel}")
    if unit == "sign":
        text, half = f"{record.value:+.0f}", "-"
    else:
        scale = 1e3 if unit == "s" else 1.0
        decimals = decimals_for(1.96 * record.u * scale / 1e3)
        text, half = f"{record.value * scale:+.{decimals}f}", f"{1.96 * record.u * scale:.{decimals}f}"
    return [name, text, half, UNITS[unit] or "-", record.good_until.isoformat(), used.id.rsplit("/", 1)[-1]]


def _plain(used: Used) -> dict[str, object]:
    record = used.record
    return {
        "id": used.id,
        "sha256": used.sha256,
        "quantity": record.quantity.name,
        "channel": record.channel,
        f"value_{record.quantity.unit}": record.value,
        f"u_{record.quantity.unit}": record.u,
        "made_on": record.made_on.isoformat(),
        "good_until": record.good_until.isoformat(),
        "device": record.device.words(),
        "evidence": record.evidence,
    }
