"""The simulated world in real time, around a board that runs by itself behind a serial port.

An emulated board that paces itself cannot wait for the world, so the world keeps pace with the host's clock. The board
is spoken to through its port as a real one is; what the world hears of it comes from its pins (`pins.py`), which tell
the tick and the level of everything that it plays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.acquire import wire
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import Duration, HostClock, Instant
from rig.errors import LinkLost
from rig.sim.clock import VirtualTime
from rig.sim.emulator import CYCLES_A_TICK, SILENCE, Event
from rig.sim.firmware import Cancel, OnTone
from rig.sim.foretold import Foretold, ForetoldTone
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
        self._host = host
        self.timebase = host.now().timebase
        self.settle: Callable[[float], None] = lambda at_s: None

    @property
    def now_ns(self) -> int:
        now_s = self._host.now().seconds
        self.settle(now_s - BEHIND_S)
        return math.floor(now_s * 1e9)

    @property
    def now_s(self) -> float:
        return self.now_ns * 1e-9

    def advance_to_ns(self, at_ns: int) -> None:
        at_s = at_ns * 1e-9
        while True:
            now = self._host.now()
            if now.seconds * 1e9 >= at_ns:
                break
            self._host.sleep_until(now.plus(Duration(at_s - now.seconds + 1e-6)))
        self.settle(at_s)


@dataclass(frozen=True, slots=True)
class Living:
    """A board that runs by itself: its port, opened; its pins, subscribed to before that; and the host's clock."""

    pipe: BytePipe
    pins: Pins
    time: HostTime


class LivingBoard:
    """The board as a `BytePipe` of the world. `on_tone` is told of every firing when the board announces it.

    Raises LinkLost when the board ends or stands still, RuntimeError when it plays what it did not announce.
    """

    name = "emulated board"
    baud = wire.BAUD_RATE

    def __init__(self, living: Living, on_tone: OnTone) -> None:
        self._pipe = living.pipe
        self._pins = living.pins
        self._host = living.time
        self._on_tone = on_tone
        self._sounding: list[tuple[ForetoldTone, Cancel | None]] = []
        self._ticks_from: int | None = None
        self._start_over()

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
        patience_s = self._host.now().seconds + STANDSTILL_S
        while self._pins.told_until < until and not self._pins.ended:
            for event in self._pins.read(0.05):
                self._take(event)
            self._foretold.late(self._pins.told_until)
            if self._host.now().seconds > patience_s:
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

    def _start_over(self) -> None:
        """What is known of a board that was just reset, or just found."""
        self._decoder = wire.FrameDecoder()
        self._foretold = Foretold(self._cycle_of_tick, self._tones, self._cut)
        self._waking = True  # its output rises to silence before its ticks start

    def _take(self, event: Event) -> None:
        if event.kind == "reset":
            self._cut(event.cycle)
            self._ticks_from = None
            self._start_over()
        elif event.kind == "ticks":
            self._ticks_from = event.cycle
        elif event.kind == "pwm" and self._ticks_from is not None:
            woke, self._waking = self._waking, False
            if not (woke and event.value == SILENCE):
                self._foretold.played(event)
        elif event.kind == "tx" and self._ticks_from is not None:
            for message in self._decoder.feed((event.value,)):
                if isinstance(message, wire.Message):
                    self._foretold.heard(message, event.cycle)

    def _cycle_of_tick(self, tick: int) -> int:
        """The cycle of a tick of 32 bits that is not far from what was told last."""
        assert self._ticks_from is not None
        now = (self._pins.told_until - self._ticks_from) // CYCLES_A_TICK
        ahead = (tick - now + 2**31) % 2**32 - 2**31
        return self._ticks_from + CYCLES_A_TICK * (now + ahead)

    def _tones(self, tones: Sequence[ForetoldTone]) -> None:
        self._sounding = []
        for tone in tones:
            start_s, end_s = self._pins.clock.true_s(tone.first_cycle), self._pins.clock.true_s(tone.end_cycle)
            cancel = self._on_tone(start_s, tone.samples, len(tone.samples) / (end_s - start_s))
            self._sounding.append((tone, cancel))

    def _cut(self, cycle: int) -> None:
        for tone, cancel in self._sounding:
            if cancel is not None and tone.end_cycle > cycle:
                cancel(self._pins.clock.true_s(cycle))
        self._sounding = []
