"""Where the stimuli begin on the recording, to a fraction of a frame, by their known shape.

The trials' reference frames are exact against each other; where the first of them begins is the gate's choice and may
be a fraction of a millisecond off. The latency does not need it. Host time of a sample does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.domain.seams import FrameSource
from rig.domain.waveforms import BOARD_TONE_RATE_HZ, STIMULI, ideal_waveform

SEARCH_S = 0.010
MOST = 15  # stimuli looked at, spread over the run
_HELD_S = 0.5 / BOARD_TONE_RATE_HZ
"""The board holds each sample of a sweep until the next one, which delays the whole by half a sample; the sequence's
chips begin where they should."""


@dataclass(frozen=True, slots=True)
class Onset:
    """`frames` to add to a reference frame for the first sample of the stimulus, and its standard uncertainty."""

    frames: float
    u_frames: float


def find_onset(
    source: FrameSource, channel: int, reference_frames: Sequence[float], kind: str, rate: float, by_board: bool
) -> Onset | None:
    """Correlates stimuli with the shape that was played; the median over them. None for a shape that is not known.

    `rate`: audio seconds per second of the clock that played it. `reference_frames` in order.
    """
    if kind not in STIMULI or not reference_frames:
        return None
    wave = ideal_waveform(kind, source.rate_hz * rate, 1.0).astype(np.float64)
    search = round(SEARCH_S * source.rate_hz)
    chosen = np.unique(np.linspace(0, len(reference_frames) - 1, MOST).round().astype(int))
    found = []
    for frame in (reference_frames[k] for k in chosen):
        first = round(frame) - search
        clip = source.read(max(0, first), len(wave) + 2 * search)[:, channel].astype(np.float64)
        if first < 0 or len(clip) < len(wave) + 2 * search:
            continue
        peak = _peak(clip - np.mean(clip), wave)
        if peak is not None:
            found.append(peak + first - frame)
    if not found:
        return None
    values = np.array(found)
    middle = float(np.median(values))
    spread = 1.4826 * float(np.median(np.abs(values - middle)))
    delay = _HELD_S * source.rate_hz * rate if by_board and STIMULI[kind].first_hz is not None else 0.0
    return Onset(middle - delay, 1.25 * spread / len(values) ** 0.5)


def _peak(clip: np.ndarray, wave: np.ndarray) -> float | None:
    """Where in the clip the wave begins, between samples by a parabola on a grid eight times as fine."""
    n_fft = 1 << (len(clip) + len(wave) - 1).bit_length()
    fine = 8
    spectrum = np.zeros(n_fft * fine // 2 + 1, dtype=np.complex128)
    spectrum[: n_fft // 2 + 1] = np.fft.rfft(clip, n_fft) * np.conj(np.fft.rfft(wave, n_fft))
    correlation = np.abs(np.fft.irfft(spectrum, n_fft * fine)[: (len(clip) - len(wave)) * fine])
    k = int(np.argmax(correlation))
    if not 0 < k < len(correlation) - 1 or correlation[k] == 0.0:
        return None
    before, at, after = correlation[k - 1 : k + 2]
    return float((k + 0.5 * (before - after) / (before - 2.0 * at + after)) / fine)
