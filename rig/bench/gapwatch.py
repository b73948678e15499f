"""Losses that nobody flagged: frames counted against the host's clock.

A block may reach the program late, never early. So how late blocks are, at their earliest over a while, stands still
(but for the drift of two crystals) as long as no sample is lost, and steps up by the length of what is lost, for good.
A computer that was busy makes blocks late, too, but what was held up then comes in a burst, and the lateness falls
back.
"""

from __future__ import annotations

from collections import deque

from rig.domain.records import Gap

STEP_S = 0.005
"""The smallest step that is called a loss. Drift of 100 ppm moves the level by 1 ms within `BEFORE_S`."""

CONFIRM_S = 3.0
"""Blocks must stay late for this long: what was only held up has come by then. A computer with more to do than it can
makes every block late for seconds: `python -m benchmarks.soak` counts what shorter waits take for losses."""

ENDS_S = 0.5
"""Where the stream ends while blocks are late, this much of it is called a loss: nothing can show any more that it was
none."""

BEFORE_S = 10.0
"""The level is the earliest arrival within this time."""

SETTLE_S = 0.3
"""At its start a stream delivers as its buffers fill; the level is looked for after that."""

KNOWN_S = 3.0
"""The level is known after this long: until then an earlier block shows only that it was not."""

NEAR_S = 1.0
"""What a backend flagged this near to a gap is the same loss."""

_SLOT_S = 0.25
_FLAGS = 256  # of the last ones, kept until the clock is certain


class GapWatch:
    """Fed with every block of a stream; says where frames went missing, CONFIRM_S after the fact, or at the end."""

    def __init__(self, rate_hz: int, confirm_s: float = CONFIRM_S) -> None:
        self._rate_hz = rate_hz
        self._confirm_s = confirm_s
        self._begun_s: float | None = None
        self._slots: deque[tuple[float, float]] = deque()  # (slot's start, least lateness in it), s
        self._late: list[tuple[float, float, int]] = []  # (arrival, lateness, frame) since blocks have been late
        self._flagged: deque[int] = deque(maxlen=_FLAGS)

    def flagged(self, frame: int) -> None:
        """The backend itself told of a loss before this frame of the recording."""
        self._flagged.append(frame)

    def is_new(self, gaps: list[Gap]) -> bool:
        """Whether these gaps, found together, are a loss that nobody had flagged."""
        near_frames = NEAR_S * self._rate_hz
        return bool(gaps) and not any(abs(frame - gaps[0].frame) <= near_frames for frame in self._flagged)

    def hear(self, frame: int, stream_end: int, arrived_s: float) -> list[Gap]:
        """Takes a block: its first `frame` in the recording, the stream's frame after its last, and its arrival.

        Returns the gaps that are certain now. A loss lies somewhere from the first late block to the first that is as
        late as all after it: where these differ two gaps are returned, the second with the count. `lost_frames` is None
        in the first, and where frames were put in, not lost.
        """
        lateness_s = arrived_s - stream_end / self._rate_hz
        if self._begun_s is None:
            self._begun_s = arrived_s
        if arrived_s - self._begun_s < SETTLE_S:
            return []
        level_s = min((least for _, least in self._slots), default=None)
        if level_s is None:
            self._note(arrived_s, lateness_s)
            return []
        if lateness_s < level_s - STEP_S and arrived_s - self._slots[0][0] >= KNOWN_S:
            # Earlier than ever: the stream carries frames that took no time. Where it ends is seen when it has settled.
            self._begun_s = arrived_s
            self._late.clear()
            self._slots.clear()
            return [Gap(frame, None, "clock")]
        if lateness_s <= level_s + STEP_S:
            self._late.clear()
            self._note(arrived_s, lateness_s)
            return []
        self._late.append((arrived_s, lateness_s, frame))
        return self._confirmed(level_s, self._confirm_s)

    def end(self) -> list[Gap]:
        """The stream has ended: the gaps that had not been certain yet, and would have needed more of it."""
        level_s = min((least for _, least in self._slots), default=None)
        found: list[Gap] = []
        while level_s is not None and (gaps := self._confirmed(level_s, ENDS_S)):
            found += gaps
            level_s = min(least for _, least in self._slots)
        return found

    def _confirmed(self, level_s: float, after_s: float) -> list[Gap]:
        """The loss that is certain once blocks have been later than `level_s` for `after_s`."""
        if not self._late or self._late[-1][0] - self._late[0][0] < after_s:
            return []
        begun_s, _, from_frame = self._late[0]
        new_level_s = min(lateness for _, lateness, _ in self._late)
        as_late = [k for k, (_, lateness, _) in enumerate(self._late) if lateness <= new_level_s + STEP_S]
        to_frame = self._late[as_late[0]][2]
        # What has been later still since then may be the next loss, which begins there.
        self._late = self._late[as_late[-1] + 1 :]
        self._slots.clear()
        self._slots.append((begun_s, new_level_s))
        lost = Gap(to_frame, round((new_level_s - level_s) * self._rate_hz), "clock")
        return [lost] if to_frame == from_frame else [Gap(from_frame, None, "clock"), lost]

    def _note(self, arrived_s: float, lateness_s: float) -> None:
        if self._slots and arrived_s - self._slots[-1][0] < _SLOT_S:
            start_s, least_s = self._slots[-1]
            self._slots[-1] = (start_s, min(least_s, lateness_s))
        else:
            self._slots.append((arrived_s, lateness_s))
        while arrived_s - self._slots[0][0] > BEFORE_S:
            self._slots.popleft()
