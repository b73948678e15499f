"""Marks and physics joined: who owns each part of the latency of one run.

The recording says when the sound was at the mouth and at the ear. The marks say when the frame that carried its
beginning passed through the software. Between two marks lies a stage of the software's, known on its own clock. What is
left before the first mark and after the last, no log can see: capture and output. Their sum needs one clock alone and
is exact. To tell them apart needs the marks in host time (`sutclock.py`), the recording in host time (`runclocks.py`),
and the place in its frame at which the sound began. An error of either clock's map moves time from one to the other and
leaves their sum as it is.

A frame of length F that holds the sound's beginning `place` after its own has waited F - place to be complete, and is
played `place` early: together F, whatever the place. That is the frame's filling, apart from what is hidden.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from rig.analyse.carriers import FIRST, LAST, Found, Row, beginnings, by_host_time, by_pattern
from rig.analyse.claims import IN, OUT, buffer_note, claimed
from rig.analyse.clockfit import Floats, Mapped
from rig.analyse.runclocks import RunClocks
from rig.analyse.sutclock import SutClock, sut_clock
from rig.domain.marks import INSTANTS, MarkPart, MarkRow
from rig.domain.records import RunAnalysis, Trial
from rig.domain.stages import (
    BY_RIG,
    BY_SOFTWARE,
    CAPTURE,
    FILL,
    JOIN,
    OUTPUT,
    SOFTWARE_STAGES,
    RunMarks,
    RunStages,
    StageSample,
)

PEAK_AT_U_S = 0.3e-3
"""Standard uncertainty of a sound's place in its frame where the marks state none: that of a simple finder."""

MOST_NOTES = 40
NO_BOARD = "no board fired the stimuli, so nothing ties the recording to the host's clock"
NO_CARRIER = "the marks do not say which frame carried a sound: the split is open by whole frames"
OTHER_TIMES = "no mark lies in the host times of this run: were the clock exchanges made with another host?"


@dataclass(frozen=True, slots=True)
class _Physics:
    """The accepted trials; host times of their sound at mouth and ear are None where nothing ties them.

    Standard uncertainties: `u_noise_s` of one latency, `u_common_s` of what all latencies of the run share."""

    trials: tuple[Trial, ...]
    rate_hz: float
    sound: Mapped | None
    heard: Mapped | None
    u_noise_s: float
    u_common_s: float


@dataclass(frozen=True, slots=True)
class _Shape:
    """What the marks can tell apart: the instants that they hold, and the frame's length where it can be set apart."""

    known: tuple[int, ...]
    frame_s: float | None

    @property
    def head(self) -> str:
        return JOIN.join((CAPTURE, *SOFTWARE_STAGES[: self.known[0]]))

    @property
    def tail(self) -> str:
        return JOIN.join((*SOFTWARE_STAGES[self.known[-1] :], OUTPUT))

    @property
    def software(self) -> list[tuple[str, int, int]]:
        """(name, from, to) of the stages between the instants, as positions in INSTANTS."""
        return [(JOIN.join(SOFTWARE_STAGES[a:b]), a, b) for a, b in pairwise(self.known)]


def reconcile_run(
    analysis: RunAnalysis, clocks: RunClocks | None, marks: RunMarks, host_clock: str | None
) -> RunStages | None:
    """The stages of one run's accepted trials. None where no trial was accepted or no two instants were marked.

    `host_clock` names the boot that the session's host times are of. What cannot be told is left out, and said.
    """
    physics = _physics(analysis, clocks)
    shape = _shape(marks.parts)
    if not physics.trials or shape is None:
        return None
    maps = [sut_clock(part, host_clock) for part in marks.parts]
    rows = _rows(marks.parts, maps, shape, len(physics.trials))
    if not rows:
        return None
    open_because = NO_BOARD if clocks is None or clocks.untied is None else clocks.untied
    found, because = _carriers(physics, marks.parts, maps, rows, shape, marks.own, open_because)
    carried = [k for k, t in enumerate(physics.trials) if t.index in found.rows]
    chosen = [found.rows[physics.trials[k].index] for k in carried]
    part = _main_part(marks.parts, chosen or rows)
    samples: list[StageSample] = []
    hidden: StageSample | None = None
    residuals: tuple[float, ...] = ()
    half_width_s: float | None = None
    if because is None:
        samples, hidden, residuals, half_width_s = _apart(physics, carried, chosen, shape, marks.parts, part)
    elif found.rows or found.possible:
        samples, hidden = _together(physics, carried, chosen, found, shape, part)
    return RunStages(
        run=analysis.run,
        samples=tuple(samples),
        carriers=tuple((physics.trials[k].index, row.marks.seq) for k, row in zip(carried, chosen, strict=True)),
        missing=tuple(t.index for t in physics.trials if t.index not in found.rows),
        residuals_s=residuals,
        hidden=hidden,
        tie=next((m.tie for m in maps if isinstance(m, SutClock)), None),
        no_split_because=because,
        half_width_s=half_width_s,
        resolution_s=part.resolution_s,
        frame_s=shape.frame_s,
        notes=tuple(dict.fromkeys((*marks.notes, *_said(found, rows if marks.own else [], marks.parts))))[:MOST_NOTES],
        fillings_s=tuple(_filled_s(r, marks.parts[r.part], shape) for r in chosen) if because is None else (),
    )


