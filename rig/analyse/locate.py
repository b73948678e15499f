"""Finds the stimulus on the ear channel, to a few samples, and says how sure that is.

A band-limited, noise-whitened matched filter against the recorded reference gives the dominant arrival; a regularised
deconvolution in the same band shows what came before it. The same clip against the time-reversed stimulus is the null:
it has the stimulus's spectrum, length, noise and interference, but not its phase (the "decoy"). All full-length spectra
are computed once; every envelope is a short transform of the band's bins alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.analyse.refine import NoiseModel
from rig.analyse.spectrum import (
    Band,
    Complex,
    Real,
    band_taper,
    envelope_sigma,
    fast_length,
    flat_taper,
    smooth,
)
from rig.analyse.stack import POINTS, STEP_S

BACK_DB = 10.0
"""An arrival this far below the dominant one still counts as the first; the definition of "significant"."""

FAINT_DB = 20.0
"""Down to here an earlier arrival is remembered: repeated at the same lag over a run it is a path, not noise."""

PIECE_S = 0.2
FLOOR_SIGMA = 7.0
DECOY_MARGIN = 1.4
SIDE_LOBE_MARGIN = 2.0


@dataclass(frozen=True, slots=True)
class Candidate:
    """An arrival not later than the dominant one. `lag` in samples (fractional), `relative_db` against the dominant."""

    lag: float
    relative_db: float


@dataclass(frozen=True, slots=True)
class Views:
    """The envelopes that the search looked at, for a reader's eye: sample k stands for lag `first_lag + k * step`."""

    first_lag: int
    step: float  # samples of the recording to one of the envelope
    matched: Real  # of the whitened matched filter
    response: Real  # of the deconvolved response
    band: Band


@dataclass(frozen=True, slots=True)
class Location:
    """Where the stimulus is on the ear channel. Lags in samples at the recording's rate."""

    dominant: float
    candidates: tuple[Candidate, ...]  # earliest first; the last one is the dominant arrival itself
    z: float  # matched-filter peak over noise sigma
    decoy_db: float
    coherence: float  # in the band, 0 to 1
    split: float | None  # lag of the stimulus's second half minus that of its first
    resolution: float  # about 2.2 / bandwidth
    hidden_db: float  # an earlier arrival weaker than this, against the dominant, could not have been seen
    later: Candidate | None  # strongest arrival well after the dominant one
    profile: Real  # shape (3, POINTS): what came before, for the run's stack
    views: Views | None = None  # kept only where somebody asked to see them


