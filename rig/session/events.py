"""events.jsonl to facts of each run: firings, clock exchanges, losses. One pass, memory bounded by the facts kept."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.domain.records import BlockArrival, ClockExchange, Gap, StimulusFired
from rig.errors import BadInput

_MAX_LINES = 50_000_000  # a day of serial frames; more is no session of ours
_MAX_FACTS = 5_000_000


@dataclass(frozen=True, slots=True)
class Scheduled:
    """A stimulus that the interface played: `frame` of the recording, `stream_frame` of the stream (losses counted)."""

    index: int
    frame: int
    stream_frame: int


@dataclass(frozen=True, slots=True)
class MarkLines:
    """The lines of marks.jsonl, counted from 1, that came during a run."""

    first: int
    count: int


@dataclass(slots=True)
class RunEvents:
    """What the events say of one run, in the order written."""

    fired: list[StimulusFired] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    pings: list[ClockExchange] = field(default_factory=list)
    scheduled: list[Scheduled] = field(default_factory=list)
    blocks: list[BlockArrival] = field(default_factory=list)
    overflows: int = 0
    overflow_known: bool = False  # the backend can tell when it loses input


@dataclass(slots=True)
class EventLog:
    """The whole file: runs by number (0 for the blank run), and what could not be read."""

    runs: dict[int, RunEvents] = field(default_factory=dict)
    blank_skipped: str | None = None  # why no blank run was made
    system_ended: list[str] = field(default_factory=list)  # how the system under test ended by itself
    marks: dict[int, MarkLines] = field(default_factory=dict)  # by run
    marks_failed: list[str] = field(default_factory=list)  # why marks are missing
    bad_lines: int = 0
    first_bad: str | None = None  # "line 12: …"
    last_line_cut: bool = False  # normal after a kill


def read_events(path: Path) -> EventLog:
    """Reads the events of a session. A file that is absent gives an empty log; a bad line is counted and named.

    Raises BadInput when the file is there and cannot be read, or is beyond all bounds.
    """
    log = EventLog()
    if not path.exists():
        return log
    kept = 0
    for line in strictjson.read_lines(path):
        if line.number > _MAX_LINES or kept > _MAX_FACTS:
            raise BadInput(
                f"{path.name} holds more than {_MAX_LINES} lines or {_MAX_FACTS} facts",
                "the events of one session",
                "analyze the session's audio files directly",
            )
        if line.value is None and line.cut:
            log.last_line_cut = True
            continue
        problem = line.problem
        if line.value is not None:
            try:
                kept += _take(log, line.value)
            except (KeyError, TypeError, ValueError, OverflowError) as error:
                problem = f"{type(error).__name__}: {error}"
        if problem is not None:
            log.bad_lines += 1
            if log.first_bad is None:
                log.first_bad = f"line {line.number}: {problem}"
    return log


def _take(log: EventLog, line: dict[str, Any]) -> int:
    """Adds one event; returns how many facts it left behind. Raises on a field that is missing or of another type."""
    kind = line["event"]
    if kind == "blank_skipped":
        log.blank_skipped = str(line.get("reason", "no reason given"))[:200]
        return 0
    if kind == "system_ended":
        log.system_ended.append(str(line["why"])[:400])
        return 1
    if kind == "marks":
        log.marks[_whole(line["of_run"])] = MarkLines(_whole(line["first_line"]), _whole(line["n_lines"]))
        return 1
    if kind == "marks_failed":
        log.marks_failed.append(f"the marks of run {_whole(line['of_run'])} were not kept: {str(line['why'])[:200]}")
        return 1
    number = line.get("run")
    if number is None or kind not in _TAKERS:
        return 0
    run = log.runs.setdefault(_whole(number), RunEvents())
    _TAKERS[kind](run, line)
    return 1


def _fired(run: RunEvents, line: dict[str, Any]) -> None:
    rate_hz = _number(line["tick_rate_hz"])
    if not rate_hz > 0:
        raise ValueError("a tick rate is above 0")
    run.fired.append(StimulusFired(_whole(line["index"]), _whole(line["tick"]), rate_hz))


def _gap(run: RunEvents, line: dict[str, Any]) -> None:
    lost = line["lost_frames"]
    flagged_by = line["flagged_by"]
    if not isinstance(flagged_by, str):
        raise TypeError("flagged_by is no text")
    run.gaps.append(Gap(_whole(line["frame"]), None if lost is None else _whole(lost), flagged_by))


def _ping(run: RunEvents, line: dict[str, Any]) -> None:
    run.pings.append(
        ClockExchange(
            _number(line["host_sent_s"]),
            _whole(line["mcu_received_tick"]),
            _whole(line["mcu_sent_tick"]),
            _number(line["host_received_s"]),
        )
    )


def _scheduled(run: RunEvents, line: dict[str, Any]) -> None:
    run.scheduled.append(Scheduled(_whole(line["index"]), _whole(line["frame"]), _whole(line["given"])))


def _block(run: RunEvents, line: dict[str, Any]) -> None:
    if line["t_s"] is None:
        return
    adc_s, now_s = line.get("adc_time_claimed_s"), line.get("now_claimed_s")
    run.blocks.append(
        BlockArrival(
            _number(line["t_s"]),
            _whole(line["frame"]),
            _whole(line["n"]),
            None if adc_s is None else _number(adc_s),
            None if now_s is None else _number(now_s),
        )
    )


def _overflow(run: RunEvents, line: dict[str, Any]) -> None:
    run.overflows += 1
    run.overflow_known = True


def _first_block(run: RunEvents, line: dict[str, Any]) -> None:
    run.overflow_known = run.overflow_known or line.get("overflow_known") is True


_TAKERS = {
    "fired": _fired,
    "gap": _gap,
    "ping": _ping,
    "scheduled": _scheduled,
    "block": _block,
    "overflow": _overflow,
    "first_block": _first_block,
}


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{str(value)[:40]!r} is no integer")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{str(value)[:40]!r} is no number")
    return float(value)
