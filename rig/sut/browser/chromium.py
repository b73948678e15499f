"""Headless Chromium as a child that ends with its parent, its profile in a folder that goes with it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO

from rig.errors import BenchNotReady, MissingLibrary

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")

ENDS_WITHIN_S = 2.0
"""After SIGTERM. Under the 3 s that rig measure gives a system, so that the profile is removed in time."""

FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-extensions",
    "--disable-sync",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-breakpad",
    "--password-store=basic",
    # The page is the only one, and nobody looks at it: it must not be slowed down for that.
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
    # Nobody is there to allow the microphone or to click before sound may play. The devices are the real ones.
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    # A machine without a network has no other interface.
    "--allow-loopback-in-peer-connection",
    # Not to speak through: Chromium ends when the other end of this pipe is gone, however that happened.
    "--remote-debugging-pipe",
)

_TAIL_BYTES = 4000
_ABOVE = 20  # the least number of a pipe's end here: clear of 3 and 4, where Chromium expects its own

_PLACED = 'reads=$1 writes=$2; shift 2; exec "$@" 3</dev/fd/$reads 4>/dev/fd/$writes'
"""For the shell: Chromium in its place, with its ends of the pipe where it looks for them."""


def find(program: str | None) -> str:
    """The program to start. Raises MissingLibrary where there is none."""
    names = NAMES if program is None else (program,)
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        raise MissingLibrary(
            f"Chromium is not installed: no {' or '.join(names)}",
            "Chromium or Chrome among the programs that can be found",
            "on Debian apt-get install chromium; or name the program with --chromium",
        )
    return found


class Chromium:
    """One browser with one page. `ended` is called, in a thread, with its exit code when it ends before `stop`."""

    def __init__(self, program: str, address: str, ended: Callable[[int], None]) -> None:
        """Raises BenchNotReady where the program cannot be started."""
        with contextlib.ExitStack() as stack:
            profile = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="rig-chromium-", ignore_cleanup_errors=True)
            )
            self._log: IO[bytes] = stack.enter_context(open(Path(profile) / "log", "wb+", buffering=0))
            theirs = stack.enter_context(contextlib.ExitStack())
            (reads, keeps_to), (keeps_from, writes) = _pipe(), _pipe()
            for end in (reads, writes):
                theirs.callback(os.close, end)
            for end in (keeps_to, keeps_from):
                stack.callback(os.close, end)

            command = [program, *FLAGS, f"--user-data-dir={profile}/profile", address]
            if os.geteuid() == 0:
                command.insert(1, "--no-sandbox")  # it refuses to run as root otherwise
            try:
                self._process = subprocess.Popen(
                    ["/bin/sh", "-c", _PLACED, "sh", str(reads), str(writes), *command],
                    stdin=subprocess.DEVNULL,
                    stdout=self._log,
                    stderr=subprocess.STDOUT,
                    pass_fds=(reads, writes),
                )
            except OSError as error:
                raise BenchNotReady(
                    f"{program} cannot be started: {error.strerror or error}",
                    "a browser that this user may run",
                    "run it by hand once",
                ) from error
            theirs.close()
            self._resources = stack.pop_all()
        self._stopping = False
        self._ended = ended
        self._watch = threading.Thread(target=self._wait, daemon=True)
        self._watch.start()

    def said(self) -> str:
        """The last lines of its log, to quote; empty where it said nothing."""
        size = os.fstat(self._log.fileno()).st_size
        tail = os.pread(self._log.fileno(), _TAIL_BYTES, max(0, size - _TAIL_BYTES))
        lines = [line.strip() for line in tail.decode("utf-8", "replace").splitlines() if line.strip()]
        return "; ".join(lines[-2:])[:400]

    def stop(self) -> None:
        """Ends it and removes its profile; idempotent."""
        self._stopping = True
        if self._process.poll() is None:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(ENDS_WITHIN_S)
            if self._process.poll() is None:
                self._process.kill()
        self._watch.join()
        self._resources.close()

    def _wait(self) -> None:
        code = self._process.wait()
        if not self._stopping:
            self._ended(code)


def _pipe() -> tuple[int, int]:
    """(read, write), clear of the low numbers and closed on exec."""
    low = os.pipe()
    ends = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for end in low)
    for end in low:
        os.close(end)
    return ends[0], ends[1]
