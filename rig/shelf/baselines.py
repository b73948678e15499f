"""Which sessions of a folder are baselines: `baselines.json` beside the sessions, one for each kind of measurement."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path

from rig import strictjson
from rig.errors import BadInput, UsageError
from rig.shelf.rows import Row

FILE = "baselines.json"
SCHEMA = "rig.baselines/1"


def read_baselines(folder: Path) -> dict[str, tuple[str | None, ...]]:
    """Kind of measurement (`Row.kind`) by the identity of its baseline. Empty where none was marked; BadInput where the
    file cannot be used."""
    if not (folder / FILE).is_file():
        return {}
    raw = strictjson.read_object(folder / FILE)
    listed = raw.get("baselines")
    try:
        if raw.get("schema") != SCHEMA or not isinstance(listed, list):
            raise TypeError
        return {str(item["session"]): tuple(item[name] for name in _KIND) for item in listed}
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{folder / FILE} does not hold baselines", f"what rig sessions wrote, schema {SCHEMA}", "delete the file"
        ) from error


def mark(folder: Path, row: Row) -> None:
    """Makes a session the baseline of its kind; the one before is one no longer. Raises UsageError where it has no
    figure, or where the file cannot be written."""
    if row.median_s is None or row.session is None:
        raise UsageError(
            f"{row.folder.name} has no figure to compare with ({row.problem or row.outcome})",
            "a session with a valid median",
            "mark another one; rig sessions shows which have a figure",
        )
    others = {session: kind for session, kind in read_baselines(folder).items() if kind != row.kind}
    _write(folder, {**others, row.session: row.kind})


def unmark(folder: Path, row: Row) -> None:
    """The session is no baseline any more. Raises UsageError where it was none."""
    marked = read_baselines(folder)
    if row.session not in marked:
        raise UsageError(
            f"{row.folder.name} is no baseline", "a session that was marked", "rig sessions shows a * before baselines"
        )
    _write(folder, {session: kind for session, kind in marked.items() if session != row.session})


def baseline_for(row: Row, rows: Iterable[Row], marked: Iterable[str]) -> Row | None:
    """The baseline of the row's kind among the rows; None where there is none, or it is the row itself."""
    identities = set(marked)
    if row.session in identities:
        return None
    return next((r for r in rows if r.session in identities and r.kind == row.kind and r.median_s is not None), None)


_KIND = ("bench", "mode", "device", "stimulus")


def _write(folder: Path, marked: dict[str, tuple[str | None, ...]]) -> None:
    listed = [{"session": session, **dict(zip(_KIND, kind, strict=True))} for session, kind in marked.items()]
    text = json.dumps({"schema": SCHEMA, "baselines": listed}, indent=1, ensure_ascii=False) + "\n"
    beside = folder / f"{FILE}.part"
    try:
        beside.write_bytes(text.encode("utf-8", "backslashreplace"))
        os.replace(beside, folder / FILE)
    except OSError as error:
        raise UsageError(
            f"{folder / FILE} cannot be written: {error.strerror or error}",
            "a folder of sessions that this user may write",
            "check its permissions",
        ) from error
