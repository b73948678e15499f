"""`rig calibrate` with a verb: the records of what is known of a device."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rig.cli.guided import calibrate, check
from rig.cli.options import AsJson
from rig.errors import CalibrationError

FOLDER = Path("calibration")

calibrate_app = typer.Typer(invoke_without_command=True, no_args_is_help=True)
calibrate_app.callback()(calibrate)
calibrate_app.command("check")(check)

Folder = Annotated[Path, typer.Option("--calibration", metavar="DIR", help="the folder of calibrations")]


@calibrate_app.command("list")
def list_records(folder: Folder = FOLDER, as_json: AsJson = False) -> None:
    """List the records: of which device, of what, how large, until when."""
    import json
    import textwrap

    from rig.calibration.store import load
    from rig.cli.calibrate_words import WIDTH, figures, named, plain
    from rig.cli.output import show
    from rig.report.digits import table

    found = load(folder)
    if as_json:
        show(json.dumps({"schema": "rig.calibrations/1", "records": [plain(u) for u in found]}, indent=1) + "\n")
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
                record = used.record
                name, short = named(record.quantity.name, record.channel), used.id.rsplit("/", 1)[-1]
                rows.append([name, *figures(used), record.good_until.isoformat(), short])
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
    from rig.cli.calibrate_words import describe
    from rig.cli.output import show

    path = Path(record)
    if path.suffix == ".toml":
        show("\n".join(describe(load_file(path))) + "\n")
        return
    found = [u for u in load(folder) if record in (u.id, u.id.rsplit("/", 1)[-1])]
    if len(found) != 1:
        raise CalibrationError(
            f"{len(found)} records are called {record!r}", "one record", "rig calibrate list names them: device/record"
        )
    show("\n".join(describe(found[0])) + "\n")


@calibrate_app.command("check-file")
def check_file(files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="records to check")]) -> None:
    """Check that files are records: every key known, in its place and of its type."""
    from rig.calibration.store import load_file
    from rig.cli.calibrate_words import amount
    from rig.cli.output import show

    for path in files:
        used = load_file(path)
        show(f"{path.name}: {used.record.quantity.title}, {amount(used)}\n")
