"""`rig calibrate check`: a quick repeat, and whether what was written down still holds."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from rig.calibration.choose import Circumstances
from rig.calibration.fresh import holds, of_kind
from rig.calibration.steps import Step, steps_for
from rig.cli.calibrate_words import UNITS, named
from rig.cli.guide_measure import Measured
from rig.cli.guide_records import channels_of
from rig.cli.guide_talk import wrapped
from rig.domain.calibration import Used
from rig.errors import CalibrationError, UsageError
from rig.report.digits import number, table

SCHEMA = "rig.calibration-check/1"

ALLOWED_U = 3.0
"""Of the combined standard uncertainty: a record that holds is doubted in one check of 400."""

QUICK = ("channel_skew", "polarity", "interface_loop")
"""What is repeated where nobody names anything: the first step of these of which there are records."""

CHECKABLE = (*QUICK, "crosstalk", "noise_floor", "sample_clock")


@dataclass(frozen=True, slots=True)
class Comparison:
    """A record against what was found now, in the quantity's unit. `now` None: it was not found, `why` says why."""

    used: Used
    stale: bool
    now: float | None
    u_now: float | None
    why: str = ""

    @property
    def difference(self) -> float | None:
        return None if self.now is None else self.now - self.used.record.value

    @property
    def allowed(self) -> float | None:
        return None if self.u_now is None else ALLOWED_U * math.hypot(self.u_now, self.used.record.u)

    @property
    def agrees(self) -> bool:
        return self.difference is not None and self.allowed is not None and abs(self.difference) <= self.allowed

    @property
    def verdict(self) -> str:
        """yes, no or stale; unknown where nothing was found now."""
        if self.now is None:
            return "unknown"
        if not self.agrees:
            return "no"
        return "stale" if self.stale else "yes"


def to_check(
    records: list[Used], names: tuple[str, ...] | None, where: Circumstances
) -> tuple[Step, dict[tuple[str, int | None], Used]]:
    """The step to repeat, and the records that it can be held against.

    Raises UsageError for names of several steps, CalibrationError where there is no record of the device."""
    for asked in [(name,) for name in QUICK] if names is None else [names]:
        steps = steps_for(asked)
        if len(steps) > 1:
            raise UsageError(
                f"{', '.join(asked)} are found by {len(steps)} wirings",
                "quantities of one wiring",
                "check one after the other",
            )
        wanted = steps[0].quantities if names is None else asked
        found = {
            (name, channel): used
            for name in wanted
            for channel in channels_of(name, where)
            if name in CHECKABLE and (used := of_kind(records, name, channel, where)) is not None
        }
        if found:
            return steps[0], found
    raise CalibrationError(
        f"no record of {where.device.words()} says what {' or '.join(names or QUICK)} is",
        "a record of this device, at this rate and of these channels",
        "rig calibrate --device NAME makes one; rig calibrate list shows which there are",
    )


def compare(records: dict[tuple[str, int | None], Used], found: Measured, where: Circumstances) -> list[Comparison]:
    """Each record against the figure of the same quantity and channel."""
    blocks = found.reading.grant.block_frames
    figures = {(figure.quantity, figure.channel): figure for figure in found.figures}
    compared = []
    for key, used in records.items():
        figure = figures[key]
        stale = not holds(used, where)
        if used.record.quantity.at_blocks and used.record.condition("block_frames") != blocks:
            why = f"the record is of blocks of {used.record.condition('block_frames')} frames, and these are {blocks}"
            compared.append(Comparison(used, stale, None, None, why))
        elif figure.found is None:
            compared.append(Comparison(used, stale, None, None, figure.why))
        else:
            one = Comparison(used, stale, figure.found.value, figure.found.u)
            compared.append(replace(one, why="" if one.agrees else _whole_blocks(one, blocks)))
    return compared


def _whole_blocks(one: Comparison, block_frames: int | None) -> str:
    """Says so where a round trip is off by whole blocks: then the driver buffers one more, or one less."""
    off = one.difference
    if not one.used.record.quantity.at_blocks or not block_frames or off is None or one.allowed is None:
        return ""
    blocks = round(off / block_frames)
    if blocks == 0 or abs(off - blocks * block_frames) > max(one.allowed, 0.5):
        return ""
    count = f"{abs(blocks)} whole block{'s' if abs(blocks) > 1 else ''}"
    return f"off by {count} of {block_frames} frames: the driver buffers otherwise"


def check_text(compared: list[Comparison], where: Circumstances) -> str:
    """For a person."""
    rows = [["quantity", "record", "now", "difference", "allowed", "unit", "holds"]]
    for one in compared:
        record = one.used.record
        unit = record.quantity.unit
        scale = 1e3 if unit == "s" else 1.0
        if unit == "sign":
            cells = [number(record.value, 0, signed=True), number(one.now, 0, signed=True), "-", "-", "-"]
        else:
            decimals = 2 if one.allowed is None else min(6, max(0, 1 - math.floor(math.log10(scale * one.allowed))))
            values = [record.value, one.now, one.difference]
            cells = [number(None if v is None else scale * v, decimals, signed=True) for v in values]
            cells += [number(None if one.allowed is None else scale * one.allowed, decimals), UNITS[unit]]
        rows.append([named(record.quantity.name, record.channel), *cells, one.verdict])
    lines = [f"{where.device.words()}: do the records hold?", *table(rows)]
    for one in compared:
        if one.why:
            lines += wrapped(f"{named(one.used.record.quantity.name, one.used.record.channel)}: {one.why}", hang="    ")
    return "\n".join(lines) + "\n"


def check_document(compared: list[Comparison], where: Circumstances) -> dict[str, Any]:
    """For a program."""
    return {
        "schema": SCHEMA,
        "bench": where.device.bench,
        "device": where.device.words(),
        "holds": all(one.verdict == "yes" for one in compared),
        "quantities": [
            {
                "quantity": one.used.record.quantity.name,
                "channel": one.used.record.channel,
                "unit": one.used.record.quantity.unit,
                "record": one.used.id,
                "record_value": one.used.record.value,
                "value": one.now,
                "difference": one.difference,
                "allowed": one.allowed,
                "verdict": one.verdict,
                "why": one.why or None,
            }
            for one in compared
        ],
    }