def _physics(analysis: RunAnalysis, clocks: RunClocks | None) -> _Physics:
    trials = tuple(t for t in analysis.trials if t.valid and t.latency_s is not None)
    frames = np.array([t.reference_frame for t in trials], dtype=np.float64)
    latency = np.array([t.latency_s for t in trials], dtype=np.float64)
    sound = heard = None
    if clocks is not None and len(trials):
        sound, heard = clocks.host_of(frames), clocks.host_of(frames + latency * analysis.rate_hz)
    noises = [t.u_noise_s for t in trials if t.u_noise_s is not None]
    common_s = math.sqrt(math.fsum(line.u_s**2 for line in analysis.budget if line.kind == "B"))
    return _Physics(
        trials, float(analysis.rate_hz), sound, heard, float(np.median(noises)) if noises else 0.0, common_s
    )


def _shape(parts: Sequence[MarkPart]) -> _Shape | None:
    """The instants that at least half of the usable rows have; None: fewer than two of them."""
    rows = [row for part in parts for row in part.rows if row.problem is None]
    if not rows:
        return None
    counts = [sum(row.instants_s[k] is not None for row in rows) for k in range(len(INSTANTS))]
    known = tuple(k for k, n in enumerate(counts) if n >= 0.5 * max(counts) and n > 0)
    if len(known) < 2:
        return None
    lengths = {round(row.frame_s, 7) for row in rows if row.frame_s is not None}
    whole = (known[0], known[-1]) == (FIRST, LAST) and len(lengths) == 1
    return _Shape(known, lengths.pop() if whole else None)


def _rows(parts: Sequence[MarkPart], maps: Sequence[SutClock | str], shape: _Shape, n_sounds: int) -> list[Row]:
    """The rows with all known instants, with host times where their clock is tied."""
    made = []
    for number, (part, tie) in enumerate(zip(parts, maps, strict=True)):
        begins = beginnings(part.rows, n_sounds)
        usable = [r for r in part.rows if r.problem is None and all(r.instants_s[k] is not None for k in shape.known)]
        first = _host(np.array([_at(r, shape.known[0]) for r in usable]), tie)
        last = _host(np.array([_at(r, shape.known[-1]) for r in usable]), tie)
        reach = 0.5 * np.maximum(first.high_s - first.low_s, last.high_s - last.low_s)
        made += [
            Row(number, row, float(first.s[k]), float(last.s[k]), float(reach[k]), begins[row.seq])
            for k, row in enumerate(usable)
        ]
    return made


def _host(sut_s: Floats, tie: SutClock | str) -> Mapped:
    if isinstance(tie, SutClock):
        return tie.host(sut_s)
    nowhere = np.full(len(sut_s), np.nan)
    return Mapped(nowhere, nowhere, nowhere)


def _at(row: MarkRow, position: int) -> float:
    time_s = row.instants_s[position]
    assert time_s is not None, "rows without a known instant were left out"
    return time_s


def _carriers(
    physics: _Physics,
    parts: Sequence[MarkPart],
    maps: Sequence[SutClock | str],
    rows: Sequence[Row],
    shape: _Shape,
    own: bool,
    because: str,
) -> tuple[Found, str | None]:
    """The frames of the trials, and why capture and output cannot be told apart; None: they can. `own`: the rows are
    surely of this run, so that one of them carried each sound. `because`: why, where the recording is not tied."""
    if physics.sound is not None and physics.heard is not None:
        tied = [row for row in rows if not math.isnan(row.first_host_s)]
        if not tied:
            because = next((m for m in maps if isinstance(m, str)), OTHER_TIMES)
        elif not any(_is_of_run(row, physics.sound, physics.heard) for row in tied):
            because = OTHER_TIMES
        else:
            found = _by_time(physics, physics.sound, physics.heard, tied)
            if found.rows:
                return found, None
            if found.possible:
                return found, NO_CARRIER
            because = max(set(found.why.values()), key=list(found.why.values()).count)
    trials = [t.index for t in physics.trials]
    sound_s = np.array([t.reference_frame for t in physics.trials]) / physics.rate_hz
    best = Found({}, dict.fromkeys(trials, "nothing says which frame carried the sound"), {})
    for number, part in enumerate(parts):
        begun = sorted((r for r in rows if r.part == number and r.begins), key=lambda r: _at(r.marks, shape.known[0]))
        at_s = np.array([_at(r.marks, shape.known[0]) - _filled_s(r, part, shape) for r in begun])
        found = by_pattern(trials, sound_s, at_s, begun)
        if len(found.rows) > len(best.rows):
            best = found
    if best.rows or not own:
        return best, because
    every = list(rows)
    return Found({}, best.why, {trial: every for trial in trials}), because  # noqa: C420  they share it


