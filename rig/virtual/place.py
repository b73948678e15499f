"""Where a virtual bench lives: one private folder for each kind, with a note of what was started."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rig.errors import BenchNotReady, UsageError
from rig.virtual.process import Process

FOLDER_VARIABLE = "RIG_VIRTUAL_DIR"
"""Names another folder than the default one, so that several benches can stand side by side."""

_LONGEST_FOLDER_BYTES = 80
"""A Unix socket's path holds 107 bytes, and the names of ours take up to 20 of them."""


@dataclass(frozen=True, slots=True)
class State:
    """What `up` started, so that `down` and `status` find it again."""

    kind: str
    processes: tuple[Process, ...]

    def alive(self) -> bool:
        """Are all of them still the processes that were started? A number that was given anew is not."""
        return all(process.alive() for process in self.processes)


@dataclass(frozen=True, slots=True)
class Place:
    """The folder of one bench; `kind` is its last part."""

    folder: Path

    @property
    def state_file(self) -> Path:
        return self.folder / "state.json"

    @property
    def board(self) -> Path:
        """Where the port of the bench's board appears."""
        return self.folder / "board"

    @property
    def board_told(self) -> Path:
        """What the board told of itself, once it was heard."""
        return self.folder / "board.told"

    def make_empty(self) -> None:
        """Makes the folder, empty, for this user alone. What an earlier bench left in it goes."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def read(self) -> State | None:
        """What is said to run; None where nothing is. A file that cannot be read says nothing."""
        try:
            found = json.loads(self.state_file.read_text(encoding="utf-8"))
            processes = tuple(Process(**each) for each in found["processes"])
            return State(str(found["kind"]), processes)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def write(self, state: State) -> None:
        facts: dict[str, Any] = {"kind": state.kind, "processes": [asdict(each) for each in state.processes]}
        partial = self.state_file.with_suffix(".partial")
        partial.write_text(json.dumps(facts), encoding="utf-8")
        partial.replace(self.state_file)


def base_folder(environ: dict[str, str]) -> Path:
    """RIG_VIRTUAL_DIR, else rig-virtual in the user's runtime folder, else in the temporary one.

    Made where it is missing. Raises UsageError where the path is too long for a socket, and BenchNotReady where the
    folder cannot be made or belongs to somebody else.
    """
    named = environ.get(FOLDER_VARIABLE)
    runtime = environ.get("XDG_RUNTIME_DIR")
    if named:
        folder = Path(named).absolute()
    elif runtime and os.access(runtime, os.W_OK):
        folder = Path(runtime).absolute() / "rig-virtual"
    else:
        folder = Path(tempfile.gettempdir()) / f"rig-virtual-{os.getuid()}"
    if len(os.fsencode(folder)) > _LONGEST_FOLDER_BYTES:
        raise UsageError(
            f"the folder of the virtual bench has a path of {len(os.fsencode(folder))} bytes: {folder}",
            f"{_LONGEST_FOLDER_BYTES} bytes at most: sockets live in it",
            f"set {FOLDER_VARIABLE} to a shorter one",
        )
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        facts = folder.lstat()
    except OSError as error:
        raise BenchNotReady(
            f"the folder of the virtual bench cannot be made: {folder}: {error.strerror or error}",
            "a folder that this user may write",
            f"set {FOLDER_VARIABLE} to one",
        ) from error
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
        raise BenchNotReady(
            f"the folder of the virtual bench can be written by others: {folder}",
            "a folder of this user's, which nobody else may write",
            f"remove it, or set {FOLDER_VARIABLE} to another",
        )
    return folder


@contextmanager
def locked(base: Path, kind: str) -> Iterator[Place]:
    """The place of one kind, held so that two commands do not start or stop it at once."""
    with open(base / f"{kind}.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Place(base / kind)
