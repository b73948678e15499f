"""Everything that one stimulus's samples can say, before its neighbours in the run are asked."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np

from rig.analyse.clicks import without_clicks
from rig.analyse.locate import BACK_DB, FAINT_DB, Location, locate
from rig.analyse.refine import Arrival, LocalPair, NoiseModel, Precision
from rig.analyse.spectrum import Band, Real, decibel, median_psd
from rig.analyse.stimulus import Shape
from rig.domain.levels import rail_samples

MAX_REFINED = 4
"""Candidates that are timed exactly: the dominant arrival and the earliest before it."""

FAINT_Z = 12.0
"""Below this the stimulus is looked for in its full band too; the rule asks for 10."""

PRE_S = 0.010
"""The ear is searched from this long before the stimulus, so that an arrival at lag 0 has its flank."""


@dataclass(frozen=True, slots=True)
class Window:
    """The samples around one stimulus. Frames are absolute; the arrays are views or copies, never written to.

    `ear` begins at frame `ear_start`; lags up to `last_lag` samples belong to this stimulus. `before_ref` and
    `before_ear` are the stretches just before it.
    """

    index: int
    start: int  # first frame of the trimmed clip
    clip: Real
    ear: Real
    ear_start: int
    last_lag: int
    before_ref: Real
    before_ear: Real


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one stimulus showed. Lags in samples; None where it could not be had."""

    index: int
    start: int
    n: int
    last_lag: int
    location: Location | None
    arrivals: tuple[Arrival, ...] = ()  # refined candidates, earliest first; the last is the dominant
    relative_db: tuple[float, ...] = ()  # of each arrival against the dominant
    precision: Precision | None = None
    wide: Arrival | None = None
    reference_snr_db: float | None = None
    noise_power: float = 0.0
    clip_power: float = 0.0
    clipped_reference: bool = False
    clipped_ear: bool = False
    silent_ear: bool = False
    similar: float = 1.0
    offset: float = 0.0  # of the clip's content against the run's template, in samples
    notes: tuple[str, ...] = field(default=())

    @property
    def reference_frame(self) -> float:
        """Where the stimulus begins on the reference channel, aligned over the run's events."""
        return self.start + self.offset


def examine(
    window: Window, shape: Shape, rate_hz: float, full_scale: float | None, *, keep_views: bool = False
) -> Evidence:
    """Locates and times the stimulus of one window. Pure; says nothing yet about acceptance.

    `keep_views`: the location carries the envelopes that were searched, which are large.
    """
    x = window.clip
    n = len(x)
    reference_snr_db = _reference_snr_db(window, shape, rate_hz)
    silent = bool(len(window.ear) == 0 or np.ptp(window.ear) == 0.0)
    clipped_reference = rail_samples(x, full_scale) > 0
    if silent:
        return Evidence(
            window.index,
            window.start,
            n,
            window.last_lag,
            None,
            reference_snr_db=reference_snr_db,
            clipped_reference=clipped_reference,
            silent_ear=True,
        )
    window = cleaned(window, shape, rate_hz)
    noise = noise_model(window, rate_hz)
    location = _located(window, shape, shape.band, rate_hz, noise, keep_views)
    if _is_faint(location) and shape.wide.width_hz > 1.5 * shape.band.width_hz:
        # All that the stimulus carries, for what is too faint in the narrow band; a narrow path has nothing there.
        wider = _located(window, shape, shape.wide, rate_hz, noise, keep_views)
        if wider is not None and location is not None and wider.z > location.z:
            location = _merged(location, wider)
    inside = (noise.frequency_hz > shape.band.low_hz) & (noise.frequency_hz < shape.band.high_hz)
    noise_power = float(noise.power[inside].mean()) * 2.0 * shape.band.width_hz / rate_hz if inside.any() else 0.0
    evidence = Evidence(
        window.index,
        window.start,
        n,
        window.last_lag,
        location,
        reference_snr_db=reference_snr_db,
        noise_power=noise_power,
        clip_power=_band_power(x, shape, rate_hz),
        clipped_reference=clipped_reference,
    )
    if location is None:
        return evidence
    return _timed(evidence, location, window, shape, rate_hz, noise, full_scale)


def cleaned(window: Window, shape: Shape, rate_hz: float) -> Window:
    """The window with clicks taken out of the ear, where the stimulus cannot be mistaken for one."""
    if shape.flat and shape.kind != "click":
        return replace(window, ear=without_clicks(window.ear, rate_hz))
    return window


def _is_faint(location: Location | None) -> bool:
    return location is not None and location.z < FAINT_Z


def _merged(narrow: Location, wider: Location) -> Location:
    """The wide band's certainty; where both bands agree, the clearer view of what came before.

    That may be the narrow one's: outside its main lobe a sequence has spectral zeros, and a deconvolution there shows
    nothing but noise.
    """
    apart = abs(narrow.candidates[-1].lag - wider.candidates[-1].lag) > narrow.resolution
    if apart or wider.hidden_db < narrow.hidden_db:
        return wider
    return replace(narrow, z=wider.z, decoy_db=wider.decoy_db, coherence=wider.coherence, split=wider.split)