def _by_time(physics: _Physics, sound: Mapped, heard: Mapped, rows: Sequence[Row]) -> Found:
    trials = [t.index for t in physics.trials]
    known = ~(np.isnan(sound.s) | np.isnan(heard.s))
    inside = np.flatnonzero(known).tolist()
    reach_s = 0.5 * (sound.high_s - sound.low_s)[inside] + max(row.reach_s for row in rows)
    found = by_host_time([trials[k] for k in inside], sound.s[inside], heard.s[inside], reach_s, rows)
    beyond = dict.fromkeys([trials[k] for k in np.flatnonzero(~known)], "the clocks are not compared at its time")
    return Found(found.rows, {**found.why, **beyond}, found.possible)


def _is_of_run(row: Row, sound: Mapped, heard: Mapped) -> bool:
    """Does the row lie in the host times of the run?"""
    if np.isnan(sound.s).all():
        return True  # the clocks are to blame, not the marks
    return bool(np.nanmin(sound.s) - 1.0 <= row.first_host_s <= np.nanmax(heard.s) + 1.0)


def _place_s(row: Row, part: MarkPart) -> float | None:
    """How far into its frame the sound begins; None: the marks do not say."""
    marks = row.marks
    if marks.peak_at is None or part.rate_hz is None:
        return None
    place_s = marks.peak_at / part.rate_hz
    return place_s if marks.frame_s is None or place_s <= marks.frame_s else None


def _filled_s(row: Row, part: MarkPart, shape: _Shape) -> float:
    """How long the sound's beginning waited for its frame to be complete; half of the frame where it is not known."""
    if shape.frame_s is None:
        return 0.0
    place_s = _place_s(row, part)
    return 0.5 * shape.frame_s if place_s is None else shape.frame_s - place_s


def _main_part(parts: Sequence[MarkPart], rows: Sequence[Row]) -> MarkPart:
    """The part that most of the rows are of: its claims and its clock's steps speak for the run."""
    counts = [sum(row.part == number for row in rows) for number in range(len(parts))]
    return parts[counts.index(max(counts))]


def _apart(
    physics: _Physics,
    carried: Sequence[int],
    chosen: Sequence[Row],
    shape: _Shape,
    parts: Sequence[MarkPart],
    part: MarkPart,
) -> tuple[list[StageSample], StageSample, tuple[float, ...], float]:
    """Samples, hidden sum, residuals and the clocks' half-width, where each trial's frame is known in host time."""
    assert physics.sound is not None
    assert physics.heard is not None
    frame_s, trials = shape.frame_s, [physics.trials[k] for k in carried]
    sound_s, heard_s = physics.sound.s[carried], physics.heard.s[carried]
    filled_s = np.array([_filled_s(row, parts[row.part], shape) for row in chosen])
    head = np.array([row.first_host_s for row in chosen]) - sound_s - filled_s
    tail = heard_s - np.array([row.last_host_s for row in chosen]) - ((frame_s or 0.0) - filled_s)
    half_s = float(np.max(0.5 * (physics.sound.high_s - physics.sound.low_s)[carried]))
    half_s += max(row.reach_s for row in chosen)
    # A frame that is known, but not where in it the sound began: anywhere is as likely.
    vague_s = 0.5 * frame_s if frame_s and any(_place_s(r, parts[r.part]) is None for r in chosen) else 0.0
    u_place_s = 0.0
    if frame_s is not None and not vague_s:
        u_place_s = PEAK_AT_U_S if part.peak_at_u_s is None else part.peak_at_u_s
    bound_s = half_s + vague_s
    u_s = math.hypot(bound_s / math.sqrt(3.0), u_place_s)  # within a bound all is as likely (GUM 4.3.7)
    indices = tuple(t.index for t in trials)
    first = StageSample(shape.head, BY_RIG, _plain(head), indices, 0.0, u_s, bound_s)
    last_u_s = math.hypot(u_s, physics.u_common_s)
    last = StageSample(shape.tail, BY_RIG, _plain(tail), indices, physics.u_noise_s, last_u_s, bound_s)
    software = [*_filling(trials, shape), *_software(chosen, trials, shape, part)]
    spent = np.sum([s.values_s for s in software], axis=0)
    latency = np.array([t.latency_s for t in trials], dtype=np.float64)
    samples = [claimed(first, part, IN), *software, claimed(last, part, OUT)]
    return (
        samples,
        _hidden(physics, latency - spent, trials, shape, part, 0.0),
        _plain(latency - head - tail - spent),
        half_s,
    )


