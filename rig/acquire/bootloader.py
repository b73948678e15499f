"""Sends a board on native USB to its bootloader, and finds its port. Pure: the ports and the touch are given."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rig.acquire.ports import PortInfo, bootloaders, existing
from rig.domain.seams import HostTime
from rig.domain.timebase import Duration
from rig.errors import PortNotFound

PATIENCE_S = 8.0  # the bootloader itself waits 8 s for an image before it starts the old program
LOOK_EVERY_S = 0.1
SETTLE_S = 0.3  # a port that has just appeared may not have got its access rights yet


def enter_bootloader(
    path: str, list_ports: Callable[[], Sequence[PortInfo]], touch: Callable[[str], None], time: HostTime
) -> str:
    """The path of the bootloader of the board at `path`, which may be in its bootloader already.

    `touch` opens a port at 1200 baud and closes it. The board is known again by its place on the bus, where the system
    tells it; where it does not, a bootloader that was not there before is taken to be it. Raises PortNotFound when none
    appears, and what `touch` raises.
    """
    before = list_ports()
    if path in {port.path for port in bootloaders(before)}:
        return path
    location = next((port.location for port in before if port.path == path), None)
    others = {port.path for port in bootloaders(before)}
    touch(path)
    deadline = time.now().plus(Duration(PATIENCE_S))
    while time.now().seconds < deadline.seconds:
        time.sleep_until(time.now().plus(Duration(LOOK_EVERY_S)))
        for port in bootloaders(list_ports()):
            is_it = _place(port.location) == _place(location) if location and port.location else port.path not in others
            if is_it:
                time.sleep_until(time.now().plus(Duration(SETTLE_S)))
                return port.path
    raise PortNotFound(
        f"no bootloader appeared within {PATIENCE_S:.0f} s; {existing(list_ports())}",
        "a board on native USB that goes to its bootloader when its port is opened at 1200 baud",
        "press its reset button (on a Pro Micro twice, quickly) and give the port that appears within 8 s: --port PATH",
    )


def _place(location: str | None) -> str | None:
    """The place of a device on the bus: some systems add which of its interfaces it is."""
    return location.split(":")[0] if location else None
