"""The board, spoken to in records, over a serial port or anything that behaves like one."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rig.domain.records import ArmedStimulus, BoardIdentity, ClockExchange, StimulusFired, StimulusPlan
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import HostClock, Instant

FrameSink = Callable[[str, float, object], None]
"""Receives (direction "tx" | "rx", host time in s, message or raw bytes) for every frame."""


class Link:
    """`StimulusLink` over any `BytePipe`."""

    def __init__(self, pipe: BytePipe, time: HostTime, on_frame: FrameSink | None = None) -> None:
        self._pipe = pipe
        self._time = time
        self._on_frame = on_frame

    def identify(self) -> BoardIdentity:
        raise NotImplementedError

    def exchange_clock(self) -> ClockExchange:
        raise NotImplementedError

    def arm(self, plan: StimulusPlan) -> ArmedStimulus:
        raise NotImplementedError

    def fire(self) -> None:
        raise NotImplementedError

    def poll(self, deadline: Instant[HostClock]) -> Sequence[StimulusFired]:
        raise NotImplementedError

    def safe(self) -> None:
        raise NotImplementedError
