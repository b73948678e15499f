"""The Protocols between what rig does and what it does it with. Nothing else lives here.

The cut is as low as it can be and still have meaning: the simulated bench supplies bytes and samples, never results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rig.domain.records import (
    ArmedStimulus,
    BoardIdentity,
    ClockExchange,
    StimulusFired,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
)
from rig.domain.timebase import HostClock, Instant, Timebase

Frames = npt.NDArray[np.float32]


class BytePipe(Protocol):
    """A serial port, or something that behaves like one."""

    def write(self, data: bytes) -> None: ...
    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        """Whatever arrived, at least one byte if any comes before the deadline, else b''."""
        ...

    def close(self) -> None: ...


class HostTime(Protocol):
    """The host's monotonic clock. Only its implementations may call time.* or sleep.

    The identity of its timebase is the machine's boot, where that can be told."""

    @property
    def timebase(self) -> Timebase[HostClock]: ...
    def now(self) -> Instant[HostClock]: ...
    def sleep_until(self, instant: Instant[HostClock]) -> None: ...


class StimulusLink(Protocol):
    """The board, spoken to in records."""

    def identify(self) -> BoardIdentity: ...
    def exchange_clock(self) -> ClockExchange: ...
    def arm(self, plan: StimulusPlan) -> ArmedStimulus: ...
    def fire(self) -> None: ...
    def poll(self, deadline: Instant[HostClock]) -> Sequence[StimulusFired]: ...
    def safe(self) -> None:
        """Stops everything; idempotent; called on every way out."""
        ...


@dataclass(frozen=True, slots=True)
class AudioBlock:
    """What one callback gave. `frames` has shape (n_frames, n_channels), float32, full scale 1.0.

    `overflow` is True when the backend flagged lost input before this block, None when it cannot tell; `underflow` when
    it flagged that its output ran dry.
    Driver times are the driver's own claims in its own clock; None where it gives none (0.0 counts as none).
    """

    first_frame: int
    frames: Frames
    overflow: bool | None
    arrived: Instant[HostClock]
    adc_time_claimed_s: float | None = None
    now_claimed_s: float | None = None
    underflow: bool | None = None


class AudioStream(Protocol):
    """An open stream that records, and plays when asked to."""

    @property
    def granted(self) -> StreamGrant: ...
    def read(self, deadline: Instant[HostClock]) -> AudioBlock | None:
        """The next block, or None when none came before the deadline."""
        ...

    def play(self, wave: npt.NDArray[np.float32], at_frame: int) -> int:
        """Plays mono `wave` from the output so that it starts near input frame `at_frame`; returns the frame it
        was really scheduled for."""
        ...

    def close(self) -> None: ...


class AudioBackend(Protocol):
    """A way to reach audio devices."""

    @property
    def name(self) -> str: ...
    def devices(self) -> Sequence[dict[str, Any]]: ...
    def open(self, spec: StreamSpec) -> AudioStream: ...


class SystemUnderTest(Protocol):
    """Starting and stopping what is measured. `can_stop` False: it runs by itself and rig cannot mute it.

    `ended_early` says, after `stop`, how it ended by itself during the run; None when it did not.
    """

    @property
    def can_stop(self) -> bool: ...
    @property
    def ended_early(self) -> str | None: ...
    def start(self, run: int) -> None: ...
    def stop(self) -> None: ...


class MarksSource(Protocol):
    """Where the marks of the system under test come from while rig measures.

    `address` is where they can be sent to; None where they are read.
    """

    @property
    def address(self) -> str | None: ...
    def close(self) -> None:
        """Ends it; idempotent."""
        ...

    def collect(self, whole: bool) -> bytes:
        """Lines that came since the last call; `whole`: the system has stopped, so take a line without an end too.

        Raises OSError where they cannot be had; the measurement goes on without."""
        ...


class FrameSource(Protocol):
    """Frames on disk or in memory, read a window at a time, so that memory stays flat."""

    @property
    def rate_hz(self) -> int: ...
    @property
    def n_frames(self) -> int: ...
    @property
    def n_channels(self) -> int: ...
    @property
    def full_scale(self) -> float | None:
        """The largest value the sample format can hold (just under 1.0 for integers); None for float formats."""
        ...

    def read(self, start: int, count: int) -> Frames:
        """Frames [start, start + count) clipped to the file, shape (n, n_channels), float32."""
        ...


ProgressSink = Callable[[str, dict[str, Any]], None]
"""Receives (event, facts) while a command runs: a display or nothing. It must never raise or change results."""
