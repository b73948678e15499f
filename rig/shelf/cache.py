"""Results of analyses, kept so that a list of sessions need not analyse them again.

A result is found again only while nothing that it was made from has changed: the session's manifest (with the hashes of
all that was recorded), name, size and time of every file of the session, and the code of rig. The cache lies outside
the sessions and can be deleted at any time. It never fails a command: what cannot be read is absent, what cannot be
written is not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_BYTES = 256 << 20
"""Above this the results unused for longest go, down to three quarters of it. A result is about 1 kB a trial."""

_MANIFEST = "manifest.json"


class ResultCache:
    """Documents of measurements by the session's state, in `folder`. `code` stands for the code that makes them."""

    def __init__(self, folder: Path, code: str) -> None:
        self._folder = folder
        self._code = code

    def key(self, session: Path) -> str | None:
        """What the result of the session folder as it is now is kept under; None where the folder cannot be read."""
        state = hashlib.sha256(self._code.encode())
        try:
            state.update((session / _MANIFEST).read_bytes())
            for name, size, changed_ns in sorted(_files(session)):
                state.update(f"\0{name}\0{size}\0{changed_ns}".encode("utf-8", "backslashreplace"))
        except OSError:
            return None
        return state.hexdigest()

    def store(self, key: str, document: dict[str, Any]) -> None:
        """Keeps a document: a line without its trials, for lists, and a line with them."""
        path, part = self._path(key), self._folder / f"{key}.{os.getpid()}.part"
        lines = [json.dumps(d, allow_nan=False, separators=(",", ":")) for d in (without_trials(document), document)]
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            part.write_text("\n".join([*lines, ""]), encoding="utf-8")
            os.replace(part, path)
            self._tidy()

    def summary(self, key: str) -> dict[str, Any] | None:
        """The document without its trials; None where none is kept."""
        return self._read(key, 0)

    def document(self, key: str) -> dict[str, Any] | None:
        """The whole document; None where none is kept."""
        return self._read(key, 1)

    def _read(self, key: str, line: int) -> dict[str, Any] | None:
        path = self._path(key)
        try:
            with open(path, encoding="utf-8") as handle:
                lines = [handle.readline() for _ in range(line + 1)]
            found = json.loads(lines[line])
            os.utime(path)
        except (OSError, ValueError, RecursionError):
            return None
        return found if isinstance(found, dict) else None

    def _path(self, key: str) -> Path:
        return self._folder / f"{key}.jsonl"

    def _tidy(self) -> None:
        files = [(entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in os.scandir(self._folder)]
        total = sum(size for _, size, _ in files)
        if total <= MOST_BYTES:
            return
        for _, size, path in sorted(files):
            os.unlink(path)
            total -= size
            if total <= MOST_BYTES * 3 // 4:
                return


def without_trials(document: dict[str, Any]) -> dict[str, Any]:
    """The document with its runs' trials left out: small, however long the measurement."""
    runs = [{name: value for name, value in run.items() if name != "trials"} for run in document["runs"]]
    return {**document, "runs": runs}


def _files(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file():
                facts = entry.stat()
                yield entry.name, facts.st_size, facts.st_mtime_ns
