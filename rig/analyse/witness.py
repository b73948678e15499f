"""The second witness: stimuli on the recording against the stamps of whoever fired them. Lost samples show as a step.

Between two stimuli the recording must hold as many frames as the board counted ticks, up to the two clocks' rate, which
is read off the neighbouring intervals: a resonator that warms up by 150 ppm is another clock at the end of a run than
at its beginning. A loss that no driver flagged shortens one interval; the trial before it is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig.domain.records import StimulusFired

STEP_FRAMES = 8.0
"""Smallest step that is called a loss; a ceramic resonator may wander by two or three frames between stimuli."""

NEIGHBOURS = 9
"""The rate of an interval is the median over so many around it; losses in under half of them do not move it."""

WANDER_PER_S = 1.5e-6
"""A resonator's rate may change by this much in a second, so a rate read far from an interval allows for a step."""

RATE_LIMIT = 0.006
"""Largest rate difference that a resonator (0.5 %) explains; beyond it one of the two rates is labelled wrongly."""


@dataclass(frozen=True, slots=True)
class Missing:
    """`frames` too few (negative: too many) before `until_frame` of the recording, where the next event is."""

    frames: float
    until_frame: float


@dataclass(frozen=True, slots=True)
class Witness:
    """`lost` maps an event's position to what is missing between it and the next one that has a stamp. `drift_ppm`:
    audio clock against the stamps' clock, positive when the audio clock is fast. `ratio` is frames seen over frames
    expected."""

    lost: dict[int, Missing]
    drift_ppm: float | None
    ratio: float | None
    unpaired_events: tuple[int, ...]
    unpaired_stamps: tuple[int, ...]


def stamps_s(fired: tuple[StimulusFired, ...] | None, spacing_s: tuple[float, ...] | None) -> tuple[float, ...]:
    """When each stimulus was fired, in seconds of the firing clock: from its reports, else from the plan; else ()."""
    if fired:
        return tuple(f.tick / f.tick_rate_hz for f in fired)
    if spacing_s:
        return tuple(float(v) for v in np.concatenate(([0.0], np.cumsum(spacing_s))))
    return ()


def compare(frames: list[float], stamps: tuple[float, ...], rate_hz: float) -> Witness:
    """Pairs events with stamps and looks for steps. `frames`: reference frames of the events, in order."""
    if len(frames) < 3 or len(stamps) < 3:
        return Witness({}, None, None, (), ())
    seen = np.array(frames) / rate_hz
    pairs = pair_times(seen, np.array(stamps))
    if len(pairs) < 3:
        ratio = float((seen[-1] - seen[0]) / (stamps[-1] - stamps[0])) if len(seen) == len(stamps) else None
        return Witness({}, None, ratio, (), ())
    events = np.array([p[0] for p in pairs])
    fired = np.array([stamps[p[1]] for p in pairs])
    intervals = np.diff(fired)
    ratios = np.diff(seen[events]) / intervals
    ratio = float(np.median(ratios))
    near, distance_s = _near_rates(ratios, 0.5 * (fired[1:] + fired[:-1]))
    # Missing frames make an interval short: positive `missing`.
    missing = (near - ratios) * intervals * rate_hz
    spread = 1.4826 * float(np.median(np.abs(missing - np.median(missing))))
    limit = max(STEP_FRAMES * max(1.0, rate_hz / 48000.0), 6.0 * spread)
    limits = limit + WANDER_PER_S * distance_s * intervals * rate_hz
    lost = {
        int(events[k]): Missing(float(missing[k]), float(frames[events[k + 1]]))
        for k in np.nonzero(np.abs(missing) > limits)[0]
    }
    paired_events = {int(p[0]) for p in pairs}
    paired_stamps = {int(p[1]) for p in pairs}
    return Witness(
        lost,
        (ratio - 1.0) * 1e6,
        ratio,
        tuple(k for k in range(len(frames)) if k not in paired_events),
        tuple(k for k in range(len(stamps)) if k not in paired_stamps),
    )


def _near_rates(ratios: np.ndarray, middles_s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The median rate around each interval, and how far in time the intervals it was read from lie on the average."""
    width = min(NEIGHBOURS, len(ratios))
    first = np.clip(np.arange(len(ratios)) - width // 2, 0, len(ratios) - width)
    around = np.lib.stride_tricks.sliding_window_view(ratios, width)[first]
    centre_s = np.mean(np.lib.stride_tricks.sliding_window_view(middles_s, width), axis=1)[first]
    return np.median(around, axis=1), np.abs(centre_s - middles_s)


def pair_times(seen: np.ndarray, stamps: np.ndarray) -> list[tuple[int, int]]:
    """Events (`seen`, in s) and stamps that belong together, as positions in both, in order.

    Matched by time, not by position: one missing stimulus must not shift all that follow.
    """
    best: list[tuple[int, int]] = []
    for event in range(min(4, len(seen))):
        for stamp in range(min(4, len(stamps))):
            pairs = _walk(seen, stamps, event, stamp)
            if len(pairs) > len(best):
                best = pairs
    return best


def _walk(seen: np.ndarray, stamps: np.ndarray, event: int, stamp: int) -> list[tuple[int, int]]:
    offset = seen[event] - stamps[stamp]
    shortest = float(np.min(np.diff(stamps)))
    pairs = [(event, stamp)]
    i, j = event + 1, stamp + 1
    while i < len(seen) and j < len(stamps):
        elapsed = stamps[j] - stamps[pairs[-1][1]]
        # A missing stimulus is off by a whole spacing, lost frames by less: a third of the shortest tells them apart.
        tolerance = max(0.03, 0.3 * shortest) + RATE_LIMIT * elapsed
        difference = seen[i] - stamps[j] - offset
        if abs(difference) <= tolerance:
            pairs.append((i, j))
            offset = seen[i] - stamps[j]
            i, j = i + 1, j + 1
        elif difference > 0:
            j += 1
        else:
            i += 1
    return pairs
