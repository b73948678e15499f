"""The rule that accepts a trial or refuses it with a reason. The thresholds live here and nowhere else.

docs/truth.md holds the error rates of this rule, measured on worlds that it was not tuned on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rig.analyse.choose import LEAK_S, Choice
from rig.analyse.examine import Evidence
from rig.analyse.refine import Arrival
from rig.analyse.stimulus import Shape
from rig.analyse.uncertainty import trial_uncertainty_s
from rig.analyse.witness import Missing
from rig.domain.records import AnalysisHints, Reason, Trial

MIN_Z = 10.0
MIN_DECOY_DB = 6.0
MIN_COHERENCE = 0.35
BURST_COHERENCE = 0.85
HIGH_COHERENCE = 0.75
LEAST_DECOY_DB = 1.5
STRONG_Z = 20.0
STRONG_DECOY_DB = 9.0
STRONG_COHERENCE = 0.2
"""In a reverberant room the coherence with any single path is low though the arrival is certain: a high peak that
stands far above its decoy may be accepted on less coherence."""

MAX_SPLIT_S = 0.0005
MIN_REFERENCE_DB = 30.0
CUT_SHARE = 0.1
"""An arrival of which more than this share of the stimulus lies beyond the samples at hand is not captured."""

LEAK_MARGIN_DB = 12.0

PURE_DELAY_S = 0.00004
"""Correlation peak and envelope peak this close together: the path is a delay with a sign."""

MAX_U_NOISE_S = 0.0001
"""A single trial more uncertain than this is too weak to be timed: five of it are a gross error."""


@dataclass(frozen=True, slots=True)
class Context:
    """What the rule needs to know beside the evidence."""

    shape: Shape
    rate_hz: float
    hints: AnalysisHints
    end_frame: int  # of the recording
    lost: dict[int, Missing]  # by event index, from the witness
    first_lag_s: float  # floor of the search
    path_spread_s: float = 0.0  # longest distance between two arrivals that the run's path has in most trials


def judge(e: Evidence, choice: Choice | None, context: Context) -> Trial:
    """One trial from its evidence. `latency_s` is None exactly when it is refused."""
    rate = context.rate_hz
    refused = _refusal(e, choice, context)
    arrival = choice.first if choice is not None else None
    if arrival is None and e.arrivals:
        arrival = e.arrivals[-1]
    location = e.location
    latency_s = arrival.lag / rate if arrival is not None else None
    u_noise_s = arrival.u_noise / rate if arrival is not None else None
    accepted = refused is None and latency_s is not None and u_noise_s is not None
    snr_db = None
    if arrival is not None and e.noise_power > 0.0 and e.clip_power > 0.0:
        snr_db = 10.0 * math.log10(max(arrival.level**2 * e.clip_power / e.noise_power, 1e-12))
    dominant = choice.dominant if choice is not None else None
    reason, note = refused if refused is not None else (None, None)
    if not accepted and reason is None:
        reason, note = Reason.NO_ARRIVAL, None
    return Trial(
        index=e.index,
        reference_frame=e.reference_frame,
        valid=accepted,
        reason=reason,
        latency_s=latency_s if accepted else None,
        u_s=trial_uncertainty_s(latency_s, u_noise_s) if accepted and latency_s is not None and u_noise_s else None,
        u_noise_s=u_noise_s if accepted else None,
        unconfirmed_s=None if accepted else latency_s,
        wide_s=e.wide.lag / rate if accepted and e.wide is not None and dominant is None else None,
        precision_s=e.precision.lag / rate if accepted and e.precision is not None else None,
        crlb_s=_finite(e.precision.crlb / rate) if accepted and e.precision is not None else None,
        dominant_s=dominant.lag / rate if accepted and dominant is not None else None,
        polarity=_polarity(e, arrival, rate) if accepted and arrival is not None else None,
        snr_db=snr_db,
        reference_snr_db=e.reference_snr_db,
        z=location.z if location is not None else None,
        decoy_db=None if location is None or context.shape.symmetric else location.decoy_db,
        coherence=location.coherence if location is not None else None,
        split_s=None if location is None or location.split is None else location.split / rate,
        level_db=20.0 * math.log10(arrival.level) if arrival is not None and arrival.level > 0.0 else None,
        note=note,
    )


def _polarity(e: Evidence, arrival: Arrival, rate: float) -> int | None:
    """+1 upright, -1 inverted; None on a dispersive path, whose filters turn the phase by more than a sign says.

    There the peak of the correlation and the peak of the envelope fall apart.
    """
    if e.precision is None or abs(e.precision.lag - arrival.lag) > PURE_DELAY_S * rate:
        return None
    return arrival.polarity if arrival.polarity == e.precision.polarity else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _refusal(e: Evidence, choice: Choice | None, context: Context) -> tuple[Reason, str | None] | None:
    rate, hints = context.rate_hz, context.hints
    if e.clipped_reference:
        return Reason.CLIPPED, "the reference channel has flat tops inside the stimulus"
    reach = e.start + e.n + (round(e.arrivals[-1].lag) if e.arrivals else e.last_lag)
    for gap in hints.gaps:
        if e.start <= gap.frame <= reach:
            return Reason.GAP_IN_WINDOW, f"samples were lost before frame {gap.frame}"
    missing = context.lost.get(e.index)
    if missing is not None:
        said = f"{missing.frames:+.0f} frames missing before the next stimulus"
        # The recorder knows of a loss, the stamps know how much it is: where in the interval it lies is not sure enough
        # to keep the trial, but it is no loss that only the stamps show.
        seen = next((gap for gap in hints.gaps if e.start <= gap.frame <= missing.until_frame), None)
        if seen is not None:
            return Reason.GAP_IN_WINDOW, f"samples were lost near frame {seen.frame}: {said}"
        return Reason.CLOCK_WITNESS, said
    if e.silent_ear:
        return Reason.DIGITAL_SILENCE, "every sample of the ear channel is the same here"
    if e.reference_snr_db is not None and e.reference_snr_db < MIN_REFERENCE_DB:
        return Reason.WEAK_REFERENCE, f"the reference stands {e.reference_snr_db:.0f} dB above its noise"
    if e.location is None or not e.arrivals or choice is None:
        return Reason.NO_ARRIVAL, None
    by_rule = single_shot(e, context.shape)
    if by_rule is not None:
        leak = hints.blank is not None and hints.blank.leak_lag_s is not None
        if leak and by_rule in (Reason.NO_ARRIVAL, Reason.LOW_SNR):
            return Reason.LEAK, "with the system muted the ear hears the stimulus too, and now nothing else"
        return by_rule, None
    lag = (choice.first or e.arrivals[-1]).lag
    if lag > e.last_lag or e.start + lag + (1.0 - CUT_SHARE) * e.n > context.end_frame:
        return Reason.OUTSIDE_WINDOW, "the arrival is cut by the next stimulus, the limit or the end of the recording"
    if lag < -CUT_SHARE * e.n or lag / rate < context.first_lag_s - 0.0005:
        return Reason.OUTSIDE_WINDOW, "the arrival begins before the window"
    split = e.location.split
    # Two arrivals of one path may each win one half of the stimulus: that is no change of the delay.
    if split is not None and abs(split) >= (MAX_SPLIT_S + context.path_spread_s) * rate:
        return Reason.DELAY_CHANGED_IN_CLIP, f"its halves are {1e3 * abs(split) / rate:.1f} ms apart"
    if choice.first is None:
        return Reason.AMBIGUOUS, _undecided(choice, e, rate)
    if e.clipped_ear:
        return Reason.CLIPPED, "the ear channel has flat tops inside the arrival"
    blank = hints.blank
    if blank is not None and blank.leak_lag_s is not None:
        level_db = 20.0 * math.log10(max(choice.first.level, 1e-9))
        tail_db = blank.tail_db
        if lag / rate < blank.leak_lag_s + 0.001 or (tail_db is not None and level_db < tail_db + LEAK_MARGIN_DB):
            return Reason.LEAK, "a blank run shows this arrival, or one as strong, with the system muted"
    return None


def single_shot(e: Evidence, shape: Shape) -> Reason | None:
    """The part of the rule that needs this stimulus alone: is there an arrival, and is it ours?"""
    location = e.location
    if location is None or not e.arrivals:
        return Reason.NO_ARRIVAL
    if location.z < MIN_Z:
        return Reason.LOW_SNR if location.z > 0.75 * MIN_Z else Reason.NO_ARRIVAL
    if shape.symmetric:
        if location.coherence < BURST_COHERENCE:
            return Reason.LOW_SNR  # what overlaps it (a room, a voice) moves its peak, and nothing else would show it
        return None  # its decoy is itself: only the other trials of the run can confirm it
    # A voice resembles its own reversal; where all of it comes back in its own shape, that says nothing against it.
    whole = location.coherence >= HIGH_COHERENCE and location.decoy_db >= LEAST_DECOY_DB
    if location.decoy_db < MIN_DECOY_DB and not whole:
        return Reason.LOW_SNR if location.decoy_db > 0.6 * MIN_DECOY_DB else Reason.NO_ARRIVAL
    if e.arrivals[-1].u_noise > MAX_U_NOISE_S * shape.rate_hz and not shape.symmetric:
        return Reason.LOW_SNR
    if location.coherence < MIN_COHERENCE:
        strong = location.z >= STRONG_Z and location.decoy_db >= STRONG_DECOY_DB
        if not (strong and location.coherence >= STRONG_COHERENCE):
            return Reason.LOW_SNR
    return None


def _undecided(choice: Choice, e: Evidence, rate: float) -> str:
    here = e.arrivals[-1].lag / rate * 1e3
    if choice.why == "leak_or_system" and choice.other_lag is not None:
        other = choice.other_lag / rate * 1e3
        low, high = sorted((here, other))
        return (
            f"arrivals at {low:.1f} ms and {high:.1f} ms: the first may be sound from the mouth itself"
            f" (anything under {1e3 * LEAK_S:.0f} ms)"
        )
    if choice.why == "unconfirmed_early" and choice.other_lag is not None:
        other = choice.other_lag / rate * 1e3
        return f"arrivals at {other:.1f} ms and {here:.1f} ms, the first not seen in other trials"
    return "the run's first path may be hidden under noise here"
