"""Frozen records of marks: what the system under test wrote about itself, on its own clock, in seconds.

Nothing in here is a measurement of rig's. A missing instant is None; 0 in a file means "not set" and is None too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

INSTANTS = ("t_capture", "t_encode_done", "t_send_done", "t_first_packet", "t_first_play")
"""The instants of a frame, in the order in which they must happen."""


@dataclass(frozen=True, slots=True)
class MarkRow:
    """The marks of one frame (or turn) `seq`. `peak_at`: sample of the frame at which a sound begins.

    `problem` None: the row may enter statistics; else why it may not, in words. `line`: the first that spoke of it.
    """

    seq: int
    line: int
    instants_s: tuple[float | None, ...]  # in the order of INSTANTS
    frame_s: float | None = None
    peak: float | None = None
    peak_at: int | None = None
    interrupted: bool = False
    problem: str | None = None

    @property
    def first_s(self) -> float | None:
        """The earliest instant that is known."""
        return next((t for t in self.instants_s if t is not None), None)


@dataclass(frozen=True, slots=True)
class SyncExchange:
    """Clock exchange with the system: it sent, the host received, the host sent, it received."""

    sut_sent_s: float
    host_received_s: float
    host_sent_s: float
    sut_received_s: float


@dataclass(frozen=True, slots=True)
class Claim:
    """What an interface of the system says of itself. `value_s` None: not a latency, `problem` says why."""

    name: str
    value_s: float | None
    source: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class BufferStats:
    """Running totals of a jitter buffer: seconds waited by all samples emitted so far, and how many those were."""

    delay_s: float
    emitted: float


@dataclass(frozen=True, slots=True)
class MarkPart:
    """Marks of one clock of one start of the system. Times of two parts are never mixed.

    `clock` is its name as written. `boot` names the machine's boot for CLOCK_MONOTONIC. `resolution_s`: all stamps lie
    on a grid this wide, None where no grid shows. `peak_at_u_s`: standard uncertainty of `peak_at`, None: not stated.
    """

    session_id: str | None
    clock: str
    boot: str | None
    rate_hz: float | None
    peak_at_u_s: float | None
    rows: tuple[MarkRow, ...]  # by seq
    exchanges: tuple[SyncExchange, ...] = ()
    claims: tuple[Claim, ...] = ()
    config: dict[str, Any] = field(default_factory=dict)
    events: tuple[tuple[str, float | None], ...] = ()
    stats: tuple[BufferStats, ...] = ()
    resolution_s: float | None = None
    first_line: int = 1


@dataclass(frozen=True, slots=True)
class Marks:
    """Everything that a file of marks says. `notes` are sentences about what was left out, and why."""

    parts: tuple[MarkPart, ...]
    rejected_lines: int
    notes: tuple[str, ...]
