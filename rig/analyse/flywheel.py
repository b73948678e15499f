"""From the board's clock to the audio clock, through the pulses: stamped by the board, found in the recording.

A ceramic resonator wanders with warmth and draught, so no line holds for long. Its rate is taken as a random walk,
which makes the offset an integrated one; the best estimate of that, given the pulses, is a cubic smoothing spline,
computed here as a Kalman filter with a Rauch-Tung-Striebel smoother (Wahba 1978 for the identity of the two). How much
the rate wanders and how noisy the pulses are is read off the pulses, by the largest likelihood over a grid of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MIN_PULSES = 3

NOISES_S = np.geomspace(1e-6, 2e-4, 12)
"""Standard deviation of a pulse's place: from a twentieth of a frame, never claimed to be better, to several frames."""

WANDERS = np.geomspace(1e-7, 1e-4, 10) ** 2
"""Random walk of the rate, (s/s)^2 per s: a good resonator moves by 0.1 ppm in a second, a warming one by some ppm."""

USUAL_NOISE_S, USUAL_WANDER, FACTOR = 2e-6, 1e-12, 3.0
"""Before the pulses are looked at, noise and the root of the wander are taken to be these within this factor (one
standard deviation of the logarithm). Few pulses can look smooth by chance; they must not claim to be exact."""

OUTLIER = 6.0  # a pulse this many standard deviations off its neighbours is no pulse


@dataclass(frozen=True, slots=True)
class Flywheel:
    """The smoothed map. Arrays of shape (n,), one entry a pulse: board time, audio time, its rate d(audio)/d(board),
    and the covariance of the last two. `noise_s` is a single pulse's standard deviation, `wander` as in `WANDERS`."""

    mcu_s: Floats
    audio_s: Floats
    rate: Floats
    var_offset: Floats
    covariance: Floats
    var_rate: Floats
    noise_s: float
    wander: float
    residual_s: float

    def audio(self, mcu_s: Floats) -> Floats:
        """Audio time at board time `mcu_s`, shape (n,): cubic between pulses, straight on beyond the first and last."""
        k, t, h = self._place(mcu_s)
        share = np.clip(t / h, 0.0, 1.0)
        inside = t - share * h  # what lies beyond the outermost pulse; 0 between pulses
        y0, y1 = self.audio_s[k], self.audio_s[k + 1]
        r0, r1 = self.rate[k], self.rate[k + 1]
        # Hermite's cubic about the chord, so that large times cost no digits.
        chord = (y1 - y0) / h
        bend = share * (1.0 - share) * h * ((r0 - chord) * (1.0 - share) - (r1 - chord) * share)
        value = y0 + share * (y1 - y0) + bend
        return np.asarray(value + inside * np.where(inside < 0.0, r0, r1))

    def u_s(self, mcu_s: Floats) -> Floats:
        """Standard uncertainty of `audio` at `mcu_s`, shape (n,), as far as pulses and wander go."""
        k, t, h = self._place(mcu_s)
        share = np.clip(t / h, 0.0, 1.0)
        beyond = np.abs(t - share * h)
        end = np.where(t < 0.0, k, k + 1)
        sign = np.where(t < 0.0, -1.0, 1.0)
        between = np.maximum(self.var_offset[k], self.var_offset[k + 1])
        between = between + self.wander * (share * (1.0 - share) * h) ** 3 / 3.0
        outside = (
            self.var_offset[end]
            + 2.0 * sign * beyond * self.covariance[end]
            + beyond**2 * self.var_rate[end]
            + self.wander * beyond**3 / 3.0
        )
        return np.asarray(np.sqrt(np.where(beyond > 0.0, outside, between)))

    def _place(self, mcu_s: Floats) -> tuple[npt.NDArray[np.intp], Floats, Floats]:
        k = np.clip(np.searchsorted(self.mcu_s, mcu_s, side="right") - 1, 0, len(self.mcu_s) - 2)
        return k, np.asarray(mcu_s - self.mcu_s[k]), np.asarray(self.mcu_s[k + 1] - self.mcu_s[k])


def fit_flywheel(mcu_s: Floats, audio_s: Floats) -> Flywheel | None:
    """Smooths the pulses: board time and audio time of each, shape (n,), both growing. None under `MIN_PULSES`.

    A pulse far off its neighbours is left out once; a step (lost samples) must have been cut away before.
    """
    if len(mcu_s) < MIN_PULSES:
        return None
    fitted = _fit(mcu_s, audio_s)
    off = np.abs(fitted.audio(mcu_s) - audio_s)
    keep = off <= OUTLIER * max(1.4826 * float(np.median(off)), float(NOISES_S[0]), 0.5 * fitted.noise_s)
    if keep.all() or np.count_nonzero(keep) < max(MIN_PULSES, 0.8 * len(keep)):
        return fitted
    return _fit(mcu_s[keep], audio_s[keep])


