"""The clocks of one analysed run, fitted: where each frame of its recording lies in host time."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from rig.analyse.clockfit import COVER, ClockFit, Floats, Mapped, fit_clocks
from rig.analyse.onset import Onset, find_onset
from rig.analyse.witness import compare, pair_times
from rig.domain.records import ClockEvidence, Reason, RunAnalysis
from rig.domain.seams import FrameSource

SHAPE_S = 20e-6
"""How well a stimulus's shape places its beginning: the low-pass at the board's pin alone delays it by some 10 us."""


@dataclass(frozen=True, slots=True)
class RunClocks:
    """The fit of a run, and where its stimuli begin; `onset` None: not known to a fraction of a frame. `untied`: why
    the recording has no place in host time though its rate is known."""

    fit: ClockFit
    onset: Onset | None
    rate_hz: float
    untied: str | None = None

    def host_of(self, reference_frames: Floats) -> Mapped | None:
        """Host time of the first sample of the stimuli at these reference frames, shape (n,), or of sounds so much
        later; None where the recording is not tied to host time."""
        if self.untied is not None or self.onset is None or self.fit.flywheel is None or not self.fit.windows:
            return None
        extra_s = COVER * self.onset.u_frames / self.rate_hz + SHAPE_S
        found = self.fit.audio_host((reference_frames + self.onset.frames) / self.rate_hz)
        return Mapped(found.s, found.low_s - extra_s, found.high_s + extra_s)


@dataclass(frozen=True, slots=True)
class _Pulses:
    """The longest stretch without a loss: reference frames, and the board's ticks of the same stimuli."""

    frames: tuple[float, ...]
    ticks: tuple[int, ...]


def run_clocks(
    analysis: RunAnalysis, source: FrameSource, reference_channel: int, evidence: ClockEvidence
) -> RunClocks | None:
    """Fits the clocks of a run; None without a board. Reads a few stimuli of the recording again."""
    if evidence.tick_rate_hz is None:
        return None
    pulses = _pulses(analysis, evidence)
    onset = None
    heard: Floats = np.zeros(0)
    if len(pulses.ticks) >= 3:
        heard = np.array(pulses.frames) / source.rate_hz
        rate = float((heard[-1] - heard[0]) / (pulses.ticks[-1] - pulses.ticks[0])) * evidence.tick_rate_hz
        kind = evidence.kind or analysis.stimulus or ""
        onset = find_onset(source, reference_channel, pulses.frames, kind, rate, by_board=True)
        heard = heard + (0.0 if onset is None else onset.frames / source.rate_hz)
    fit = fit_clocks(evidence.exchanges, evidence.tick_rate_hz, pulses.ticks[: len(heard)], heard.tolist())
    return RunClocks(fit, onset, float(source.rate_hz), evidence.untied)


def _pulses(analysis: RunAnalysis, evidence: ClockEvidence) -> _Pulses:
    """The board's stimuli that were found, paired by time and cut where samples were lost; the longest part."""
    frames = [t.reference_frame for t in analysis.trials]
    if not evidence.fired or not frames or evidence.tick_rate_hz is None:
        return _Pulses((), ())
    if analysis.refusal is Reason.SWAPPED_CHANNELS:  # what was found are responses, each as late as it pleases
        return _Pulses((), ())
    stamps = tuple(f.tick / evidence.tick_rate_hz for f in evidence.fired)
    pairs = pair_times(np.array(frames) / analysis.rate_hz, np.array(stamps))
    lost = sorted(compare(frames, stamps, float(analysis.rate_hz)).lost)
    gaps = sorted(g.frame for g in evidence.gaps)
    parts: dict[tuple[int, int], list[tuple[float, int]]] = {}
    for event, stamp in pairs:
        part = bisect_right(gaps, frames[event]), sum(k < event for k in lost)
        own = parts.setdefault(part, [])
        if not own or (frames[event] > own[-1][0] and evidence.fired[stamp].tick > own[-1][1]):
            own.append((frames[event], evidence.fired[stamp].tick))
    longest = max(parts.values(), key=len)
    return _Pulses(tuple(p[0] for p in longest), tuple(p[1] for p in longest))
