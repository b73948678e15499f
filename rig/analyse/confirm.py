"""What the trials of a run say about each other: consensus for tone bursts, rescue for weak but agreeing trials."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from rig.analyse.examine import Evidence
from rig.analyse.stack import Before, Stack
from rig.analyse.stimulus import Shape
from rig.analyse.uncertainty import trial_uncertainty_s
from rig.analyse.verdict import single_shot
from rig.domain.records import Reason, Trial

RESCUE_Z = 4.5
RESCUE_S = 0.0003
RESCUE_SUPPORT = 3


def by_consensus(trials: list[Trial], evidence: list[Evidence], shape: Shape, rate_hz: float) -> list[Trial]:
    """Tone bursts: a trial stands only in a group of at least 3, and 60 % of the run, within a quarter period.

    A burst cannot be validated alone: its time reversal is itself, and one period aside its correlation is nearly as
    high (a cycle slip). K random lags in a window T agree within +-w with a chance under C(K, m) m (2w/T)^(m-1).
    """
    lags = np.array([t.latency_s for t in trials if t.valid and t.latency_s is not None])
    centre_hz = 0.5 * (shape.band.low_hz + shape.band.high_hz)
    width = 0.25 / centre_hz
    middle = None
    if len(lags):
        count, centre = _densest_middle(lags, 2.0 * width)
        if count >= max(3, 0.6 * len(trials)):
            middle = centre
    cluster = lags[np.abs(lags - middle) <= width] if middle is not None else lags
    # A codec's noise is there during the burst only and in no pause: the run's own scatter shows it.
    scatter_s = 1.4826 * float(np.median(np.abs(cluster - np.median(cluster)))) if len(cluster) else 0.0
    judged: list[Trial] = []
    for trial in trials:
        if not trial.valid or trial.latency_s is None:
            judged.append(trial)
        elif middle is None:
            judged.append(_refuse(trial, "too few other trials agree with this tone burst"))
        elif abs(trial.latency_s - middle) > width:
            away = 1e3 * (trial.latency_s - middle)
            judged.append(_refuse(trial, f"{away:+.1f} ms from where most of the run's tone bursts agree"))
        else:
            u_noise_s = max(scatter_s, trial.u_noise_s or 0.0)
            judged.append(replace(trial, u_noise_s=u_noise_s, u_s=trial_uncertainty_s(trial.latency_s, u_noise_s)))
    return judged


def look_before(evidence: list[Evidence], shape: Shape, rate_hz: float) -> Before:
    """Stacks what stands before the dominant arrival, over certain trials and weak ones that agree with each other."""
    lags = np.array([e.arrivals[-1].lag / rate_hz for e in evidence if _is_weakly_there(e)])
    middle = _densest_middle(lags, RESCUE_S)[1] if len(lags) else None
    stack = Stack()
    for e in evidence:
        if e.location is None or not e.arrivals:
            continue
        agrees = middle is not None and abs(e.arrivals[-1].lag / rate_hz - middle) <= RESCUE_S
        if single_shot(e, shape) is None or (_is_weakly_there(e) and agrees):
            stack.add(e.location.profile)
    return stack.before(2.2 / shape.band.width_hz)


def _is_weakly_there(e: Evidence) -> bool:
    return e.location is not None and bool(e.arrivals) and e.location.z >= RESCUE_Z


def _densest_middle(lags: npt.NDArray[np.float64], width: float) -> tuple[int, float]:
    """(count, median) of the fullest interval of `width`."""
    ordered = np.sort(lags)
    ends = np.searchsorted(ordered, ordered + width, side="right")
    counts = ends - np.arange(len(ordered))
    k = int(np.argmax(counts))
    return int(counts[k]), float(np.median(ordered[k : ends[k]]))


def rescue(trials: list[Trial], evidence: list[Evidence], rate_hz: float, clear: bool) -> list[Trial]:
    """Accepts weak trials that land where others of the run do, to 0.3 ms.

    The run then supplies the evidence that the trial alone lacks: three certain trials, or a majority of uncertain ones
    whose peaks are no chance (a room's reverberation resembles the decoy, yet comes back at the same lag every time). A
    false peak falls into that interval by a chance of 0.6 ms over the window's length, m of K of them by its (m-1)th
    power. A run whose latency moves supports nothing, and nothing is rescued; nor is anything unless the run's average
    is `clear` of earlier paths: what agrees could be an echo whose direct sound is under the noise in each trial.
    """
    if not clear:
        return trials
    sure = np.array([t.latency_s for t in trials if t.valid and t.latency_s is not None])
    middle: float | None = None
    if len(sure) >= RESCUE_SUPPORT:
        middle = float(np.median(sure))
        if float(np.mean(np.abs(sure - middle) <= RESCUE_S)) < 0.8:
            return trials
    else:
        middle = _majority(trials, evidence, rate_hz)
    if middle is None:
        return trials
    judged: list[Trial] = []
    for trial, e in zip(trials, evidence, strict=True):
        weak = trial.reason in (Reason.LOW_SNR, Reason.NO_ARRIVAL)
        if trial.valid or not weak or e.location is None or not e.arrivals or e.location.z < RESCUE_Z:
            judged.append(trial)
            continue
        arrival = e.arrivals[-1]
        latency_s = arrival.lag / rate_hz
        # Where the interval bites into the noise's own spread the figure would look better than it is.
        if abs(latency_s - middle) > RESCUE_S or 3.0 * arrival.u_noise / rate_hz > RESCUE_S or len(e.arrivals) > 1:
            judged.append(trial)
            continue
        u_noise_s = arrival.u_noise / rate_hz
        judged.append(
            replace(
                trial,
                valid=True,
                reason=None,
                latency_s=latency_s,
                u_noise_s=u_noise_s,
                u_s=trial_uncertainty_s(latency_s, u_noise_s),
                unconfirmed_s=None,
                precision_s=e.precision.lag / rate_hz if e.precision is not None else None,
                crlb_s=e.precision.crlb / rate_hz if e.precision is not None else None,
                note="weak alone; confirmed by the run",
            )
        )
    return judged


def _majority(trials: list[Trial], evidence: list[Evidence], rate_hz: float) -> float | None:
    """The lag (s) at which most of the run's trials agree though none is certain, or None.

    At least four and half of the run, at a spacing that is not a steady beat (mains hum keeps step with one), and
    better than their decoys by 2 dB in the median.
    """
    starts = np.array([e.start for e in evidence]) / rate_hz
    if len(starts) < 4 or float(np.ptp(np.diff(starts))) < 0.02:
        return None
    usable = [
        (e.arrivals[-1].lag / rate_hz, e.location.decoy_db)
        for t, e in zip(trials, evidence, strict=True)
        if e.location is not None
        and e.arrivals
        and e.location.z >= RESCUE_Z
        and (t.valid or t.reason in (Reason.LOW_SNR, Reason.NO_ARRIVAL))
    ]
    if len(usable) < 4:
        return None
    lags = np.array([u[0] for u in usable])
    count, middle = _densest_middle(lags, RESCUE_S)
    decoy_db = float(np.median([db for lag, db in usable if abs(lag - middle) <= RESCUE_S]))
    return middle if count >= max(4, 0.5 * len(trials)) and decoy_db >= 2.0 else None


def _refuse(trial: Trial, note: str) -> Trial:
    return replace(
        trial,
        valid=False,
        reason=Reason.NO_CONSENSUS,
        unconfirmed_s=trial.latency_s,
        latency_s=None,
        u_s=None,
        u_noise_s=None,
        wide_s=None,
        precision_s=None,
        crlb_s=None,
        dominant_s=None,
        polarity=None,
        note=note,
    )
