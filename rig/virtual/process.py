"""A server in the background: started in a session of its own, recognised later by its number and start, stopped."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.domain.seams import HostTime
from rig.domain.timebase import Duration
from rig.errors import BenchNotReady, MissingLibrary

_LOOK_EVERY = Duration(0.02)
_STOP_WITHIN = Duration(3.0)
_FIELD_OF_STATE = 0  # of /proc/PID/stat, counted after the name in brackets: see proc_pid_stat(5)
_FIELD_OF_START = 19
_HAPPENED = "rig: "  # begins the first line of an error of ours; two more follow it


@dataclass(frozen=True, slots=True)
class Process:
    """A process as /proc tells it apart: `started` is its start in clock ticks since boot, as text."""

    name: str
    pid: int
    started: str

    def alive(self) -> bool:
        """Does this very process still run? Neither a zombie nor another that was given its number does."""
        return _start_of(self.pid) == self.started


def start(
    name: str, command: Sequence[str], environment: dict[str, str], log: Path, packages: str
) -> tuple[Process, subprocess.Popen[bytes]]:
    """Starts the command detached, its output going to `log`. The caller must see to it that it comes up.

    Raises MissingLibrary, naming the system `packages`, where the program is not installed.
    """
    with open(log, "ab") as output:
        try:
            child = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            raise MissingLibrary(
                f"{command[0]} cannot be started: {error.strerror or error}",
                f"the program {name}",
                f"as root: apt-get install --no-install-recommends {packages}",
            ) from error
    return Process(name, child.pid, _start_of(child.pid) or "gone"), child


def wait_until(
    ready: Callable[[], bool], child: subprocess.Popen[bytes], name: str, log: Path, within_s: float, time: HostTime
) -> None:
    """Waits until `ready`. Raises BenchNotReady, quoting the log, when the child ends first or the time is over."""
    deadline = time.now().plus(Duration(within_s))
    while not ready():
        code = child.poll()
        if code is not None or time.now().seconds > deadline.seconds:
            happened = f"did not come up within {within_s:g} s" if code is None else f"ended with exit code {code}"
            raise BenchNotReady(
                f"{name} {happened}: {last_line(log) or 'it said nothing'}",
                f"{name} running for this bench alone",
                f"read {log}" if log.is_file() else "try again",
            )
        time.sleep_until(time.now().plus(_LOOK_EVERY))
    child.returncode = 0  # it is to outlive this command: Popen would warn that nobody waits for it


def stop(process: Process, time: HostTime) -> None:
    """Ends the process and its children: SIGTERM, and SIGKILL where that does not do. Nothing where it is not there."""
    if not process.alive():
        _reap(process.pid)  # to JACK a zombie is a server that runs
        return
    deadline = time.now().plus(_STOP_WITHIN)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)  # it leads a session, so its number is its group's
    while process.alive():
        _reap(process.pid)
        if time.now().seconds > deadline.seconds:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            deadline = time.now().plus(_STOP_WITHIN)
        time.sleep_until(time.now().plus(_LOOK_EVERY))


def last_line(log: Path) -> str:
    """The last line of a log, to quote, or the last that says what happened; empty where there is none."""
    try:
        lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    except OSError:
        return ""
    happened = [line for line in lines if line.startswith(_HAPPENED)]
    return (happened or lines)[-1].removeprefix(_HAPPENED).strip()[:200] if lines else ""


def _reap(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # a child of this very command would stay a zombie


def _start_of(pid: int) -> str | None:
    """When the process started, in clock ticks since boot; None where none runs under the number."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_FIELD_OF_STATE] in "ZX" else fields[_FIELD_OF_START]
