"""Buffers that put packets back into order and time. Told the time with every call; no clock, no thread, no sound.

`none` hands each packet on as it comes. `fixed` holds the first one for its target and plays the others at the pace of
their numbers from there. `adaptive` does the same with a target that follows how late packets come; it changes in whole
frames, by adding one that is made up or leaving one out. What has not come when it is due is lost and is made up by
whoever decodes; when it comes after all it is late and is thrown away. No frame is played twice.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, dataclass
from typing import Protocol

from rig.errors import UsageError
from rig.sut.voice.delays import LateTracker

FRAME, LOST, ADDED = "frame", "lost", "added"

LONGEST_TARGET_S = 2.0
MOST_HELD_S = 4.0
"""A packet whose number is further ahead than this is a stranger, and dropped: what is held is bounded."""

LATE_IN_A_ROW = 5
"""So many late packets one after the other are a network that has become slower, not packets that were unlucky."""

QUIET_S = 1.0
"""After so long without a packet the sender has stopped: the next one is a first one again."""

MARGIN_S = 0.005
"""Beyond what was seen: the timers of an ordinary machine wake up to some milliseconds late."""

SHRINK_EVERY = 50
"""Frames between two steps down; up it goes at once. Half a step of slack keeps it from going up and down."""


@dataclass(frozen=True, slots=True)
class Slot:
    """The sound of one frame's length that is due. FRAME has seq and payload, LOST seq alone, ADDED neither."""

    kind: str
    seq: int | None = None
    payload: bytes | None = None


@dataclass(slots=True)
class Counts:
    """Of packets: received = played + duplicates + late + dropped + what is held. Of slots: played, lost, added."""

    received: int = 0
    played: int = 0
    duplicates: int = 0
    late: int = 0
    dropped: int = 0
    lost: int = 0
    added: int = 0
    restarts: int = 0

    def as_json(self) -> dict[str, int]:
        return asdict(self)


class JitterBuffer(Protocol):
    counts: Counts

    @property
    def target_s(self) -> float:
        """How long the fastest packet is held now."""
        ...

    def push(self, seq: int, payload: bytes, now_s: float) -> None:
        """A packet has come."""
        ...

    def release(self, now_s: float) -> list[Slot]:
        """What is due, in order."""
        ...

    def next_due_s(self) -> float | None:
        """When to ask again at the latest; None: when a packet has come."""
        ...


