"""The queue between decoder and device, and when it plays: the player's own buffering. Told everything, no clock.

`none` plays what there is at once and is silent when there is nothing. `fixed` waits, at the start and after each time
that it ran empty, until its target is queued. `adaptive` is fixed with a target that begins at one frame, grows by a
frame with every time that it ran empty, and shrinks again by what was never needed for some seconds.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field

import numpy as np
import numpy.typing as npt

from rig.errors import UsageError

Samples = npt.NDArray[np.float32]

STRATEGIES = ("none", "fixed", "adaptive")
LONGEST_TARGET_S = 2.0
MOST_QUEUED_S = 4.0
"""Beyond it the oldest goes: a device that takes nothing must not fill the memory."""

CALM_S = 5.0
"""An adaptive target shrinks after so long without running empty."""


@dataclass(slots=True)
class PlayerCounts:
    """`underruns`: times that it ran empty, and `silent_samples` since it began. `trimmed_samples` were left out to be
    less late, `dropped_samples` because nobody took them."""

    underruns: int = 0
    silent_samples: int = 0
    trimmed_samples: int = 0
    dropped_samples: int = 0
    played_samples: int = 0

    def as_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(slots=True)
class _Piece:
    """Samples that wait. `seq` of the frame whose first sample is the first here; None: made up, or begun already."""

    seq: int | None
    samples: Samples


@dataclass(frozen=True, slots=True)
class Taken:
    """A block for the device, and the frames whose first sample is in it, each with its place in the block."""

    samples: Samples
    begun: list[tuple[int, int]] = field(default_factory=list)


class Player:
    """One queue. `target_s` is of `fixed` alone. Not safe for two threads: its owner locks."""

    def __init__(self, strategy: str, target_s: float | None, frame_samples: int, rate_hz: int) -> None:
        """Raises UsageError for a strategy that there is not."""
        given = target_s is not None
        if strategy not in STRATEGIES or given != (strategy == "fixed") or (target_s or 0.0) > LONGEST_TARGET_S:
            raise UsageError(
                f"--buffering {strategy}: there is no such strategy",
                f"none, fixed:DURATION up to {LONGEST_TARGET_S:g}s, or adaptive",
                "--buffering fixed:40ms, for example",
            )
        self.counts = PlayerCounts()
        self._adaptive = strategy == "adaptive"
        self._frame = frame_samples
        self._target = frame_samples if self._adaptive else round((target_s or 0.0) * rate_hz)
        self._most_target = round(LONGEST_TARGET_S * rate_hz)
        self._most = round(MOST_QUEUED_S * rate_hz)
        self._calm = round(CALM_S * rate_hz)
        self._queue: deque[_Piece] = deque()
        self._queued = 0
        self._begun = self._playing = False
        self._since_change = 0  # samples taken since the target changed or the queue ran empty
        self._least = 0  # what was left after the block that left least, since then

    @property
    def queued_samples(self) -> int:
        return self._queued

    @property
    def target_samples(self) -> int:
        return self._target

    def add(self, seq: int | None, samples: Samples) -> None:
        """Queues one frame, shape (n,); `seq` None where it was made up."""
        if not len(samples):
            return
        self._queue.append(_Piece(seq, samples))
        self._queued += len(samples)
        while self._queued > self._most:
            gone = self._queue.popleft()
            self._queued -= len(gone.samples)
            self.counts.dropped_samples += len(gone.samples)

    def take(self, n: int) -> Taken:
        """The next `n` samples for the device, with silence where there are none."""
        block = np.zeros(n, dtype=np.float32)
        if not self._playing:
            if self._queued < max(1, self._target):
                self.counts.silent_samples += n if self._begun else 0
                return Taken(block)
            self._playing = self._begun = True
            self._calm_from_here()
        self._trim()
        begun: list[tuple[int, int]] = []
        at = self._fill(block, begun)
        self.counts.played_samples += at
        self._since_change += n
        self._least = min(self._least, self._queued)
        if at < n:
            self._ran_empty(n - at)
        return Taken(block, begun)

    def _fill(self, block: Samples, begun: list[tuple[int, int]]) -> int:
        at = 0
        while at < len(block) and self._queue:
            piece = self._queue[0]
            n = min(len(block) - at, len(piece.samples))
            block[at : at + n] = piece.samples[:n]
            if piece.seq is not None:
                begun.append((piece.seq, at))
            if n == len(piece.samples):
                self._queue.popleft()
            else:
                piece.seq, piece.samples = None, piece.samples[n:]
            self._queued -= n
            at += n
        return at

    def _ran_empty(self, missing: int) -> None:
        self.counts.underruns += 1
        self.counts.silent_samples += missing
        if self._adaptive:
            self._target = min(self._target + self._frame, self._most_target)
        self._playing = False

    def _trim(self) -> None:
        """Leaves out what an adaptive queue has not needed for CALM_S, down to one frame."""
        if not self._adaptive or self._since_change < self._calm:
            return
        spare = min(self._least - self._frame, self._frame)
        if spare > 0:
            self.counts.trimmed_samples += spare
            self._target = max(self._frame, self._target - spare)
            self._skip(spare)
        self._calm_from_here()

    def _skip(self, n: int) -> None:
        while n and self._queue:
            piece = self._queue[0]
            m = min(n, len(piece.samples))
            if m == len(piece.samples):
                self._queue.popleft()
            else:
                piece.seq, piece.samples = None, piece.samples[m:]
            self._queued -= m
            n -= m

    def _calm_from_here(self) -> None:
        self._since_change = 0
        self._least = self._queued
