"""Virtual time, and clocks that drift against it.

True time is integer nanoseconds since the world began. The host's monotonic clock reads true time exactly (what the
other clocks are judged against); the board's and the interface's clocks are `DriftingClock`s.
"""

from __future__ import annotations

import math

from rig.domain.timebase import HostClock, Instant, Timebase


class VirtualTime:
    """`HostTime` in a world where time passes only when somebody waits. Deterministic: nothing reads a real clock."""

    def __init__(self, identity: str = "world") -> None:
        self.timebase: Timebase[HostClock] = Timebase("host", identity)
        self._now_ns = 0

    @property
    def now_ns(self) -> int:
        """True time in integer nanoseconds."""
        return self._now_ns

    @property
    def now_s(self) -> float:
        """True time in seconds."""
        return self.now_ns * 1e-9

    def now(self) -> Instant[HostClock]:
        return Instant(self.timebase, self.now_s)

    def advance_to_ns(self, at_ns: int) -> None:
        """Moves time forward to `at_ns`; a moment that has passed is left as it is."""
        self._now_ns = max(self._now_ns, at_ns)

    def sleep_until(self, instant: Instant[HostClock]) -> None:
        if instant.timebase != self.timebase:
            raise TypeError("this world's time cannot sleep until an instant of another clock")
        self.advance_to_ns(math.ceil(instant.seconds * 1e9))


class DriftingClock:
    """A clock of `rate_hz` that runs `ppm` fast, swinging by `swing_ppm` over `swing_period_s`.

    reading(t) = start + rate_hz * (t * (1 + ppm*1e-6) + integral of the swing). Monotonic while |ppm| + |swing| < 1e6.
    """

    def __init__(
        self,
        rate_hz: float,
        ppm: float = 0.0,
        swing_ppm: float = 0.0,
        swing_period_s: float = 60.0,
        swing_phase: float = 0.0,
        start: float = 0.0,
    ) -> None:
        self.rate_hz = rate_hz
        self.ppm = ppm
        self._swing = swing_ppm * 1e-6
        self._omega = 2.0 * math.pi / swing_period_s
        self._phase = swing_phase
        self._start = start

    def reading(self, true_s: float) -> float:
        """What the clock shows at true time `true_s`, in its own counts (fractional)."""
        swing = self._swing / self._omega * (math.cos(self._phase) - math.cos(self._omega * true_s + self._phase))
        return self._start + self.rate_hz * (true_s * (1.0 + self.ppm * 1e-6) + swing)

    def true_s(self, reading: float) -> float:
        """The true time at which the clock shows `reading`; the inverse of `reading` to under a picosecond."""
        true_s = (reading - self._start) / self.rate_hz / (1.0 + self.ppm * 1e-6)
        for _ in range(8):
            step = (reading - self.reading(true_s)) / self.rate_hz
            true_s += step
            if abs(step) < 1e-13:
                break
        return true_s
