"""Stamps of one clock to rows: merged by seq, restarts kept apart, and every row that breaks the order named."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np

from rig.domain.marks import INSTANTS, BufferStats, Claim, MarkPart, MarkRow, SyncExchange
from rig.errors import BadInput
from rig.session.marklines import DERIVED, Header, Other, Stamp, make_claim

CAPTURE, PACKET, PLAY = 0, 3, 4
_WALL = re.compile(r"date|wall|realtime|time\.time$|utc|epoch|unix|systemtime", re.I)
_UNIX_S = (1e9, 5e9)  # 2001 to 2128: a count of seconds since 1970
LONGEST_STAGE_S = 60.0
_RESTART_S = 0.5  # a seq that goes back by more than this in time is a new count, not a repetition
_SHOWN = 3
UNFINISHED = "unfinished: the marks end before it was played"


def refuse_wall_clock(clock: str, name: str, line: int) -> None:
    """Raises BadInput for a clock that somebody sets: durations on it can be anything."""
    if _WALL.search(clock):
        raise BadInput(
            f"{name} line {line}: the marks are on {clock}, a clock that is set while it runs",
            "a monotonic clock: CLOCK_MONOTONIC or performance.now",
            "stamp with time.monotonic_ns() or performance.now()",
        )


class PartBuilder:
    """Collects what one start of the system wrote on one clock."""

    def __init__(self, header: Header, line: int) -> None:
        self.header = header
        self.notes: list[str] = [] if header.note is None else [header.note]
        self._line = line
        self._counts: list[dict[int, _Row]] = [{}]  # a new one after each restart of seq
        self._newest = 0.0  # the latest t_capture of the count, in s
        self._exchanges: list[SyncExchange] = []
        self._claims: list[Claim] = []
        self._config: dict[str, Any] = {}
        self._events: list[tuple[str, float | None]] = []
        self._stats: list[BufferStats] = []
        self._repeated = self._later = self._lost = 0
        self._zeros: dict[str, int] = {}
        self._unlike: list[str] = []
        self._shift_s = 0.0  # to the part's clock, and the unit, of the header that speaks now
        self._unit_s = header.unit_s

    def same_clock(self, header: Header) -> bool:
        """May marks under `header` be put beside those of this part? Then its times are shifted to this part's zero."""
        own = self.header
        if (own.session_id, own.clock) != (header.session_id, header.clock):
            return False
        self._unit_s = header.unit_s
        if own.origin_s is not None and header.origin_s is not None:
            self._shift_s = header.origin_s - own.origin_s
            return True
        self._shift_s = 0.0
        if own.boot is not None or header.boot is not None:
            return own.boot == header.boot
        return own.context == header.context and own.origin_s == header.origin_s

    def take(self, item: Stamp | Other, line: int, name: str) -> None:
        """Adds an item. Raises BadInput where a stamp mixes units or kinds of clock."""
        if isinstance(item, Stamp):
            self._stamp(item, line, name)
        elif item.sync is not None:
            t1, t2, t3, t4 = (t * self._unit_s for t in item.sync)
            self._exchanges.append(SyncExchange(t1 + self._shift_s, t2, t3, t4 + self._shift_s))
        elif item.claim is not None:
            claim, value, source = item.claim
            self._claims.append(make_claim(claim, None if value is None else value * self._unit_s, source))
        elif item.config is not None:
            self._config.update(item.config)
            self.notes += _odd_settings(item.config, line)
        elif item.event is not None:
            event, at = item.event
            self._events.append((event, None if at is None else at * self._unit_s + self._shift_s))
        elif item.stats is not None:
            self._stats.append(item.stats)
        elif item.lost is not None:
            self._lost += item.lost

    def _stamp(self, stamp: Stamp, line: int, name: str) -> None:
        times_s = {k: v * self._unit_s + self._shift_s for k, v in stamp.instants.items()}
        for zero in stamp.zeros:
            self._zeros[zero] = self._zeros.get(zero, 0) + 1
        captured_s = times_s.get(CAPTURE)
        rows = self._counts[-1]
        if captured_s is not None and rows and self._goes_back(rows, stamp.seq, captured_s):
            self.notes.append(
                f"seq starts again at {stamp.seq} in line {line} without a new session_id: the parts are kept apart"
            )
            rows = {}
            self._counts.append(rows)
            self._newest = 0.0
        if captured_s is not None:
            self._newest = max(self._newest, captured_s)
        row = rows.setdefault(stamp.seq, _Row(line))
        before = len(row.times_s)
        same, later, clash = row.merge(stamp, times_s, line, self._unit_s)
        self._repeated += same
        self._later += later
        if clash:
            self.notes.append(clash)
        if len(row.times_s) > before:
            _refuse_mixed(row, stamp.seq, name)
        for key, given_s in stamp.derived_s.items():
            start, end = DERIVED[key]
            if start in row.times_s and end in row.times_s:
                true_s = row.times_s[end] - row.times_s[start]
                if abs(true_s - given_s) > 1.5e-4:
                    self._unlike.append(
                        f"{key} of seq {stamp.seq} (line {line}) says {given_s * 1e3:g}, its marks {true_s * 1e3:.1f}"
                    )

    def _goes_back(self, rows: dict[int, _Row], seq: int, captured_s: float) -> bool:
        known = rows.get(seq)
        if known is not None:
            first = known.times_s.get(CAPTURE)
            return first is not None and captured_s - first > _RESTART_S and seq < max(rows)
        return seq < min(rows) and 0.0 < self._newest < captured_s - _RESTART_S

    def parts(self, name: str) -> list[MarkPart]:
        """The parts, one for each count of seq; notes are complete afterwards."""
        if self._repeated:
            self.notes.append(f"{self._repeated} lines repeat earlier ones and count once")
        if self._later:
            self.notes.append(f"{self._later} later times of a first event are ignored: the first one counts")
        if self._lost:
            self.notes.append(f"the system dropped {self._lost} marks that nobody took in time")
        for field, count in self._zeros.items():
            self.notes.append(f"{field} is 0 or null in {count} lines of {name}: not set")
        if self._unlike:
            self.notes.append(
                f"{len(self._unlike)} differences that the system computed are not those of its marks"
                f" ({'; '.join(self._unlike[:_SHOWN])}): the marks count"
            )
        made = []
        for k, rows in enumerate(self._counts):
            done = self._finish(rows)
            first = min((row.line for row in done), default=self._line)
            mine = k == len(self._counts) - 1
            made.append(
                MarkPart(
                    session_id=self.header.session_id,
                    clock=self.header.clock,
                    boot=self.header.boot,
                    rate_hz=self.header.rate_hz,
                    peak_at_u_s=self.header.peak_at_u_s,
                    rows=done,
                    exchanges=tuple(self._exchanges),
                    claims=tuple(self._claims),
                    config=dict(self._config),
                    events=tuple(self._events) if mine else (),
                    stats=tuple(self._stats) if mine else (),
                    resolution_s=resolution_s([t for row in done for t in row.instants_s if t is not None]),
                    first_line=first,
                )
            )
        return made

    def _finish(self, rows: dict[int, _Row]) -> tuple[MarkRow, ...]:
        played = [seq for seq, row in rows.items() if PLAY in row.times_s]
        last_played = max(played, default=0)
        done: list[MarkRow] = []
        earlier: dict[float, int] = {}
        for seq in sorted(rows):
            row = rows[seq]
            problem = row.clash or _stale(row, seq, earlier) or _violation(row, seq)
            unplayed = bool(played) and PACKET in row.times_s and PLAY not in row.times_s
            # The last frames of a stream were on their way when the system stopped: nothing interrupted them.
            ended = unplayed and seq > last_played and (row.frame_s or self.header.frame_s) is not None
            interrupted = row.interrupted or (unplayed and not ended)
            if ended and problem is None:
                problem = UNFINISHED
            elif interrupted and problem is None:
                problem = "interrupted: it was never played"
            for time_s in row.times_s.values():
                earlier.setdefault(time_s, seq)
            done.append(
                MarkRow(
                    seq=seq,
                    line=row.line,
                    instants_s=tuple(row.times_s.get(k) for k in range(len(INSTANTS))),
                    frame_s=row.frame_s or self.header.frame_s,
                    peak=row.peak,
                    peak_at=row.peak_at,
                    interrupted=interrupted,
                    problem=problem,
                )
            )
        told: dict[str, list[str]] = {}
        for made in done:
            if made.problem is not None and made.problem != UNFINISHED:
                told.setdefault(made.problem.split(":")[0], []).append(
                    f"seq {made.seq}, line {made.line}: {made.problem}"
                )
        for kind, which in told.items():
            more = "" if len(which) <= _SHOWN else "; …"
            self.notes.append(f"{len(which)} rows are left out, {kind} ({'; '.join(which[:_SHOWN])}{more})")
        return tuple(done)


