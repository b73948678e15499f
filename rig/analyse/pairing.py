"""Which stimulus a response belongs to, when it may be longer under way than the stimuli are apart.

With random spacing only the right pairing makes the latencies agree. With a steady beat every pairing agrees, and only
the ends of the recording tell: the first stimulus must have a response, the last one must have no more than one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rig.analyse.examine import Evidence

STEADY = 0.01
"""Spacings within this share of their median are a steady beat."""

LONGEST_S = 6.0

AGREEING_SHARE = 0.5
"""A pairing must make this share of the latencies agree; by chance a tenth of the spacing holds a tenth of them."""


@dataclass(frozen=True, slots=True)
class Pairing:
    """Whose response is whose.

    `kind`: next (each belongs to the stimulus before it), late (it comes `centre_s` after its own, past others), early
    (it comes before its own: `centre_s` is negative), ambiguous (a steady beat that does not tell) or scattered (no
    pairing makes the latencies agree).
    """

    kind: str
    centre_s: float | None
    spacing_s: float | None
    candidates_s: tuple[float, ...] = ()


def pair_responses(evidence: list[Evidence], located: list[bool], rate_hz: float) -> Pairing:
    """`located[i]`: evidence i has an arrival that passes the single-shot rule."""
    starts = np.array([e.start for e in evidence]) / rate_hz
    gaps = np.diff(starts)
    lags = {i: e.arrivals[-1].lag / rate_hz for i, e in enumerate(evidence) if located[i] and e.arrivals}
    if len(gaps) < 2 or len(lags) < 3:
        return Pairing("next", None, float(np.median(gaps)) if len(gaps) else None)
    spacing = float(np.median(gaps))
    if float(np.max(np.abs(gaps - spacing))) <= max(STEADY * spacing, 0.004):
        return _steady(evidence, located, lags, spacing, rate_hz)
    width = 0.1 * float(np.min(gaps))
    best_count, best_k, best_centre = 0, 0, 0.0
    counts: list[int] = []
    for k in range(len(evidence)):
        values = np.array([lag + starts[i] - starts[i - k] for i, lag in lags.items() if i >= k])
        if len(values) < 3 or float(np.min(values)) > LONGEST_S + width:
            break
        count, centre = _densest(values, width)
        counts.append(count)
        if count > best_count + (1 if k else 0):
            best_count, best_k, best_centre = count, k, centre
    ahead = np.array([lag + starts[i] - starts[i + 1] for i, lag in lags.items() if i + 1 < len(starts)])
    if len(ahead) >= 3:
        count, centre = _densest(ahead, width)
        if count >= max(3, 0.6 * len(ahead)) and count > best_count and centre < -0.002:
            return Pairing("early", centre, spacing)
    if best_count < max(4, AGREEING_SHARE * len(lags)):
        spread = np.percentile(list(lags.values()), 80) - np.percentile(list(lags.values()), 20)
        if len(lags) >= 4 and spread > 0.25 * spacing:
            return Pairing("scattered", None, spacing, tuple(sorted(lags.values())))
        return Pairing("next", None, spacing)
    if best_k == 0 and best_centre < 0.8 * float(np.min(gaps)):
        return Pairing("next", best_centre, spacing)
    if best_k > 0 and counts[0] >= 0.8 * best_count:
        return Pairing("next", None, spacing)
    return Pairing("late", best_centre, spacing)


def _densest(values: np.ndarray, width: float) -> tuple[int, float]:
    """(count, median) of the fullest interval of `width`."""
    ordered = np.sort(values)
    ends = np.searchsorted(ordered, ordered + width, side="right")
    counts = ends - np.arange(len(ordered))
    k = int(np.argmax(counts))
    return int(counts[k]), float(np.median(ordered[k : ends[k]]))


def _steady(
    evidence: list[Evidence], located: list[bool], lags: dict[int, float], spacing: float, rate_hz: float
) -> Pairing:
    values = np.array(list(lags.values()))
    count, centre = _densest(values, max(0.02, 0.1 * spacing))
    if count < 0.6 * len(values):
        return Pairing("next", None, spacing)
    candidates = tuple(centre + k * spacing for k in range(int((LONGEST_S - centre) / spacing) + 1))[:4]
    missing = 0
    for i in range(len(evidence)):
        if located[i]:
            break
        missing += 1
    if 1 <= missing <= len(evidence) // 2 and all(located[i] for i in range(missing, min(len(evidence), missing + 3))):
        return Pairing("ambiguous", centre, spacing, candidates)
    last = evidence[-1]
    later = last.location.later if located[-1] and last.location is not None else None
    if later is not None and later.relative_db >= -10.0:
        distance = (later.lag - last.arrivals[-1].lag) / rate_hz
        beats = distance / spacing
        if round(beats) >= 1 and abs(beats - round(beats)) * spacing < 0.01:
            return Pairing("ambiguous", centre, spacing, candidates)
    return Pairing("next", centre, spacing)
