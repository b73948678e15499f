"""The emulated board at the pace of the real clock, behind a path that a program opens like a board's serial port.

`PacedBoard` starts and ends it; `Pins` (pins.py) subscribes to what its pins do. At its path are two things: a link to
the pseudo-terminal, and beside it `PATH.events`, the side channel, which this user alone may open. A board that
was killed leaves both behind; the next one at that path finds that nobody answers and takes their place.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rig.errors import BenchNotReady, LinkLost, UsageError
from rig.sim.pins import Pins, channel_of

UID = 0x5249_4700_0000_0003
LONGEST_PATH = 107
"""Of a Unix socket, in bytes."""


def default_path() -> Path:
    """Where a board appears unless another place is asked for: a folder that this user alone may use."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    base = Path(runtime) / "rig" if runtime else Path(tempfile.gettempdir()) / f"rig-{os.getuid()}"
    return base / "board"


@dataclass(frozen=True, slots=True)
class Pace:
    """How a board kept up with the clock: how long it ran, the processor time it took, how late it was at most."""

    ran_s: float
    cpu_s: float
    behind_s: float


class PacedBoard:
    """A board that runs from `start` to `close`, or from entering a `with` to leaving it.

    `command` starts the emulator with an image (`rig.firmware.images.emulator_command`). `path` is where the port
    appears, by default `default_path()`. The board's clock is `ppm` fast. Opening the port resets the board as DTR does
    on an Uno, unless `resets` is False. It ends by itself when this process does.
    """

    def __init__(
        self,
        command: Sequence[str],
        path: str | Path | None = None,
        *,
        ppm: float = 0.0,
        resets: bool = True,
        uid: int = UID,
    ) -> None:
        self.path = Path(path) if path is not None else default_path()
        self.pace: Pace | None = None
        """After `close`: how it kept up. None before, and when it did not end well."""
        self._command = [*command, "--paced", "--uid", f"{uid:x}", "--ppb", str(round(ppm * 1000.0))]
        self._command += [] if resets else ["--no-reset"]
        self._process: subprocess.Popen[str] | None = None
        self._terminal = ""
        self._mine: tuple[int, int] | None = None

    @property
    def pid(self) -> int:
        """The process id of the emulator."""
        assert self._process is not None, "a board that was started"
        return self._process.pid

    def start(self) -> None:
        """Switches the board on. When this returns, the port can be opened and the side channel subscribed to.

        Raises BenchNotReady where another board is at the path or the emulator does not start, UsageError for a path
        that cannot be used.
        """
        channel = channel_of(self.path)
        if len(os.fsencode(channel)) > LONGEST_PATH:
            raise UsageError(
                f"the path {self.path} is too long for the socket beside it",
                f"{LONGEST_PATH - len('.events')} bytes at most",
                "choose a shorter path",
            )
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(self.path.parent), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
                _clear(self.path)
                listener.bind(os.fspath(channel))
                os.chmod(channel, 0o600)  # nobody can connect before it listens
                listener.listen(8)
                self._mine = _which(channel)
                try:
                    self._run(listener)
                    os.symlink(self._terminal, self.path)
                except BaseException:
                    self._end()
                    channel.unlink()
                    raise
        except OSError as error:
            raise UsageError(
                f"no board can be put at {self.path}: {error.strerror or error}",
                "a path in a folder that this user may write to",
                "choose another path",
            ) from error

    def pins(self) -> Pins:
        """A new subscription to the board's pins; as many as eight at a time."""
        return Pins(self.path)

    def wait(self) -> None:
        """Waits for as long as the board runs. It does not end by itself: raises LinkLost with its last words."""
        assert self._process is not None, "a board that was started"
        assert self._process.stderr is not None
        self._process.wait()
        raise self._ended(self._process.stderr.read())

    def close(self) -> None:
        """Switches the board off and removes what it put at its path; may be repeated."""
        if self._process is None:
            return
        self._end()
        channel = channel_of(self.path)
        with contextlib.suppress(FileNotFoundError), _alone(self.path.parent):
            if _which(channel) == self._mine:  # else another board has taken the place of this one
                channel.unlink()
                self.path.unlink()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()  # tells it to end
        for line in process.stdout:
            word, *numbers = line.split()
            if word == "ended":
                self.pace = Pace(*(int(number) * 1e-9 for number in numbers))
        process.stdout.close()
        process.stderr.close()
        process.wait()

    def __enter__(self) -> PacedBoard:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, listener: socket.socket) -> None:
        try:
            process = subprocess.Popen(
                [*self._command, "--listener", str(listener.fileno())],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                text=True,
            )
        except OSError as error:
            raise BenchNotReady(
                f"the emulator did not start: {error}", "an emulator built for this machine", "build it: ./do setup"
            ) from error
        self._process = process
        assert process.stdout is not None
        self._terminal = process.stdout.readline().strip()
        if not self._terminal:
            assert process.stderr is not None
            raise BenchNotReady(
                f"the emulated board did not start: {process.stderr.read().strip()}",
                "an image in Intel HEX for the ATmega328P",
                "leave --image out, or make one: rig firmware build",
            )

    @staticmethod
    def _ended(words: str) -> LinkLost:
        why = words.strip() or "it was killed, or gave no reason"
        return LinkLost(f"the emulated board ended: {why}", "a board that runs", "start it again: rig sim board")


def _which(channel: Path) -> tuple[int, int]:
    """What tells one board's side channel from the next one's at the same path."""
    facts = channel.lstat()
    return facts.st_ino, facts.st_ctime_ns


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Nobody else starts a board in the folder meanwhile."""
    fd = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _clear(path: Path) -> None:
    """Removes what a board that was killed left at `path`. Raises BenchNotReady when one runs there, UsageError when
    something else is there."""
    channel = channel_of(path)
    if channel.is_socket():
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            try:
                probe.connect(os.fspath(channel))
            except ConnectionRefusedError:
                channel.unlink()
            else:
                raise BenchNotReady(
                    f"an emulated board runs at {path} already",
                    "a path of its own for each board",
                    "use that one, end it, or choose another path: --link PATH",
                )
    if path.is_symlink() and os.readlink(path).startswith("/dev/"):
        path.unlink()
    for there in (path, channel):
        if os.path.lexists(there):
            raise UsageError(
                f"{there} is there already and was not left by a board",
                "a path at which nothing is",
                "choose another path: --link PATH",
            )
