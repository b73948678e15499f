"""What a paced board tells of its pins as they move: one subscriber to its side channel.

The side channel is a Unix socket beside the board's path; `firmware/emu_paced.c` describes its lines. Every stamp is in
CPU cycles, and `CycleClock` turns cycles into seconds of CLOCK_MONOTONIC: one map that holds as long as the board runs.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

from rig.errors import LinkLost, PortNotFound, UsageError
from rig.sim.emulator import CPU_HZ, Event, event_of

HELLO = "rig-board 1"
GREETING_S = 2.0  # the board greets within milliseconds; a machine that stands still gets this long
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class CycleClock:
    """The map between cycles and host time: `cycle` is at `at_ns` of CLOCK_MONOTONIC; positive `ppb`: a fast clock."""

    cycle: int
    at_ns: int
    ppb: int

    @property
    def rate_hz(self) -> float:
        """Cycles in a true second."""
        return CPU_HZ * (1.0 + self.ppb * 1e-9)

    @property
    def ppm(self) -> float:
        return self.ppb * 1e-3

    def true_s(self, cycle: float) -> float:
        """Host time, in seconds of CLOCK_MONOTONIC, of a cycle."""
        return self.at_ns * 1e-9 + (cycle - self.cycle) / self.rate_hz

    def cycle_at(self, true_s: float) -> float:
        """The (fractional) cycle at a host time."""
        return self.cycle + (true_s - self.at_ns * 1e-9) * self.rate_hz


def channel_of(path: str | Path) -> Path:
    """The side channel of the board at `path`."""
    return Path(f"{path}.events")


class Pins:
    """The events of the paced board at `path`, in order, from how things stand now.

    `told_until` is a cycle: everything before it has been told, so that silence is known to be silence. `behind_s` is
    the most that the board has been behind its clock, as far as it told (only delays over 2 ms). `ended` says that the
    board has gone; after that nothing comes any more.

    Raises UsageError when no board of ours was ever at `path`, PortNotFound when one was and does not run any more.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.told_until = 0
        self.behind_s = 0.0
        self.ended = False
        self._rest = b""
        self._socket = _connect(self.path)
        self._greeted = False
        self._clock: CycleClock | None = None
        self._early: list[Event] = []
        while self._clock is None and not self.ended:
            self._early += self._receive(GREETING_S)
        if self._clock is None:
            self.close()
            raise PortNotFound(
                f"the board at {self.path} ended while it was being asked",
                "a board that runs",
                "start it again: rig sim board",
            )
        self.clock: CycleClock = self._clock

    def read(self, timeout_s: float) -> list[Event]:
        """What came since the last call; waits up to `timeout_s` for something. Empty: nothing yet, or `ended`.

        Raises LinkLost when the board cut this subscriber off because it fell a megabyte behind, or sends nonsense.
        """
        early, self._early = self._early, []
        return early + ([] if self.ended else self._receive(0.0 if early else timeout_s))

    def fileno(self) -> int:
        """The socket's, for select: readable when `read` would not wait."""
        return self._socket.fileno()

    def close(self) -> None:
        """Ends the subscription; may be repeated."""
        self.ended = True
        self._socket.close()

    def __enter__(self) -> Pins:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _receive(self, timeout_s: float) -> list[Event]:
        self._socket.settimeout(timeout_s)
        try:
            data = self._socket.recv(READ_BYTES)
        except (TimeoutError, BlockingIOError):
            if not self._greeted and timeout_s > 0.0:
                raise self._nonsense("nothing") from None
            return []
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return []
        *lines, self._rest = (self._rest + data).split(b"\n")
        events: list[Event] = []
        for line in lines:
            event = self._take(line.decode("ascii", "replace"))
            if event is not None:
                events.append(event)
        return events

    def _take(self, line: str) -> Event | None:
        if not self._greeted:
            if line != HELLO:
                raise self._nonsense(repr(line[:60]))
            self._greeted = True
            return None
        word, *numbers = line.split() or [""]
        try:
            if word == "at":
                self.told_until = int(numbers[0])
            elif word == "clock":
                self._clock = CycleClock(*map(int, numbers))
            elif word == "behind":
                self.behind_s = max(self.behind_s, int(numbers[1]) * 1e-9)
            else:
                return event_of(word, numbers)
        except (ValueError, IndexError, TypeError):
            raise self._nonsense(repr(line[:60])) from None
        return None

    def _nonsense(self, what: str) -> LinkLost:
        self.close()
        return LinkLost(
            f"{channel_of(self.path)} sends {what}",
            f"the lines of a board of this version, the first of them {HELLO!r}",
            "start the board with this version of rig: rig sim board",
        )


def _connect(path: str) -> socket.socket:
    """A connection to the side channel of `path`. Raises UsageError or PortNotFound."""
    channel = channel_of(path)
    if not channel.is_socket():
        raise UsageError(
            f"there is no emulated board at {path}: it has no side channel {channel.name} beside it",
            "the path that rig sim board prints",
            "start a board: rig sim board",
        )
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        made.connect(os.fspath(channel))
    except OSError as error:
        made.close()
        raise PortNotFound(
            f"the emulated board at {path} does not run any more ({error.strerror or error})",
            "a board that runs",
            "start it again: rig sim board",
        ) from error
    return made
