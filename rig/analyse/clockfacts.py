"""What a run says about its clocks and the driver's claims: from the pulses found and what the session recorded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig.analyse.clockfit import COVER, ClockFit, Floats, Mapped
from rig.analyse.onset import Onset, find_onset
from rig.analyse.runclocks import SHAPE_S, RunClocks
from rig.analyse.witness import pair_times
from rig.domain.records import BlockArrival, ClockEvidence, ClockFacts, RunAnalysis, Span
from rig.domain.seams import FrameSource


def clock_facts(
    analysis: RunAnalysis,
    source: FrameSource,
    reference_channel: int,
    evidence: ClockEvidence,
    clocks: RunClocks | None,
) -> ClockFacts | None:
    """Compares the clocks of one analysed run. None where nothing was recorded that could be compared.

    `reference_channel` is zero-based; `clocks` is what `run_clocks` says of the run. Where the interface played, a few
    stimuli of the recording are read again, nothing else.
    """
    if not (evidence.exchanges or evidence.fired or evidence.scheduled):
        return None
    output_s = _output(analysis, source, reference_channel, evidence)
    if clocks is None:
        return _facts(None, None, evidence, "no board answered: nothing compares the clocks", 0.0, output_s)
    onset = clocks.onset if clocks.untied is None else None  # without it nothing is placed in host time
    return _facts(clocks.fit, onset, evidence, clocks.fit.refusal or clocks.untied, clocks.rate_hz, output_s)


def _facts(
    fit: ClockFit | None,
    onset: Onset | None,
    evidence: ClockEvidence,
    refusal: str | None,
    rate_hz: float,
    output_s: Span | None,
) -> ClockFacts:
    wheel = None if fit is None else fit.flywheel
    span = None
    if fit is not None and wheel is not None and fit.span_mcu_s is not None:
        span = wheel.audio(np.array(fit.span_mcu_s))
    if fit is not None and wheel is None and refusal is None:
        refusal = "too few of the board's stimuli are on the recording to compare its clock with the audio clock"
    blocks: list[BlockArrival] = []
    margin_s = None if fit is None or not fit.windows else min(w.margin_s for w in fit.windows)
    half_width_s = None
    last = first = adc_error = age_claim = None
    if fit is not None and wheel is not None and fit.windows and onset is not None:
        extra_s = COVER * onset.u_frames / rate_hz + SHAPE_S
        stretch = float(wheel.audio_s[0]) * rate_hz, float(wheel.audio_s[-1]) * rate_hz
        blocks = [b for b in evidence.blocks if stretch[0] <= b.frame and b.frame + b.n_frames <= stretch[1]]
        arrived = np.array([b.arrived_s for b in blocks])
        captured = fit.audio_host(np.array([b.frame for b in blocks]) / rate_hz)
        ended = fit.audio_host(np.array([b.frame + b.n_frames for b in blocks]) / rate_hz)
        last, first = _since(arrived, ended, extra_s), _since(arrived, captured, extra_s)
        anywhere = fit.audio_host(np.linspace(wheel.audio_s[0], wheel.audio_s[-1], 101))
        widths = (anywhere.high_s - anywhere.low_s)[~np.isnan(anywhere.s)]
        half_width_s = float(np.max(widths)) / 2.0 + extra_s if len(widths) else None
        claims = [(b.adc_time_claimed_s, b.now_claimed_s) for b in blocks]
        ages = np.array([np.nan if adc is None or now is None else now - adc for adc, now in claims])
        if len(ages) and not np.isnan(ages).all():
            age_claim = float(np.nanmedian(ages))
            adc_error = _since(arrived - ages, captured, extra_s)
    return ClockFacts(
        audio_host=None if fit is None else fit.audio_host_drift,
        mcu_host=None if fit is None else fit.mcu_host_drift,
        audio_mcu=None if fit is None else fit.audio_mcu_drift,
        n_exchanges=len(evidence.exchanges),
        n_pulses=0 if wheel is None else len(wheel.mcu_s),
        first_s=None if span is None else float(span[0]),
        last_s=None if span is None else float(span[1]),
        margin_s=margin_s,
        half_width_s=half_width_s,
        refusal=refusal,
        n_blocks=len(blocks),
        after_last_s=last,
        after_first_s=first,
        adc_claim_age_s=age_claim,
        adc_claim_error_s=adc_error,
        output_s=output_s,
    )


def _since(host_s: Floats, event: Mapped, extra_s: float) -> Span | None:
    """The median time from the event to `host_s`; its interval is the median of the intervals."""
    known = ~(np.isnan(host_s) | np.isnan(event.s))
    if not known.any():
        return None
    value, low, high = (float(np.median((host_s - v)[known])) for v in (event.s, event.high_s, event.low_s))
    return Span(value, low - extra_s, high + extra_s)


def _output(analysis: RunAnalysis, source: FrameSource, channel: int, evidence: ClockEvidence) -> Span | None:
    """How long after the frame asked for the interface's sound is on the reference: the median, least and largest."""
    frames: Sequence[float] = [t.reference_frame for t in analysis.trials]
    if not evidence.scheduled or not frames or evidence.kind is None:
        return None
    onset = find_onset(source, channel, frames, evidence.kind, 1.0, by_board=False)
    if onset is None:
        return None
    asked = np.array([frame for _, frame in sorted(evidence.scheduled)], dtype=np.float64)
    pairs = pair_times(np.array(frames) / source.rate_hz, asked / source.rate_hz)
    late = np.array([frames[event] + onset.frames - asked[k] for event, k in pairs]) / source.rate_hz
    extra_s = COVER * onset.u_frames / source.rate_hz + SHAPE_S
    return Span(float(np.median(late)), float(np.min(late)) - extra_s, float(np.max(late)) + extra_s)
