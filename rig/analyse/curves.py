"""Keeps what the estimator looked at, for a reader's eye: the very envelopes that were searched, thinned for drawing.

Nothing is estimated here. The keeper is handed each window together with the evidence that `examine` made of it, and
memory stays flat: of a long run the first trials are kept, some of the later ones, and refused ones.
"""

from __future__ import annotations

import math

import numpy as np

from rig.analyse.examine import Evidence, Window, cleaned, noise_model
from rig.analyse.refine import LocalPair
from rig.analyse.spectrum import Real, median_psd
from rig.analyse.stimulus import Shape
from rig.domain.exhibits import Curve, RunExhibits, RunSpectra, TrialCurves
from rig.domain.records import Trial

KEPT_FIRST = 60
KEPT_EVERY = 20
KEPT_REFUSED = 60
KEPT_AT_MOST = 300

SHOWN_RATE_HZ = 16_000.0
"""Waveforms are drawn up to 8 kHz: every stimulus of ours ends below, and a page stays small."""

SHOWN_CLIP_S = 0.25
SHOWN_EAR_S = 0.45
BEFORE_S = 0.010
AFTER_S = 0.025
OVERVIEW_POINTS = 1500
NEAR_S = 0.100
TIMED_S = 0.015
SPECTRA_TRIALS = 20
LOWEST_HZ = 60.0
PER_OCTAVE = 12


class CurveKeeper:
    """One a run. Feed it each examined window; ask for the exhibits at the end."""

    def __init__(self, run: int, rate_hz: float) -> None:
        self._run = run
        self._rate_hz = rate_hz
        self._kept: dict[int, TrialCurves] = {}
        self._refused = 0
        self._spectra = _SpectraSum(rate_hz)

    def see(self, window: Window, shape: Shape, evidence: Evidence, trial: Trial) -> None:
        """`evidence` as examined with its views kept; `trial` as judged for the time being. A window seen again, with
        another range of lags, replaces what was kept of it."""
        self._spectra.add(window, evidence)
        index = window.index
        wanted = index < KEPT_FIRST or index % KEPT_EVERY == 0 or index in self._kept
        if not wanted and not trial.valid and self._refused < KEPT_REFUSED:
            self._refused += 1
            wanted = True
        if wanted and (index in self._kept or len(self._kept) < KEPT_AT_MOST):
            self._kept[index] = curves_of(window, shape, evidence, self._run, self._rate_hz)

    def exhibits(self) -> RunExhibits:
        """Trials in order, and the run's spectra."""
        kept = tuple(self._kept[index] for index in sorted(self._kept))
        return RunExhibits(self._run, kept, self._spectra.mean())


def curves_of(window: Window, shape: Shape, evidence: Evidence, run: int, rate_hz: float) -> TrialCurves:
    """The curves of one window. Pure."""
    first_lag = window.ear_start - window.start
    location = evidence.location
    views = location.views if location is not None else None
    lags = [a.lag for a in evidence.arrivals] or ([location.dominant] if location is not None else [0.0])
    clip = window.clip[: round(SHOWN_CLIP_S * rate_hz)]
    low = max(0, math.floor(min(lags) - BEFORE_S * rate_hz) - first_lag)
    high = math.ceil(max(lags) + len(clip) + AFTER_S * rate_hz) - first_lag
    high = min(high, low + round(SHOWN_EAR_S * rate_hz), len(window.ear))
    matched = response = matched_near = response_near = None
    if views is not None and location is not None:
        matched = _overview(views.matched, views.first_lag, views.step, rate_hz)
        response = _overview(views.response, views.first_lag, views.step, rate_hz)
        at = (location.dominant - views.first_lag) / views.step
        matched_near = _near(views.matched, views.first_lag, views.step, at, rate_hz)
        response_near = _near(views.response, views.first_lag, views.step, at, rate_hz)
    return TrialCurves(
        run=run,
        index=window.index,
        band_hz=None if views is None else (round(views.band.low_hz, 1), round(views.band.high_hz, 1)),
        reference=_drawn(clip, 0.0, rate_hz),
        ear=_drawn(window.ear[low:high], (first_lag + low) / rate_hz, rate_hz),
        matched=matched,
        response=response,
        matched_near=matched_near,
        response_near=response_near,
        timed=_timed(window, shape, evidence, rate_hz),
    )


def _timed(window: Window, shape: Shape, evidence: Evidence, rate_hz: float) -> tuple[Curve, ...]:
    """The refined response about each arrival that was timed; by the same code that timed it."""
    if not evidence.arrivals:
        return ()
    window = cleaned(window, shape, rate_hz)
    noise = noise_model(window, rate_hz)
    reach = round(TIMED_S * rate_hz)
    first_lag = window.ear_start - window.start
    found = []
    for arrival in evidence.arrivals:
        pair = LocalPair(window.clip, window.ear, first_lag, round(arrival.lag), rate_hz, whole=not shape.flat)
        start, step, values = pair.envelope(shape.band, noise, reach)
        found.append(Curve(start / rate_hz, step / rate_hz, _of_top(values)))
    return tuple(found)


