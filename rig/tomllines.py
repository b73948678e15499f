"""TOML with the line of every key, so that an error can name it. The standard library's parser keeps no lines."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_KEY = re.compile(r"\s*(?:\"([^\"]*)\"|([\w.-]+))\s*=")
_TABLE = re.compile(r"\s*(\[\[?)\s*([\w.-]+)\s*\]\]?\s*(?:#.*)?$")


class NotToml(ValueError):
    """The text cannot be read; the message says why."""


def parse(raw: bytes, most_bytes: int) -> tuple[dict[str, Any], dict[str, int]]:
    """The document, and the line (from 1) of every key: `key`, `table.key`, and `table[0].key` in an array of tables.

    Raises NotToml."""
    if len(raw) > most_bytes:
        raise NotToml(f"is larger than {most_bytes >> 10} KiB")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotToml(f"is not UTF-8 at byte {error.start}") from error
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError, RecursionError) as error:
        raise NotToml(f"is not TOML: {str(error)[:120].lower() or 'nested too deeply'}") from error
    return document, _lines(text)


def _lines(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), start=1):
        opened = _TABLE.match(line)
        if opened:
            name = opened[2]
            if opened[1] == "[[":
                counts[name] = counts.get(name, -1) + 1
                name = f"{name}[{counts[name]}]"
            table = f"{name}."
            found.setdefault(name, number)
            continue
        key = _KEY.match(line)
        if key:
            found.setdefault(table + (key[1] or key[2] or ""), number)
    return found
