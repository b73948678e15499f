"""Which serial port is the board's, and what to say when it cannot be opened. Pure: the ports are given."""

from __future__ import annotations

import errno
import getpass
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.domain.records import BoardIdentity
from rig.errors import (
    BenchNotReady,
    DeviceAmbiguous,
    FirmwareMismatch,
    LinkCorrupt,
    LinkLost,
    LinkTimeout,
    PortDenied,
    PortNotFound,
    RigError,
)

KNOWN_ADAPTERS: dict[tuple[int, int], str] = {
    (0x2341, 0x0043): "Arduino Uno R3",
    (0x2341, 0x0001): "Arduino Uno",
    (0x2341, 0x0243): "Arduino Uno R3",
    (0x2A03, 0x0043): "Arduino Uno R3",
    (0x2341, 0x0042): "Arduino Mega",
    (0x2341, 0x0058): "Arduino Nano Every",
    (0x2341, 0x8036): "Arduino Leonardo",
    (0x2A03, 0x8036): "Arduino Leonardo",
    (0x2341, 0x8037): "Arduino Micro",
    (0x2A03, 0x8037): "Arduino Micro",
    (0x1B4F, 0x9206): "SparkFun Pro Micro",
    (0x1A86, 0x7523): "CH340 adapter",
    (0x1A86, 0x55D4): "CH9102 adapter",
    (0x0403, 0x6001): "FTDI FT232R adapter",
    (0x0403, 0x6015): "FTDI FT231X adapter",
    (0x10C4, 0xEA60): "CP210x adapter",
    (0x2E8A, 0x000A): "Raspberry Pi Pico",
}
"""USB identities that boards of ours may show. Other instruments show them too: only the board's answer decides."""

BOOTLOADERS: dict[tuple[int, int], str] = {
    (0x2341, 0x0036): "bootloader of an Arduino Leonardo",
    (0x2A03, 0x0036): "bootloader of an Arduino Leonardo",
    (0x2341, 0x0037): "bootloader of an Arduino Micro",
    (0x2A03, 0x0037): "bootloader of an Arduino Micro",
    (0x1B4F, 0x9205): "bootloader of a SparkFun Pro Micro",
}
"""USB identities of boards on native USB that wait for an image. They are never asked who they are: a single letter may
be a command to erase."""


@dataclass(frozen=True, slots=True)
class PortInfo:
    """A serial port that exists. USB facts are None where the port is not on USB or the system does not tell."""

    path: str
    vid: int | None = None
    pid: int | None = None
    serial_number: str | None = None
    location: str | None = None
    description: str | None = None

    @property
    def label(self) -> str:
        """For people: path, and what tells two of a kind apart."""
        facts = [
            (KNOWN_ADAPTERS | BOOTLOADERS).get((self.vid, self.pid))
            if self.vid is not None and self.pid is not None
            else None,
            f"serial {self.serial_number}" if self.serial_number else None,
            f"at {self.location}" if self.location else None,
        ]
        told = [fact for fact in facts if fact]
        return f"{self.path} ({', '.join(told)})" if told else self.path


def candidates(ports: Sequence[PortInfo]) -> list[PortInfo]:
    """The ports that may be written to without being named: those whose USB identity a board of ours may show."""
    return [port for port in ports if (port.vid, port.pid) in KNOWN_ADAPTERS]


def bootloaders(ports: Sequence[PortInfo]) -> list[PortInfo]:
    """The ports of bootloaders that wait for an image."""
    return [port for port in ports if (port.vid, port.pid) in BOOTLOADERS]


def choose_port(ports: Sequence[PortInfo], identify: Callable[[PortInfo], BoardIdentity]) -> PortInfo:
    """The one port whose board answers `identify`; ports of unknown USB identity are never asked.

    Raises PortNotFound, with what was tried, when none answers; DeviceAmbiguous, with an argument for each, when
    several do; and the board's own FirmwareMismatch when only boards with other firmware answer.
    """
    tried = candidates(ports)
    answered: list[tuple[PortInfo, BoardIdentity]] = []
    failures: list[str] = []
    other_firmware: FirmwareMismatch | None = None
    for port in tried:
        try:
            answered.append((port, identify(port)))
        except FirmwareMismatch as error:
            other_firmware = other_firmware or error
            failures.append(f"{port.label}: {error.what}")
        except (BenchNotReady, LinkTimeout, LinkCorrupt, LinkLost) as error:
            failures.append(f"{port.label}: {error.what}")
    if len(answered) == 1:
        return answered[0][0]
    if answered:
        listed = "; ".join(f"--port {port.path} is {port.label}, board {who.uid}" for port, who in answered)
        raise DeviceAmbiguous(f"{len(answered)} boards answer: {listed}", "one board", "name one with --port")
    if other_firmware is not None:
        raise other_firmware
    if not tried:
        raise PortNotFound(
            f"no port looks like a board; {existing(ports)}",
            "a board on USB",
            "plug the board in, name its port with --port, or measure without one: --port none",
        )
    raise PortNotFound(
        f"no board answers; tried {'; '.join(failures)}",
        "a board that runs rig's firmware",
        "flash it with rig firmware flash, or name its port with --port",
    )


def existing(ports: Sequence[PortInfo]) -> str:
    """The ports there are, in words."""
    return f"there are {', '.join(port.label for port in ports)}" if ports else "there are no serial ports at all"


def open_error(path: str, code: int | None, text: str, ports: Sequence[PortInfo], listed: bool = False) -> RigError:
    """What to say when opening `path` failed with errno `code` (None: unknown) and the system's words `text`.

    `ports` are the ports that exist now; `listed` is True when this one was among them a moment ago.
    """
    if code in (errno.EACCES, errno.EPERM):
        return PortDenied(f"no permission to open {path}", "a port that this user may open", rights(path))
    if code in (errno.EAGAIN, errno.EBUSY) or "exclusively lock" in text:
        return PortDenied(
            f"{path} is open in another program",
            "a port that is free",
            "close the other program (a serial monitor, ModemManager, another rig)",
        )
    if code in (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.EIO):
        if listed:
            return PortNotFound(
                f"{path} was there and went away",
                "a port that stays",
                "check the cable; on Linux the services brltty and ModemManager may take such a port: remove or"
                " disable them",
            )
        return PortNotFound(
            f"there is no port {path}; {existing(ports)}",
            "the path of a serial port",
            "name one of them with --port, or let --port auto look",
        )
    return PortNotFound(f"{path} cannot be opened as a serial port: {text}", "a serial port", "check the path")


def rights(path: str, usual_group: str = "dialout") -> str:
    """How this user gets the right to open a device node on this machine; `usual_group` is whose such nodes are."""
    try:
        import grp  # not there on Windows

        group = grp.getgrgid(os.stat(path).st_gid).gr_name
        user = getpass.getuser()
    except (ImportError, OSError, KeyError):
        group, user = usual_group, "$USER"
    if sys.platform == "darwin":
        return f"give yourself the right: sudo chmod a+rw {path}"
    if group == "root":  # no group can be joined: the system lacks the usual rule for such nodes
        return f"for now: sudo chmod a+rw {path}; for good: add a udev rule that gives it to the group {usual_group}"
    return f"join the group {group}: sudo usermod -aG {group} {user}, then log out and in again"
