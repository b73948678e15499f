"""From the board's 32-bit ticks to ticks that never wrap."""

from __future__ import annotations

from rig.errors import AcquisitionLost, LinkLost

WRAP = 1 << 32
CLOCK_ERROR = 0.01  # more than any resonator on a board: ceramic ones are within 0.005
LATE_S = 1.0  # a fresh stamp is never older than this when it is read


def widen(raw: int, near: float) -> int:
    """The tick count that ends in the 32 bits of `raw` and lies nearest to `near`."""
    return raw + WRAP * round((near - raw) / WRAP)


class TickWidener:
    """Keeps the count across wraps with the host's clock as a guide.

    The first stamp counts from the board's reset, if that was less than one wrap ago. How often the counter wrapped
    between two stamps follows from the host time between them, as long as that is known to a quarter of a wrap at
    1 % of clock error; after a longer silence it cannot be known, and that is said.
    """

    def __init__(self, tick_rate_hz: float) -> None:
        self.tick_rate_hz = tick_rate_hz
        self._anchor: tuple[int, float] | None = None  # a tick and the host time at which it was read

    @property
    def wrap_s(self) -> float:
        """How long the 32 bits last."""
        return WRAP / self.tick_rate_hz

    def fresh(self, raw: int, host_s: float) -> int:
        """Widens a stamp that the board made just now; `host_s` is the host time at which it was read.

        Raises LinkLost when the count has jumped, which a restarted board does, and AcquisitionLost after a silence
        too long to know the number of wraps.
        """
        if self._anchor is None:
            self._anchor = (raw, host_s)
            return raw
        near = self._near(host_s)
        tick = widen(raw, near)
        elapsed_s = host_s - self._anchor[1]
        off_s = (tick - near) / self.tick_rate_hz
        if abs(off_s) > CLOCK_ERROR * elapsed_s + LATE_S:
            raise LinkLost(
                f"the board's counter jumped by {off_s:+.1f} s within {elapsed_s:.1f} s: the board restarted",
                "a counter that runs on while the port is open",
                "check the board's supply and cable, then start the measurement again",
            )
        self._anchor = (tick, host_s)
        return tick

    def earlier(self, raw: int, host_s: float) -> int:
        """Widens a stamp read at `host_s` that may have been made up to half a wrap before."""
        if self._anchor is None:
            return raw
        return widen(raw, self._near(host_s))

    def host_s(self, tick: int) -> float | None:
        """Roughly when the board shows `tick`, in host time; None before the first stamp. To 1 % of the time since."""
        if self._anchor is None:
            return None
        return self._anchor[1] + (tick - self._anchor[0]) / self.tick_rate_hz

    def _near(self, host_s: float) -> float:
        assert self._anchor is not None
        elapsed_s = host_s - self._anchor[1]
        if elapsed_s * CLOCK_ERROR > 0.25 * self.wrap_s:
            raise AcquisitionLost(
                f"the board's counter wraps every {self.wrap_s:.0f} s and was not read for {elapsed_s:.0f} s:"
                " how often it wrapped cannot be known",
                f"a stamp at least every {0.25 * self.wrap_s / CLOCK_ERROR:.0f} s",
                "start the measurement again and keep the clock exchanges running",
            )
        return self._anchor[0] + elapsed_s * self.tick_rate_hz
