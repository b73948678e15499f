"""An echo server of one's own: a child in a process group of its own that ends when this process does."""

from __future__ import annotations

import contextlib
import select
import subprocess
from types import TracebackType

from rig.errors import BenchNotReady

ANSWERS_WITHIN_S = 30.0
ENDS_WITHIN_S = 2.0
_MOST_BYTES = 500


class OwnServer:
    """Runs `command`, which prints the server's address first and ends when its standard input ends.

    A context manager, which gives the address. Raises BenchNotReady where no address comes.
    """

    def __init__(self, command: list[str]) -> None:
        self._command = command

    def __enter__(self) -> str:
        # In its own session: whoever ends this process with all its children must not end the server first.
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        address = self._first_line()
        if not address.startswith("ws://"):
            self._end()
            raise BenchNotReady(
                f"the echo server does not start: it ended or said {address[:200]!r}",
                f"its address within {ANSWERS_WITHIN_S:g} s",
                "run rig sut echo-server by hand, and name its address with --server",
            )
        return address

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _first_line(self) -> str:
        assert self._process.stdout is not None
        said = b""
        while not said.endswith(b"\n") and len(said) < _MOST_BYTES:
            if not select.select([self._process.stdout], [], [], ANSWERS_WITHIN_S)[0]:
                break
            byte = self._process.stdout.read1(1)  # type: ignore[attr-defined]
            if not byte:
                break
            said += byte
        return said.decode("utf-8", "replace").strip()

    def _end(self) -> None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.communicate(timeout=ENDS_WITHIN_S)  # which closes its standard input
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
