"""Linear paths from the reference to the ear, as impulse responses whose time zero is known exactly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

import numpy as np
from scipy.fft import next_fast_len
from scipy.signal import butter, sosfilt

from worlds import RATE_HZ
from worlds.stimuli import Samples

SOUND_M_S = 343.0


@dataclass(frozen=True)
class Path:
    """Impulse response `ir`; `ir[zero]` is time zero: a pure unit path is 1 there and 0 elsewhere. `label` names it."""

    label: str
    ir: Samples
    zero: int

    def then(self, other: Path) -> Path:
        """This path followed by `other`."""
        label = other.label if self.label == "clean" else f"{self.label}+{other.label}"
        return Path(label, np.convolve(self.ir, other.ir), self.zero + other.zero)


def clean(gain: float = 1.0) -> Path:
    """Nothing but a gain; negative for inverted polarity."""
    return Path("clean" if gain > 0 else "inverted", np.array([gain]), 0)


def chain(*paths: Path) -> Path:
    """All of them in order."""
    return reduce(lambda a, b: a.then(b), paths)


def tap(delay_samples: float, gain: float, half_width: int = 64) -> tuple[Samples, int]:
    """A fractional unit sample: Blackman-windowed sinc; returns (taps, index of its first tap in samples)."""
    first = int(np.floor(delay_samples)) - half_width + 1
    u = np.arange(first, first + 2 * half_width) - delay_samples
    w = np.clip(u / half_width, -1.0, 1.0)
    window = 0.42 + 0.5 * np.cos(np.pi * w) + 0.08 * np.cos(2 * np.pi * w)
    return gain * np.sinc(u) * window, first


def echo(delay_s: float, gain_db: float, inverted: bool = False) -> Path:
    """The direct sound (1) and one copy of it `delay_s` later, `gain_db` above it."""
    taps, first = tap(delay_s * RATE_HZ, (-1.0 if inverted else 1.0) * 10 ** (gain_db / 20))
    zero = max(0, -first)
    ir = np.zeros(zero + first + taps.size + 1)
    ir[zero] += 1.0
    ir[zero + first : zero + first + taps.size] += taps
    return Path(f"echo{gain_db:+.0f}dB@{delay_s * 1e3:g}ms", ir, zero)


def _minimum_phase(label: str, *sections: Samples) -> Path:
    impulse = np.zeros(4096)
    impulse[0] = 1.0
    for sos in sections:
        impulse = sosfilt(sos, impulse)
    return Path(label, np.asarray(impulse), 0)


def loudspeaker(resonance_hz: float = 450.0, q: float = 1.1, top_hz: float = 7200.0) -> Path:
    """A small loudspeaker: second-order high-pass with a resonance of quality `q`, third-order low-pass at `top_hz`."""
    w0 = 2 * np.pi * resonance_hz / RATE_HZ
    alpha = np.sin(w0) / (2 * q)  # the cookbook biquad, bilinear transform of the mass-spring resonance
    c = np.cos(w0)
    a0 = 1 + alpha
    high = np.array([[(1 + c) / 2 / a0, -(1 + c) / a0, (1 + c) / 2 / a0, 1.0, -2 * c / a0, (1 - alpha) / a0]])
    return _minimum_phase("loudspeaker", high, butter(3, top_hz, fs=RATE_HZ, output="sos"))


def telephone() -> Path:
    """300 to 3400 Hz, Butterworth of fourth order at each edge."""
    return _minimum_phase("telephone", butter(4, [300.0, 3400.0], "bandpass", fs=RATE_HZ, output="sos"))


def room(
    rng: np.random.Generator,
    distance_m: float,
    rt60_s: float | None = None,
    length_s: float = 0.3,
    size_m: tuple[float, float, float] | None = None,
) -> Path:
    """A shoebox room by the image method (Allen and Berkley 1979), direct sound 1 at time zero exactly.

    Positions and (unless given) room size and the reverberation time of 0.25 to 0.6 s are drawn from `rng`; Sabine's
    formula turns it into one absorption for all walls. Images are fractional taps of 32 samples.
    """
    drawn = (rng.uniform(3.0, 7.0), rng.uniform(2.6, 5.0), rng.uniform(2.3, 3.2))
    size = np.array(drawn if size_m is None else size_m)
    rt60_s = float(rng.uniform(0.25, 0.6)) if rt60_s is None else rt60_s
    volume = float(np.prod(size))
    surface = 2.0 * float(size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    reflection = np.sqrt(1.0 - min(0.95, 0.161 * volume / (surface * rt60_s)))
    while True:
        source = size * rng.uniform(0.15, 0.85, 3)
        direction = rng.standard_normal(3)
        ear = source + distance_m * direction / np.linalg.norm(direction)
        if np.all(ear > 0.25) and np.all(ear < size - 0.25):
            break
    reach_m = SOUND_M_S * length_s
    along = []
    for axis in range(3):
        m = np.arange(-int(np.ceil(reach_m / (2 * size[axis]))) - 1, int(np.ceil(reach_m / (2 * size[axis]))) + 2)
        offset = np.concatenate([2 * m * size[axis] + source[axis], 2 * m * size[axis] - source[axis]]) - ear[axis]
        along.append((offset**2, np.concatenate([np.abs(2 * m), np.abs(2 * m - 1)])))
    square = along[0][0][:, None, None] + along[1][0][None, :, None] + along[2][0][None, None, :]
    bounces = along[0][1][:, None, None] + along[1][1][None, :, None] + along[2][1][None, None, :]
    keep = square < (reach_m + distance_m) ** 2
    away_m = np.sqrt(square[keep])
    gain = distance_m / away_m * (reflection ** np.arange(int(bounces.max()) + 1))[bounces[keep]]
    when = (away_m - distance_m) / SOUND_M_S * RATE_HZ
    half, zero = 16, 32
    ir = np.zeros(int(length_s * RATE_HZ) + 2 * zero)
    whole = np.rint(when).astype(np.int64)
    part = when - whole
    # A sinc under a raised cosine: sin(pi (k - part)) is that of `part` with a sign, and the cosine a sum of two, so no
    # tap costs a sine of its own.
    sine = gain * np.sin(np.pi * part) / np.pi
    even, odd = np.cos(np.pi * part / half), np.sin(np.pi * part / half)
    on_a_sample = part == 0.0
    for k in range(-half, half + 1):
        u = np.where(on_a_sample, 1.0, k - part)
        sinc = np.where(on_a_sample, gain if k == 0 else 0.0, sine * (1.0 if k % 2 else -1.0) / u)
        value = sinc * 0.5 * (1.0 + np.cos(np.pi * k / half) * even + np.sin(np.pi * k / half) * odd)
        value = np.where(np.abs(k - part) > half, 0.0, value)
        index = whole + k + zero
        inside = (index >= 0) & (index < ir.size)
        ir += np.bincount(index[inside], weights=value[inside], minlength=ir.size)[: ir.size]
    return Path(f"room{distance_m:g}m", ir, zero)


def through(path: Path, wave: Samples, wave_zero: int, fraction: float) -> tuple[Samples, int]:
    """`wave` through `path`, delayed by `fraction` samples more; returns (samples, index of the wave's zero in them).

    `wave_zero` is the index of time zero in `wave`. The delay is a phase ramp over a padded buffer, exact for the
    band-limited waves of this package.
    """
    pad = 256
    n = next_fast_len(wave.size + path.ir.size + 2 * pad, real=True)
    f = np.arange(n // 2 + 1) / n
    spectrum = np.fft.rfft(np.concatenate([np.zeros(pad), wave]), n) * np.fft.rfft(path.ir, n)
    out = np.fft.irfft(spectrum * np.exp(-2j * np.pi * f * fraction), n)
    return np.asarray(out[: wave.size + path.ir.size + pad + 64]), pad + wave_zero + path.zero
