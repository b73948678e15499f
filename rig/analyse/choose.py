"""Which of a trial's arrivals is the first one: the question that only the whole run can answer.

An earlier, weaker arrival is a real path when it comes again at the same distance before the dominant one in most
trials, and noise otherwise. What arrives faster than any voice system could answer is a leak or crosstalk.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig.analyse.examine import Evidence
from rig.analyse.locate import BACK_DB
from rig.analyse.refine import Arrival
from rig.analyse.stack import Before

CROSSTALK_S = 0.0005
"""An arrival earlier than this has not left the cable: electrical crosstalk between the channels."""

LEAK_S = 0.012
"""Up to here an arrival may be sound from the mouth transducer itself, straight through the air (about 4 m)."""

CONFIRM_SHARE = 0.6
AGREE_S = 0.0005
"""Latencies of two trials this close are the same."""

LEANING_S = 0.006
OFFSET_S = 0.00015
"""Distances between two arrivals of one path agree far better than latencies do; a codec's false ones scatter by ms."""


@dataclass(frozen=True, slots=True)
class Choice:
    """`first` None: no decision is possible, `why` says so. `dominant` where it is another arrival than the first."""

    first: Arrival | None
    dominant: Arrival | None
    why: str | None = None
    crosstalk: bool = False
    faint_leak: bool = False
    other_lag: float | None = None  # the other arrival of an undecided pair, in samples


def choose(evidence: list[Evidence], rate_hz: float, leak_cleared: bool, before: Before) -> list[Choice | None]:
    """One choice an evidence; None where nothing was timed. `leak_cleared`: a blank run or a limit rules a leak out.
    `before`: what the run's average shows ahead of the dominant arrival."""
    usable = [e for e in evidence if e.arrivals and e.location is not None]
    confirmed = _confirmed_offsets(usable, rate_hz)
    for distance_s in before.paths_s:
        if not any(abs(distance_s * rate_hz - c) <= 2 * OFFSET_S * rate_hz for c in confirmed):
            confirmed.append(distance_s * rate_hz)
    first_guess = _consensus_lags(usable, rate_hz)
    firsts = [
        a.lag
        for e in usable
        for a, _ in _early(e, rate_hz)
        if any(abs(e.arrivals[-1].lag - a.lag - c) <= OFFSET_S * rate_hz for c in confirmed)
    ]
    chosen = [_one(e, confirmed, first_guess, firsts, rate_hz, leak_cleared) for e in evidence]
    if before.sees_enough or len(usable) < 3:
        return chosen
    return [_unless_hidden(e, c) for e, c in zip(evidence, chosen, strict=True)]


def _unless_hidden(e: Evidence, choice: Choice | None) -> Choice | None:
    """No decision where neither the trial nor the run's average could have shown an earlier path within 10 dB."""
    if choice is None or choice.dominant is not None or e.location is None or e.location.hidden_db <= -BACK_DB:
        return choice
    return Choice(None, choice.first, "early_hidden", choice.crosstalk, choice.faint_leak)


def _early(e: Evidence, rate_hz: float) -> list[tuple[Arrival, float]]:
    """(arrival, its level against the dominant in dB) before the dominant one, crosstalk left out, earliest first."""
    pairs = list(zip(e.arrivals[:-1], e.relative_db[:-1], strict=True))
    return [(a, db) for a, db in pairs if a.lag >= CROSSTALK_S * rate_hz]


def _confirmed_offsets(usable: list[Evidence], rate_hz: float) -> list[float]:
    """Distances (samples) before the dominant arrival at which most trials of the run have an arrival too."""
    if len(usable) < 3:
        return []
    offsets = [[e.arrivals[-1].lag - a.lag for a, _ in _early(e, rate_hz)] for e in usable]
    flat = sorted(o for row in offsets for o in row)
    agree = OFFSET_S * rate_hz
    found: list[float] = []
    for value in flat:
        share = sum(any(abs(o - value) <= agree for o in row) for row in offsets) / len(usable)
        if share >= CONFIRM_SHARE and not any(abs(value - f) <= 2 * agree for f in found):
            near = [o for row in offsets for o in row if abs(o - value) <= agree]
            found.append(float(np.median(near)))
    return found


