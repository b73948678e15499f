"""One run, from its frames to its trials: the order of the steps, and nothing that belongs to one of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from rig.analyse import checks
from rig.analyse.choose import LEAK_S, Choice, choose, stable_distance
from rig.analyse.confirm import by_consensus, look_before, rescue
from rig.analyse.curves import CurveKeeper
from rig.analyse.examine import PRE_S, Evidence, examine
from rig.analyse.levels import LevelMeter
from rig.analyse.pairing import Pairing, pair_responses
from rig.analyse.stimulus import Shape
from rig.analyse.stream import LAG_LIMIT_S, LagRange, Survey, blocks, survey, windows
from rig.analyse.uncertainty import budget
from rig.analyse.verdict import Context, judge, single_shot
from rig.analyse.witness import Witness, compare, stamps_s
from rig.domain.records import AnalysisHints, ChannelRoles, Reason, RunAnalysis, Trial
from rig.domain.seams import FrameSource

LEAK_GUARD_S = 0.0015
OnTrial = Callable[[Trial], None]


def analyse_run(
    source: FrameSource,
    roles: ChannelRoles,
    hints: AnalysisHints | None = None,
    run: int = 1,
    on_trial: OnTrial | None = None,
    keeper: CurveKeeper | None = None,
) -> RunAnalysis:
    """Finds the stimuli on the reference channel, their arrivals on the ear channel, and judges each.

    `on_trial` sees each trial provisionally as it is examined, before the run's other trials are asked; a later word
    may differ. `keeper` keeps what a page shows of them. The result is a function of the frames and the hints alone.
    """
    hints = hints or AnalysisHints()
    rate = float(source.rate_hz)
    meter = LevelMeter(rate, source.full_scale)
    found = survey(source, roles, hints)
    if found.shape is None:
        for block in blocks(source, roles):
            meter.feed(block)
        return _without_stimuli(source, meter, run)
    shape = found.shape
    lags = _lag_range(hints)
    evidence = _examine_all(source, roles, found, lags, shape, hints, meter, on_trial, keeper)
    if not evidence:
        return _without_stimuli(source, meter, run)
    located = [single_shot(e, shape) is None for e in evidence]
    pairing = pair_responses(evidence, located, rate)
    if pairing.kind == "late" and pairing.centre_s is not None and pairing.spacing_s is not None:
        half = 0.5 * _closest(evidence, rate)
        centred = LagRange(max(lags.low_s, pairing.centre_s - half), pairing.centre_s + half, pairing.centre_s + half)
        if hints.max_latency_s is None or pairing.centre_s <= hints.max_latency_s:
            evidence = _examine_all(source, roles, found, centred, shape, hints, None, None, keeper)
    witness = compare([e.reference_frame for e in evidence], stamps_s(hints.fired, hints.spacing_s), rate)
    spread = stable_distance(evidence, rate)
    context = Context(shape, rate, hints, source.n_frames, witness.lost, max(0.0, lags.low_s), spread / rate)
    cleared = hints.min_latency_s is not None or hints.blank is not None
    before = look_before(evidence, shape, rate)
    choices = choose(evidence, rate, cleared, before)
    trials = [judge(e, c, context) for e, c in zip(evidence, choices, strict=True)]
    trials = (
        by_consensus(trials, evidence, shape, rate) if shape.symmetric else rescue(trials, evidence, rate, before.clear)
    )
    refusal, detail = _run_refusal(source, roles, found, shape, hints, evidence, trials, meter, witness, pairing)
    if refusal is not None:
        trials = [_void(t, refusal) for t in trials]
    valid = [t for t in trials if t.valid and t.latency_s is not None]
    levels = meter.levels()
    middle = float(np.median([t.latency_s for t in valid])) if valid else 0.0
    noise = float(np.median([t.u_noise_s for t in valid])) if valid else 0.0
    return RunAnalysis(
        run=run,
        trials=tuple(trials),
        refusal=refusal,
        refusal_detail=detail,
        stimulus=shape.kind,
        band_hz=(round(shape.band.low_hz, 1), round(shape.band.high_hz, 1)),
        rate_hz=source.rate_hz,
        n_frames=source.n_frames,
        levels=levels,
        budget=budget(middle, noise) if valid else (),
        caveats=tuple(_caveats(found, hints, choices, trials, witness, pairing, len(evidence))),
        drift_ppm=witness.drift_ppm,
        latency_slope_ppm=_slope_ppm(valid, rate),
        extra={"wide_low_hz": shape.wide.low_hz, "wide_high_hz": shape.wide.high_hz},
    )


def _lag_range(hints: AnalysisHints) -> LagRange:
    low = -PRE_S if hints.min_latency_s is None else hints.min_latency_s
    if hints.blank is not None and hints.blank.leak_lag_s is not None:
        low = max(low, hints.blank.leak_lag_s + LEAK_GUARD_S)
    return LagRange(low, None, LAG_LIMIT_S if hints.max_latency_s is None else hints.max_latency_s)


def _closest(evidence: list[Evidence], rate: float) -> float:
    """Smallest distance between two stimuli, in s."""
    return float(np.min(np.diff([e.start for e in evidence]))) / rate


def _examine_all(
    source: FrameSource,
    roles: ChannelRoles,
    found: Survey,
    lags: LagRange,
    shape: Shape,
    hints: AnalysisHints,
    meter: LevelMeter | None,
    on_trial: OnTrial | None,
    keeper: CurveKeeper | None,
) -> list[Evidence]:
    rate = float(source.rate_hz)
    context = Context(shape, rate, hints, source.n_frames, {}, max(0.0, lags.low_s))
    evidence: list[Evidence] = []
    feed = meter.feed if meter is not None else (lambda _: None)
    for window, similar, offset in windows(source, roles, found, lags, feed):
        seen = examine(window, shape, rate, source.full_scale, keep_views=keeper is not None)
        e = replace(seen, similar=similar, offset=offset)
        if on_trial is not None or keeper is not None:
            provisional = judge(e, Choice(e.arrivals[-1], None) if e.arrivals else None, context)
            if on_trial is not None:
                on_trial(provisional)
            if keeper is not None:
                keeper.see(window, shape, e, provisional)
                e = replace(e, location=None if e.location is None else replace(e.location, views=None))
        evidence.append(e)
    return evidence


def _run_refusal(
    source: FrameSource,
    roles: ChannelRoles,
    found: Survey,
    shape: Shape,
    hints: AnalysisHints,
    evidence: list[Evidence],
    trials: list[Trial],
    meter: LevelMeter,
    witness: Witness,
    pairing: Pairing,
) -> tuple[Reason | None, str | None]:
    if meter.is_constant(1):
        return Reason.DIGITAL_SILENCE, "every sample of the ear channel has the same value"
    if checks.same_signal(source, roles, found):
        return Reason.SAME_SIGNAL, "both channels carry the same signal at the same level: this is not a measurement"
    mismatch = checks.rate_mismatch(witness, source.rate_hz)
    if mismatch is not None:
        return Reason.RATE_MISMATCH, mismatch
    missing = checks.frames_missing(hints, source.n_frames, source.rate_hz)
    if missing is not None:
        return Reason.GAP_IN_WINDOW, missing
    if pairing.kind == "early" and pairing.centre_s is not None:
        return Reason.SWAPPED_CHANNELS, (
            f"the ear channel carries the stimulus {-1e3 * pairing.centre_s:.1f} ms before the reference:"
            " channels look swapped"
        )
    steady = pairing.spacing_s is not None and pairing.centre_s is not None and _is_steady(evidence)
    if steady or sum(t.valid for t in trials) < 0.5 * len(trials):
        lead = checks.are_swapped(source, roles, found, shape, hints)
        if lead is not None:
            return Reason.SWAPPED_CHANNELS, (
                f"the ear channel carries the stimulus {1e3 * lead:.1f} ms before the reference: channels look swapped"
            )
    if pairing.kind == "ambiguous":
        values = ", ".join(f"{1e3 * c:.0f}" for c in pairing.candidates_s)
        return Reason.AMBIGUOUS, f"the beat is steady, so the latency may be {values} ms or more"
    limit = hints.max_latency_s
    if pairing.kind == "late" and pairing.centre_s is not None and limit is not None and pairing.centre_s > limit:
        return Reason.OUTSIDE_WINDOW, f"responses come about {1e3 * pairing.centre_s:.0f} ms after their stimuli"
    if pairing.kind == "scattered":
        low, high = pairing.candidates_s[0], pairing.candidates_s[-1]
        return Reason.AMBIGUOUS, f"unstable: the trials lie anywhere from {1e3 * low:.0f} to {1e3 * high:.0f} ms"
    return None, None


def _is_steady(evidence: list[Evidence]) -> bool:
    gaps = np.diff([e.start for e in evidence])
    return len(gaps) >= 2 and float(np.ptp(gaps)) <= 0.02 * float(np.median(gaps))


def _void(trial: Trial, reason: Reason) -> Trial:
    """The trial without its figure: the run as a whole cannot be trusted."""
    if not trial.valid:
        return trial
    return replace(
        trial,
        valid=False,
        reason=reason,
        unconfirmed_s=trial.latency_s,
        latency_s=None,
        u_s=None,
        u_noise_s=None,
        wide_s=None,
        precision_s=None,
        crlb_s=None,
        dominant_s=None,
        polarity=None,
    )


def _without_stimuli(source: FrameSource, meter: LevelMeter, run: int) -> RunAnalysis:
    silent = meter.is_constant(0)
    return RunAnalysis(
        run=run,
        trials=(),
        refusal=Reason.DIGITAL_SILENCE if silent else Reason.NO_STIMULUS,
        refusal_detail=(
            "every sample of the reference channel has the same value"
            if silent
            else "nothing on the reference channel stands out of its noise"
        ),
        stimulus=None,
        band_hz=None,
        rate_hz=source.rate_hz,
        n_frames=source.n_frames,
        levels=meter.levels(),
    )


def _slope_ppm(valid: list[Trial], rate: float) -> float | None:
    """Theil and Sen's slope of the latency against time, in ppm; positive: it grows. None under 8 trials."""
    if len(valid) < 8:
        return None
    t = np.array([v.reference_frame for v in valid]) / rate
    y = np.array([v.latency_s for v in valid])
    if len(t) > 400:  # every pair of an hour is too many; evenly chosen trials give the same line
        chosen = np.linspace(0, len(t) - 1, 400).astype(np.intp)
        t, y = t[chosen], y[chosen]
    i, j = np.triu_indices(len(t), 1)
    return float(np.median((y[j] - y[i]) / (t[j] - t[i]))) * 1e6


