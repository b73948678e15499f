"""Listening without measuring: levels as they come, and whether samples are lost. Nothing is put on disk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.bench.gapwatch import GapWatch
from rig.bench.meter import ChannelReading, Meter
from rig.bench.run import FIRST_BLOCK_WITHIN_S, SILENT_FOR_S
from rig.domain.records import Gap
from rig.domain.seams import AudioBlock, AudioStream, HostTime
from rig.domain.timebase import Duration
from rig.errors import AudioLost

_READ_S = 0.1
_PLAY_AHEAD_S = 0.5

OnBlock = Callable[[Meter, float], None]
"""Is told, after each block, the meter and how many seconds have been heard."""


@dataclass(frozen=True, slots=True)
class Heard:
    """What listening found. `flagged`: losses that the backend told of, None where it cannot tell; `unflagged`: those
    that only the clock showed; `lost_frames`: of all those whose length is known."""

    heard_s: float
    n_frames: int
    first_block_s: float  # from the opening to the first block
    flagged: int | None
    unflagged: int
    lost_frames: int
    levels: tuple[ChannelReading, ...]


def listen(
    stream: AudioStream,
    time: HostTime,
    seconds: float | None,
    on_block: OnBlock | None = None,
    wave: npt.NDArray[np.float32] | None = None,
    every_s: float = 1.0,
) -> Heard:
    """Reads the stream for `seconds` of sound, or with None until KeyboardInterrupt, which ends it as time does.

    `wave` (mono) is played every `every_s`. Raises AudioLost when blocks stop coming, and what the stream raises.
    """
    return _Listener(stream, time, on_block, wave, every_s).listen(seconds)


class _Listener:
    def __init__(
        self,
        stream: AudioStream,
        time: HostTime,
        on_block: OnBlock | None,
        wave: npt.NDArray[np.float32] | None,
        every_s: float,
    ) -> None:
        self._stream = stream
        self._time = time
        self._on_block = on_block
        self._wave = wave
        self._every_s = every_s
        self._rate_hz = stream.granted.rate_hz
        self._meter = Meter(stream.granted.channels, self._rate_hz)
        self._watch = GapWatch(self._rate_hz)
        self._opened_s = time.now().seconds
        self._heard_s = self._opened_s  # when a block last came
        self._first_block_s: float | None = None
        self._next_frame = 0
        self._due: int | None = None  # frame of the stream at which the wave is played next
        self._n_frames = 0
        self._tells = False
        self._flagged = 0
        self._unflagged = 0
        self._jumped = 0

    def listen(self, seconds: float | None) -> Heard:
        try:
            while seconds is None or self._n_frames < seconds * self._rate_hz:
                block = self._stream.read(self._time.now().plus(Duration(_READ_S)))
                if block is None:
                    self._check_silence()
                else:
                    self._take(block)
        except KeyboardInterrupt:
            if seconds is not None or self._first_block_s is None:
                raise
        assert self._first_block_s is not None
        self._count(self._watch.end())
        return Heard(
            heard_s=self._n_frames / self._rate_hz,
            n_frames=self._n_frames,
            first_block_s=self._first_block_s,
            flagged=self._flagged if self._tells or self._flagged else None,
            unflagged=self._unflagged,
            lost_frames=self._jumped,
            levels=self._meter.overall(),
        )

    def _take(self, block: AudioBlock) -> None:
        self._heard_s = self._time.now().seconds
        if self._first_block_s is None:
            self._first_block_s = self._heard_s - self._opened_s
            self._next_frame = block.first_frame
            self._tells = block.overflow is not None
        jump = block.first_frame - self._next_frame
        if jump != 0 or block.overflow:
            self._flagged += 1
            self._watch.flagged(self._n_frames)
            self._jumped += max(0, jump)
        self._next_frame = block.first_frame + len(block.frames)
        self._count(self._watch.hear(self._n_frames, self._next_frame, block.arrived.seconds))
        self._n_frames += len(block.frames)
        self._meter.feed(block.frames)
        self._play()
        if self._on_block is not None:
            self._on_block(self._meter, self._n_frames / self._rate_hz)

    def _count(self, gaps: list[Gap]) -> None:
        self._jumped += sum(gap.lost_frames or 0 for gap in gaps)
        if self._watch.is_new(gaps):
            self._unflagged += 1

    def _play(self) -> None:
        if self._wave is None:
            return
        if self._due is None:
            self._due = self._next_frame + round(_PLAY_AHEAD_S * self._rate_hz)
        if self._next_frame >= self._due - round(_PLAY_AHEAD_S * self._rate_hz):
            self._due = self._stream.play(self._wave, self._due) + round(self._every_s * self._rate_hz)

    def _check_silence(self) -> None:
        silent_s = self._time.now().seconds - self._heard_s
        if silent_s >= (SILENT_FOR_S if self._first_block_s is not None else FIRST_BLOCK_WITHIN_S):
            raise AudioLost(
                f"{self._stream.granted.device} delivered nothing for {silent_s:.1f} s after"
                f" {self._n_frames / self._rate_hz:.2f} s",
                "a block of samples every few milliseconds",
                "check that the interface is still plugged in and no other program took it, then try again",
            )
