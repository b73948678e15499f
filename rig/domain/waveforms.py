"""The stimuli: what the board plays, bit for bit, and the same shapes for the interface's own output at any rate.

The board is an 8-bit microcontroller at 16 MHz that makes one sample every 512 cycles. Everything in `board_samples`
is integer arithmetic that fits its registers (32-bit phase, 16-bit products), so that C gives the same bytes. The
shapes follow the usual linear-FM, tone-burst and maximum-length-sequence definitions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.domain.speech import speech_like as speech_like

BOARD_TONE_RATE_HZ = 31_250
"""Samples per second that the board plays: 16 MHz / 512 cycles. Nominal: it follows the error of the board's clock."""

BOARD_FULL_SCALE = 127
"""The sample value that stands for 1.0 in `board_samples`."""

BOARD_AMPLITUDE_STEPS = 256
"""The board holds an amplitude as an integer number of 256ths of full scale."""

SINE_TABLE: tuple[int, ...] = tuple(round(127 * math.sin(2.0 * math.pi * (k + 0.5) / 256)) for k in range(256))
"""One period of a sine, int8. Sampled at half steps: cutting the phase to 8 bits then has no mean error."""

EDGE_TABLE: tuple[int, ...] = tuple(round(127.5 * (1.0 - math.cos(math.pi * (k + 0.5) / 256))) for k in range(256))
"""A raised-cosine edge from 0 to 255, uint8."""

MLS_SEED = 1
MLS_TAPS = 0x240  # Galois form of x^10 + x^7 + 1, which is primitive
MLS_CHIPS = 1023  # 2^10 - 1
MLS_CHIP_SAMPLES = 4
MLS_CHIP_RATE_HZ = BOARD_TONE_RATE_HZ / MLS_CHIP_SAMPLES

_CUTOFF = 0.45  # of the sampling rate: above it a shape fades out rather than alias
_KERNEL_HALF = 32  # samples on each side of a band-limited step


@dataclass(frozen=True, slots=True)
class StimulusShape:
    """One stimulus. `edge_fraction` is the part of the duration that each raised-cosine edge takes (0.5: Hann).

    Frequencies run linearly from `first_hz` to `last_hz`; both are None for the sequence. `band_hz` is the nominal
    band: the one that an analysis may use in full.
    """

    kind: str
    duration_s: float
    band_hz: tuple[float, float]
    first_hz: float | None
    last_hz: float | None
    edge_fraction: float


STIMULI: dict[str, StimulusShape] = {
    shape.kind: shape
    for shape in (
        StimulusShape("chirp", 0.100, (200.0, 7500.0), 200.0, 7500.0, 0.05),
        StimulusShape("chirp-nb", 0.050, (300.0, 3400.0), 300.0, 3400.0, 0.05),
        StimulusShape("click", 0.005, (600.0, 1400.0), 1000.0, 1000.0, 0.5),
        StimulusShape("mls", MLS_CHIPS / MLS_CHIP_RATE_HZ, (200.0, 7500.0), None, None, 0.0),
    )
}
"""Every kind that `board_samples` and `ideal_waveform` know. The order is the board's numbering of the kinds."""


def amplitude_steps(amplitude: float) -> int:
    """An amplitude of full scale (0 to 1) in the board's 256ths, rounded to the nearest.

    Raises ValueError outside 0 to 1, or when it rounds to nothing.
    """
    if not (math.isfinite(amplitude) and 0.0 < amplitude <= 1.0):
        raise ValueError(f"an amplitude lies above 0 and up to 1 of full scale, not {amplitude}")
    steps = round(amplitude * BOARD_AMPLITUDE_STEPS)
    if steps == 0:
        raise ValueError(f"an amplitude of {amplitude} is under half a step of 1/256 of full scale")
    return steps


def board_samples(kind: str, amplitude: float) -> npt.NDArray[np.int8]:
    """The samples that the board plays for `kind`, at BOARD_TONE_RATE_HZ, -127 to 127; shape (n_samples,).

    `amplitude` is of full scale, 0 to 1, and is rounded to 256ths. Raises KeyError for an unknown kind and ValueError
    for an amplitude out of range.
    """
    shape = STIMULI[kind]
    steps = amplitude_steps(amplitude)
    if shape.first_hz is None or shape.last_hz is None:
        return _board_sequence(steps)
    return _board_sweep(shape, shape.first_hz, shape.last_hz, steps)


@dataclass(frozen=True, slots=True)
class SweepWords:
    """The integers that make a sweep on the board.

    `first_increment` is added to the 32-bit phase after the first sample and grows by `increment_step` a sample;
    `edge_step` (16.16 fixed point) walks the edge table in `edge_samples` samples.
    """

    n_samples: int
    edge_samples: int
    edge_step: int
    first_increment: int
    increment_step: int


def sweep_words(kind: str) -> SweepWords:
    """The integers for one sweep or tone burst. Raises KeyError for an unknown kind, ValueError for the sequence."""
    shape = STIMULI[kind]
    if shape.first_hz is None or shape.last_hz is None:
        raise ValueError(f"{kind} is not a sweep")
    return _sweep_words(shape, shape.first_hz, shape.last_hz)


