"""A file of another tool as JSON: packed or plain, bounded before it is read, and never more than data."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.errors import BadInput

MAX_BYTES = 256 << 20
"""Of the file on disk, and of what it unpacks to. The largest dumps that a browser keeps are a tenth of it."""

_PIECE = 1 << 20
_GZIP = b"\x1f\x8b"
_DUMP = "in chrome://webrtc-internals choose Create a WebRTC-Internals dump"


def read_bytes(path: Path) -> bytes:
    """The content, unpacked where it is gzip. Raises BadInput for a file that cannot be read or is too large."""
    try:
        with open(path, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}", "a file", "check the path and its permissions"
        ) from error
    if len(raw) > MAX_BYTES:
        raise _too_large(path)
    return b"".join(_unpacked(raw, path)) if raw.startswith(_GZIP) else raw


def documents(path: Path) -> list[Any]:
    """The JSON values of a file: one, or one a line. Raises BadInput with the file and the place for anything else."""
    raw = read_bytes(path)
    if not raw.strip():
        raise BadInput(f"{path.name} is empty", "a dump of webrtc-internals, or OTLP JSON", "check the path")
    if raw.startswith(b"RTCStatsDump"):
        raise BadInput(
            f"{path.name} is an rtcstats dump, whose snapshots are differences of a browser's own making",
            "a dump of webrtc-internals, or OTLP JSON",
            f'{_DUMP}, Download the "webrtc-internals dump"',
        )
    try:
        return [strictjson.parse(raw)]
    except strictjson.NotJson as error:
        whole = error
    lines = [line for line in raw.split(b"\n") if line.strip()]
    if len(lines) < 2:
        raise _not_json(path, str(whole)) from whole
    found = []
    for number, line in enumerate(raw.split(b"\n"), start=1):
        if line.strip():
            try:
                found.append(strictjson.parse(line))
            except strictjson.NotJson as error:
                # The first line stands by itself only where the file has one value a line.
                raise _not_json(path, f"line {number}: {error}" if found else str(whole)) from error
    return found


def wrong(name: str, place: str, value: Any, expected: str) -> BadInput:
    """The error for a value that is not what the format has at this place."""
    kinds = {dict: "an object", list: "a list", str: "text", bool: "a truth value", type(None): "null"}
    return BadInput(
        f"{name}: {place} is {kinds.get(type(value), 'a number')}",
        expected,
        "take the file as the other tool wrote it",
    )


def _unpacked(raw: bytes, path: Path) -> Iterator[bytes]:
    machine, size = zlib.decompressobj(16 + zlib.MAX_WBITS), 0
    try:
        while raw:
            piece = machine.decompress(raw, _PIECE)
            size += len(piece)
            if size > MAX_BYTES:
                raise _too_large(path)
            yield piece
            raw = machine.unconsumed_tail
        yield machine.flush()
    except zlib.error as error:
        raise BadInput(
            f"{path.name} begins as gzip and cannot be unpacked", "a whole gzip file", "save the dump again"
        ) from error
    if not machine.eof:
        raise BadInput(f"{path.name} ends before its gzip does", "a whole gzip file", "save the dump again")


def _too_large(path: Path) -> BadInput:
    return BadInput(
        f"{path.name} holds more than {MAX_BYTES >> 20} MiB",
        "a dump of one call, or the spans of one measurement",
        "cut it to the measurement where it is made",
    )


def _not_json(path: Path, why: str) -> BadInput:
    return BadInput(
        f"{path.name} is no JSON: {why}",
        "a dump of webrtc-internals, or OTLP JSON",
        "save it again, or cut nothing off",
    )