def _together(
    physics: _Physics, carried: Sequence[int], chosen: Sequence[Row], found: Found, shape: _Shape, part: MarkPart
) -> tuple[list[StageSample], StageSample]:
    """Samples where capture and output are known in sum only, and that sum, which comes last of them."""
    if chosen:
        trials = [physics.trials[k] for k in carried]
        software, spans, spread_s = _software(chosen, trials, shape, part), _spans(chosen, shape), 0.0
    else:
        # Any of some frames may have carried a sound: what they share is known, what differs is uncertain.
        trials = [t for t in physics.trials if found.possible.get(t.index)]
        distinct = {id(row): row for rows in found.possible.values() for row in rows}
        software = _software(list(distinct.values()), (), shape, part)
        sets = {id(rows): _spans(rows, shape) for rows in found.possible.values()}
        own = [sets[id(found.possible[t.index])] for t in trials]
        spans = np.array([np.median(spans) for spans in own])
        spread_s = float(np.median([np.std(spans) for spans in own]))
    latency = np.array([t.latency_s for t in trials], dtype=np.float64)
    both = _hidden(physics, latency - spans - (shape.frame_s or 0.0), trials, shape, part, spread_s)
    return [*_filling(trials, shape), *software, both], both


def _hidden(
    physics: _Physics, values: Floats, trials: Sequence[Trial], shape: _Shape, part: MarkPart, spread_s: float
) -> StageSample:
    """Capture and output together: no clock's map is in it."""
    noise_s = math.hypot(physics.u_noise_s, spread_s, _cut_s(part))
    indices = tuple(t.index for t in trials)
    both = StageSample(shape.head + JOIN + shape.tail, BY_RIG, _plain(values), indices, noise_s, physics.u_common_s)
    one, other = claimed(both, part, IN), claimed(both, part, OUT)
    if one.claimed_s is None or other.claimed_s is None:
        return both  # half a claim is none
    return claimed(both, part, IN + OUT)


def _software(rows: Sequence[Row], trials: Sequence[Trial], shape: _Shape, part: MarkPart) -> list[StageSample]:
    """What lies between the marks, on their own clock. `trials` () where the rows are not those of single trials."""
    indices = tuple(t.index for t in trials)
    return [
        StageSample(name, BY_SOFTWARE, tuple(_at(r.marks, b) - _at(r.marks, a) for r in rows), indices, _cut_s(part))
        for name, a, b in shape.software
    ]


def _filling(trials: Sequence[Trial], shape: _Shape) -> list[StageSample]:
    if shape.frame_s is None:
        return []
    return [StageSample(FILL, BY_SOFTWARE, (shape.frame_s,) * len(trials), tuple(t.index for t in trials))]


def _cut_s(part: MarkPart) -> float:
    """Standard uncertainty of a difference of two stamps that are each cut to the clock's steps: a triangle's."""
    return (part.resolution_s or 0.0) / math.sqrt(6.0)


def _spans(rows: Sequence[Row], shape: _Shape) -> Floats:
    return np.array([_at(r.marks, shape.known[-1]) - _at(r.marks, shape.known[0]) for r in rows])


def _plain(values: Floats) -> tuple[float, ...]:
    return tuple(float(v) for v in values)


def _said(found: Found, rows: Sequence[Row], parts: Sequence[MarkPart]) -> list[str]:
    """Trials without a frame by the reason, sounds that belong to no stimulus, and the system's own statistics."""
    said = []
    reasons: dict[str, list[int]] = {}
    for trial, why in sorted(found.why.items()):
        if trial not in found.possible:
            reasons.setdefault(why, []).append(trial)
    for why, trials in reasons.items():
        shown = ", ".join(str(t) for t in trials[:5]) + (", …" if len(trials) > 5 else "")
        said.append(f"{len(trials)} stimuli have no frame of their own ({shown}): {why}")
    used = {id(row) for row in found.rows.values()}
    strangers = sum(bool(row.begins) and id(row) not in used for row in rows)
    if found.rows and strangers:
        said.append(f"{strangers} sounds that begin in the marks belong to no accepted stimulus")
    return said + [note for part in parts if (note := buffer_note(part)) is not None]
