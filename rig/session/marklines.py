"""One line of a file of marks, JSON or log form, to an item. What lines say together is checked in `markrows.py`."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from rig import strictjson
from rig.domain.marks import INSTANTS, BufferStats, Claim

UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
CLAIMS = (
    *("input_latency", "output_latency", "base_latency"),
    *("processing_delay", "send_delay", "round_trip_time"),
)
"""The first three speak of capture and output. The others are shown, and stand beside no stage."""

DERIVED = {
    "capture_to_encode_ms": (0, 1),
    "encode_to_send_ms": (1, 2),
    "send_to_packet_ms": (2, 3),
    "packet_to_play_ms": (3, 4),
}
"""Differences that a system may write beside its instants: they are computed again and compared, never used."""

LONGEST_CLAIM_S = 5.0
"""No playback path holds more; a claim beyond it, or below 0, is a fault of whoever claims it."""

_LOG = re.compile(rb"\[rt\]\s+(.*)", re.S)
_PAIR = re.compile(r"([A-Za-z_]\w*)=(\S+)")


class BadLine(ValueError):
    """The line cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Header:
    """What the times after it mean."""

    session_id: str | None
    clock: str
    unit_s: float
    boot: str | None
    origin_s: float | None  # where the clock's zero lies on a clock that contexts of one machine share
    context: str | None
    frame_s: float | None
    rate_hz: float | None
    peak_at_u_s: float | None
    note: str | None = None  # what a reader of these marks has to know


@dataclass(frozen=True, slots=True)
class Stamp:
    """Some of the marks of one frame, in the file's unit. `zeros`: fields that were 0 or null, so not set."""

    seq: int
    instants: dict[int, float]  # by position in INSTANTS
    zeros: tuple[str, ...] = ()
    frame_s: float | None = None
    peak: float | None = None
    peak_at: int | None = None
    interrupted: bool = False
    session_id: str | None = None
    derived_s: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Other:
    """Everything else. Times in the file's unit."""

    sync: tuple[float, float, float, float] | None = None
    claim: tuple[str, float | None, str] | None = None
    config: dict[str, Any] | None = None
    event: tuple[str, float | None] | None = None
    stats: BufferStats | None = None
    lost: int | None = None


Item = Header | Stamp | Other


def read_line(raw: bytes) -> list[Item] | None:
    """The items of a line; None for a line of some other log. Raises BadLine, and nothing else."""
    text = raw.strip().removeprefix(b"\xef\xbb\xbf")
    if not text.startswith(b"{"):
        found = _LOG.search(text)
        return None if found is None else _log_items(found[1])
    try:
        value = strictjson.parse(text)
    except strictjson.NotJson as error:
        raise BadLine(str(error)) from error
    if not isinstance(value, dict):
        raise BadLine("not an object")
    return [_json_item(value)]


def make_claim(name: str, value_s: float | None, source: str) -> Claim:
    """A claim, without its value where that cannot be a latency."""
    if value_s is None:
        return Claim(name, None, source, "not reported")
    if not 0.0 <= value_s <= LONGEST_CLAIM_S:
        return Claim(name, None, source, f"{value_s * 1e3:g} ms cannot be a latency")
    return Claim(name, value_s, source)


def _json_item(value: dict[str, Any]) -> Item:
    if "marks" in value:
        return _header(value)
    if "seq" in value:
        return _stamp(value)
    if "sync" in value:
        four = value["sync"]
        if not isinstance(four, list) or len(four) != 4:
            raise BadLine("sync is not four times")
        t1, t2, t3, t4 = (_number(t, "sync") for t in four)
        return Other(sync=(t1, t2, t3, t4))
    if "claim" in value:
        name, source = value["claim"], value.get("source", "not named")
        if name not in CLAIMS:
            raise BadLine(f"the claim {str(name)[:40]!r} is none of {', '.join(CLAIMS)}")
        given = value.get("value")
        return Other(claim=(name, None if given is None else _number(given, "value"), str(source)[:60]))
    if "config" in value:
        if not isinstance(value["config"], dict):
            raise BadLine("config is no object")
        return Other(config=value["config"])
    if "stats" in value:
        stats = value["stats"]
        if not isinstance(stats, dict):
            raise BadLine("stats is no object")
        delay = _number(stats.get("jitterBufferDelay"), "jitterBufferDelay")
        return Other(
            stats=BufferStats(delay, _number(stats.get("jitterBufferEmittedCount"), "jitterBufferEmittedCount"))
        )
    if value.get("event") == "marks_lost":
        return Other(lost=_whole(value.get("n"), "n"))
    if "event" in value:
        at = value.get("t")
        return Other(event=(str(value["event"])[:60], None if at is None else _number(at, "t")))
    raise BadLine("neither marks, seq, sync, claim, config, stats nor event")


