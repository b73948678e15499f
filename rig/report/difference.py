"""Two measurements beside each other: how far their medians lie apart, and which circumstances differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]
Named = tuple[str, Json]

SETTINGS = (
    "mode",
    "bench",
    "device",
    "build",
    "scenario",
    "asked",
    "granted",
    "claimed_s",
    "plan",
    "channels",
    "window_s",
)

TOLD_IN = {"config": "config", "frame_ms": "reconciliation"}
TOLD_BY_MARKS = tuple(TOLD_IN.values())
"""Which part of a document is empty where no marks told it."""


def difference_s(before: Json, after: Json) -> tuple[float, float, float]:
    """(difference of the medians, low, high), s, of two `latency_s` objects; positive: `after` is later.

    The interval is put together from both intervals as for independent estimates (Zou and Donner, Statistics in
    Medicine 27, 2008, 1693-1702). What the two measurements share, such as an uncalibrated path, is in both intervals
    and cancels in the difference: it errs to the wide side.
    """
    d = after["median"] - before["median"]
    low = d - math.hypot(after["median"] - after["low"], before["high"] - before["median"])
    high = d + math.hypot(after["high"] - after["median"], before["median"] - before["low"])
    return d, low, high


def settings_apart(named: Sequence[Named]) -> list[tuple[str, list[Any]]]:
    """(name, value in each) of every recorded circumstance in which the documents differ.

    What only marks tell (frames, the system's own settings) differs only where all were measured with marks."""
    flat = [_flat(d) for _, d in named]
    keys = dict.fromkeys(key for one in flat for key in one)
    untold = [part for part in TOLD_BY_MARKS if any(not d[part] for _, d in named)]
    keys = {key: None for key in keys if TOLD_IN.get(key.partition(":")[0]) not in untold}
    rows = [(key, [one.get(key) for one in flat]) for key in keys]
    return [(key, values) for key, values in rows if any(value != values[0] for value in values)]


def _flat(d: Json) -> Json:
    found: Json = {"rig version": d["rig_version"]}
    parts: Json = {name: d[name] for name in SETTINGS}
    parts["band_hz"] = next((r["band_hz"] for r in d["runs"] if r["band_hz"] is not None), None)
    parts["blank run made"] = d["blank"]["made"]
    parts["corrections"] = {c["name"]: c["calibration"] for c in d["corrections"]}
    parts["environment"] = d["environment"]
    parts |= {"system": d["system"], "config": d["config"]}
    frame_s = None if d["reconciliation"] is None else d["reconciliation"]["frame_s"]
    parts["frame_ms"] = None if frame_s is None else f"{frame_s * 1e3:g}"
    for name, value in parts.items():
        if isinstance(value, dict):
            # The device is named once, and the spacing is drawn anew for each session.
            found |= {f"{name}: {key}": item for key, item in value.items() if key not in ("spacing_s", "device")}
        else:
            found[name] = value
    return found
