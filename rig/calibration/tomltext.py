"""A record's TOML: read with the line of every key, and written from plain values."""

from __future__ import annotations

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

from rig import tomllines
from rig.errors import CalibrationError

MAX_BYTES = 64 << 10
"""A record is about a kilobyte; what is larger is something else."""

Value = str | int | float | bool | datetime.date | list[Any]


def parse(raw: bytes, name: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The document, and the line (from 1) of every key as `key` or `table.key`. Raises CalibrationError."""
    try:
        return tomllines.parse(raw, MAX_BYTES)
    except tomllines.NotToml as error:
        raise _malformed(name, str(error)) from error


def render(document: Mapping[str, Any], comment: str) -> str:
    """TOML of a document: plain values first, then its tables, one level deep. A value of None leaves its key out."""
    lines = [f"# {comment}"]
    tables = {key: value for key, value in document.items() if isinstance(value, Mapping)}
    for key, value in document.items():
        if key not in tables and value is not None:
            lines.append(f"{key} = {_value(value)}")
    for key, table in tables.items():
        lines += ["", f"[{key}]"]
        lines += [f"{inner} = {_value(value)}" for inner, value in table.items() if value is not None]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError("a record holds finite numbers")
        text = repr(float(value))
        return text if any(c in text for c in ".e") else f"{text}.0"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    # A JSON string is a TOML basic string, but for the DEL character.
    return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")


def _malformed(name: str, what: str) -> CalibrationError:
    return CalibrationError(
        f"{name} {what}",
        "a record in the format of calibration/README.md",
        "mend the new file, or remove it: calibration/README.md has the format",
    )