def _header(value: dict[str, Any]) -> Header:
    if value["marks"] != 1:
        raise BadLine(f"marks of level {str(value['marks'])[:20]}, this version reads level 1")
    unit, clock = value.get("unit"), value.get("clock")
    if unit not in UNITS_S:
        raise BadLine(f"the unit is {str(unit)[:20]!r}, not one of {', '.join(UNITS_S)}")
    if not isinstance(clock, str) or not clock:
        raise BadLine("the header names no clock")
    unit_s = UNITS_S[unit]

    def text(name: str) -> str | None:
        return None if value.get(name) is None else str(value[name])[:100]

    def positive(name: str, scale: float) -> float | None:
        if value.get(name) is None:
            return None
        number = _number(value[name], name)
        if number <= 0.0:
            raise BadLine(f"{name} is {number:g}, not above 0")
        return number * scale

    origin = value.get("origin")
    return Header(
        session_id=text("session_id"),
        clock=clock[:60],
        unit_s=unit_s,
        boot=text("boot"),
        origin_s=None if origin is None else _number(origin, "origin") * unit_s,
        context=text("context"),
        frame_s=positive("frame_ms", 1e-3),
        rate_hz=positive("rate_hz", 1.0),
        peak_at_u_s=positive("peak_at_u", unit_s),
        note=None if value.get("note") is None else str(value["note"])[:300],
    )


def _stamp(value: dict[str, Any]) -> Stamp:
    instants: dict[int, float] = {}
    zeros = []
    for position, name in enumerate(INSTANTS):
        if name not in value:
            continue
        given = value[name]
        if given is None or given == 0:
            zeros.append(name)
        else:
            instants[position] = _number(given, name)
    frame_ms, peak, peak_at = value.get("frame_ms"), value.get("peak"), value.get("peak_at")
    session_id = value.get("session_id")
    return Stamp(
        seq=_whole(value["seq"], "seq"),
        instants=instants,
        zeros=tuple(zeros),
        frame_s=None if not frame_ms else 1e-3 * _number(frame_ms, "frame_ms"),
        peak=None if peak is None else abs(_number(peak, "peak")),
        peak_at=None if peak_at is None else _whole(peak_at, "peak_at"),
        interrupted=value.get("interrupted") is True,
        session_id=None if session_id is None else str(session_id)[:100],
        derived_s={n: 1e-3 * _number(value[n], n) for n in DERIVED if value.get(n) is not None},
    )


def _log_items(raw: bytes) -> list[Item]:
    """`[rt] seq=42 t_first_packet=1234.5 …`: the pairs, read as the JSON line of the same fields would be."""
    pairs: dict[str, Any] = {}
    for name, text in _PAIR.findall(raw.decode("utf-8", "replace")):
        if name in pairs:
            raise BadLine(f"{name} stands there twice")
        pairs[name] = _log_value(text)
    if not pairs:
        raise BadLine("no name=value in a line of the log form")
    if "marks" in pairs or "seq" in pairs:
        return [_json_item(pairs)]
    config = {k.removeprefix("buf_"): v for k, v in pairs.items() if k.startswith("buf_")}
    items: list[Item] = [Other(config=config)] if config else []
    if "out_latency" in pairs:
        given = pairs["out_latency"]
        items.append(
            Other(claim=("output_latency", None if given is None else _number(given, "out_latency"), "out_latency"))
        )
    if not items:
        raise BadLine("neither seq, buf_ nor out_latency in a line of the log form")
    return items


def _log_value(text: str) -> Any:
    text = text.rstrip(",;")
    if text in ("null", "None", "undefined", "-", ""):
        return None
    if text in ("true", "false"):
        return text == "true"
    if re.fullmatch(r"[+-]?\d{1,18}", text):
        return int(text)
    try:
        value = float(text)
    except ValueError:
        return text
    if not math.isfinite(value):
        raise BadLine(f"{text[:20]} is no number")
    return value


def _number(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise BadLine(f"{name} is {str(value)[:30]!r}, no number")
    return float(value)


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise BadLine(f"{name} is {str(value)[:30]!r}, no whole number from 0")
    return value
