"""What C libraries write to standard error: kept from the screen, and there to be quoted where it explains an error.

ALSA and PortAudio print lines of their own whenever a device is listed or opened, most of them about devices that
nobody asked for. They write to the file descriptor, so that is what is moved.
"""

from __future__ import annotations

import os
import tempfile
from typing import IO

_STDERR = 2
_QUOTED_LINES = 3


class Chatter:
    """While entered, descriptor 2 leads into a temporary file; `screen` leads to where it led before."""

    def __init__(self) -> None:
        self._file: IO[bytes] | None = None
        self._before = -1

    def __enter__(self) -> Chatter:
        self._before = os.dup(_STDERR)
        self._file = tempfile.TemporaryFile(buffering=0)
        os.dup2(self._file.fileno(), _STDERR)
        return self

    def __exit__(self, *_: object) -> None:
        os.dup2(self._before, _STDERR)
        os.close(self._before)
        self._before = -1
        if self._file is not None:
            self._file.close()
            self._file = None

    def screen(self) -> IO[str]:
        """A text stream to the real standard error. Close it before leaving."""
        return os.fdopen(os.dup(self._before), "w", encoding="utf-8", errors="replace", buffering=1)

    def mark(self) -> int:
        """Where the writing stands now."""
        return 0 if self._file is None else os.fstat(self._file.fileno()).st_size

    def since(self, mark: int) -> str:
        """The last lines written after `mark`, on one line; empty when there were none."""
        if self._file is None:
            return ""
        said = os.pread(self._file.fileno(), max(0, self.mark() - mark), mark).decode("utf-8", "replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        return "; ".join(lines[-_QUOTED_LINES:])
