"""JSON from files that anybody may have written: bounded, strict, and never a surprise exception.

Refused: NaN and infinities (also as 1e999), integers beyond 64 bits, nesting beyond what a rig file needs, bad UTF-8,
keys given twice. Written JSON obeys the same rules, so what rig writes, rig reads.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from rig.errors import BadInput

MAX_DOCUMENT_BYTES = 16 << 20
MAX_LINE_BYTES = 1 << 20
_LARGEST_INT = 2**63 - 1


class NotJson(ValueError):
    """The text breaks one of the rules; the message says which."""


def parse(raw: bytes) -> Any:
    """One JSON value from bytes. Raises NotJson, and nothing else, for anything that is not strict JSON."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise NotJson(f"not UTF-8 at byte {error.start}") from error
    try:
        value = json.loads(
            text, parse_constant=_no_constant, parse_float=_finite, parse_int=_bounded, object_pairs_hook=_once
        )
    except json.JSONDecodeError as error:
        raise NotJson(f"{error.msg.lower()} at line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise NotJson("nested too deeply") from error
    return value


def dump(value: Any, *, indent: int | None = None) -> str:
    """JSON text of `value`. Floats that are not finite become null: a missing number is never a false one."""
    separators = (",", ":") if indent is None else (",", ": ")
    return json.dumps(_plain(value), indent=indent, allow_nan=False, ensure_ascii=False, separators=separators)


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in a file of at most 16 MiB. Raises BadInput naming the file and the place."""
    try:
        with open(path, "rb") as handle:
            raw = handle.read(MAX_DOCUMENT_BYTES + 1)
    except FileNotFoundError as error:
        raise BadInput(f"{path.name} does not exist", "a JSON file", "check the path") from error
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}", "a readable file", "check its permissions"
        ) from error
    if len(raw) > MAX_DOCUMENT_BYTES:
        raise BadInput(f"{path.name} is larger than 16 MiB", "a JSON file that rig wrote", "restore the original file")
    try:
        value = parse(raw)
    except NotJson as error:
        raise BadInput(
            f"{path.name} is not valid JSON: {error}", "a JSON file that rig wrote", "restore the original file"
        ) from error
    if not isinstance(value, dict):
        raise BadInput(f"{path.name} holds no JSON object", "an object in braces", "restore the original file")
    return value


@dataclass(frozen=True, slots=True)
class JsonLine:
    """One line of a JSON-lines file. `value` is None where the line is no object, and `problem` says why."""

    number: int  # one-based
    value: dict[str, Any] | None
    problem: str | None
    cut: bool  # the last line, without its newline: the writer was stopped in the middle of it


def read_lines(path: Path) -> Iterator[JsonLine]:
    """The lines of a JSON-lines file, one at a time, whatever their length. Blank lines are skipped.

    Raises BadInput when the file cannot be read; a bad line is a `JsonLine` with a problem, not an error.
    """
    try:
        with open(path, "rb") as handle:
            number = 0
            while raw := handle.readline(MAX_LINE_BYTES + 1):
                number += 1
                ended = raw.endswith(b"\n")
                if not ended and len(raw) > MAX_LINE_BYTES:
                    while (more := handle.readline(MAX_LINE_BYTES)) and not more.endswith(b"\n"):
                        pass
                    yield JsonLine(number, None, "longer than 1 MiB", cut=not more)
                    continue
                if not raw.strip():
                    continue
                try:
                    value = parse(raw)
                except NotJson as error:
                    yield JsonLine(number, None, str(error), cut=not ended)
                    continue
                if isinstance(value, dict):
                    yield JsonLine(number, value, None, cut=False)
                else:
                    yield JsonLine(number, None, "not an object", cut=not ended)
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}", "a readable file", "check its permissions"
        ) from error


def _no_constant(token: str) -> NoReturn:
    raise NotJson(f"{token} is not a number")


def _finite(token: str) -> float:
    value = float(token)
    if not math.isfinite(value):
        raise NotJson(f"{token[:20]} is too large for a number")
    return value


def _bounded(token: str) -> int:
    if len(token) > 20 or abs(int(token)) > _LARGEST_INT:
        raise NotJson(f"{token[:20]} is too large for an integer")
    return int(token)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise NotJson(f"the key {twice[:40]!r} stands there twice")
    return made


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex()
    return value
