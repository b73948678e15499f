"""Which frame carried the beginning of each stimulus. Never guessed: one frame, or none and why.

A frame carries the beginning of a sound when it is loud and the frame before it is not. It can be this stimulus's when
it was complete after the sound was at the microphone and played before the sound was at the ear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.analyse.clockfit import Floats
from rig.analyse.witness import pair_times
from rig.domain.marks import INSTANTS, MarkRow

FIRST, LAST = 0, len(INSTANTS) - 1
LOUD = 0.5  # a frame this loud against the run's typical stimulus has a sound in it
BESIDE_S = 0.25  # a beginning this far outside what is possible is still shown, with its negative stage
SLACK_S = 0.003  # what clocks and an early finder may be off
FAR_OFF_S = 0.030  # paired by time alone, a frame further than this from where the others put it is another sound's


@dataclass(frozen=True, slots=True)
class Row:
    """A usable row: its own marks, and the first and the last of them in host time (NaN where not known)."""

    part: int
    marks: MarkRow
    first_host_s: float
    last_host_s: float
    reach_s: float  # how far off the two may be
    begins: bool | None  # a sound begins in it; None: the marks do not say


@dataclass(frozen=True, slots=True)
class Found:
    """Rows by trial, and why the others have none. `possible`: rows that could be each trial's where none is known."""

    rows: dict[int, Row]
    why: dict[int, str]
    possible: dict[int, list[Row]]


def beginnings(rows: Sequence[MarkRow], n_sounds: int) -> dict[int, bool | None]:
    """By seq: does a sound begin in the frame? None where the marks do not say which frames are loud. `n_sounds` were
    played, so at least so many frames are loud."""
    peaks = [row.peak for row in rows if row.peak is not None]
    located = any(row.peak_at is not None for row in rows)
    if not peaks and not located:
        return {row.seq: None for row in rows}
    ceiling = 0.0
    if peaks:
        # The typical sound, not the loudest: one slammed door must not silence all stimuli.
        top = np.sort(np.array(peaks))[-max(1, n_sounds) :]
        ceiling = LOUD * float(np.median(top))
    loud = {row.seq: _is_loud(row, ceiling, bool(peaks)) for row in rows}
    # Without the frame before it nobody knows whether the sound began earlier.
    return {seq: is_loud and loud.get(seq - 1) is False for seq, is_loud in loud.items()}


def _is_loud(row: MarkRow, ceiling: float, has_peaks: bool) -> bool:
    if has_peaks:
        return row.peak is not None and row.peak >= ceiling > 0.0
    return row.peak_at is not None


def by_host_time(
    trials: Sequence[int], sound_s: Floats, heard_s: Floats, reach_s: Floats, rows: Sequence[Row]
) -> Found:
    """Frames by their time. `sound_s`, `heard_s`, shape (n,): host time of each trial's sound at mouth and ear, known
    within `reach_s` together with the marks'."""
    found: dict[int, Row] = {}
    why: dict[int, str] = {}
    possible: dict[int, list[Row]] = {}
    first = np.array([row.first_host_s for row in rows])
    last = np.array([row.last_host_s for row in rows])
    for k, trial in enumerate(trials):
        slack_s = SLACK_S + float(reach_s[k])
        causal = (first >= sound_s[k] - slack_s) & (last <= heard_s[k] + slack_s)
        near = (first >= sound_s[k] - BESIDE_S) & (first <= heard_s[k] + BESIDE_S)
        own = [rows[int(j)] for j in np.flatnonzero(causal)]
        if own and all(row.begins is None for row in own):
            possible[trial] = own
            why[trial] = "the marks do not say which frame carried the sound"
            continue
        begun = [row for row in own if row.begins] or [
            rows[int(j)] for j in np.flatnonzero(near) if rows[int(j)].begins
        ]
        if len(begun) == 1:
            found[trial] = begun[0]
        elif begun:
            why[trial] = "more than one sound began while it was on its way"
        else:
            why[trial] = "no usable frame has its beginning"
    return Found(found, why, possible)


def by_pattern(trials: Sequence[int], sound_s: Floats, at_s: Floats, rows: Sequence[Row]) -> Found:
    """Frames by the spacing of the sounds, where nothing ties the clocks. `sound_s`: of the recording; `at_s`: when the
    sound began on the marks' clock, shape (m,) for `rows` in which one does. Both in order."""
    why = dict.fromkeys(trials, "no frame fits into the pattern of the stimuli")
    if len(trials) < 3 or len(rows) < 3:
        return Found({}, why, {})
    pairs = pair_times(sound_s, at_s)
    if len(pairs) < 3:
        return Found({}, why, {})
    offsets = np.array([at_s[j] - sound_s[i] for i, j in pairs])
    middle_s = float(np.median(offsets))
    # Two clocks drift by less than 200 ppm between the stimuli of a run.
    allowed_s = FAR_OFF_S + 2e-4 * (float(sound_s[-1]) - float(sound_s[0]))
    found = {trials[i]: rows[j] for (i, j), off in zip(pairs, offsets, strict=True) if abs(off - middle_s) <= allowed_s}
    if len(found) < max(3, len(trials) // 2):
        return Found({}, why, {})
    return Found(found, {t: w for t, w in why.items() if t not in found}, {})
