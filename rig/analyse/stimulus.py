"""What kind of stimulus a reference clip is, which band it can be read in, and whether two clips are the same one."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.analyse.spectrum import VOICE_BAND, Band, Real, fast_length, median_psd, smooth


@dataclass(frozen=True, slots=True)
class Shape:
    """A recognised stimulus. `band`: where the headline is read; `wide`: everything it carries; `symmetric`: the decoy
    (its own time reversal) looks like itself and so proves nothing."""

    kind: str
    band: Band
    wide: Band
    duration_s: float
    symmetric: bool
    rate_hz: float
    flat: bool  # no holes in its spectrum inside the band


FLAT_RATIO = 100.0
"""Top twentieth over lowest tenth of the power in the band: 3 for a chirp, 30 for noise, thousands for speech."""

MIN_SUPPORT_DB = 15.0
"""The reference must stand this far above its own noise at every frequency that is read."""


def recognise(clip: Real, rate_hz: float, told: str | None = None, pause: Real | None = None) -> Shape:
    """Describes a trimmed reference clip, shape (n,). `told` is the kind as planned, where a plan is known. `pause`:
    reference samples without a stimulus; what does not stand out of their noise is not read.

    The occupied band is where the spectrum, smoothed over 100 Hz, lies within 25 dB of its top. A stimulus that covers
    the telephone band is read there, whatever else it carries, so that figures from narrow and wide paths compare.
    """
    n = len(clip)
    length = fast_length(4 * n)
    power = np.abs(np.fft.rfft(clip - clip.mean(), length)) ** 2
    step_hz = rate_hz / length
    smoothed = smooth(power, max(1, round(50.0 / step_hz)))
    f = np.arange(len(power)) * step_hz
    usable = (f > 80.0) & (f < 0.48 * rate_hz)
    top = float(smoothed[usable].max())
    occupied = usable & (smoothed > top * 10.0**-2.5)
    indices = np.nonzero(occupied)[0]
    wide = Band(float(f[indices[0]]), float(f[indices[-1]]))
    voice = (f >= VOICE_BAND.low_hz) & (f <= VOICE_BAND.high_hz)
    filled = float(np.mean(smoothed[voice] > top * 1e-5))
    covered = float(np.mean(occupied[voice]))
    duration_s = n / rate_hz
    symmetric = _symmetry(clip) > 0.5
    burst = duration_s < 0.03 and covered < 0.55
    if burst:
        centre = float((smoothed * f)[occupied].sum() / smoothed[occupied].sum())
        half = max(0.35 * centre, 1.6 / duration_s)
        band = Band(max(80.0, centre - half), min(0.48 * rate_hz, centre + half))
        return Shape(told or "click", band, band, duration_s, True, rate_hz, True)
    band = VOICE_BAND
    if filled < 0.8:  # a stimulus that lives elsewhere is read where it lives
        band = wide
    if pause is not None and len(pause) >= 0.02 * rate_hz:
        noise_hz, noise = median_psd(pause, rate_hz, segments=25)
        standing = smoothed > 10.0 ** (MIN_SUPPORT_DB / 10.0) * n * np.interp(f, noise_hz, noise)
        band = _supported(standing, f, band)
    inside = (f >= band.low_hz) & (f <= band.high_hz)
    high, low = (float(np.percentile(power[inside], q)) for q in (95, 10))
    depth = high / max(low, 1e-300)
    flat = depth < FLAT_RATIO
    return Shape(told or _name(clip, rate_hz, covered, duration_s), band, wide, duration_s, symmetric, rate_hz, flat)


def _supported(standing: npt.NDArray[np.bool_], f: Real, band: Band) -> Band:
    """The band itself where nearly all of it stands out of the noise, else the longest stretch of it that does."""
    inside = (f >= band.low_hz) & (f <= band.high_hz)
    here = standing[inside]
    if not len(here) or float(here.mean()) > 0.97:
        return band
    edges = np.flatnonzero(np.diff(np.concatenate(([False], here, [False])).astype(np.int8)))
    if not len(edges):
        return band
    lengths = edges[1::2] - edges[::2]
    k = int(np.argmax(lengths))
    frequencies = f[inside]
    found = Band(float(frequencies[edges[2 * k]]), float(frequencies[edges[2 * k + 1] - 1]))
    return found if found.width_hz > 0.1 * band.width_hz else band


def _name(clip: Real, rate_hz: float, covered: float, duration_s: float) -> str:
    """chirp, chirp-nb, mls or other, from how the middle frequency of short pieces moves."""
    if covered < 0.6 or duration_s > 0.5:
        return "other"
    pieces = np.array_split(clip, 8)
    centres = []
    for piece in pieces[1:-1]:
        power = np.abs(np.fft.rfft(piece * np.hanning(len(piece)))) ** 2
        f = np.fft.rfftfreq(len(piece), 1.0 / rate_hz)
        centres.append(float((power * f).sum() / max(power.sum(), 1e-30)))
    rising = all(b > a for a, b in itertools.pairwise(centres))
    if rising and centres[-1] > 1.6 * centres[0]:
        return "chirp" if centres[-1] > 4000.0 else "chirp-nb"
    return "mls" if max(centres) < 1.5 * min(centres) else "other"


def _symmetry(clip: Real) -> float:
    """Highest correlation of a clip with its own time reversal, 0 to 1."""
    length = fast_length(2 * len(clip))
    spectrum = np.fft.rfft(clip - clip.mean(), length)
    folded = np.fft.irfft(spectrum * spectrum, length)
    energy = float(np.sum((clip - clip.mean()) ** 2))
    return float(np.max(np.abs(folded))) / energy if energy > 0.0 else 0.0


def similarity(a: Real, b: Real) -> tuple[float, float]:
    """(highest normalised correlation of two clips, lag of `b` against `a` in samples there).

    1.0 for the same waveform at any level and polarity; the lag is positive when b's content comes later, sub-sample
    by a parabola.
    """
    length = fast_length(len(a) + len(b))
    A, B = np.fft.rfft(a - a.mean(), length), np.fft.rfft(b - b.mean(), length)
    correlation = np.fft.irfft(B * np.conj(A), length)
    k = int(np.argmax(np.abs(correlation)))
    energy = float(np.sqrt(np.sum((a - a.mean()) ** 2) * np.sum((b - b.mean()) ** 2)))
    if energy <= 0.0:
        return 0.0, 0.0
    before, here, after = (float(correlation[(k + d) % length]) for d in (-1, 0, 1))
    bend = before - 2.0 * here + after
    shift = 0.5 * (before - after) / bend if bend != 0.0 else 0.0
    lag = k + shift
    return min(1.0, abs(here) / energy), lag - length if lag > length / 2 else lag