def _fit(mcu_s: Floats, audio_s: Floats) -> Flywheel:
    line = float((audio_s[-1] - audio_s[0]) / (mcu_s[-1] - mcu_s[0]))
    rest = (audio_s - audio_s[0]) - line * (mcu_s - mcu_s[0])
    steps = np.diff(mcu_s)
    noise, wander = _likeliest(steps, rest)
    offset, rate, p00, p01, p11 = _smooth(steps.tolist(), rest.tolist(), noise**2, wander)
    return Flywheel(
        mcu_s=mcu_s,
        audio_s=audio_s[0] + line * (mcu_s - mcu_s[0]) + offset,
        rate=line + rate,
        var_offset=np.maximum(p00, 0.0),
        covariance=p01,
        var_rate=np.maximum(p11, 0.0),
        noise_s=noise,
        wander=wander,
        residual_s=float(np.sqrt(np.mean((rest - offset) ** 2))),
    )


_FIRST_OFFSET_VAR = 1e-2  # of what is left beside the line from the first pulse to the last: wide open
_FIRST_RATE_VAR = 1e-4


def _likeliest(steps: Floats, rest: Floats) -> tuple[float, float]:
    """The noise and the wander under which the pulses are likeliest; one filter runs over the whole grid at once."""
    noise, wander = (grid.ravel() for grid in np.meshgrid(NOISES_S, WANDERS))
    r = noise**2
    offset, rate = np.zeros_like(r), np.zeros_like(r)
    p00, p01, p11 = np.full_like(r, _FIRST_OFFSET_VAR), np.zeros_like(r), np.full_like(r, _FIRST_RATE_VAR)
    off = np.log(noise / USUAL_NOISE_S) ** 2 + (0.5 * np.log(wander / USUAL_WANDER)) ** 2
    likelihood = -0.5 * off / np.log(FACTOR) ** 2
    for k, value in enumerate(rest.tolist()):
        if k:
            dt = float(steps[k - 1])
            offset = offset + dt * rate
            p00 = p00 + dt * (2.0 * p01 + dt * p11) + wander * (dt**3 / 3.0)
            p01 = p01 + dt * p11 + wander * (dt**2 / 2.0)
            p11 = p11 + wander * dt
        s = p00 + r
        v = value - offset
        likelihood -= 0.5 * (v * v / s + np.log(s))
        offset, rate = offset + p00 / s * v, rate + p01 / s * v
        p11 = p11 - p01 * p01 / s
        p01, p00 = p01 * r / s, p00 * r / s
    best = int(np.argmax(likelihood))
    return float(noise[best]), float(wander[best])


def _smooth(steps: list[float], rest: list[float], r: float, wander: float) -> tuple[Floats, ...]:
    """Offset, rate and their covariance (00, 01, 11) at each pulse, given all pulses."""
    filtered: list[tuple[float, float, float, float, float]] = []
    predicted: list[tuple[float, float, float, float, float]] = []
    m0, m1, p00, p01, p11 = 0.0, 0.0, _FIRST_OFFSET_VAR, 0.0, _FIRST_RATE_VAR
    for k, value in enumerate(rest):
        if k:
            dt = steps[k - 1]
            m0 += dt * m1
            p00 += dt * (2.0 * p01 + dt * p11) + wander * dt**3 / 3.0
            p01 += dt * p11 + wander * dt**2 / 2.0
            p11 += wander * dt
        predicted.append((m0, m1, p00, p01, p11))
        s = p00 + r
        v = value - m0
        m0, m1 = m0 + p00 / s * v, m1 + p01 / s * v
        p11 -= p01 * p01 / s
        p01, p00 = p01 * r / s, p00 * r / s
        filtered.append((m0, m1, p00, p01, p11))
    smoothed = [filtered[-1]]
    for k in range(len(rest) - 2, -1, -1):
        dt = steps[k]
        f0, f1, f00, f01, f11 = filtered[k]
        q0, q1, q00, q01, q11 = predicted[k + 1]
        s0, s1, s00, s01, s11 = smoothed[-1]
        # Gain C = P F' Q^-1, with P F' = [[f00 + dt f01, f01], [f01 + dt f11, f11]].
        det = q00 * q11 - q01 * q01
        a, b = f00 + dt * f01, f01 + dt * f11
        c00, c01 = (a * q11 - f01 * q01) / det, (f01 * q00 - a * q01) / det
        c10, c11 = (b * q11 - f11 * q01) / det, (f11 * q00 - b * q01) / det
        d0, d1 = s0 - q0, s1 - q1
        e00, e01, e11 = s00 - q00, s01 - q01, s11 - q11
        smoothed.append(
            (
                f0 + c00 * d0 + c01 * d1,
                f1 + c10 * d0 + c11 * d1,
                f00 + c00 * (c00 * e00 + c01 * e01) + c01 * (c00 * e01 + c01 * e11),
                f01 + c10 * (c00 * e00 + c01 * e01) + c11 * (c00 * e01 + c01 * e11),
                f11 + c10 * (c10 * e00 + c11 * e01) + c11 * (c10 * e01 + c11 * e11),
            )
        )
    columns = np.array(smoothed[::-1])
    return tuple(columns[:, k] for k in range(5))