def _drawn(samples: Real, start_s: float, rate_hz: float) -> Curve:
    """The samples at `SHOWN_RATE_HZ`, by cutting their spectrum; as they are where their own rate is lower."""
    n = len(samples)
    m = round(n * SHOWN_RATE_HZ / rate_hz)
    if rate_hz <= SHOWN_RATE_HZ or m < 16:
        return Curve(start_s, 1.0 / rate_hz, np.asarray(samples))
    # Mirrored at both ends, so that an end that is not zero does not ring.
    pad = min(n - 1, round(0.002 * rate_hz))
    mirrored = np.pad(samples, pad, mode="reflect")
    length = len(mirrored)
    kept = round(length * SHOWN_RATE_HZ / rate_hz)
    small = np.fft.irfft(np.fft.rfft(mirrored)[: kept // 2 + 1], kept) * (kept / length)
    step = length / kept
    first = math.ceil(pad / step)
    values = small[first : first + int((n - 1 - (first * step - pad)) / step) + 1]
    return Curve(start_s + (first * step - pad) / rate_hz, step / rate_hz, values)


def _overview(envelope: Real, first_lag: float, step: float, rate_hz: float) -> Curve:
    """At most OVERVIEW_POINTS values over all lags, each the largest of its stretch, at the middle of it."""
    stride = max(1, math.ceil(len(envelope) / OVERVIEW_POINTS))
    padded = np.pad(envelope, (0, -len(envelope) % stride), mode="edge")
    values = padded.reshape(-1, stride).max(axis=1)
    middle = 0.5 * (stride - 1) * step
    return Curve((first_lag + middle) / rate_hz, stride * step / rate_hz, _of_top(values))


def _near(envelope: Real, first_lag: float, step: float, at: float, rate_hz: float) -> Curve:
    reach = NEAR_S * rate_hz / step
    low, high = max(0, math.floor(at - reach)), min(len(envelope), math.ceil(at + reach))
    values = envelope[low:high] / max(float(envelope.max()), 1e-300)
    return Curve((first_lag + low * step) / rate_hz, step / rate_hz, values)


def _of_top(values: Real) -> Real:
    return np.asarray(values / max(float(values.max()), 1e-300))


class _SpectraSum:
    """Power densities in twelfths of an octave, summed over the first trials that were timed."""

    def __init__(self, rate_hz: float) -> None:
        self._rate_hz = rate_hz
        octaves = math.log2(0.48 * rate_hz / LOWEST_HZ)
        self._edges = LOWEST_HZ * 2.0 ** (np.arange(int(octaves * PER_OCTAVE) + 1) / PER_OCTAVE)
        self._middle = np.sqrt(self._edges[:-1] * self._edges[1:])
        self._sums: dict[str, Real] = {}
        self._counts: dict[str, int] = {}
        self._n = 0

    def add(self, window: Window, evidence: Evidence) -> None:
        if self._n >= SPECTRA_TRIALS:
            return
        self._n += 1
        self._count("reference", self._of_signal(window.clip))
        self._count("reference_pause", self._of_pause(window.before_ref))
        self._count("ear_pause", self._of_pause(window.before_ear))
        if evidence.arrivals:
            begin = max(0, round(evidence.arrivals[-1].lag) - (window.ear_start - window.start))
            self._count("ear", self._of_signal(window.ear[begin : begin + len(window.clip)]))

    def mean(self) -> RunSpectra | None:
        reference = self._db("reference")
        if reference is None:
            return None
        return RunSpectra(
            self._middle, reference, self._db("reference_pause"), self._db("ear"), self._db("ear_pause"), self._n
        )

    def _db(self, name: str) -> Real | None:
        if name not in self._sums:
            return None
        return np.asarray(10.0 * np.log10(np.maximum(self._sums[name] / self._counts[name], 1e-20)))

    def _count(self, name: str, density: Real | None) -> None:
        if density is not None:
            self._sums[name] = self._sums.get(name, 0.0) + density
            self._counts[name] = self._counts.get(name, 0) + 1

    def _of_signal(self, samples: Real) -> Real | None:
        n = len(samples)
        if n < 0.002 * self._rate_hz:
            return None
        power = np.abs(np.fft.rfft(samples - samples.mean())) ** 2 * (2.0 / (n * self._rate_hz))
        return self._in_bands(power, self._rate_hz / n)

    def _of_pause(self, samples: Real) -> Real | None:
        if len(samples) < 0.02 * self._rate_hz:
            return None
        frequency_hz, power = median_psd(samples, self._rate_hz)
        return self._in_bands(power * (2.0 / self._rate_hz), float(frequency_hz[1] - frequency_hz[0]))

    def _in_bands(self, power: Real, step_hz: float) -> Real:
        """Mean over each twelfth of an octave; where that is narrower than a bin, read between the bins."""
        total = np.concatenate(([0.0], np.cumsum(power)))
        position = np.clip(self._edges / step_hz + 0.5, 0.0, len(power))
        integral = np.interp(position, np.arange(len(total)), total)
        return np.asarray(np.diff(integral) / np.maximum(np.diff(position), 1e-9))
