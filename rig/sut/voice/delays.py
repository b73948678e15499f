"""How late packets come, and how long a buffer must hold them for most to be in time."""

from __future__ import annotations

from collections import deque

WINDOW = 200
"""Packets that are remembered: 4 s of 20 ms frames. Longer holds a target up long after a bad moment."""

IN_TIME = 0.95
"""The share of the remembered packets that the target is for; the others are concealed."""


class LateTracker:
    """Of the last packets: the time of each minus the time at which it would have come at the pace of its number."""

    def __init__(self, frame_s: float) -> None:
        self._frame_s = frame_s
        self._seen: deque[float] = deque(maxlen=WINDOW)

    def add(self, seq: int, now_s: float) -> None:
        self._seen.append(now_s - seq * self._frame_s)

    def forget(self) -> None:
        self._seen.clear()

    @property
    def n(self) -> int:
        return len(self._seen)

    @property
    def fastest_s(self) -> float:
        """The pace of the fastest packet: seq 0 would have come then. Raises ValueError before the first."""
        return min(self._seen)

    @property
    def spread_s(self) -> float:
        """How much later than the fastest a share of IN_TIME came, at most. 0 or more."""
        ordered = sorted(self._seen)
        return ordered[min(len(ordered) - 1, int(IN_TIME * len(ordered)))] - ordered[0]
