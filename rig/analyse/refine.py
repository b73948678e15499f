"""Sub-sample timing around a lag that is already known to a few samples.

The headline figure is the first arrival of the band-limited impulse response from the reference to the ear, at the peak
of its Hilbert envelope. The response is estimated locally, from the cross-correlation and the autocorrelation under one
and the same lag window (Blackman and Tukey's transfer function estimate): windowing both keeps the ratio unbiased where
the stimulus has spectral holes (speech), and for a flat stimulus it equals the plain quotient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rig.analyse.spectrum import Band, Complex, Real, band_taper, fast_length, flat_taper, smooth

LEAST_POWER = 1e-18
"""-180 dBFS per sample: what a digitally silent pause is taken for, so that noise riding on the stimulus counts."""

SMOOTH_HZ = 120.0
"""Half the width over which the reference's energy is smoothed before it flattens both spectra."""

EDGE_S = 0.008
HALF_WINDOW_S = 0.040
"""Half the lag window: flat over the inner half, a cosine flank to the outside."""


@dataclass(frozen=True, slots=True)
class NoiseModel:
    """Power density of the ear's noise: `power` (per sample, two-sided) on `frequency_hz`."""

    frequency_hz: Real
    power: Real

    def at(self, frequency_hz: Real) -> Real:
        return np.maximum(np.interp(frequency_hz, self.frequency_hz, self.power), LEAST_POWER)


@dataclass(frozen=True, slots=True)
class Arrival:
    """One arrival. Lags and uncertainties in samples; `level` is its amplitude relative to the reference."""

    lag: float
    u_noise: float
    level: float
    polarity: int
    floor_ratio: float  # measured floor before the arrival over the predicted one, in power; 1 for stationary noise


@dataclass(frozen=True, slots=True)
class Precision:
    """The interpolated peak of the plain correlation, and the bound it is judged by. In samples."""

    lag: float
    crlb: float
    polarity: int


@dataclass(frozen=True, slots=True)
class _Response:
    """The band's bins of a local impulse response, phase relative to the centre; `size`: of their transform."""

    frequency_hz: Real
    omega: Real
    size: int
    weight: Real
    power: Real
    floor: Real
    flatten: Real
    response: Complex


