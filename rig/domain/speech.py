"""Synthetic speech: voiced pulses with gliding pitch through moving formants, fricatives, four syllables a second.

It stands for speech where only its statistics matter: as a lead-in that opens a noise suppressor before the chirp, and
as a stimulus in tests. Nothing in it is a recording. Everything is drawn in seconds and hertz, never in samples, so
that one seed is one utterance at every sampling rate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

_VOWELS_HZ = (  # first four formants of ah, ee, oo, eh, aw, er; rounded textbook values of an adult voice
    (730.0, 1090.0, 2440.0, 3400.0),
    (270.0, 2290.0, 3010.0, 3600.0),
    (300.0, 870.0, 2240.0, 3300.0),
    (530.0, 1840.0, 2480.0, 3500.0),
    (570.0, 840.0, 2410.0, 3300.0),
    (490.0, 1350.0, 1690.0, 3300.0),
)
_BANDWIDTHS_HZ = np.array([70.0, 90.0, 130.0, 200.0])
_LEVELS = np.array([1.0, 0.5, 0.25, 0.12])  # a glottal pulse is weaker at the higher formants
_RING_S = 0.035  # after which a formant's ringing has died away
_NOISE_PERIOD_S = 0.16  # longer than any fricative
_NOISE_TOP_HZ = 8000.0


@dataclass(frozen=True, slots=True)
class _Syllable:
    start_s: float
    voice_s: float  # the vowel begins here
    end_s: float
    level: float
    pitch_hz: tuple[float, float]  # at the start and at the end of the vowel
    formants_hz: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]  # likewise
    hiss: npt.NDArray[np.complex128] | None  # spectrum of the fricative, bins of 1 / _NOISE_PERIOD_S
    hiss_level: float


def speech_like(seed: int, duration_s: float, rate_hz: int) -> npt.NDArray[np.float32]:
    """Synthetic speech, peak 1.0, without DC; shape (round(duration_s * rate_hz),). Deterministic in `seed`.

    Raises ValueError for a duration that is not positive or a rate under 8000 Hz.
    """
    if not (math.isfinite(duration_s) and duration_s > 0.0):
        raise ValueError(f"speech lasts longer than 0 s, not {duration_s} s")
    if rate_hz < 8000:
        raise ValueError(f"speech needs at least 8000 samples a second, not {rate_hz}")
    rng = np.random.default_rng(seed)
    n_frames = round(duration_s * rate_hz)
    wave = np.zeros(n_frames)
    for syllable in _plan(rng, duration_s):
        if syllable.hiss is not None:
            _add_hiss(wave, syllable, rate_hz)
        _add_voice(wave, syllable, rng, rate_hz)
    spectrum = np.fft.rfft(wave)
    hz = np.fft.rfftfreq(n_frames, 1.0 / rate_hz)
    spectrum *= 0.5 - 0.5 * np.cos(np.pi * np.clip((hz - 40.0) / 40.0, 0.0, 1.0))  # the mouth passes no DC
    wave = np.fft.irfft(spectrum, n_frames)
    peak = float(np.max(np.abs(wave)))
    return np.asarray(wave / peak if peak > 0.0 else wave, dtype=np.float32)


def _plan(rng: np.random.Generator, duration_s: float) -> list[_Syllable]:
    """The syllables of one utterance, cut to its duration; pitch falls by a fifth in three seconds, then anew."""
    base_hz = rng.uniform(95.0, 210.0)
    formants = np.array(_VOWELS_HZ[rng.integers(len(_VOWELS_HZ))])
    at_s = 0.01
    syllables: list[_Syllable] = []
    while at_s < duration_s - 0.05:
        length_s = rng.uniform(0.16, 0.28)
        hissing = rng.random() < 0.5
        hiss_s = rng.uniform(0.06, 0.11) if hissing else 0.015
        target = np.array(_VOWELS_HZ[rng.integers(len(_VOWELS_HZ))]) * rng.uniform(0.94, 1.06)
        pitch_hz = base_hz * (1.0 - 0.2 * (at_s % 3.0) / 3.0)
        rise = rng.uniform(0.88, 1.15)
        level = rng.uniform(0.5, 1.0)
        end_s = min(at_s + length_s, duration_s)
        syllables.append(
            _Syllable(
                start_s=at_s,
                voice_s=min(at_s + hiss_s, end_s),
                end_s=end_s,
                level=level,
                pitch_hz=(pitch_hz, pitch_hz * rise),
                formants_hz=(formants, target),
                hiss=_hiss_spectrum(rng) if hissing else None,
                hiss_level=rng.uniform(0.08, 0.25) * level,
            )
        )
        formants = target
        at_s += length_s + (rng.uniform(0.06, 0.15) if rng.random() < 0.15 else 0.0)
    return syllables


def _hiss_spectrum(rng: np.random.Generator) -> npt.NDArray[np.complex128]:
    n_bins = int(_NOISE_TOP_HZ * _NOISE_PERIOD_S)
    hz = np.arange(n_bins) / _NOISE_PERIOD_S
    centre_hz, width_hz = rng.uniform(2500.0, 6000.0), rng.uniform(800.0, 2500.0)
    shape = np.exp(-0.5 * ((hz - centre_hz) / width_hz) ** 2)
    drawn = rng.normal(size=n_bins) + 1j * rng.normal(size=n_bins)
    return np.asarray(shape * drawn / np.sqrt(np.sum(shape**2)), dtype=np.complex128)


def _rounded(position: npt.NDArray[np.float64], ramp: float) -> npt.NDArray[np.float64]:
    """A window over 0 to 1 with raised-cosine ramps of `ramp` at both ends."""
    edge = np.clip(np.minimum(position, 1.0 - position) / ramp, 0.0, 1.0)
    return np.asarray(0.5 - 0.5 * np.cos(np.pi * edge))


def _add_hiss(wave: npt.NDArray[np.float64], syllable: _Syllable, rate_hz: int) -> None:
    assert syllable.hiss is not None
    first = math.ceil(syllable.start_s * rate_hz)
    stop = min(math.ceil(syllable.voice_s * rate_hz), len(wave))
    if stop <= first:
        return
    n_fft = round(_NOISE_PERIOD_S * rate_hz)
    bins = min(len(syllable.hiss), int(0.45 * n_fft))
    lag_s = first / rate_hz - syllable.start_s  # of the first frame behind the exact start
    shifted = syllable.hiss[:bins] * np.exp(2j * np.pi * np.arange(bins) * lag_s / _NOISE_PERIOD_S)
    spectrum = np.zeros(n_fft // 2 + 1, dtype=np.complex128)
    spectrum[:bins] = shifted
    noise = np.fft.irfft(spectrum, n_fft)[: stop - first] * n_fft / 2.0
    position = (np.arange(first, stop) / rate_hz - syllable.start_s) / (syllable.voice_s - syllable.start_s)
    wave[first:stop] += syllable.hiss_level * noise * _rounded(position, 0.3)


def _add_voice(wave: npt.NDArray[np.float64], syllable: _Syllable, rng: np.random.Generator, rate_hz: int) -> None:
    """Adds the vowel as one damped oscillation per formant and glottal pulse, started at the pulse's exact time."""
    length_s = syllable.end_s - syllable.voice_s
    at_s = syllable.voice_s
    while at_s < syllable.end_s:
        position = (at_s - syllable.voice_s) / length_s
        pitch_hz = syllable.pitch_hz[0] + position * (syllable.pitch_hz[1] - syllable.pitch_hz[0])
        glide = float(np.clip(position / 0.6, 0.0, 1.0))
        formants_hz = (1.0 - glide) * syllable.formants_hz[0] + glide * syllable.formants_hz[1]
        level = syllable.level * float(_rounded(np.array(position), 0.2)) * (1.0 + 0.05 * rng.normal())
        first = math.ceil(at_s * rate_hz)
        stop = min(first + int(_RING_S * rate_hz), len(wave))
        if stop > first:
            heard = formants_hz < 0.45 * rate_hz
            t_s = np.arange(first, stop) / rate_hz - at_s
            ringing = np.exp(-np.pi * _BANDWIDTHS_HZ[heard, None] * t_s)
            ringing *= np.sin(2.0 * np.pi * formants_hz[heard, None] * t_s)
            wave[first:stop] += level * (_LEVELS[heard] @ ringing)
        at_s += (1.0 + 0.01 * rng.normal()) / pitch_hz
