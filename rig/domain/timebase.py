"""Clocks as types: an instant knows its clock, and instants of two clocks cannot be subtracted.

There are four clocks on a bench: the host's monotonic clock, the microcontroller's timer, the audio interface's sample
clock (its identity includes the stream) and the clock of the system under test. A type checker refuses to mix their
instants; the run-time check also catches two streams of the same kind.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Generic, TypeVar


class HostClock:
    """CLOCK_MONOTONIC of the machine that runs rig; zero is arbitrary, unit 1 s."""


class McuClock:
    """The board's timer ticks, unwrapped and divided by its nominal rate; zero is the board's reset."""


class AudioClock:
    """Frames of one recording divided by its nominal rate; zero is the first frame of the stream."""


class SutClock:
    """The clock that the system under test stamps its marks with, for example one page load's performance.now()."""


C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class Timebase(Generic[C]):
    """One concrete clock. `kind` is host, mcu, audio or sut; `identity` tells two of a kind apart (stream, boot)."""

    kind: str
    identity: str


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A signed length of time in seconds. It has no clock: 50 ppm over 1 s is a line in the uncertainty budget."""

    seconds: float

    def __add__(self, other: Duration) -> Duration:
        return Duration(self.seconds + other.seconds)

    def __sub__(self, other: Duration) -> Duration:
        return Duration(self.seconds - other.seconds)

    def __neg__(self) -> Duration:
        return Duration(-self.seconds)


@dataclass(frozen=True, slots=True)
class Instant(Generic[C]):
    """A point in time on one clock, in seconds since that clock's zero."""

    timebase: Timebase[C]
    seconds: float

    def since(self, earlier: Instant[C]) -> Duration:
        """Signed time from `earlier` to this instant; positive when this one is later.

        Raises TypeError when the two belong to different clocks: convert one with a `ClockMap` first.
        """
        if not isinstance(earlier, Instant):
            raise TypeError(f"an instant can only be compared with an instant, not with {type(earlier).__name__}")
        if earlier.timebase != self.timebase:
            raise TypeError(
                f"instants of two clocks cannot be subtracted: {self.timebase.kind}:{self.timebase.identity}"
                f" and {earlier.timebase.kind}:{earlier.timebase.identity}"
            )
        return Duration(self.seconds - earlier.seconds)

    def __sub__(self, earlier: Instant[C]) -> Duration:
        return self.since(earlier)

    def plus(self, length: Duration) -> Instant[C]:
        """The instant `length` later on the same clock."""
        return Instant(self.timebase, self.seconds + length.seconds)


@dataclass(frozen=True, slots=True)
class ClockMap(Generic[C, D]):
    """A fitted line from clock C to clock D: `target_s = offset_s + rate * source_s`, valid inside its window only.

    `rate - 1` is positive when D runs fast against C. `residual_s` is the RMS of the fit, `u_s` the standard
    uncertainty of a mapped instant. `half_width_s`, where it is known, is a bound: the truth lies no further from a
    mapped instant, anywhere in the window.
    """

    source: Timebase[C]
    target: Timebase[D]
    offset_s: float
    rate: float
    residual_s: float
    u_s: float
    first_s: float
    last_s: float
    half_width_s: float | None = None

    def apply(self, instant: Instant[C]) -> Instant[D]:
        """Maps an instant; raises TypeError on another clock and ValueError outside the window of the fit."""
        if instant.timebase != self.source:
            raise TypeError(f"this map starts at {self.source.kind}:{self.source.identity}, not at {instant.timebase}")
        slack_s = 0.05 * (self.last_s - self.first_s)
        if not self.first_s - slack_s <= instant.seconds <= self.last_s + slack_s:
            raise ValueError(
                f"instant {instant.seconds:.6f} s lies outside the fitted window"
                f" {self.first_s:.6f} to {self.last_s:.6f} s"
            )
        return Instant(self.target, self.offset_s + self.rate * instant.seconds)

    @property
    def drift_ppm(self) -> float:
        """How fast D runs against C, in parts per million; positive when D is fast."""
        return (self.rate - 1.0) * 1e6


def is_finite(*values: float | None) -> bool:
    """True when every value given is a finite number; None counts as absent and is allowed."""
    return all(v is None or math.isfinite(v) for v in values)
