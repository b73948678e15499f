"""What goes wrong with recordings, done to samples. All return new arrays; positions are in frames."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from worlds import RATE_HZ, paths
from worlds.recording import Recording
from worlds.stimuli import Samples


def insert_repeat(channel: Samples, at: int, length_s: float = 0.01, fade_s: float = 0.002) -> Samples:
    """`length_s` of sound repeated from `at` on, joined by a cross-fade, everything after it later by `length_s`.

    What a jitter buffer does when it stretches: the frames before `at` are heard twice. The result is cut to the
    original length.
    """
    length, fade = round(length_s * RATE_HZ), round(fade_s * RATE_HZ)
    out = np.concatenate([channel[:at], channel[at - length :]])[: channel.size]
    ramp = np.linspace(0.0, 1.0, fade)
    out[at : at + fade] = channel[at : at + fade] * (1.0 - ramp) + channel[at - length : at - length + fade] * ramp
    return out


def drop_frames(frames: npt.NDArray[np.float64], at: int, count: int) -> npt.NDArray[np.float64]:
    """`count` frames lost at `at`: the rest moves up."""
    return np.concatenate([frames[:at], frames[at + count :]])


def with_crosstalk(frames: npt.NDArray[np.float64], gain: float, delay_samples: float = 0.0) -> npt.NDArray[np.float64]:
    """The reference bleeding into the ear with `gain`, `delay_samples` late."""
    out = frames.copy()
    if delay_samples == 0.0:
        out[:, 1] += gain * frames[:, 0]
        return out
    shift = paths.tap(delay_samples, gain)
    bled = np.convolve(frames[:, 0], shift[0])
    start = shift[1]
    source = bled[max(0, -start) :][: out.shape[0] - max(0, start)]
    out[max(0, start) : max(0, start) + source.size, 1] += source
    return out


def with_leak(recording: Recording, delay_s: float, gain_db: float) -> Recording:
    """The mouth heard at the ear `delay_s` after the reference, `gain_db` above the reference's own level."""
    gain = 10 ** (gain_db / 20)
    return recording.with_frames(with_crosstalk(recording.frames, gain, delay_s * RATE_HZ))


def clip(channel: Samples, level: float) -> Samples:
    """Flat tops at plus and minus `level`."""
    return np.clip(channel, -level, level)


def resampled(frames: npt.NDArray[np.float64], rate_hz: int) -> npt.NDArray[np.float64]:
    """The same sound recorded at another rate (linear-phase, no delay): seconds stay, frame counts change."""
    from math import gcd

    from scipy.signal import resample_poly

    common = gcd(rate_hz, RATE_HZ)
    return np.asarray(resample_poly(frames, rate_hz // common, RATE_HZ // common, axis=0, window=("kaiser", 12.0)))


def clip_span(recording: Recording, trial: int) -> tuple[int, int]:
    """First and last frame of the stimulus of `trial` as it sounds on the ear channel."""
    start = recording.onsets[trial] + recording.arrival_s[trial] * RATE_HZ
    return int(start), int(start) + recording.stimulus.n_active
