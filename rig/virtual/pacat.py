"""Sound into the private PulseAudio: `pacat` behind a pipe, which tells when the server ran out of it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import subprocess
import sys
import termios
from collections.abc import Mapping

from rig.errors import MissingLibrary

RATE_HZ = 48000
KEPT_MS = 1500
"""What the server keeps, so that a busy machine may be this late."""

PIPE_BYTES = 16384
_FRAME_BYTES = 4
_TOLD = re.compile(rb"Latency: (\d+) usec")
_PACKAGES = "pulseaudio-utils"
_LONGEST = 1 << 16  # of what pacat said last


class SinkPipe:
    """Plays mono float32 on the sink `sink` of the server that `environ` names, until `close`.

    Raises MissingLibrary where pacat is not installed.
    """

    def __init__(self, sink: str, environ: Mapping[str, str] = os.environ) -> None:
        command = ["pacat", "--playback", "--raw", "--verbose", f"--device={sink}", "--format=float32le"]
        command += [f"--rate={RATE_HZ}", "--channels=1", f"--latency-msec={KEPT_MS}", "--process-time-msec=20"]
        try:
            self._process = subprocess.Popen(
                [*command, "--client-name=rig emulated board"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env={**environ, "LC_ALL": "C"},
                bufsize=0,
            )
        except OSError as error:
            raise MissingLibrary(
                f"pacat cannot be started: {error.strerror or error}",
                "the program pacat, which plays the board's sound",
                f"as root: apt-get install --no-install-recommends {_PACKAGES}",
            ) from error
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._pipe, self._words = self._process.stdin.fileno(), self._process.stderr.fileno()
        fcntl.fcntl(self._pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        os.set_blocking(self._pipe, False)
        os.set_blocking(self._words, False)
        self._started = False
        self._said = b""
        self._latency_s: float | None = None
        self._complaint: str | None = None

    def offer(self, data: bytes) -> int:
        """How many of these bytes were taken; never waits."""
        taken = 0
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while taken < len(data):
                taken += os.write(self._pipe, data[taken:])
        return taken

    def complaint(self) -> str | None:
        """The first thing that went wrong, in words; None: nothing has."""
        if self._complaint is None:
            self._listen()
        return self._complaint

    def waiting_s(self) -> float | None:
        """How long what is taken now waits until it is played, by the server's own word; None before it says so."""
        self.complaint()
        if self._latency_s is None:
            return None
        in_pipe = int.from_bytes(fcntl.ioctl(self._pipe, termios.FIONREAD, bytes(4)), sys.byteorder)
        return self._latency_s + in_pipe / _FRAME_BYTES / RATE_HZ

    def close(self) -> None:
        """Ends it at once; may be repeated."""
        self._process.kill()
        for stream in (self._process.stdin, self._process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._process.wait()

    def _listen(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while new := os.read(self._words, 1 << 16):
                self._said = (self._said + new)[-_LONGEST:]
        *_, last = (None, *_TOLD.finditer(self._said))
        if last is not None:
            self._latency_s = int(last[1]) * 1e-6
        if b"Stream underrun" in self._said and self._latency_s is not None:
            self._complaint = "the sound server ran out of sound (an underrun)"
        elif self._process.poll() is not None:
            lines = [line.strip() for line in re.split(rb"[\r\n]", self._said) if line.strip()]
            last_words = lines[-1].decode(errors="replace")[:200] if lines else "it said nothing"
            self._complaint = f"pacat ended: {last_words}"