def _located(
    window: Window, shape: Shape, band: Band, rate_hz: float, noise: NoiseModel, keep_views: bool
) -> Location | None:
    return locate(
        window.clip,
        window.ear,
        window.ear_start - window.start,
        window.last_lag,
        rate_hz,
        band,
        noise,
        want_split=len(window.clip) > 0.012 * rate_hz and shape.kind != "click",
        symmetric=shape.symmetric,
        keep_views=keep_views,
    )


def _timed(
    base: Evidence,
    location: Location,
    window: Window,
    shape: Shape,
    rate_hz: float,
    noise: NoiseModel,
    full_scale: float | None,
) -> Evidence:
    first_lag = window.ear_start - window.start
    chosen = [*location.candidates[: MAX_REFINED - 1], location.candidates[-1]]
    if len(location.candidates) < MAX_REFINED:
        chosen = list(location.candidates)
    search = max(4.0, 0.8 * location.resolution)
    pairs = [LocalPair(window.clip, window.ear, first_lag, round(c.lag), rate_hz, whole=not shape.flat) for c in chosen]
    timed = [pair.arrival(shape.band, noise, search) for pair in pairs]
    # A voice's own structure leaves faint shadows where its delay changes; a path must be significant to count there.
    kept = _standing(timed, [c.relative_db for c in chosen], FAINT_DB if shape.flat else BACK_DB)
    arrivals = [a for a, _ in kept]
    relative = [db for _, db in kept]
    precision = wide = None
    dominant = timed[len(chosen) - 1]
    if dominant is not None:
        precision = pairs[-1].precision(noise, location.dominant, max(4.0, 0.6 * location.resolution))
        if shape.wide.width_hz > 1.5 * shape.band.width_hz:
            wide = pairs[-1].arrival(shape.wide, noise, search)
    else:
        arrivals, relative = [], []
    clipped_ear = False
    if arrivals:
        begin = max(0, int(arrivals[0].lag) - first_lag)
        clipped_ear = rail_samples(window.ear[begin : begin + len(window.clip)], full_scale) > 0
    return Evidence(
        base.index,
        base.start,
        base.n,
        base.last_lag,
        location,
        arrivals=tuple(arrivals),
        relative_db=tuple(relative),
        precision=precision,
        wide=wide,
        reference_snr_db=base.reference_snr_db,
        noise_power=base.noise_power,
        clip_power=base.clip_power,
        clipped_reference=base.clipped_reference,
        clipped_ear=clipped_ear,
    )


def _standing(timed: list[Arrival | None], relative_db: list[float], least_db: float) -> list[tuple[Arrival, float]]:
    """The arrivals that are still there at a closer look, each with its level against the dominant (the last) one.

    The closer look has no side lobes to speak of: what is far weaker in it than it seemed was one.
    """
    dominant = timed[-1]
    kept: list[tuple[Arrival, float]] = []
    for arrival, seemed_db in zip(timed, relative_db, strict=True):
        if arrival is None or dominant is None:
            continue
        level_db = 20.0 * math.log10(max(arrival.level, 1e-12) / max(dominant.level, 1e-12))
        if arrival is dominant or level_db > -least_db:
            kept.append((arrival, 0.0 if arrival is dominant else min(level_db, seemed_db)))
    return kept


def noise_model(window: Window, rate_hz: float) -> NoiseModel:
    """The ear's noise density: from the pause and the window together, or the pause alone under a long stimulus."""
    n, whole = len(window.clip), len(window.ear)
    if n < 0.2 * whole or len(window.before_ear) < 0.1 * rate_hz:
        signal = np.concatenate((window.before_ear, window.ear))
    else:
        signal = window.before_ear
    frequency_hz, power = median_psd(signal, rate_hz)
    return NoiseModel(frequency_hz, power)


def _band_power(x: Real, shape: Shape, rate_hz: float) -> float:
    spectrum = np.abs(np.fft.rfft(x - x.mean())) ** 2
    f = np.fft.rfftfreq(len(x), 1.0 / rate_hz)
    inside = (f > shape.band.low_hz) & (f < shape.band.high_hz)
    return float(spectrum[inside].sum()) * 2.0 / len(x) ** 2


def _reference_snr_db(window: Window, shape: Shape, rate_hz: float) -> float | None:
    """In the band: power of the clip over power of the pause before it; None without a pause of 20 ms."""
    if len(window.before_ref) < 0.02 * rate_hz:
        return None
    frequency_hz, power = median_psd(window.before_ref, rate_hz, segments=13)
    inside = (frequency_hz > shape.band.low_hz) & (frequency_hz < shape.band.high_hz)
    floor = float(power[inside].mean()) * 2.0 * shape.band.width_hz / rate_hz if inside.any() else 0.0
    signal = _band_power(window.clip, shape, rate_hz)
    if signal <= 0.0:
        return None
    return decibel(math.sqrt(signal / max(floor, 1e-16)))