class Template:
    """The recorded reference clip, prepared once for one transform length."""

    def __init__(self, x: Real, rate_hz: float, band: Band, length: int, decimate: int) -> None:
        n = len(x)
        short = fast_length(2 * n, decimate)
        spectrum = np.fft.rfft(x - x.mean(), short)
        kept = short // decimate
        small = np.fft.irfft(spectrum[: kept // 2 + 1], kept)
        # The decimated clip: in-band samples only, so that the long transforms are short ones. A little of its
        # ringing wraps round the end; it is 60 dB down and only decides to which few samples the refinement looks.
        reach = min(kept, -(-n // decimate) + 64)
        clip = small[:reach]
        total = length // decimate
        bins = np.arange(math.ceil(band.low_hz * length / rate_hz), int(band.high_hz * length / rate_hz) + 1)
        self.bins = bins
        self.n = n
        self.X = np.fft.rfft(clip, total)[bins]
        energy = np.cumsum(clip.astype(np.float64) ** 2)
        middle = int(np.searchsorted(energy, 0.5 * energy[-1]))
        ramp = np.clip((np.arange(reach) - middle) / max(2.0, 24.0 * rate_hz / 48000.0 / decimate) + 0.5, 0.0, 1.0)
        self.first_half = np.fft.rfft(clip * (1.0 - ramp), total)[bins]
        self.frequency_hz = bins * (rate_hz / length)
        # A long clip may hold a change far from its middle: pieces of equal energy, of about a quarter of a second.
        self.pieces: list[Complex] = []
        count = min(6, int(n / rate_hz / PIECE_S))
        if count > 2:
            edges = np.searchsorted(energy, energy[-1] * np.arange(1, count) / count)
            for low, high in zip([0, *edges], [*edges, reach], strict=True):
                piece = np.zeros(reach, dtype=clip.dtype)
                piece[low:high] = clip[low:high]
                self.pieces.append(np.fft.rfft(piece, total)[bins])


def locate(
    x: Real,
    ear: Real,
    first_lag: int,
    last_lag: int,
    rate_hz: float,
    band: Band,
    noise: NoiseModel,
    *,
    want_split: bool = True,
    symmetric: bool = False,
    keep_views: bool = False,
) -> Location | None:
    """Looks for `x` in `ear`, where ear[k] is k + first_lag samples after the start of `x`.

    Lags from first_lag up to just under last_lag (where the next stimulus's own response may begin) are searched. An
    arrival that the end of `ear` cuts may be found too and is the caller's to refuse. Returns None when there is
    nothing at all to correlate (an ear that is constant in the band).
    """
    n = len(x)
    decimate = max(1, int(rate_hz / (2.6 * band.high_hz)))
    length = fast_length(len(ear) + n, 2 * decimate)
    template = Template(x, rate_hz, band, length, decimate)
    bins = template.bins
    Y = np.fft.rfft(ear - ear.mean(dtype=np.float64).astype(ear.dtype), length)[bins]
    X = template.X
    f = template.frequency_hz
    resolution = 2.2 * rate_hz / band.width_hz
    n_lags = min(len(ear), last_lag - first_lag - round(1.5 * resolution))
    grid = _Grid(len(bins), length, n_lags)

    cross = Y * np.conj(X)
    power = np.abs(X) ** 2
    spread = noise.at(f)
    reference = float(np.percentile(spread, 75))
    flat = flat_taper(f, band)
    # Never whiten an empty sub-band by more than 10 dB: outside a codec's passband there is nothing to gain.
    whitened = flat / np.maximum(spread, 0.1 * reference) if reference > 0.0 else flat
    matched = grid.envelope(cross * whitened)
    k0 = int(np.argmax(matched))
    peak = float(matched[k0])
    if peak <= 0.0:
        return None
    z = peak / max(envelope_sigma(matched), 1e-6 * peak)

    mirror = np.exp(2j * np.pi * (n - 1) / length * bins)
    mirrored = Y * X * mirror
    null = float(grid.envelope(mirrored * whitened).max())
    decoy_db = 20.0 * math.log10(peak / max(null, 1e-9 * peak))

    smoothed = smooth(power, max(1, round(50.0 * length / rate_hz)))
    inverse = _inverse(power, smoothed, spread, whitened, peak * grid.size, len(ear), band_taper(f, band))
    response = grid.envelope(cross * inverse)
    null_response = grid.envelope(mirrored * inverse)
    own = grid.envelope(power * inverse)  # what one clean arrival looks like: its own side lobes are no arrivals
    if symmetric:
        null_response = np.zeros_like(null_response)  # its own mirror image: no null at all
    candidates, hidden_db = _candidates(response, null_response, own, k0, n, resolution, grid)
    later = _later(response, k0, resolution, grid)

    at = grid.to_lag(k0)
    coherence = _coherence(Y, cross, power, flat, f, at, n, rate_hz, grid, length)
    split = None
    if want_split:
        halves = [template.first_half, X - template.first_half]
        split = _split([Y * np.conj(h) for h in halves], halves, whitened, smoothed, f, band, grid, k0, resolution)
        moved = _moved_piece([Y * np.conj(p) for p in template.pieces], whitened, grid, k0, rate_hz)
        split = moved if moved is not None else split
    return Location(
        dominant=at + first_lag,
        candidates=tuple(Candidate(c.lag + first_lag, c.relative_db) for c in candidates),
        z=z,
        decoy_db=decoy_db,
        coherence=coherence,
        split=split,
        resolution=resolution,
        hidden_db=hidden_db,
        later=None if later is None else Candidate(later.lag + first_lag, later.relative_db),
        profile=_profile(response, null_response, own, candidates[-1].lag, grid, rate_hz),
        views=Views(first_lag, grid.step, matched, response, band) if keep_views else None,
    )


class _Grid:
    """Envelopes over lag from the band's bins alone: a transform of about twice their number."""

    def __init__(self, n_bins: int, length: int, n_lags: int) -> None:
        self.size = fast_length(2 * n_bins)
        self.step = length / self.size  # samples per grid point
        self.count = min(self.size, max(3, int(n_lags / self.step)))

    def envelope(self, bins: Complex | Real) -> Real:
        return np.asarray(np.abs(np.fft.ifft(bins, self.size))[: self.count])

    def series(self, bins: Complex) -> Complex:
        return np.asarray(np.fft.ifft(bins, self.size))[: self.count]

    def to_lag(self, k: int) -> float:
        return k * self.step


def _inverse(power: Real, smoothed: Real, spread: Real, whitened: Real, peak: float, n_ear: int, taper: Real) -> Real:
    """Wiener's inverse filter of the reference, tapered to the band.

    The noise is referred to the input by the gain that the matched filter's peak stands for. For a flat stimulus every
    choice is alike; in the spectral holes of speech it decides between side lobes and amplified noise.
    """
    gain = peak / max(float(np.sum(power * whitened)), 1e-300)
    noise = spread * n_ear / max(gain * gain, 1e-30)
    ceiling = float(smoothed.max())
    return np.asarray(taper / (power + 1e-3 * smoothed + 1e-5 * ceiling + np.minimum(noise, 0.1 * ceiling)))


def _peak_lag(envelope: Real, k: int, grid: _Grid) -> float:
    """Parabola through the three points around a maximum, on the squared envelope."""
    if not 0 < k < len(envelope) - 1:
        return grid.to_lag(k)
    a, b, c = (float(v) ** 2 for v in envelope[k - 1 : k + 2])
    bend = a - 2.0 * b + c
    return (k + (0.5 * (a - c) / bend if bend < 0.0 else 0.0)) * grid.step


def _candidates(
    response: Real, null: Real, own: Real, k0: int, n: int, resolution: float, grid: _Grid
) -> tuple[list[Candidate], float]:
    guard = max(2, math.ceil(resolution / grid.step))
    low, high = max(0, k0 - guard), min(len(response), k0 + guard + 1)
    main = low + int(np.argmax(response[low:high]))
    top = float(response[main])
    if top <= 0.0:
        return [Candidate(grid.to_lag(k0), 0.0)], 0.0
    sigma = envelope_sigma(response)
    stretch = response[max(0, main - math.ceil(n / grid.step)) : max(0, main - 2 * guard)]
    if len(stretch) > 16:
        sigma = max(sigma, envelope_sigma(stretch))  # a codec's noise rides with the stimulus: a local floor
    decoy = float(null[: main + 1].max())
    threshold = max(top * 10.0 ** (-FAINT_DB / 20.0), FLOOR_SIGMA * sigma, DECOY_MARGIN * decoy)
    found: list[Candidate] = []
    if top > 2.0 * FLOOR_SIGMA * sigma:
        body = response[: max(0, main - guard // 2)]
        inner = body[1:-1]
        lobes = SIDE_LOBE_MARGIN * top / float(own[0]) * own[main - np.arange(1, len(body) - 1)]
        peaks = np.nonzero((inner >= body[:-2]) & (inner > body[2:]) & (inner >= np.maximum(threshold, lobes)))[0] + 1
        for k in peaks[:32]:
            found.append(Candidate(_peak_lag(response, int(k), grid), 20.0 * math.log10(float(response[k]) / top)))
    found.append(Candidate(_peak_lag(response, main, grid), 0.0))
    return found, 20.0 * math.log10(max(threshold / top, 1e-9))


def _profile(response: Real, null: Real, own: Real, main: float, grid: _Grid, rate_hz: float) -> Real:
    """Relative powers before the dominant arrival, on the stack's grid; 0 before the window's start."""
    back = np.arange(POINTS) * (STEP_S * rate_hz / grid.step)
    at = main / grid.step - back
    low = np.clip(np.floor(at).astype(np.intp), 0, len(response) - 1)
    whole = np.clip(np.rint(back).astype(np.intp), 0, len(own) - 1)
    top = max(float(response[min(len(response) - 1, round(main / grid.step))]), 1e-300)
    inside = at >= 0.0
    rows = (response[low] / top, null[low] / top, own[whole] / max(float(own[0]), 1e-300))
    return np.asarray([np.where(inside, row, 0.0) ** 2 for row in rows])


def _later(response: Real, k0: int, resolution: float, grid: _Grid) -> Candidate | None:
    guard = max(2, math.ceil(resolution / grid.step))
    tail = response[k0 + 2 * guard :]
    if len(tail) < 3:
        return None
    k = int(np.argmax(tail))
    top = float(response[max(0, k0 - guard) : k0 + guard + 1].max())
    if tail[k] <= 0.0 or top <= 0.0:
        return None
    return Candidate(grid.to_lag(k0 + 2 * guard + k), 20.0 * math.log10(float(tail[k]) / top))


def _coherence(
    Y: Complex,
    cross: Complex,
    power: Real,
    flat: Real,
    f: Real,
    lag: float,
    n: int,
    rate_hz: float,
    grid: _Grid,
    length: int,
) -> float:
    """|correlation| at the dominant lag over the root of both energies, all in the band; 1 for a pure delay."""
    turn = np.exp(2j * np.pi / rate_hz * lag * f)
    # Within half a grid step the envelope is flat; the best of three keeps the grid from costing anything.
    half = np.exp(1j * np.pi / rate_hz * grid.step * f)
    weighted = cross * flat * turn
    top = max(
        abs(complex(weighted.sum())), abs(complex((weighted * half).sum())), abs(complex((weighted / half).sum()))
    )
    series = grid.series(Y * flat)
    k = round(lag / grid.step)
    inside = series[k : k + max(1, round(n / grid.step))]
    # Parseval on the sub-band transform: sum |series|^2 * size^2 ... brings it to the bins' own scale.
    energy_y = float(np.sum(np.abs(inside) ** 2)) * grid.size
    energy_x = float(np.sum(power * flat))
    if energy_x <= 0.0 or energy_y <= 0.0:
        return 0.0
    return min(1.0, top / math.sqrt(energy_x * energy_y))


def _moved_piece(crosses: Sequence[Complex], whitened: Real, grid: _Grid, k0: int, rate_hz: float) -> float | None:
    """How far a piece of a long stimulus came from where the whole did, when it clearly did; else None.

    Clearly: its own peak within 50 ms stands 3 dB above what it has at the whole's lag, and out of its noise.
    """
    reach = max(8, math.ceil(0.05 * rate_hz / grid.step))
    near = max(1, math.ceil(0.0005 * rate_hz / grid.step))
    for cross in crosses:
        envelope = grid.envelope(cross * whitened)
        low = max(0, k0 - reach)
        stretch = envelope[low : k0 + reach + 1]
        k = low + int(np.argmax(stretch))
        here = float(envelope[max(0, k0 - near) : k0 + near + 1].max())
        if abs(k - k0) > near and envelope[k] > 1.41 * here and envelope[k] > 10.0 * envelope_sigma(envelope):
            return _peak_lag(envelope, k, grid) - grid.to_lag(k0)
    return None


def _split(
    crosses: Sequence[Complex],
    halves: Sequence[Complex],
    whitened: Real,
    smoothed: Real,
    f: Real,
    band: Band,
    grid: _Grid,
    k0: int,
    resolution: float,
) -> float:
    """Second half's lag minus first half's: by matched filter, by first arrival, by what both have at k0; the smallest.

    In a reverberant room the halves of a chirp, which lie in different octaves, can lock on different reflections; the
    first arrival is the same for both. A delay that changed inside the clip moves both.
    """
    matched: list[float] = []
    arrived: list[float] = []
    here: list[float] = []
    taper = band_taper(f, band)
    guard = max(2, math.ceil(resolution / grid.step))
    for cross, half in zip(crosses, halves, strict=True):
        envelope = grid.envelope(cross * whitened)
        matched.append(_peak_lag(envelope, int(np.argmax(envelope)), grid))
        power = np.abs(half) ** 2
        response = grid.envelope(cross * taper / (power + 1e-2 * float(smoothed.max())))
        top = int(np.argmax(response))
        low, high = max(0, k0 - guard), min(len(response), k0 + guard + 1)
        near = low + int(np.argmax(response[low:high]))
        if low < near < high - 1 and response[near] >= response[top] * 10.0 ** (-BACK_DB / 20.0):
            here.append(_peak_lag(response, near, grid))
        stretch = response[: top + 1]
        early = np.nonzero(stretch >= response[top] * 10.0 ** (-BACK_DB / 20.0))[0]
        k = top
        if len(early) and top - early[0] > 2 * guard:
            start = int(early[0])
            k = start + int(np.argmax(response[start : start + 2 * guard]))
        arrived.append(_peak_lag(response, k, grid))
    differences = [matched[1] - matched[0], arrived[1] - arrived[0]]
    if len(here) == 2:  # both halves have a strong arrival where the whole has its own
        differences.append(here[1] - here[0])
    return min(differences, key=abs)
