"""The quantities of a calibration from what was heard: each a mean with a standard uncertainty. Pure.

The uncertainty of a mean of few is Student's: the standard deviation over sqrt(n), times the quantile's ratio to the
normal one (Abramowitz and Stegun 26.7.5), so that 1.96 of it is the 95 % interval.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.analyse.heard import Channel
from rig.analyse.spectrum import Real
from rig.analyse.uncertainty import CHANNEL_SKEW_S

LEAST_FRAMES = 5e-6
"""No mean of lags is stated more certain than this: the estimators' own error without any noise is about a tenth of it
(tests/bench/test_calibration.py)."""

LEAST_DB = 1e-4
"""No level is stated more certain than this."""


@dataclass(frozen=True, slots=True)
class Found:
    """A value with its standard uncertainty, in the quantity's unit, from `n` readings."""

    value: float
    u: float
    n: int


def mean_of(values: Sequence[float] | Real, least_u: float) -> Found:
    """Mean of at least 3 readings. Raises ValueError for fewer."""
    x = np.asarray(values, dtype=np.float64)
    n = len(x)
    if n < 3:
        raise ValueError(f"{n} readings are no statistics")
    return Found(float(x.mean()), math.hypot(float(x.std(ddof=1)) / math.sqrt(n) * student(n - 1), least_u), n)


def student(freedom: float) -> float:
    """The 95 % quantile of Student's t with `freedom` degrees over the normal one, two-sided."""
    z2 = 1.959964**2
    terms = (
        (z2 + 1.0) / 4.0,
        ((5.0 * z2 + 16.0) * z2 + 3.0) / 96.0,
        (((3.0 * z2 + 19.0) * z2 + 17.0) * z2 - 15.0) / 384.0,
        ((((79.0 * z2 + 776.0) * z2 + 1482.0) * z2 - 1920.0) * z2 - 945.0) / 92_160.0,
    )
    return 1.0 + sum(term / freedom ** (k + 1) for k, term in enumerate(terms))


def alike(values: Real) -> float:
    """How alike neighbours are, 0 to 1: the first autocorrelation of `values`, shape (n,), without their mean."""
    x = values - values.mean()
    return min(max(0.0, float(np.dot(x[1:], x[:-1]) / max(float(np.dot(x, x)), 1e-300))), 0.999)


def loop_frames(reference: Channel) -> Found:
    """Round trip: from the frame asked for to the sound on the recording. Positive: the sound is later."""
    return mean_of([h.lag for h in reference.heard], LEAST_FRAMES)


def skew_frames(reference: Channel, ear: Channel, crosstalk_db: float | None) -> Found:
    """Ear minus reference of the same stimuli, by the envelope that a latency is defined by.

    What leaks from one into the other pulls the two together by its share of the skew, which is in the uncertainty
    where the crosstalk is known (a level against the reference channel, as `crosstalk_db` of crosstalk.py gives it)."""
    found = mean_of(lags_between(reference, ear), LEAST_FRAMES)
    pull = 0.0 if crosstalk_db is None else abs(found.value) * 10.0 ** (crosstalk_db / 20.0)
    return Found(found.value, math.hypot(found.u, pull), found.n)


def arrival_s(reference: Channel, ear: Channel, rate_hz: float, skew_frames: Found | None) -> Found:
    """From the reference to the ear through air, by the envelope that a latency is defined by, in s, without the skew
    of the channels. None: it is taken as 0, with the uncertainty of a converter that nobody has looked at."""
    found = mean_of(lags_between(reference, ear), LEAST_FRAMES)
    skew = Found(0.0, CHANNEL_SKEW_S * rate_hz, 1) if skew_frames is None else skew_frames
    return Found((found.value - skew.value) / rate_hz, math.hypot(found.u, skew.u) / rate_hz, found.n)


def polarity(channel: Channel) -> Found | None:
    """+1 or -1 where every stimulus says the same, else None."""
    signs = {math.copysign(1.0, h.gain) for h in channel.heard}
    return Found(signs.pop(), 0.0, len(channel.heard)) if len(signs) == 1 else None


def noise_dbfs(samples: Real, rate_hz: float) -> Found | None:
    """RMS of a quiet stretch, shape (n,), without its offset, over stretches of 0.1 s. None for digital silence."""
    hop = round(0.1 * rate_hz)
    n = len(samples) // hop
    powers = np.var(samples[: n * hop].reshape(n, hop).astype(np.float64), axis=1, ddof=1)
    if n < 3 or not float(powers.mean()) > 0.0:
        return None
    power = mean_of(powers, 0.0)
    rho = alike(powers)  # noise that comes and goes: Bartlett's count for a first-order process
    return in_db(Found(power.value, power.u * math.sqrt((1.0 + rho) / (1.0 - rho)), n), 10.0)


def clip_dbfs(levels: Sequence[Channel]) -> Found | None:
    """The level at which a channel stands still though more is played: the mean height of the flat tops.

    None where fewer than three stimuli have one: the limit was not reached. An input that gives way softly stands
    higher the louder it is driven; that spread is in the uncertainty."""
    tops = [h.top for channel in levels for h in channel.heard if h.top is not None]
    return in_db(mean_of(tops, 0.0), 20.0) if len(tops) >= 3 else None


def moved_frames(reference: Channel, ear: Channel) -> float | None:
    """How far the ear's lag slid from the first stimulus to the last, in frames, where that is no chance; else None.

    Theil and Sen's slope; no chance: over 0.1 frame (0.7 mm of air), and over 5 times what the scatter explains."""
    pairs = [(k, a, b) for k, (a, b) in enumerate(zip(reference.stimuli, ear.stimuli, strict=True)) if a and b]
    if len(pairs) < 4:
        return None
    k = np.array([p[0] for p in pairs], dtype=np.float64)
    lag = np.array([b.lag - a.lag for _, a, b in pairs])
    i, j = np.triu_indices(len(k), 1)
    slope = float(np.median((lag[j] - lag[i]) / (k[j] - k[i])))
    rest = lag - slope * k
    scatter = 1.4826 * float(np.median(np.abs(rest - np.median(rest))))
    slid = slope * float(k[-1] - k[0])
    leaps = float(np.ptp(rest))
    if abs(slid) > max(0.1, 5.0 * scatter * math.sqrt(12.0 / len(k))):
        return slid
    return leaps if leaps > max(0.5, 12.0 * scatter) else None


def lags_between(reference: Channel, ear: Channel) -> list[float]:
    """Ear after reference, in frames, of each stimulus that both have, by the envelope that a latency is defined by."""
    pairs = [(a, b) for a, b in zip(reference.stimuli, ear.stimuli, strict=True) if a is not None and b is not None]
    return [
        b.envelope_lag - a.envelope_lag for a, b in pairs if a.envelope_lag is not None and b.envelope_lag is not None
    ]


def in_db(found: Found, per_decade: float) -> Found:
    """A positive figure as a level: 20 dB a decade for amplitudes, 10 for powers."""
    slope = per_decade / math.log(10.0)
    return Found(per_decade * math.log10(found.value), math.hypot(slope * found.u / found.value, LEAST_DB), found.n)
