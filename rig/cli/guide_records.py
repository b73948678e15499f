"""From a figure to a record on disk, and what became of each quantity in the end: as a table and as a document."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rig.calibration.choose import Circumstances
from rig.calibration.fresh import of_kind
from rig.calibration.steps import AIMS, Step
from rig.calibration.store import load, load_file, save
from rig.cli.calibrate_words import COVER, amount, figures, named, plain
from rig.cli.guide_readings import Figure, Given, Reading
from rig.cli.guide_talk import wrapped
from rig.domain.calibration import QUANTITIES, CalibrationRecord, DeviceIdentity, Used
from rig.domain.records import BenchKind
from rig.errors import EXIT_INTERRUPTED, Refused
from rig.report.digits import table

SCHEMA = "rig.calibration/1"

METHODS = {
    "open": "the inputs open, docs/calibration.md#nothing-connected",
    "loop": "output 1 by cable into the reference's input, docs/calibration.md#output-into-one-input",
    "split": "output 1 by Y-cable into both inputs, docs/calibration.md#output-into-both-inputs",
    "limit": "chirps from soft to loud by Y-cable, docs/calibration.md#gain-up",
    "air": "mouth and ear's microphone in front of each other, docs/calibration.md#loudspeaker-and-microphone",
    "ruler": "a ruler and a thermometer, docs/calibration.md#distances",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """What became of one quantity (of one channel). `state`: found, known (a record holds already), or missing.

    `exit_code` is 0, or that of who must act for a better one; `why` and `remedy` say what is wrong then."""

    quantity: str
    channel: int | None
    state: str
    used: Used | None = None
    superseded: Used | None = None
    exit_code: int = 0
    why: str = ""
    remedy: str = ""

    def line(self) -> str:
        """One sentence for the person at the bench."""
        name = named(self.quantity, self.channel)
        if self.used is None:
            return f"{name}: {self.why}"
        return f"{name}: {amount(self.used)}{'; ' if self.why else ''}{self.why}"


def channels_of(quantity: str, where: Circumstances) -> list[int | None]:
    """The channels that a quantity has a record for each of; one None where it is of no single one."""
    if QUANTITIES[quantity].per_channel:
        return [where.reference_channel, where.ear_channel]
    return [None]


def keep(
    figure: Figure,
    reading: Reading | None,
    step: Step,
    given: Given,
    where: Circumstances,
    today: datetime.date,
    folder: Path,
) -> Entry:
    """Writes the record of a figure below `folder`; where there is no figure, an entry that says why. Raises
    UsageError where it cannot be written, CalibrationError where a record that is there cannot be read."""
    name, channel, found = figure.quantity, figure.channel, figure.found
    if found is None:
        return Entry(name, channel, "missing", None, None, Refused.exit_code, figure.why, figure.remedy)
    record = CalibrationRecord(
        quantity=QUANTITIES[name],
        value=found.value,
        u=found.u,
        method=METHODS[step.name],
        made_on=today,
        good_for_days=AIMS[name].good_for_days,
        device=where.device,
        channel=channel,
        evidence=None if reading is None else reading.evidence,
        conditions=_conditions(figure, reading, step, given, where),
        wander=figure.wander,
    )
    block_frames = None if reading is None else reading.grant.block_frames
    old = of_kind(load(folder) if folder.is_dir() else [], name, channel, replace(where, block_frames=block_frames))
    used = load_file(save(folder, record))
    wide = COVER * found.u / AIMS[name].u95 if AIMS[name].u95 > 0.0 else 0.0
    if wide <= 1.0:
        return Entry(name, channel, "found", used, old)
    why = f"{wide:.1f} times as wide as aimed at: {figure.because or 'it scatters from chirp to chirp'}"
    remedy = figure.remedy or "turn off what hums and blows, raise the level, then rig calibrate again"
    return Entry(name, channel, "found", used, old, Refused.exit_code, why, remedy)


def _conditions(
    figure: Figure, reading: Reading | None, step: Step, given: Given, where: Circumstances
) -> tuple[tuple[str, float | str], ...]:
    """What the figure was found under, as a record keeps it."""
    found: dict[str, float | str | None] = {}
    if reading is not None:
        found |= {
            "rate_hz": float(reading.grant.rate_hz),
            "block_frames": None if reading.grant.block_frames is None else float(reading.grant.block_frames),
            "reference_channel": float(where.reference_channel),
            "ear_channel": float(where.ear_channel),
            "duration_s": round(reading.duration_s, 3),
        }
        if step.name == "open":
            found["host_clock_u_ppm"] = given.host_clock_u_ppm if figure.quantity == "sample_clock" else None
        else:
            found |= {
                "stimulus": reading.stimulus,
                "stimuli": float(reading.n_stimuli),
                "amplitude": float(reading.amplitude),
            }
    for name, sized in (("distance_m", given.distance), ("temperature_c", given.temperature)):
        if sized is not None:
            found |= {name: sized.value, f"u_{name}": sized.u}
    found["note"] = figure.note or None
    return tuple((name, value) for name, value in found.items() if value is not None)


# --- the end ----------------------------------------------------------------------------------------------------------


def exit_code(entries: list[Entry], ended: bool) -> int:
    """Who must act: the person who ended, then the operator of the bench, then whoever can better the evidence."""
    codes = {entry.exit_code for entry in entries} - {0}
    return EXIT_INTERRUPTED if ended else min(codes, default=0)


def closing_table(device: DeviceIdentity, entries: list[Entry], folder: Path, sessions: Path | None) -> str:
    """What is known now, with its uncertainty, and what it superseded; then what is not, and why."""
    lines = wrapped(f"{device.words()}: what is known", indent="")
    if device.bench != BenchKind.HARDWARE:
        lines += [f"({device.bench}: no hardware was calibrated)"]
    rows = [["quantity", "value", "+/- (95 %)", "unit", "", "supersedes"]]
    for entry in entries:
        if entry.used is not None:
            rows.append(
                [
                    named(entry.quantity, entry.channel),
                    *figures(entry.used),
                    "new" if entry.state == "found" else "known",
                    "-" if entry.superseded is None else entry.superseded.id.rsplit("/", 1)[-1],
                ]
            )
    lines += table(rows) if len(rows) > 1 else ["  nothing"]
    for head, some in (
        ("less certain than aimed at", [e for e in entries if e.used is not None and e.why]),
        ("not found", [e for e in entries if e.used is None]),
    ):
        lines += ["", head] if some else []
        for entry in some:
            lines += wrapped(f"{named(entry.quantity, entry.channel)}: {entry.why}", hang="    ")
            lines += wrapped(f"remedy: {entry.remedy}", "    ", "      ") if entry.remedy else []
    new = [entry.used for entry in entries if entry.state == "found" and entry.used is not None]
    lines.append("")
    if new:
        lines += wrapped(f"records  {folder / new[0].id.rpartition('/')[0]}", "")
    if sessions is not None:
        lines += wrapped(f"sessions {sessions}", "")
    return "\n".join(lines).rstrip() + "\n"


def document(device: DeviceIdentity, entries: list[Entry], ended: bool, sessions: Path | None) -> dict[str, Any]:
    """The same for a program."""
    return {
        "schema": SCHEMA,
        "bench": device.bench,
        "device": device.words(),
        "ended": ended,
        "sessions": None if sessions is None else str(sessions),
        "quantities": [
            {
                "quantity": entry.quantity,
                "channel": entry.channel,
                "state": entry.state,
                "record": None if entry.used is None else plain(entry.used),
                "supersedes": None if entry.superseded is None else entry.superseded.id,
                "why": entry.why or None,
                "remedy": entry.remedy or None,
                "exit_code": entry.exit_code,
            }
            for entry in entries
        ],
    }
