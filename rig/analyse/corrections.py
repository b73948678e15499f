"""What is calibrated, taken out of the figures of a run, with a line in the budget for each. Pure.

A latency is counted in frames of a clock that runs (1 + ppm) fast, between two channels one of which may be later; and
sound needs time in air and in transducers. In this order: t = (counted - skew) / (1 + ppm) - air - transducers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rig.analyse.uncertainty import CHANNEL_SKEW_S, SAMPLE_CLOCK_PPM
from rig.domain.calibration import QUANTITIES, Calibration, Used
from rig.domain.exhibits import Curve, RunExhibits
from rig.domain.records import BudgetLine, Correction, RunAnalysis, Trial

CLOCK_DAY_PPM = 2.0
"""How far a crystal's rate may be on another day from what was found, as a standard uncertainty: warmth moves it by
some ppm over the temperatures of rooms, age by about one a year. A simulated crystal has neither."""

DELAYS = ("mouth_path", "ear_path", "transducer")


@dataclass(frozen=True, slots=True)
class _Term:
    """One correction at one latency: added to it, in s. `used` None: not calibrated, nothing is added."""

    quantity: str
    value_s: float
    u_s: float
    used: Used | None
    source: str


def correct(run: RunAnalysis, calibration: Calibration) -> RunAnalysis:
    """The run with every figure of its trials corrected, their uncertainty and the budget with what is known.

    What a refused trial would have read is moved with them, so that it compares.
    """
    if not calibration.used or (not run.budget and not run.trials):
        return run
    rate_hz = float(run.rate_hz)
    trials = tuple(_corrected(trial, calibration, rate_hz) for trial in run.trials)
    valid = [t for t in run.trials if t.valid and t.latency_s is not None]
    if not valid:
        return replace(run, trials=trials)
    middle = float(np.median([t.latency_s for t in valid]))
    lines = [line for line in run.budget if line.kind == "A"]
    lines += [
        BudgetLine(_title(term.quantity), term.u_s, "B", term.source) for term in _terms(calibration, middle, rate_hz)
    ]
    return replace(run, trials=trials, budget=tuple(lines))


def corrections(runs: Sequence[RunAnalysis], calibration: Calibration) -> tuple[Correction, ...]:
    """What was applied, at the median of the uncorrected `runs`; empty where nothing was, or no trial is accepted."""
    found = [t.latency_s for r in runs if r.refusal is None for t in r.trials if t.valid and t.latency_s is not None]
    if not found:
        return ()
    terms = _terms(calibration, float(np.median(found)), float(runs[0].rate_hz))
    return tuple(Correction(_title(t.quantity), t.value_s, t.u_s, t.used.id) for t in terms if t.used is not None)


def uncalibrated(runs: Sequence[RunAnalysis], calibration: Calibration) -> tuple[str, ...]:
    """A sentence for each quantity that a latency depends on and that is not known, with what this costs.

    `runs` uncorrected. Empty where nothing at all is calibrated: one sentence says that (`rig/report/caveats.py`)."""
    if not any(u.record.quantity.enters for u in calibration.used):
        return ()
    found = [t.latency_s for r in runs for t in r.trials if t.valid and t.latency_s is not None]
    middle = float(np.median(found)) if found else 0.0
    widths = {"sample_clock": 1e-6 * SAMPLE_CLOCK_PPM * abs(middle), "channel_skew": CHANNEL_SKEW_S}
    said = []
    for name, why in dict(reversed(calibration.unmet)).items():
        quantity = QUANTITIES[name]
        if not quantity.enters:
            continue
        cost = (
            f"it is taken as 0, and widens the 95 % interval by up to {1.96e3 * widths[name]:.4f} ms either way"
            if name in widths
            else "its delay is part of the figure"
        )
        said.append(f"not calibrated: {quantity.title} ({why}); {cost}")
    return tuple(said[::-1])


def moved(exhibits: RunExhibits, seconds: float) -> RunExhibits:
    """The curves of a page later by `seconds`, so that a corrected latency stands where its arrival is drawn."""
    if seconds == 0.0:
        return exhibits
    trials = tuple(
        replace(
            trial,
            ear=_later(trial.ear, seconds),
            matched=None if trial.matched is None else _later(trial.matched, seconds),
            response=None if trial.response is None else _later(trial.response, seconds),
            matched_near=None if trial.matched_near is None else _later(trial.matched_near, seconds),
            response_near=None if trial.response_near is None else _later(trial.response_near, seconds),
            timed=tuple(_later(curve, seconds) for curve in trial.timed),
        )
        for trial in exhibits.trials
    )
    return replace(exhibits, trials=trials)


def _later(curve: Curve, seconds: float) -> Curve:
    return replace(curve, start_s=curve.start_s + seconds)


def _title(quantity: str) -> str:
    return {"sample_clock": "sample clock rate", "channel_skew": "channel skew"}.get(
        quantity, QUANTITIES[quantity].title
    )


def _terms(calibration: Calibration, counted_s: float, rate_hz: float) -> list[_Term]:
    """Every term at a latency of `counted_s` as it was counted. Clock and skew are always there, calibrated or not."""
    skew, clock = calibration.of("channel_skew"), calibration.of("sample_clock")
    terms = []
    if clock is None:
        u_s = SAMPLE_CLOCK_PPM * 1e-6 * abs(counted_s)
        source = f"uncalibrated crystal, {SAMPLE_CLOCK_PPM:g} ppm of the latency"
        terms.append(_Term("sample_clock", 0.0, u_s, None, source))
    else:
        ppm, u_ppm = clock.record.value, _u_clock_ppm(clock)
        source = f"{clock.id}: {ppm:+.3f} ppm, u {u_ppm:.3f} ppm of the latency"
        value_s = counted_s / (1.0 + ppm * 1e-6) - counted_s
        terms.append(_Term("sample_clock", value_s, u_ppm * 1e-6 * abs(counted_s), clock, source))
    if skew is None:
        source = "uncalibrated converter, both channels on one chip"
        terms.append(_Term("channel_skew", 0.0, CHANNEL_SKEW_S, None, source))
    else:
        frames, u_frames = skew.record.value, skew.record.u
        source = f"{skew.id}: {frames:+.4f} frames, u {u_frames:.4f}"
        stretch = 1.0 if clock is None else 1.0 + clock.record.value * 1e-6
        terms.append(_Term("channel_skew", -frames / rate_hz / stretch, u_frames / rate_hz, skew, source))
    for name in DELAYS:
        used = calibration.of(name)
        if used is not None:
            source = f"{used.id}: {1e3 * used.record.value:.4f} ms, u {1e3 * used.record.u:.4f} ms"
            terms.append(_Term(name, -used.record.value, used.record.u, used, source))
    return terms


def _u_clock_ppm(clock: Used) -> float:
    ages = clock.record.device.bench != "simulated"
    return math.hypot(clock.record.u, CLOCK_DAY_PPM if ages else 0.0)


def _corrected(trial: Trial, calibration: Calibration, rate_hz: float) -> Trial:
    def moved(counted_s: float | None) -> float | None:
        if counted_s is None:
            return None
        return counted_s + math.fsum(term.value_s for term in _terms(calibration, counted_s, rate_hz))

    u_s = trial.u_s
    if trial.latency_s is not None and trial.u_noise_s is not None:
        terms = _terms(calibration, trial.latency_s, rate_hz)
        u_s = math.sqrt(trial.u_noise_s**2 + math.fsum(term.u_s**2 for term in terms))
    return replace(
        trial,
        latency_s=moved(trial.latency_s),
        unconfirmed_s=moved(trial.unconfirmed_s),
        wide_s=moved(trial.wide_s),
        precision_s=moved(trial.precision_s),
        dominant_s=moved(trial.dominant_s),
        u_s=u_s,
    )
