"""TOML with the line of every key, so that an error can name it; and TOML text from plain values."""

from __future__ import annotations

import datetime
import json
import math
import re
import tomllib
from collections.abc import Mapping
from typing import Any

from rig.errors import CalibrationError

MAX_BYTES = 64 << 10
"""A record is about a kilobyte; what is larger is something else."""

_KEY = re.compile(r"\s*(?:\"([^\"]*)\"|([\w-]+))\s*=")
_TABLE = re.compile(r"\s*\[\s*([\w.-]+)\s*\]\s*(?:#.*)?$")

Value = str | int | float | bool | datetime.date | list[Any]


def parse(raw: bytes, name: str) -> tuple[dict[str, Any], dict[str, int]]:
    """The document, and the line (from 1) of every key as `key` or `table.key`. Raises CalibrationError."""
    if len(raw) > MAX_BYTES:
        raise _malformed(name, f"is larger than {MAX_BYTES >> 10} KiB")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _malformed(name, f"is not UTF-8 at byte {error.start}") from error
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise _malformed(name, f"is not TOML: {str(error)[:120].lower() or 'nested too deeply'}") from error
    return document, _lines(text)


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


def _lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        opened = _TABLE.match(line)
        if opened:
            table = f"{opened[1]}."
            found.setdefault(opened[1], number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault(table + (key[1] or key[2] or ""), number)
    return found


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
