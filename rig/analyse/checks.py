"""Faults of a whole recording: swapped channels, one signal on both, a wrong rate label, frames that never arrived."""

from __future__ import annotations

import math

import numpy as np

from rig.analyse.examine import Evidence, examine
from rig.analyse.stimulus import Shape
from rig.analyse.stream import LagRange, Survey, windows
from rig.analyse.verdict import single_shot
from rig.analyse.witness import RATE_LIMIT, Witness
from rig.domain.records import AnalysisHints, ChannelRoles, Reason
from rig.domain.seams import Frames, FrameSource

SAME_CORRELATION = 0.999
SAME_GAIN = 0.02
LOOK_BACK_S = 4.0
DEFICIT = 0.01
COMMON_RATES_HZ = (8000, 11025, 16000, 22050, 24000, 32000, 44100, 48000, 88200, 96000, 176400, 192000)


def same_signal(source: FrameSource, roles: ChannelRoles, found: Survey) -> bool:
    """True when the ear carries the reference's own samples at lag 0 and the same level: a mono mix, a wrong input."""
    seen = [_is_same(source.read(a, b - a), roles) for a, b in found.clips[:3]]
    return bool(seen) and sum(seen) > len(seen) / 2


def _is_same(frames: Frames, roles: ChannelRoles) -> bool:
    clip, ear = frames[:, roles.ref], frames[:, roles.ear]
    if len(ear) < 16 or np.ptp(clip) == 0.0 or np.ptp(ear) == 0.0:
        return False
    a, b = clip - clip.mean(), ear - ear.mean()
    energy_a, energy_b = float(np.dot(a, a)), float(np.dot(b, b))
    gain = math.sqrt(energy_b / energy_a)
    correlation = float(np.dot(a, b)) / math.sqrt(energy_a * energy_b)
    return correlation > SAME_CORRELATION and abs(gain - 1.0) < SAME_GAIN


def are_swapped(
    source: FrameSource, roles: ChannelRoles, found: Survey, shape: Shape, hints: AnalysisHints
) -> float | None:
    """How long before the "reference" the ear carries the same stimulus, in s, when that holds from the first event on.

    In a rightly wired recording the first stimulus has nothing before it. None when the channels are not swapped.
    """
    rate = float(source.rate_hz)
    back = LagRange(-LOOK_BACK_S, -0.002, 0.1)
    leads: list[float] = []
    for window, _, _ in windows(source, roles, found, back, lambda _: None, limit_events=4):
        evidence = examine(window, shape, rate, None)
        lag = _closest_lag(evidence)
        if single_shot(evidence, shape) is not None or lag is None or lag > -0.002 * rate:
            if not leads:
                return None  # nothing before the very first event
            continue
        leads.append(-lag / rate)
    if len(leads) < 2:
        return None
    middle = float(np.median(leads))
    agreeing = [v for v in leads if abs(v - middle) < 0.05 + 0.05 * middle]
    return middle if abs(leads[0] - middle) < 0.05 + 0.05 * middle and len(agreeing) >= 0.6 * len(leads) else None


def _closest_lag(e: Evidence) -> float | None:
    """The strong arrival closest before the stimulus, in samples: earlier ones belong to earlier stimuli."""
    if e.location is None or not e.arrivals:
        return None
    later = e.location.later
    return later.lag if later is not None and later.relative_db > -6.0 else e.arrivals[-1].lag


def rate_mismatch(witness: Witness, rate_hz: int) -> str | None:
    """What the spacing says about the rate label, when it is off by more than a resonator explains; else None."""
    ratio = witness.ratio
    if ratio is None or abs(ratio - 1.0) <= RATE_LIMIT:
        return None
    true_hz = rate_hz * ratio
    likely = min(COMMON_RATES_HZ, key=lambda r: abs(r - true_hz))
    named = f"{likely} Hz" if abs(likely - true_hz) < 0.01 * true_hz else f"about {true_hz:.0f} Hz"
    return (
        f"the stimuli are {100.0 * (ratio - 1.0):+.1f} % off their commanded spacing: the recording is labelled"
        f" {rate_hz} Hz, but was made at {named}"
    )


def frames_missing(hints: AnalysisHints, n_frames: int, rate_hz: int) -> str | None:
    """Frames received against elapsed time: a deficit over 1 % means that silence or blocks were dropped."""
    if hints.elapsed_s is None or hints.elapsed_s <= 0.0:
        return None
    received_s = n_frames / rate_hz
    if received_s >= (1.0 - DEFICIT) * hints.elapsed_s - 0.25:
        return None
    return f"{received_s:.2f} s of samples arrived in {hints.elapsed_s:.2f} s"


def whole_run_reason(evidence: list[Evidence], reference_silent: bool, ear_silent: bool) -> Reason | None:
    """A reason that needs no single trial."""
    if reference_silent or (ear_silent and evidence):
        return Reason.DIGITAL_SILENCE
    if not evidence:
        return Reason.NO_STIMULUS
    return None