class _Row:
    """One seq while its lines come in."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.times_s: dict[int, float] = {}
        self.lines: dict[int, int] = {}  # where each instant was said
        self.frame_s: float | None = None
        self.peak: float | None = None
        self.peak_at: int | None = None
        self.interrupted = False
        self.clash: str | None = None

    def merge(self, stamp: Stamp, times_s: dict[int, float], line: int, unit_s: float) -> tuple[int, int, str | None]:
        """(1 for a mere repetition, later repeats of a first event, what contradicts)."""
        same = later = 0
        news = False
        for position, time_s in times_s.items():
            known = self.times_s.get(position)
            if known is None:
                self.times_s[position], self.lines[position] = time_s, line
                news = True
            elif known == time_s:
                same = 1
            elif position in (PACKET, PLAY) and time_s > known:
                later += 1
            elif self.clash is None:
                self.clash = (
                    f"contradiction: {INSTANTS[position]} is {known / unit_s:g} in line {self.lines[position]}"
                    f" and {time_s / unit_s:g} in line {line}"
                )
        self.frame_s = stamp.frame_s or self.frame_s
        self.peak = stamp.peak if self.peak is None else self.peak
        self.peak_at = stamp.peak_at if self.peak_at is None else self.peak_at
        self.interrupted = self.interrupted or stamp.interrupted
        return same if not news else 0, later, None


def resolution_s(times_s: list[float]) -> float | None:
    """The grid that all stamps lie on, in s; None where there is none to be seen or there are too few."""
    distinct = np.unique(np.array(times_s))
    if len(distinct) < 20:
        return None
    steps = np.diff(distinct)
    # Rounding of the decimal text leaves crumbs: steps under 0.2 us are the same stamp.
    steps = steps[steps > 2e-7]
    if len(steps) < 10:
        return None
    grid_s = float(np.min(steps))
    grid_s = float(np.median(steps[steps < 1.5 * grid_s]))
    for _ in range(3):  # a longer step shows the grid more exactly than the shortest one
        counts = np.rint(steps / grid_s)
        near = counts < 50.0
        grid_s = float(np.sum(steps[near]) / np.sum(counts[near]))
    off = np.abs(steps[near] / grid_s - counts[near])
    return grid_s if float(np.mean(off < 0.06)) > 0.98 and grid_s > 5e-6 else None


def _violation(row: _Row, seq: int) -> str | None:
    ordered = [(position, row.times_s[position]) for position in sorted(row.times_s)]
    for (a, before_s), (b, after_s) in pairwise(ordered):
        if after_s < before_s:
            return f"out of order: {INSTANTS[b]} is {(after_s - before_s) * 1e3:+.3f} ms after {INSTANTS[a]}"
        if after_s - before_s > LONGEST_STAGE_S:
            return f"too long: {INSTANTS[a]} to {INSTANTS[b]} takes {after_s - before_s:.1f} s"
    return None


def _stale(row: _Row, seq: int, earlier: dict[float, int]) -> str | None:
    captured_s = row.times_s.get(CAPTURE)
    if captured_s is None:
        return None
    for position, time_s in row.times_s.items():
        if time_s < captured_s and time_s in earlier:
            return f"stale: {INSTANTS[position]} is that of seq {earlier[time_s]}, before its own t_capture"
    return None


def _refuse_mixed(row: _Row, seq: int, name: str) -> None:
    """Raises BadInput where two instants of a row cannot be in one unit, or on one kind of clock."""
    known = sorted(row.times_s.items())
    for (a, x), (b, y) in pairwise(known):
        unix = [_UNIX_S[0] <= abs(t) <= _UNIX_S[1] for t in (x, y)]
        first = f"{INSTANTS[a]} in line {row.lines[a]} is {x:g} s"
        where = f"{name} seq {seq}: {first}, {INSTANTS[b]} in line {row.lines[b]} is {y:g} s"
        if all(unix):
            raise BadInput(
                f"{where}: both count from 1970, on a clock that is set while it runs",
                "a monotonic clock: CLOCK_MONOTONIC or performance.now",
                "stamp with time.monotonic_ns() or performance.now()",
            )
        if any(unix) and abs(x - y) > LONGEST_STAGE_S and 0.0 < min(x, y) < _UNIX_S[0] / 10.0:
            raise BadInput(
                f"{where}: one counts from 1970, the other does not",
                "one clock for all marks of a row",
                "stamp both with the same clock; in an audio worklet send the time to the page's thread",
            )
        if min(x, y) > 0.0 and abs(x - y) > LONGEST_STAGE_S and 900.0 < max(x, y) / min(x, y) < 1100.0:
            raise BadInput(
                f"{where}: this looks like mixed s and ms",
                "every time in the unit of the header",
                "convert one of the two where it is written",
            )


def _odd_settings(config: dict[str, Any], line: int) -> list[str]:
    """Settings whose unit is commonly mistaken: the target is in ms (up to 4000), the older hint in s."""
    said = []
    target, hint = config.get("jitterBufferTarget"), config.get("playoutDelayHint")
    if isinstance(target, int | float) and not isinstance(target, bool) and 0.0 < target < 5.0:
        said.append(f"line {line}: jitterBufferTarget {target:g} looks like seconds; it is in milliseconds")
    if isinstance(hint, int | float) and not isinstance(hint, bool) and hint > 10.0:
        said.append(f"line {line}: playoutDelayHint {hint:g} looks like milliseconds; it is in seconds")
    return said
