"""A file that the system under test appends its marks to, taken into the session run by run, as bytes."""

from __future__ import annotations

from pathlib import Path

from rig.errors import UsageError

MOST_BYTES = 128 << 20
"""Of one run; more is no file of marks. What is beyond it is left where it is."""

_LOOKED_AT = 4096
_HEADERS = (b'{"marks"', b'"marks":', b"marks=")


class MarksFile:
    """`MarksSource` of a file. What it held before the measurement is not of this measurement and stays out, but for
    its last header: a system that runs by itself may have written that long ago.

    The file may appear later, grow, or be written anew for each run. Raises UsageError for a path that is a folder.
    """

    address = None

    def __init__(self, path: Path) -> None:
        if path.is_dir():
            raise UsageError(f"--marks {path} is a folder", "the file that the system writes its marks to", "name it")
        self.path = path
        self._taken = 0  # bytes of the file that were looked at
        self._begins = b""  # its first bytes: another beginning is another file
        self._header = b""
        if path.exists():
            self._header, self._taken = self._last_header()

    def collect(self, whole: bool) -> bytes:
        """What was written since the last call, in whole lines; `whole`: its writer has stopped, take the rest too.

        Raises OSError where the file cannot be read. A file that is not there has said nothing.
        """
        try:
            size = self.path.stat().st_size
        except FileNotFoundError:
            return b""
        with open(self.path, "rb") as handle:
            if size < self._taken or handle.read(len(self._begins)) != self._begins:  # it was written anew
                self._taken, self._header = 0, b""
            handle.seek(self._taken)
            data = handle.read(min(size - self._taken, MOST_BYTES))
            if not whole or len(data) == MOST_BYTES:
                data = data[: data.rfind(b"\n") + 1]
            handle.seek(0)
            self._begins = handle.read(min(self._taken + len(data), _LOOKED_AT))
        self._taken += len(data)
        if data and self._header:
            if not any(mark in data.lstrip().split(b"\n", 1)[0] for mark in _HEADERS):
                data = self._header + data
            self._header = b""
        return data

    def close(self) -> None:
        """Nothing is held open."""

    def _last_header(self) -> tuple[bytes, int]:
        """The last line that is a header, and how long the file is."""
        found, length = b"", 0
        with open(self.path, "rb") as handle:
            while line := handle.readline(1 << 16):
                length += len(line)
                if any(mark in line for mark in _HEADERS):
                    found = line
                if length > 2 * MOST_BYTES:
                    break
            handle.seek(0)
            self._begins = handle.read(_LOOKED_AT)
            return found, handle.seek(0, 2)