class LocalPair:
    """Reference clip and ear segment around one lag, in double precision.

    `x`: the stimulus as recorded, shape (n,). `ear`: what the ear recorded, of which `ear[k]` is `k + first_lag`
    samples after the start of `x`. The segment should reach half a window to either side; else it is zero-padded.
    `whole`: no lag window, all of `ear` at once. A voice needs it: its correlation has skirts as long as its vowels,
    and what a window cuts off them tilts the quotient where its spectrum has holes.
    """

    def __init__(self, x: Real, ear: Real, first_lag: int, centre: int, rate_hz: float, *, whole: bool = False) -> None:
        self.rate_hz = rate_hz
        self.half = round(HALF_WINDOW_S * rate_hz)
        self.centre = centre
        self.whole = whole
        n = len(x)
        self.origin = first_lag if whole else centre - self.half  # the lag that index 0 of a correlation stands for
        start = self.origin - first_lag
        length = len(ear) if whole else n + 2 * self.half
        segment = np.zeros(length)
        low, high = max(0, start), min(len(ear), start + length)
        if high > low:
            segment[low - start : high - start] = ear[low:high]
        x64 = np.asarray(x, dtype=np.float64)
        x64 = x64 - x64.mean()
        segment -= segment.mean()
        if whole:  # an abrupt end would spread mains hum over the band
            edge = min(round(EDGE_S * rate_hz), length // 4)
            ramp = 0.5 - 0.5 * np.cos(np.pi * (np.arange(edge) + 0.5) / edge)
            segment[:edge] *= ramp
            segment[length - edge :] *= ramp[::-1]
        self.length = fast_length(length + n)
        self.X = np.fft.rfft(x64, self.length)
        self.cross = np.fft.rfft(segment, self.length) * np.conj(self.X)
        self.frequency_hz = np.fft.rfftfreq(self.length, 1.0 / rate_hz)
        self.energy = np.abs(self.X) ** 2

    def transfer(self, band: Band) -> tuple[Real, Complex, Real, Real]:
        """(frequency_hz, cross spectrum, auto spectrum, whitening) under the lag window, on a grid of 4 half windows.

        Both spectra are flattened first by the same zero-phase weight, one over the smoothed energy, around the band:
        it cancels in their quotient, and keeps a loud octave from leaking over a faint one through the lag window.
        The phase of the cross spectrum is relative to `centre`.
        """
        if self.whole:
            turn = np.exp(2j * np.pi * self.frequency_hz / self.rate_hz * (self.centre - self.origin))
            return self.frequency_hz, self.cross * turn, self.energy, np.ones(len(self.energy))
        half, size = self.half, fast_length(4 * self.half)
        step_hz = self.rate_hz / self.length
        smoothed = smooth(self.energy, max(1, round(SMOOTH_HZ / step_hz)))
        around = Band(0.5 * band.low_hz, min(1.3 * band.high_hz, 0.5 * self.rate_hz))
        inside = (self.frequency_hz > band.low_hz) & (self.frequency_hz < band.high_hz)
        top = float(smoothed[inside].max()) if inside.any() else 0.0
        flatten = flat_taper(self.frequency_hz, around, 0.1) / np.maximum(smoothed, 1e-7 * top + 1e-300)
        cross = np.fft.irfft(self.cross * flatten, self.length)[: 2 * half + 1]
        auto = np.fft.irfft(self.energy * flatten, self.length)
        window = _lag_window(half)
        folded = np.zeros(size)
        folded[: half + 1] = cross[half:] * window[half:]
        folded[-half:] = cross[:half] * window[:half]
        auto_folded = np.zeros(size)
        auto_folded[: half + 1] = auto[: half + 1] * window[half:]
        auto_folded[-half:] = auto[-half:] * window[:half]
        frequency_hz = np.fft.rfftfreq(size, 1.0 / self.rate_hz)
        return (
            frequency_hz,
            np.fft.rfft(folded),
            np.maximum(np.fft.rfft(auto_folded).real, 0.0),
            np.interp(frequency_hz, self.frequency_hz, flatten),
        )

    def arrival(self, band: Band, noise: NoiseModel, search: float) -> Arrival | None:
        """The envelope peak of the band-limited response nearest to `centre`, within `search` samples of it.

        Its standard uncertainty is the first-order propagation of the ear's noise through the estimator: with
        z the complex response at the peak and w its instantaneous frequency, var = 1/2 sum (f - w)^2 T^2 Q / P over the
        squared curvature of the envelope (the same algebra that gives the bound for an unknown carrier phase).
        None when the envelope has no maximum there.
        """
        local = self._response(band, noise)
        f, weight, power, floor = local.frequency_hz, local.weight, local.power, local.floor
        response, omega, size, flatten = local.response, local.omega, local.size, local.flatten
        lag = _climb_envelope(response, omega, search, size)
        if lag is None:
            return None
        turned = response * np.exp(1j * omega * lag)
        z = turned.sum()
        magnitude = abs(z)
        if magnitude <= 0.0:
            return None
        unit = np.conj(z) / magnitude
        first = (1j * omega * turned).sum() * unit
        second = (-(omega**2) * turned).sum() * unit
        instantaneous = first.imag / magnitude
        curvature = second.real + first.imag**2 / magnitude
        if curvature >= 0.0:
            return None
        density = weight**2 * noise.at(f) * flatten * power / (power + floor) ** 2
        variance = 0.5 * size * float(np.sum((omega - instantaneous) ** 2 * density)) / curvature**2
        predicted = size * float(np.sum(density))  # mean square of |z| from noise alone
        ratio = self._floor_ratio(response, omega, lag, density, predicted, size)
        return Arrival(
            lag=self.centre + lag,
            u_noise=math.sqrt(variance * max(1.0, ratio)),
            level=magnitude / float((weight * power / (power + floor)).sum()),
            polarity=1 if _carrier_sign(turned, weight) >= 0 else -1,
            floor_ratio=ratio,
        )

    def envelope(self, band: Band, noise: NoiseModel, reach: int) -> tuple[float, float, Real]:
        """(first lag, step, envelope) of the very response whose peak `arrival` takes, up to `reach` samples around
        `centre`, for a reader's eye. Lag and step in samples."""
        local = self._response(band, noise)
        fine = fast_length(8 * len(local.omega))
        step = local.size / fine
        count = min(int(reach / step), fine // 2 - 1)
        whole = np.abs(np.fft.ifft(local.response, fine))
        return self.centre - count * step, step, np.asarray(whole[np.arange(-count, count + 1)])

    def _response(self, band: Band, noise: NoiseModel) -> _Response:
        frequency, cross, auto, flatten = self.transfer(band)
        inside = (frequency > band.low_hz) & (frequency < band.high_hz)
        f = frequency[inside]
        weight = band_taper(f, band) * _without_lines(noise.at(f))
        power = auto[inside]
        floor = np.full(len(f), 1e-4 * float(np.median(power)) + 1e-300)
        if self.whole:
            # Without a lag window the holes between a voice's harmonics stand open: Wiener's floor keeps noise out.
            floor += self.length * noise.at(f) / max(self._gain(), 1e-6) ** 2
        return _Response(
            frequency_hz=f,
            omega=2.0 * np.pi * f / self.rate_hz,
            size=2 * (len(frequency) - 1),
            weight=weight,
            power=power,
            floor=floor,
            flatten=flatten[inside],
            response=weight * cross[inside] / (power + floor),
        )

    def _gain(self) -> float:
        """Amplitude of the strongest copy of the reference in the segment, from the plain correlation."""
        correlation = np.fft.irfft(self.cross, self.length)
        return float(np.max(np.abs(correlation))) * self.length / max(2.0 * float(self.energy.sum()), 1e-300)

    def _floor_ratio(
        self, response: Complex, omega: Real, lag: float, density: Real, predicted: float, size: int
    ) -> float:
        """Mean square of the response before the arrival over what the noise model predicts.

        Noise that rides on the stimulus (a codec's) stands there and is in no pause. Causal reverberation is not.
        """
        # A second weighting with sin: together the flanks fall so fast that the arrival's own side lobes stay below
        # the noise of a 40 dB recording; without it they would be taken for noise.
        extra = np.sin(np.pi * (omega - omega[0]) / (omega[-1] - omega[0])) ** 3
        response = response * extra
        predicted *= float(np.sum(density * extra**2) / np.sum(density))
        resolution = 2.0 * np.pi / (omega[-1] - omega[0])
        lags = lag - (5.0 + 1.5 * np.arange(20.0)) * resolution
        lags = lags[lags > (self.origin - self.centre) * (1.0 if self.whole else 0.9)]
        if len(lags) < 6 or predicted <= 0.0:
            return 1.0
        fine = fast_length(4 * len(omega))
        envelope = np.abs(np.fft.ifft(response, fine)) * fine
        before = envelope[np.round(lags * fine / size).astype(np.intp) % fine] ** 2
        # Median over mean of an exponential is ln 2; the median ignores an early arrival or two.
        measured = float(np.median(before)) / math.log(2.0)
        return measured / predicted if measured > 2.2 * predicted else 1.0

    def gain_at(self, lag: float) -> tuple[float, float]:
        """Amplitude of the reference in the segment at `lag`: signed, and whatever the path does to the phase."""
        turned = self.cross * np.exp(2j * np.pi * self.frequency_hz / self.rate_hz * (lag - self.origin))
        total, energy = complex(turned.sum()), float(self.energy.sum())
        return total.real / energy, abs(total) / energy

    def precision(self, noise: NoiseModel, near: float, search: float) -> Precision | None:
        """The peak of |cross-correlation| within `search` samples of lag `near`, interpolated exactly.

        The stimulus's own band only (where its energy is within 40 dB of its top). The bound is Cramer and Rao's for a
        known signal in the ear's noise: var >= 1 / sum (w^2 |g X|^2 / Q) per sample of the transform's grid.
        """
        useful = self.energy > 1e-4 * float(self.energy.max())
        omega = 2.0 * np.pi * self.frequency_hz[useful] / self.rate_hz
        cross = self.cross[useful]
        start = near - self.origin
        grid = np.arange(-math.ceil(search), math.ceil(search) + 1, dtype=np.float64)
        correlation = np.fft.irfft(np.where(useful, self.cross, 0.0), self.length)
        base = round(start)
        window = correlation[(base + grid.astype(np.intp)) % self.length]
        peak = float(base + grid[int(np.argmax(np.abs(window)))])
        sign = 1.0 if correlation[int(peak) % self.length] >= 0.0 else -1.0
        for _ in range(6):
            turned = sign * cross * np.exp(1j * omega * peak)
            slope = float(-(omega * turned.imag).sum())
            bend = float(-(omega**2 * turned.real).sum())
            if bend >= 0.0:
                return None
            step = -slope / bend
            peak += max(-0.5, min(0.5, step))
            if abs(step) < 1e-6:
                break
        energy = self.energy[useful]
        gain = float((sign * cross * np.exp(1j * omega * peak)).real.sum() / energy.sum())
        density = np.maximum(noise.at(self.frequency_hz[useful]), 1e-300)
        information = 2.0 / self.length * gain**2 * float(np.sum(omega**2 * energy / density))
        return Precision(
            lag=peak + self.origin,
            crlb=1.0 / math.sqrt(information) if information > 0.0 else math.inf,
            polarity=1 if sign > 0 else -1,
        )


def _without_lines(noise: Real) -> Real:
    """Weight that takes narrow, loud lines (mains harmonics, a whistle) out of the band and leaves the rest alone."""
    usual = float(np.median(noise))
    return np.asarray(1.0 / (1.0 + np.maximum(0.0, noise / (10.0 * usual) - 1.0)))


@lru_cache(maxsize=32)
def _lag_window(half: int) -> Real:
    position = np.abs(np.arange(-half, half + 1)) / half
    return np.asarray(np.where(position <= 0.5, 1.0, 0.5 + 0.5 * np.cos(2.0 * np.pi * (position - 0.5))))


def _climb_envelope(response: Complex, omega: Real, search: float, size: int) -> float | None:
    """The lag, in samples from the centre, of the highest envelope maximum within +-search; None at the edge.

    `size` is the transform length that the response's bins belong to.
    """
    fine = fast_length(8 * len(omega))
    step = size / fine  # about an eighth of the resolution
    envelope = np.abs(np.fft.ifft(response, fine))
    count = max(2, math.ceil(search / step))
    height = envelope[np.arange(-count - 1, count + 2)]
    best = int(np.argmax(height[1:-1])) + 1
    if height[best] < height[best - 1] or height[best] < height[best + 1]:
        return None
    lag = (best - count - 1) * step
    for _ in range(12):  # Newton on the squared envelope
        turned = response * np.exp(1j * omega * lag)
        z, dz, ddz = turned.sum(), (1j * omega * turned).sum(), (-(omega**2) * turned).sum()
        slope = 2.0 * (np.conj(z) * dz).real
        bend = 2.0 * (abs(dz) ** 2 + (np.conj(z) * ddz).real)
        if bend >= 0.0:
            return None
        move = float(np.clip(-slope / bend, -step, step))
        lag += move
        if abs(move) < 1e-7:
            break
    return lag if abs(lag) <= search + 2.0 * step else None


def _carrier_sign(turned: Complex, weight: Real) -> float:
    """Positive when the response is upright at the envelope peak: the sign of the in-phase part there."""
    return float((turned * weight).sum().real)
