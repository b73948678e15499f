"""Starting and stopping the system under test: a command of the user's, or a system that runs by itself."""

from __future__ import annotations

import contextlib
import math
import os
import shlex
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import IO

from rig.errors import BenchNotReady, UsageError

RUN_VARIABLE = "RIG_RUN"
"""Set in the command's environment: the number of the run it is started for, from 1."""

_TAIL_BYTES = 2000  # of the command's output that an error quotes

READY_WITHIN_S = 60.0
"""How long a command may take to say that it is ready. A browser on a busy machine needs ten seconds."""

_LOOK_EVERY_S = 0.05
_LOOK_BYTES = 1 << 20  # of output before it is ready, in which the line is looked for


class SelfRunningSystem:
    """A system that rig neither starts nor stops: it is there before the first run, and cannot be muted."""

    can_stop = False
    ended_early: str | None = None

    def start(self, run: int) -> None:
        """Nothing to do."""

    def stop(self) -> None:
        """Nothing to do."""


class CommandSystem:
    """A command started afresh for each run, in a process group of its own, and stopped with all its children.

    `ready_s` is how long it is given to come up before the stimuli may start; it must live through it. With `says`, a
    line of its output that begins so ends the wait, which may then take up to `within_s`. Stopping sends
    SIGTERM to the group and SIGKILL after `stop_s`. Its output goes to `log` where given, else to a temporary file that
    is only quoted in errors. `ended_early` says in words when it ended by itself during a run; None when it did not.
    """

    can_stop = True

    def __init__(
        self,
        command: str,
        *,
        ready_s: float = 2.0,
        says: str | None = None,
        within_s: float = READY_WITHIN_S,
        stop_s: float = 3.0,
        log: Path | None = None,
        environ: dict[str, str] | None = None,
    ) -> None:
        """Raises UsageError for a command that cannot be split into words."""
        try:
            self._words = shlex.split(command)
        except ValueError as error:
            raise UsageError(
                f"the command {command!r} cannot be read: {error}", "words, quoted as in a shell", "mend the quotes"
            ) from error
        if not self._words:
            raise UsageError("the command of the system under test is empty", "a command", "give --sut a command")
        self._ready_s = ready_s
        self._says = says
        self._within_s = within_s
        self._stop_s = stop_s
        self._environ = environ or {}
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        self._run = 0
        self._begin = 0
        self.ended_early: str | None = None

    def start(self, run: int) -> None:
        """Starts the command; one that runs is stopped first. Raises BenchNotReady when it cannot, or ends at once."""
        self.stop()
        self._run = run
        self.ended_early = None
        try:
            # Buffering off: nothing of rig's own is ever written here, the child writes to the descriptor.
            self._output = open(self._log, "ab+", buffering=0) if self._log else tempfile.TemporaryFile(buffering=0)  # noqa: SIM115
            self._begin = os.fstat(self._output.fileno()).st_size  # a log holds the runs before
            self._process = subprocess.Popen(
                self._words,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self._environ, RUN_VARIABLE: str(run)},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._close_output()
            why = getattr(error, "strerror", None) or error
            raise BenchNotReady(
                f"the system under test cannot be started: {self._words[0]}: {why}",
                "a command that this user may run",
                "run it by hand once: " + shlex.join(self._words),
            ) from error
        waited_s = self._ready_s if self._says is None else self._within_s
        code = self._wait(waited_s) if self._says is None else self._wait_until_said(self._says)
        if code is None:
            return
        said = self._tail()
        self._kill_group(signal.SIGKILL)  # what it left behind
        self._forget()
        raise BenchNotReady(
            f"the system under test {_ending(code)} within {waited_s:g} s of its start{said}",
            "a command that keeps running until rig stops it",
            "run it by hand once: " + shlex.join(self._words),
        )

    def _wait(self, seconds: float) -> int | None:
        """The command's exit code, where it ends in that time."""
        assert self._process is not None
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def _wait_until_said(self, line: str) -> int | None:
        """None once a line of its output begins with `line`; its exit code where it ends before.

        Raises BenchNotReady, the command stopped, where neither comes in time.
        """
        assert self._output is not None
        wanted = b"\n" + line.encode()
        for _ in range(math.ceil(self._within_s / _LOOK_EVERY_S)):
            code = self._wait(_LOOK_EVERY_S)
            if wanted in b"\n" + os.pread(self._output.fileno(), _LOOK_BYTES, self._begin):
                return None
            if code is not None:
                return code
        said = self._tail()
        self.stop()
        raise BenchNotReady(
            f"the system under test has not said that it is ready in {self._within_s:g} s{said}",
            f"a line of its output that begins with {line!r}",
            "run it by hand once: " + shlex.join(self._words),
        )

    def stop(self) -> None:
        """Stops the command and its children; idempotent."""
        process = self._process
        if process is None:
            return
        code = process.poll()
        if code is not None and self.ended_early is None:
            self.ended_early = f"the system under test {_ending(code)} during run {self._run}{self._tail()}"
        try:
            self._kill_group(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(self._stop_s)
        finally:
            self._kill_group(signal.SIGKILL)  # also children that outlived the command itself
            process.wait()
            self._forget()

    def _kill_group(self, number: signal.Signals) -> None:
        assert self._process is not None
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)  # the group's id is the child's, which leads it

    def _tail(self) -> str:
        """The last line of the command's output, to quote."""
        if self._output is None:
            return ""
        try:
            size = self._output.seek(0, os.SEEK_END)
            self._output.seek(max(0, size - _TAIL_BYTES))
            lines = self._output.read().decode("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return f": {lines[-1].strip()[:200]}" if lines else ""

    def _forget(self) -> None:
        self._process = None
        self._close_output()

    def _close_output(self) -> None:
        if self._output is not None:
            self._output.close()
            self._output = None


def _ending(code: int) -> str:
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"was ended by {signal.Signals(-code).name}"
    return f"ended with exit code {code}"