def _caveats(
    found: Survey,
    hints: AnalysisHints,
    choices: list[Choice | None],
    trials: list[Trial],
    witness: Witness,
    pairing: Pairing,
    count: int,
) -> list[str]:
    said: list[str] = []
    planned = len(hints.spacing_s) + 1 if hints.spacing_s is not None else None
    if planned is not None and count != planned:
        said.append(f"{planned} stimuli were commanded and {count} are on the recording; they are paired by time")
    elif witness.unpaired_events:
        said.append(f"{len(witness.unpaired_events)} stimuli on the recording match no stamp")
    if any(c is not None and c.crosstalk for c in choices):
        said.append("the reference leaks electrically into the ear channel (an arrival at lag 0); it was left out")
    if any(c is not None and c.faint_leak for c in choices):
        said.append("the ear hears the mouth directly, 10 dB or more below the system; it was left out")
    fast = [t for t in trials if t.valid and t.latency_s is not None and t.latency_s < LEAK_S]
    if fast and hints.blank is None:
        said.append(
            f"arrivals under {1e3 * LEAK_S:.0f} ms may be the mouth heard directly;"
            " no blank run (system muted) rules it out"
        )
    if pairing.kind == "late" and pairing.centre_s is not None:
        said.append("responses come after later stimuli; they were paired by the spacing that makes them agree")
    if found.rejected:
        said.append(f"{found.rejected} sounds on the reference channel are not the stimulus and were passed over")
    return said