def _sweep_words(shape: StimulusShape, first_hz: float, last_hz: float) -> SweepWords:
    n_samples = int(shape.duration_s * BOARD_TONE_RATE_HZ + 1e-9)
    edge_samples = int(shape.edge_fraction * n_samples)
    to_word = 2.0**32 / BOARD_TONE_RATE_HZ
    step_hz = (last_hz - first_hz) / (shape.duration_s * BOARD_TONE_RATE_HZ)
    return SweepWords(
        n_samples=n_samples,
        edge_samples=edge_samples,
        edge_step=(256 << 16) // edge_samples,
        # The phase after one sample is the integral of the frequency over it: half a step past its start.
        first_increment=round((first_hz + 0.5 * step_hz) * to_word),
        increment_step=round(step_hz * to_word),
    )


def _board_sweep(shape: StimulusShape, first_hz: float, last_hz: float, steps: int) -> npt.NDArray[np.int8]:
    words = _sweep_words(shape, first_hz, last_hz)
    samples = np.empty(words.n_samples, dtype=np.int8)
    phase, increment = 0, words.first_increment
    for i in range(words.n_samples):
        from_end = min(i, words.n_samples - 1 - i)
        edge = EDGE_TABLE[(from_end * words.edge_step) >> 16] if from_end < words.edge_samples else 255
        gain = ((edge + (edge >> 7)) * steps) >> 8  # 0 to 256: 255 counts as a whole
        samples[i] = (SINE_TABLE[phase >> 24] * gain + 128) >> 8  # fits 16 bits; rounds halves up
        phase = (phase + increment) & 0xFFFFFFFF
        increment = (increment + words.increment_step) & 0xFFFFFFFF
    return samples


def mls_chips() -> npt.NDArray[np.int8]:
    """The maximum-length sequence of order 10 as +1 and -1; shape (1023,)."""
    chips = np.empty(MLS_CHIPS, dtype=np.int8)
    state = MLS_SEED
    for i in range(MLS_CHIPS):
        low = state & 1
        chips[i] = 1 if low else -1
        state = (state >> 1) ^ (MLS_TAPS if low else 0)
    return chips


def _board_sequence(steps: int) -> npt.NDArray[np.int8]:
    level = (BOARD_FULL_SCALE * steps + 128) >> 8
    return np.repeat(mls_chips() * np.int8(level), MLS_CHIP_SAMPLES)


def ideal_waveform(kind: str, rate_hz: float, amplitude: float) -> npt.NDArray[np.float32]:
    """The stimulus for an output that plays floating-point samples at `rate_hz`; shape (n_frames,), peak `amplitude`.

    The first sample is the first instant of the stimulus. Where the rate cannot carry the whole band, the part above
    0.45 of the rate fades out instead of aliasing. Raises KeyError for an unknown kind, ValueError for a rate under
    8000 Hz or an amplitude outside 0 to 1.
    """
    shape = STIMULI[kind]
    if rate_hz < 8000:
        raise ValueError(f"a stimulus needs at least 8000 samples a second, not {rate_hz}")
    if not (math.isfinite(amplitude) and 0.0 < amplitude <= 1.0):
        raise ValueError(f"an amplitude lies above 0 and up to 1 of full scale, not {amplitude}")
    if shape.first_hz is None or shape.last_hz is None:
        return (amplitude * _ideal_sequence(rate_hz)).astype(np.float32)
    t_s = np.arange(int(shape.duration_s * rate_hz + 1e-9)) / rate_hz
    slope = (shape.last_hz - shape.first_hz) / shape.duration_s
    wave = np.sin(2.0 * np.pi * (shape.first_hz * t_s + 0.5 * slope * t_s * t_s))
    edge_s = shape.edge_fraction * shape.duration_s
    from_end_s = np.minimum(t_s, shape.duration_s - t_s)
    wave *= 0.5 - 0.5 * np.cos(np.pi * np.clip(from_end_s / edge_s, 0.0, 1.0))
    fade = np.clip((_CUTOFF * rate_hz - (shape.first_hz + slope * t_s)) / (0.05 * rate_hz), 0.0, 1.0)
    wave *= 0.5 - 0.5 * np.cos(np.pi * fade)
    return np.asarray(amplitude * wave, dtype=np.float32)


def _ideal_sequence(rate_hz: float) -> npt.NDArray[np.float64]:
    """The sequence as rectangular chips, band-limited to 0.45 of the rate or 7500 Hz, peak 1; linear phase.

    Each change of level is a band-limited step (the running integral of a windowed sinc) at its exact instant.
    """
    chips = np.concatenate(([0.0], mls_chips().astype(np.float64), [0.0]))
    jumps = np.diff(chips)
    at_frames = np.arange(MLS_CHIPS + 1) * (rate_hz / MLS_CHIP_RATE_HZ)
    cutoff = min(_CUTOFF, STIMULI["mls"].band_hz[1] / rate_hz)  # cycles a sample
    half = math.ceil(_KERNEL_HALF * _CUTOFF / cutoff)
    grid = np.arange(-half * 64, half * 64 + 1) / 64.0
    kernel = 2.0 * cutoff * np.sinc(2.0 * cutoff * grid) * np.hanning(len(grid))
    step = np.concatenate(([0.0], np.cumsum(0.5 * (kernel[1:] + kernel[:-1]))))
    step /= step[-1]
    n_frames = math.ceil(at_frames[-1])
    wave = np.zeros(n_frames + 2 * half + 2)
    offsets = np.arange(-half, half + 2)
    for jump, at in zip(jumps, at_frames, strict=True):
        base = math.floor(at)
        positions = base + half + offsets
        wave[positions] += jump * np.interp(base + offsets - at, grid, step)
        wave[positions[-1] + 1 :] += jump
    wave = wave[half : half + n_frames]
    return np.asarray(wave / np.max(np.abs(wave)))
