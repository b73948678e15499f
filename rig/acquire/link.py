"""The real clock and the real serial port. The one file that reads the time, and the one that imports pyserial.

`Link` is the board itself; see `board.py`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from rig.acquire.board import BoardStatus as BoardStatus
from rig.acquire.board import Link
from rig.acquire.dialogue import FrameSink as FrameSink
from rig.acquire.dialogue import LinkCounts as LinkCounts
from rig.acquire.ports import PortInfo, choose_port, open_error
from rig.acquire.wire import BAUD_RATE
from rig.domain.records import BoardIdentity
from rig.domain.seams import HostTime
from rig.domain.timebase import HostClock, Instant, Timebase
from rig.errors import LinkLost, LinkTimeout, MissingLibrary, RigError

TOUCH_BAUD = 1200
WRITE_S = 1.0  # a command is 64 bytes at most: over 1 s the port does not take any more


class SystemTime:
    """`HostTime` on CLOCK_MONOTONIC. Its identity is the machine's boot, where the system tells it."""

    def __init__(self) -> None:
        boot = Path("/proc/sys/kernel/random/boot_id")
        try:
            identity = boot.read_text(encoding="ascii").strip()
        except OSError:
            identity = "this boot"
        self.timebase: Timebase[HostClock] = Timebase("host", identity)

    def now(self) -> Instant[HostClock]:
        return Instant(self.timebase, time.monotonic())

    def sleep_until(self, instant: Instant[HostClock]) -> None:
        if instant.timebase != self.timebase:
            raise TypeError("the system's time cannot sleep until an instant of another clock")
        time.sleep(max(0.0, instant.seconds - time.monotonic()))


class SerialPipe:
    """A serial port as `BytePipe`: opened for this program alone, DTR asserted, what it held before thrown away.

    Raises PortNotFound or PortDenied when it cannot be opened, LinkLost when it disappears in use, MissingLibrary
    without pyserial. `listed` says that the port was seen a moment ago.
    """

    def __init__(self, path: str, host: HostTime, baud: int = BAUD_RATE, listed: bool = False) -> None:
        serial = _pyserial()
        self.name = path
        self.baud = baud
        self._host = host
        try:
            # Opening asserts DTR, without which a board on native USB stays mute, and empties the input.
            self._serial: Any = serial.Serial(path, baud, timeout=0.0, write_timeout=WRITE_S, exclusive=True)
        except Exception as error:
            if not is_port_failure(error):
                raise
            raise open_error(path, getattr(error, "errno", None), str(error), list_ports(), listed) from error

    def write(self, data: bytes) -> None:
        try:
            self._serial.write(data)
        except Exception as error:
            if not is_port_failure(error):
                raise
            raise use_error(self.name, error) from error

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        wait_s = max(0.0, deadline.since(self._host.now()).seconds)
        try:
            self._serial.timeout = wait_s
            first: bytes = self._serial.read(1)
            if not first or max_bytes <= 1:
                return first
            rest: bytes = self._serial.read(min(self._serial.in_waiting, max_bytes - 1))
            return first + rest
        except Exception as error:
            if not is_port_failure(error):
                raise
            raise use_error(self.name, error) from error

    def hang_up(self) -> None:
        """Takes DTR back, and closes the port."""
        try:
            self._serial.dtr = False
        except Exception as error:
            if not is_port_failure(error):
                raise
        self.close()

    def close(self) -> None:
        try:
            self._serial.close()
        except Exception as error:
            if not is_port_failure(error):
                raise


def touch(path: str) -> None:
    """Opens a port at 1200 baud and closes it: boards on native USB then go to their bootloader, and the port away.

    Raises PortNotFound or PortDenied when it cannot be opened, MissingLibrary without pyserial.
    """
    pipe = SerialPipe(path, SystemTime(), TOUCH_BAUD)
    pipe.hang_up()


def _pyserial() -> ModuleType:
    try:
        import serial
    except ImportError as error:
        raise MissingLibrary(
            "pyserial is not installed", "pyserial, which speaks to the board", "pip install pyserial"
        ) from error
    return serial  # type: ignore[no-any-return]


def is_port_failure(error: BaseException) -> bool:
    """Whether an exception is one that pyserial, or the system beneath it, raises about a port.

    Beside its own (all of them OSError) it lets termios.error through, ValueError for settings that the port refuses,
    and TypeError when the port is closed while it reads.
    """
    if isinstance(error, (OSError, ValueError, TypeError)):
        return True
    return type(error).__module__ == "termios"


def use_error(path: str, error: BaseException) -> RigError:
    """What to say when a port that was open fails."""
    if isinstance(error, _pyserial().SerialTimeoutException):
        return LinkTimeout(
            f"{path} took no more bytes for {WRITE_S:.0f} s",
            "a port that takes what is written",
            "unplug the board and plug it in again",
        )
    return LinkLost(
        f"port {path} disappeared or is open in another program ({error})",
        "a port that stays until the run is over",
        "check the cable and the hub, close other programs that use the port, and start again",
    )


def list_ports() -> list[PortInfo]:
    """The serial ports that exist now, by path. Raises MissingLibrary without pyserial."""
    _pyserial()
    from serial.tools.list_ports import comports

    found = [
        PortInfo(port.device, port.vid, port.pid, port.serial_number, port.location, port.description)
        for port in comports()
    ]
    return sorted(found, key=lambda port: port.path)


def probe(port: PortInfo, host: HostTime) -> BoardIdentity:
    """Opens a port, asks for the board's identity and closes it again. Raises what opening and asking raise."""
    pipe = SerialPipe(port.path, host, listed=True)
    try:
        return Link(pipe, host).identify()
    finally:
        pipe.close()


def open_link(port: str, host: HostTime, on_frame: FrameSink | None = None) -> Link:
    """The board at a path, or with "auto" the only one that answers. Raises what opening and choosing raise."""
    ports: Sequence[PortInfo] = list_ports()
    if port == "auto":
        port = choose_port(ports, lambda candidate: probe(candidate, host)).path
    pipe = SerialPipe(port, host, listed=port in {known.path for known in ports})
    return Link(pipe, host, on_frame)
