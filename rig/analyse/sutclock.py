"""From the clock of the system under test to the host's: the same clock where that is proved, else through exchanges.

Marks on CLOCK_MONOTONIC of the same boot are host times already. Otherwise every exchange (the system sent, the host
received, the host sent, the system received) bounds the line from both sides, as the pings of the board do
(`clockbounds.py`): when the system's clock showed its sending the host's was no later than the receipt, when it showed
its receipt the host's was no earlier than the sending.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rig.analyse.clockfit import AUDIO_CURVE, AUDIO_WINDOW_S, Bounds, Floats, Mapped, Window, blended, spans
from rig.domain.marks import MarkPart, SyncExchange

MIN_EXCHANGES = 5
BEYOND_S = 5.0
"""Marks this far before the first and after the last exchange are still carried over; the interval widens there."""

SAME, EXCHANGES = "boot", "exchanges"


@dataclass(frozen=True, slots=True)
class SutClock:
    """The map of one part of the marks. `windows` None: the clocks are one. `grid_s`: a stamp may be cut by this."""

    tie: str
    windows: tuple[Window, ...] | None
    grid_s: float

    def host(self, sut_s: Floats) -> Mapped:
        """Host time of marks at `sut_s`, shape (n,); NaN where no exchange is near."""
        found = Mapped(sut_s, sut_s, sut_s) if self.windows is None else blended(self.windows, sut_s)
        # A clock that counts in steps shows the last one, or the nearest: the moment was up to half a step before
        # what it shows, or up to a whole one after.
        return Mapped(found.s + 0.25 * self.grid_s, found.low_s - 0.5 * self.grid_s, found.high_s + self.grid_s)


def sut_clock(part: MarkPart, host_clock: str | None) -> SutClock | str:
    """The map, or in words why there is none. `host_clock`: the boot that the host's times are of."""
    grid_s = part.resolution_s or 0.0
    monotonic = part.clock.upper().replace("-", "_") == "CLOCK_MONOTONIC"
    if monotonic and part.boot is not None and part.boot == host_clock:
        return SutClock(SAME, None, grid_s)
    exchanges = [e for e in part.exchanges if _is_possible(e)]
    if len(exchanges) < MIN_EXCHANGES:
        if monotonic and not exchanges:
            known = "of another boot" if part.boot is not None and host_clock is not None else "of an unknown boot"
            return f"the marks are on CLOCK_MONOTONIC {known}, and no clock exchanges tie it to this host"
        return f"{len(exchanges)} clock exchanges are too few to tie {part.clock} to the host's clock"
    windows = _windows(exchanges, grid_s)
    if not windows:
        return f"the clock exchanges with {part.clock} contradict each other: no line keeps all bounds"
    return SutClock(EXCHANGES, windows, grid_s)


def _windows(exchanges: Sequence[SyncExchange], grid_s: float) -> tuple[Window, ...]:
    sent = np.array([e.sut_sent_s for e in exchanges])
    received = np.array([e.sut_received_s for e in exchanges])
    low = np.array([e.host_sent_s for e in exchanges]) - grid_s
    high = np.array([e.host_received_s for e in exchanges]) + 0.5 * grid_s
    order = np.argsort(sent)
    bounds = Bounds(received[order], low[order], sent[order], high[order], np.zeros((2, len(sent))))
    found: list[Window] = []
    for first_s, last_s in spans(sent[order], float(received.max()), AUDIO_WINDOW_S):
        found += bounds.windows(first_s, last_s, AUDIO_CURVE)
    if found:
        found[0] = replace(found[0], first_s=found[0].first_s - BEYOND_S)
        found[-1] = replace(found[-1], last_s=found[-1].last_s + BEYOND_S)
    return tuple(found)


def _is_possible(e: SyncExchange) -> bool:
    """Whether the four stamps are in the order that time has."""
    return e.sut_sent_s < e.sut_received_s and e.host_received_s <= e.host_sent_s