class _Seen:
    """The numbers of late, to tell a duplicate from a packet that is late."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[int, None] = OrderedDict()

    def is_new(self, seq: int) -> bool:
        if seq in self._numbers:
            return False
        self._numbers[seq] = None
        if len(self._numbers) > 1000:
            self._numbers.popitem(last=False)
        return True


class NoBuffer:
    """Each packet as it comes. What is overtaken is late; a number that is passed over is lost and not made up for,
    since nobody knows when it was due."""

    target_s = 0.0

    def __init__(self) -> None:
        self.counts = Counts()
        self._seen = _Seen()
        self._next: int | None = None
        self._ready: list[Slot] = []

    def push(self, seq: int, payload: bytes, now_s: float) -> None:
        self.counts.received += 1
        if not self._seen.is_new(seq):
            self.counts.duplicates += 1
            return
        if self._next is not None and seq < self._next:
            self.counts.late += 1
            return
        if self._next is not None:
            self.counts.lost += seq - self._next
        self._next = seq + 1
        self.counts.played += 1
        self._ready.append(Slot(FRAME, seq, payload))

    def release(self, now_s: float) -> list[Slot]:
        ready, self._ready = self._ready, []
        return ready

    def next_due_s(self) -> float | None:
        return None


class TimedBuffer:
    """Fixed where `adaptive` is false. Frame `seq` is due at `_zero_s + seq * frame_s`."""

    def __init__(self, frame_s: float, target_s: float, adaptive: bool) -> None:
        self.counts = Counts()
        self._frame_s = frame_s
        self._target_s = target_s
        self._adaptive = adaptive
        self._tracker = LateTracker(frame_s)
        self._seen = _Seen()
        self._held: dict[int, bytes] = {}
        self._next: int | None = None
        self._zero_s = 0.0
        self._begun = False  # a slot has been released since the last start
        self._late_in_a_row = 0
        self._since_change = 0
        self._last_push_s = 0.0
        self._last_played = -1

    @property
    def target_s(self) -> float:
        if self._next is None or not self._tracker.n:
            return self._target_s
        return self._zero_s - self._tracker.fastest_s

    def push(self, seq: int, payload: bytes, now_s: float) -> None:
        self.counts.received += 1
        if not self._seen.is_new(seq):
            self.counts.duplicates += 1
            return
        if self._next is not None and (seq - self._next) * self._frame_s > MOST_HELD_S:
            self.counts.dropped += 1
            return
        self._last_push_s = now_s
        self._tracker.add(seq, now_s)
        if not self._is_in_time(seq, now_s):
            self.counts.late += 1
            return
        self._late_in_a_row = 0
        self._held[seq] = payload

    def _is_in_time(self, seq: int, now_s: float) -> bool:
        """Whether the packet can still be played. Begins, or begins anew, where that is due."""
        if seq <= self._last_played:
            return False  # whatever happens: nothing goes back
        if self._next is None:
            self._start(seq, now_s)
        elif seq < self._next:
            if not self._begun and self._zero_s + seq * self._frame_s >= now_s:
                self._next = seq  # the first packets came in another order
                return True
            self._late_in_a_row += 1
            if self._late_in_a_row < LATE_IN_A_ROW:
                return False
            self._restart(seq, now_s)
        return True

    def _start(self, seq: int, now_s: float) -> None:
        self._next = seq
        self._zero_s = now_s + self._target_s - seq * self._frame_s
        self._begun = False
        self._late_in_a_row = 0
        self._since_change = 0

    def _restart(self, seq: int, now_s: float) -> None:
        self.counts.restarts += 1
        self.counts.dropped += len(self._held)
        self._held.clear()
        self._tracker.forget()
        self._tracker.add(seq, now_s)
        self._start(seq, now_s)

    def release(self, now_s: float) -> list[Slot]:
        out: list[Slot] = []
        while (due_s := self.next_due_s()) is not None and due_s <= now_s:
            if not self._held and now_s - self._last_push_s > QUIET_S:
                self._next = None
                self._tracker.forget()
                break
            if not self._change(out):
                out.append(self._one())
        return out

    def next_due_s(self) -> float | None:
        return None if self._next is None else self._zero_s + self._next * self._frame_s

    def _one(self) -> Slot:
        assert self._next is not None
        seq, self._next, self._begun = self._next, self._next + 1, True
        self._since_change += 1
        payload = self._held.pop(seq, None)
        if payload is None:
            self.counts.lost += 1
            return Slot(LOST, seq)
        self.counts.played += 1
        self._last_played = seq
        return Slot(FRAME, seq, payload)

    def _change(self, out: list[Slot]) -> bool:
        """One step of the target. True: a slot was added, and the frame that was due has another time now."""
        if not self._adaptive or not self._begun or self._since_change < 1 or not self._tracker.n:
            return False
        assert self._next is not None
        wanted_s = min(self._tracker.spread_s + MARGIN_S, LONGEST_TARGET_S)
        has_s = self.target_s
        if has_s < wanted_s:
            self._zero_s += self._frame_s
            self._since_change = 0
            self.counts.added += 1
            out.append(Slot(ADDED))
            return True
        if has_s > wanted_s + 1.5 * self._frame_s and self._since_change >= SHRINK_EVERY:
            if self._held.pop(self._next, None) is not None:
                self.counts.dropped += 1
            else:
                self.counts.lost += 1
            self._next += 1
            self._zero_s -= self._frame_s
            self._since_change = 0
        return False


def parse(text: str, frame_s: float, duration_s: float | None) -> JitterBuffer:
    """`none`, `fixed` with a duration, `adaptive`. Raises UsageError."""
    if text == "none" and duration_s is None:
        return NoBuffer()
    if text == "adaptive" and duration_s is None:
        return TimedBuffer(frame_s, frame_s, adaptive=True)
    if text == "fixed" and duration_s is not None and duration_s <= LONGEST_TARGET_S:
        return TimedBuffer(frame_s, duration_s, adaptive=False)
    raise UsageError(
        f"--jitter-buffer {text}: there is no such buffer",
        f"none, fixed:DURATION up to {LONGEST_TARGET_S:g}s, or adaptive",
        "--jitter-buffer fixed:60ms, for example",
    )
