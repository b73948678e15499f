"""A calibration record in words: for a line of a table, for a person, for a document."""

from __future__ import annotations

import math
import textwrap
from typing import Any

from rig.domain.calibration import Used
from rig.report.digits import number

WIDTH = 80
COVER = 1.96
MOST_DECIMALS = 6

UNITS = {"frames": "frames", "s": "ms", "ppm": "ppm", "dbfs": "dBFS", "db": "dB", "sign": ""}


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


def named(quantity: str, channel: int | None) -> str:
    """A quantity as tables call it: with its channel where it is of one."""
    return quantity if channel is None else f"{quantity} ch{channel}"


def amount(used: Used) -> str:
    """Value and expanded uncertainty with the unit."""
    value, half, unit = figures(used)
    if used.record.quantity.unit == "sign":
        return value
    return f"{value} +/- {half} {unit} (95 %)"


def figures(used: Used) -> tuple[str, str, str]:
    """Value, half-width of the 95 % interval and unit, with the digits that the uncertainty supports."""
    record, unit = used.record, used.record.quantity.unit
    if unit == "sign":
        return f"{record.value:+.0f}", "-", "-"
    scale = 1e3 if unit == "s" else 1.0
    half = COVER * record.u * scale
    decimals = min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(half))))
    return number(record.value * scale, decimals, signed=True), number(half, decimals), UNITS[unit]


def plain(used: Used) -> dict[str, Any]:
    """The record's facts for a document."""
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
