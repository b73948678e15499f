"""A file that is only ever appended to, without a buffer: what `write` returned from, a kill cannot take back."""

from __future__ import annotations

import os
from pathlib import Path

from rig.errors import AcquisitionLost


class RawFile:
    """A new file at `path`. Every method raises AcquisitionLost when the disk or the system will not."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        try:
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o644)
        except OSError as error:
            raise cannot_write(path, error) from error

    def write(self, data: bytes) -> None:
        """Writes all of `data` at the file's position."""
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._open(), view) :]
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def write_at_start(self, data: bytes) -> None:
        """Replaces the first bytes of the file; the position is behind them afterwards."""
        try:
            os.lseek(self._open(), 0, os.SEEK_SET)
        except OSError as error:
            raise cannot_write(self.path, error) from error
        self.write(data)

    def sync(self) -> None:
        """Waits until the disk has it all."""
        try:
            os.fsync(self._open())
        except OSError as error:
            raise cannot_write(self.path, error) from error

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)

    def _open(self) -> int:
        if self._descriptor is None:
            raise ValueError(f"{self.path.name} was closed")
        return self._descriptor

    def __del__(self) -> None:
        self.close()


def replace_text(path: Path, text: str) -> None:
    """Writes a file so that a kill leaves the old one or the new one, never half of one."""
    beside = path.with_name(path.name + ".part")
    try:
        with open(beside, "wb") as handle:
            # A name that is not UTF-8 keeps its odd bytes as JSON escapes.
            handle.write(text.encode("utf-8", "backslashreplace"))
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(beside, path)
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> AcquisitionLost:
    """The error for a file of the recording that cannot be written."""
    return AcquisitionLost(
        f"{path.name} cannot be written: {error.strerror or error}",
        "room and permission to store the recording",
        "free some space, or choose another folder with --out",
    )
