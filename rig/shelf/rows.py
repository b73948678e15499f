"""One row for each session of a folder: what its manifest says, and what its analysis found."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.errors import BadInput

MANIFEST = "manifest.json"
SCHEMA_BEGINS = "rig.session/"

NOT_FINISHED = "not finished"
UNREADABLE = "unreadable"


@dataclass(frozen=True, slots=True)
class Row:
    """A session in a list. `median_s` is None exactly where there is no figure, and `outcome` says why.

    `at` orders the rows: when the measurement began, or, where it has no date, when its manifest was written.
    """

    folder: Path
    at: datetime
    dated: bool  # `at` is the measurement's own date
    session: str | None
    outcome: str  # measured | over_limit | refused | not finished | unreadable
    problem: str | None  # what is wrong with an unreadable one
    cut_short: str | None
    bench: str | None
    mode: str | None
    device: str | None
    build: str | None
    stimulus: str | None
    median_s: float | None
    low_s: float | None
    high_s: float | None
    n: int | None  # accepted trials behind the figure
    n_trials: int | None  # of all runs, refused ones too
    texts: tuple[str, ...]  # every word that a search looks at

    @property
    def kind(self) -> tuple[str | None, str | None, str | None, str | None]:
        """Only rows of one kind may be set against each other."""
        return self.bench, self.mode, self.device, self.stimulus

    @property
    def u95_s(self) -> float | None:
        """Half length of the 95 % interval of the median."""
        return None if self.low_s is None or self.high_s is None else (self.high_s - self.low_s) / 2.0


@dataclass(frozen=True, slots=True)
class Found:
    """A folder that says it is a session. `manifest` None: it cannot be read, and `problem` says why."""

    folder: Path
    written: datetime
    manifest: dict[str, Any] | None
    problem: str | None

    @property
    def finished(self) -> bool:
        """It was ended in order, however short; one that still records, or was killed, was not."""
        return self.manifest is not None and self.manifest.get("status") != "recording"


def find_sessions(folder: Path) -> Iterator[Found]:
    """The sessions directly in `folder`, or `folder` itself where it is one. Raises BadInput where it is no folder."""
    try:
        children = [folder] if (folder / MANIFEST).is_file() else sorted(p for p in folder.iterdir() if p.is_dir())
    except OSError as error:
        raise BadInput(
            f"the folder {folder} cannot be read: {error.strerror or error}",
            "a folder of sessions",
            "name the folder; rig measure keeps its sessions in ./sessions, or where --out says",
        ) from error
    for child in children:
        try:
            written = datetime.fromtimestamp((child / MANIFEST).stat().st_mtime, UTC)
        except (OSError, ValueError, OverflowError):
            continue
        try:
            manifest = strictjson.read_object(child / MANIFEST)
        except BadInput as error:
            yield Found(child, written, None, error.what)
            continue
        if str(manifest.get("schema")).startswith(SCHEMA_BEGINS):
            yield Found(child, written, manifest, None)


def row_of(found: Found, document: dict[str, Any] | None, problem: str | None = None) -> Row:
    """The row of a session, from its manifest and the document of its analysis (trials not needed).

    `document` None: it was not analysed, since it is not finished or for the `problem` told."""
    manifest = found.manifest or {}
    at = _date(manifest.get("started"))
    problem = problem or found.problem
    facts = document or {}
    latency = facts.get("latency_s") or {}
    runs = facts.get("runs") or []
    stimulus = next((run["stimulus"] for run in runs if run["stimulus"]), None)
    outcome = UNREADABLE if problem else facts.get("outcome") or NOT_FINISHED
    texts = [found.folder.name, outcome.replace("_", " "), problem, *(facts.get("caveats") or [])]
    manifest_texts = _texts({key: value for key, value in manifest.items() if key not in ("runs", "files", "schema")})
    return Row(
        folder=found.folder,
        at=at or found.written,
        dated=at is not None,
        session=_text(manifest.get("id")),
        outcome=outcome,
        problem=problem,
        cut_short=_text(facts.get("cut_short")),
        bench=_text(manifest.get("bench")),
        mode=_text(manifest.get("mode")),
        device=_text(facts.get("device")) or _text(manifest.get("device")),
        build=_text(manifest.get("build")),
        stimulus=stimulus,
        median_s=latency.get("median"),
        low_s=latency.get("low"),
        high_s=latency.get("high"),
        n=latency.get("n"),
        n_trials=sum(run["n_trials"] for run in runs) if document is not None else None,
        texts=tuple(text for text in (*texts, *manifest_texts) if text),
    )


@dataclass(frozen=True, slots=True)
class Filters:
    """Which rows are wanted; None or empty: all. Letters' case does not matter."""

    device: str | None = None  # part of the device's name
    build: str | None = None  # the whole of it
    since: datetime | None = None
    words: tuple[str, ...] = ()  # each somewhere in the row's texts

    def wants(self, row: Row) -> bool:
        """Does the row pass?"""
        folded = [text.casefold() for text in row.texts]
        return (
            (self.device is None or self.device.casefold() in (row.device or "").casefold())
            and (self.build is None or self.build == row.build)
            and (self.since is None or row.at >= self.since)
            and all(any(word.casefold() in text for text in folded) for word in self.words)
        )


def difference_s(row: Row, baseline: Row) -> tuple[float, float] | None:
    """(change, u95) of the row's median against the baseline's in s, positive: slower; None where they are not alike
    or one has no figure. The intervals are combined as independent ones."""
    if row.kind != baseline.kind or row.median_s is None or baseline.median_s is None:
        return None
    return row.median_s - baseline.median_s, math.hypot(row.u95_s or 0.0, baseline.u95_s or 0.0)


def _date(value: Any) -> datetime | None:
    """An ISO 8601 time, of UTC where it names no zone."""
    if not isinstance(value, str):
        return None
    try:
        at = datetime.fromisoformat(value)
        return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
