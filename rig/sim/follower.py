"""What an emulated board does, told to the world: the tones that it announces, and where one was cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rig.acquire import wire
from rig.sim.emulator import CYCLES_A_TICK, SILENCE, Event
from rig.sim.firmware import Cancel, OnTone
from rig.sim.foretold import Foretold, ForetoldTone


class BoardFollower:
    """Follows the events of a board, in order. `true_s` gives the true time of a CPU cycle; the board's ticks start at
    `first_tick`. `on_tone` is told of every firing when the board announces it.

    Raises RuntimeError when the board plays what it did not announce.
    """

    def __init__(self, true_s: Callable[[int], float], on_tone: OnTone | None, first_tick: int = 0) -> None:
        self._true_s = true_s
        self._on_tone = on_tone
        self._first_tick = first_tick
        self._sounding: list[tuple[ForetoldTone, Cancel | None]] = []
        self._now = 0
        self._ticks_from: int | None = None  # the cycle at which the tick counter started
        self._waking = True  # the output rises to silence before the ticks start
        self._start_over()

    def take(self, event: Event) -> None:
        """One thing that the board did."""
        self._now = event.cycle
        if event.kind == "reset":
            self._cut(event.cycle)
            self._start_over()
        elif event.kind == "ticks":
            self._ticks_from = event.cycle
        elif event.kind == "pwm" and self._ticks_from is not None:
            woke, self._waking = self._waking, False
            if not (woke and event.value == SILENCE):
                self._foretold.played(event)
        elif event.kind == "tx":
            for message in self._decoder.feed((event.value,)):
                if isinstance(message, wire.Message):
                    self._foretold.heard(message, event.cycle)

    def told_until(self, cycle: int) -> None:
        """Nothing more comes from before `cycle`."""
        self._foretold.late(cycle)

    def _start_over(self) -> None:
        """What is known of a board that was just reset, or just found."""
        self._ticks_from = None
        self._waking = True
        self._decoder = wire.FrameDecoder()
        self._foretold = Foretold(self._cycle_of_tick, self._tones, self._cut)

    def _cycle_of_tick(self, tick: int) -> int:
        """The cycle of a tick of 32 bits that is not far from now."""
        assert self._ticks_from is not None
        now = (self._now - self._ticks_from) // CYCLES_A_TICK
        ahead = (tick - self._first_tick - now + 2**31) % 2**32 - 2**31
        return self._ticks_from + CYCLES_A_TICK * (now + ahead)

    def _tones(self, tones: Sequence[ForetoldTone]) -> None:
        self._sounding = []
        for tone in tones:
            start_s, end_s = self._true_s(tone.first_cycle), self._true_s(tone.end_cycle)
            rate_hz = len(tone.samples) / (end_s - start_s)
            self._sounding.append((tone, self._on_tone(start_s, tone.samples, rate_hz) if self._on_tone else None))

    def _cut(self, cycle: int) -> None:
        for tone, cancel in self._sounding:
            if cancel is not None and tone.end_cycle > cycle:
                cancel(self._true_s(cycle))
        self._sounding = []
