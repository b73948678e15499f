"""The simulated world in real time, around a board that runs by itself behind a serial port.

An emulated board that paces itself cannot wait for the world, so the world keeps pace with the host's clock. The board
is spoken to through its port as a real one is; what the world hears of it comes from its pins (`pins.py`), which tell
the tick and the level of everything that it plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rig.acquire import wire
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import Duration, HostClock, Instant
from rig.errors import LinkLost
from rig.sim.clock import VirtualTime
from rig.sim.firmware import OnTone
from rig.sim.follower import BoardFollower
from rig.sim.pins import Pins

STANDSTILL_S = 10.0
BEHIND_S = 0.01
"""The world hears of a tone 20 ms before it sounds: so much may lie between the clock and what is known of the pins."""


class RealTime(VirtualTime):
    """The world's time where a board runs in it by itself: the host's own clock. Waiting takes as long as it takes.

    `settle` is called with a true time before anything is made of the world up to then: what the board did must be
    known by that time.
    """

    def __init__(self, host: HostTime) -> None:
        super().__init__()
        self.host = host
        self.timebase = host.now().timebase
        self.settle: Callable[[float], None] = lambda at_s: None

    @property
    def now_ns(self) -> int:
        now_s = self.host.now().seconds
        self.settle(now_s - BEHIND_S)
        return math.floor(now_s * 1e9)

    def advance_to_ns(self, at_ns: int) -> None:
        at_s = at_ns * 1e-9
        while True:
            now = self.host.now()
            if now.seconds * 1e9 >= at_ns:
                break
            self.host.sleep_until(now.plus(Duration(at_s - now.seconds + 1e-6)))
        self.settle(at_s)


@dataclass(frozen=True, slots=True)
class Living:
    """A board that runs by itself: its port, opened; its pins, subscribed to before that; and the time around it."""

    pipe: BytePipe
    pins: Pins
    time: RealTime


class LivingBoard:
    """The board as a `BytePipe` of the world. `on_tone` is told of every firing when the board announces it.

    Raises LinkLost when the board ends or stands still, RuntimeError when it plays what it did not announce.
    """

    name = "emulated board"
    baud = wire.BAUD_RATE

    def __init__(self, living: Living, on_tone: OnTone) -> None:
        self._pipe = living.pipe
        self._pins = living.pins
        self._host = living.time.host
        living.time.settle = self.settle
        self._follower = BoardFollower(living.pins.clock.true_s, on_tone)

    def write(self, data: bytes) -> None:
        """Puts bytes on the line. Raises LinkLost when the port is gone."""
        self._pipe.write(data)

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        """Whatever has come, at least one byte if any comes before the deadline. Raises LinkLost likewise."""
        return self._pipe.read(max_bytes, deadline)

    def close(self) -> None:
        """Closes the port and ends the subscription; the board runs on."""
        self._pipe.close()
        self._pins.close()

    def settle(self, true_s: float) -> None:
        """Takes note of everything that the board did up to `true_s`, which has passed."""
        until = self._pins.clock.cycle_at(true_s)
        moved_s = self._host.now().seconds
        while self._pins.told_until < until and not self._pins.ended:
            before = self._pins.told_until
            for event in self._pins.read(0.05):
                self._follower.take(event)
            self._follower.told_until(self._pins.told_until)
            if self._pins.told_until != before:
                moved_s = self._host.now().seconds
            elif self._host.now().seconds > moved_s + STANDSTILL_S:
                raise LinkLost(
                    f"the emulated board at {self._pins.path} told nothing for {STANDSTILL_S:g} s",
                    "a board that runs",
                    "start it again: rig sim board",
                )
        if self._pins.told_until < until:
            raise LinkLost(
                f"the emulated board at {self._pins.path} ended",
                "a board that runs until the measurement is over",
                "start it again: rig sim board",
            )