def stable_distance(evidence: list[Evidence], rate_hz: float) -> float:
    """Longest distance (samples) between the dominant arrival and a comparable one that most trials have; 0: none.

    Only up to LEANING_S: two arrivals further apart do not lean on each other in the halves of a stimulus, and a delay
    that changes by 10 ms in every clip must not pass for an echo.
    """
    usable = [e for e in evidence if e.arrivals and e.location is not None]
    if len(usable) < 3:
        return 0.0
    rows = [_comparable_distances(e) for e in usable]
    agree = OFFSET_S * rate_hz
    stable = [
        d
        for row in rows
        for d in row
        if d <= LEANING_S * rate_hz
        and sum(any(abs(o - d) <= agree for o in other) for other in rows) >= CONFIRM_SHARE * len(rows)
    ]
    return max(stable, default=0.0)


def _comparable_distances(e: Evidence) -> list[float]:
    found = [
        e.arrivals[-1].lag - a.lag for a, db in zip(e.arrivals[:-1], e.relative_db[:-1], strict=True) if db >= -BACK_DB
    ]
    later = e.location.later if e.location is not None else None
    if later is not None and later.relative_db >= -BACK_DB:
        found.append(later.lag - e.arrivals[-1].lag)
    return found


def _consensus_lags(usable: list[Evidence], rate_hz: float) -> list[float]:
    """Lags of trials that have one arrival only: what an early arrival elsewhere may be confirmed by."""
    return [e.arrivals[-1].lag for e in usable if not _early(e, rate_hz)]


def _one(
    e: Evidence,
    confirmed: list[float],
    singles: list[float],
    firsts: list[float],
    rate_hz: float,
    leak_cleared: bool,
) -> Choice | None:
    if not e.arrivals or e.location is None:
        return None
    dominant = e.arrivals[-1]
    agree = AGREE_S * rate_hz
    crosstalk = len(_early(e, rate_hz)) < len(e.arrivals) - 1
    faint_leak = False
    fast = LEAK_S * rate_hz
    if not leak_cleared and dominant.lag < fast and _comparable_later(e, fast):
        later = e.location.later
        return Choice(None, None, "leak_or_system", crosstalk, other_lag=None if later is None else later.lag)
    first: Arrival | None = None
    for arrival, db in _early(e, rate_hz):
        offset = dominant.lag - arrival.lag
        if arrival.lag < fast and offset > fast and not leak_cleared:
            if db >= -BACK_DB:
                return Choice(None, None, "leak_or_system", crosstalk, other_lag=arrival.lag)
            faint_leak = True
            continue
        by_offset = any(abs(offset - c) <= OFFSET_S * rate_hz for c in confirmed)
        by_lag = len(singles) >= 3 and sum(abs(s - arrival.lag) <= agree for s in singles) >= 0.5 * len(singles)
        if by_offset or by_lag:
            first = arrival
            break
        if db >= -BACK_DB:
            return Choice(None, dominant, "unconfirmed_early", crosstalk, faint_leak, other_lag=arrival.lag)
    if first is None:
        # The run has a path before its dominant one. Hidden under this trial's noise, what is seen here is the echo.
        known = any(abs(lag - dominant.lag) <= agree for lag in firsts)
        if confirmed and not known and _could_hide(e, confirmed, rate_hz):
            return Choice(None, dominant, "early_hidden", crosstalk, faint_leak)
        return Choice(dominant, None, None, crosstalk, faint_leak)
    return Choice(first, dominant, None, crosstalk, faint_leak)


def _could_hide(e: Evidence, confirmed: list[float], rate_hz: float) -> bool:
    """True when this trial's noise is high enough to hide the run's earlier path, and that path is no leak."""
    if e.location is None or e.location.hidden_db <= -BACK_DB - 2.0:
        return False
    return any(e.arrivals[-1].lag - c >= CROSSTALK_S * rate_hz for c in confirmed)


def _comparable_later(e: Evidence, fast: float) -> bool:
    later = e.location.later if e.location is not None else None
    return later is not None and later.relative_db >= -BACK_DB and later.lag - e.arrivals[-1].lag > fast
