"""Sub-sample timing: whole samples exactly, fractions to a thousandth, sign and gain kept, edges refused."""

from __future__ import annotations

import numpy as np
import pytest

from rig.analyse.refine import LocalPair, NoiseModel
from rig.analyse.spectrum import VOICE_BAND
from rig.analyse.stimulus import similarity
from rig.domain.waveforms import ideal_waveform, speech_like

RATE = 48_000
QUIET = NoiseModel(np.array([0.0, 24_000.0]), np.full(2, 1e-12))


def delayed(wave: np.ndarray, delay: float, n: int, gain: float = 1.0) -> np.ndarray:
    """`wave` later by `delay` samples in a buffer of n, exactly, by the phase of a long transform."""
    length = 1 << int(np.ceil(np.log2(n + len(wave) + 4096)))
    f = np.fft.rfftfreq(length)
    spectrum = np.fft.rfft(wave.astype(np.float64), length) * np.exp(-2j * np.pi * f * delay)
    return gain * np.fft.irfft(spectrum, length)[:n]


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "mls"])
@pytest.mark.parametrize("delay", [0, 1, 17, 7200])
def test_whole_samples_are_whole(kind: str, delay: int) -> None:
    x = ideal_waveform(kind, RATE, 0.5)
    ear = np.concatenate([np.zeros(480 + delay), x, np.zeros(4000)])
    pair = LocalPair(x, ear, -480, delay + 3, RATE)
    arrival = pair.arrival(VOICE_BAND, QUIET, 20)
    assert arrival is not None
    assert arrival.lag == pytest.approx(delay, abs=1e-3)
    precision = pair.precision(QUIET, arrival.lag, 20)
    assert precision is not None
    assert precision.lag == pytest.approx(delay, abs=1e-4)


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "mls"])
@pytest.mark.parametrize(("delay", "gain"), [(1234.37, 1.0), (5000.5, -0.02), (99.01, -3.0)])
def test_fractions_sign_and_gain(kind: str, delay: float, gain: float) -> None:
    x = ideal_waveform(kind, RATE, 0.5)
    ear = delayed(x, delay + 480, 20_000, gain)
    pair = LocalPair(x, ear, -480, round(delay) - 2, RATE)
    arrival = pair.arrival(VOICE_BAND, QUIET, 20)
    assert arrival is not None
    assert arrival.lag == pytest.approx(delay, abs=2e-3)
    assert arrival.level == pytest.approx(abs(gain), rel=1e-3)
    assert arrival.polarity == np.sign(gain)
    precision = pair.precision(QUIET, delay, 24)
    assert precision is not None
    assert precision.lag == pytest.approx(delay, abs=1e-3)
    assert precision.polarity == np.sign(gain)


def test_a_voice_is_read_without_a_lag_window() -> None:
    x = speech_like(5, 0.8, RATE).astype(np.float64)
    ear = delayed(x, 3000.25, 60_000) + delayed(x, 6000.75, 60_000, 1.4)
    for lag in (3000.25, 6000.75):
        arrival = LocalPair(x, ear, 0, round(lag), RATE, whole=True).arrival(VOICE_BAND, QUIET, 15)
        assert arrival is not None
        assert arrival.lag == pytest.approx(lag, abs=0.05)


def test_no_maximum_within_reach_is_no_arrival() -> None:
    x = ideal_waveform("chirp", RATE, 0.5)
    ear = delayed(x, 4000.0, 12_000)
    assert LocalPair(x, ear, 0, 4060, RATE).arrival(VOICE_BAND, QUIET, 8) is None


def test_uncertainty_follows_the_noise(rng: np.random.Generator) -> None:
    x = ideal_waveform("chirp", RATE, 0.5)
    clean = delayed(x, 2000.3, 12_000)
    errors, stated = [], []
    sigma = 0.1
    noise = NoiseModel(np.array([0.0, 24_000.0]), np.full(2, sigma**2))
    for _ in range(150):
        arrival = LocalPair(x, clean + rng.normal(0, sigma, len(clean)), 0, 2001, RATE).arrival(VOICE_BAND, noise, 20)
        assert arrival is not None
        errors.append(arrival.lag - 2000.3)
        stated.append(arrival.u_noise)
    assert np.std(errors) == pytest.approx(np.median(stated), rel=0.2)


def test_similarity_flips_its_sign_when_the_clips_are_exchanged() -> None:
    a, b = np.zeros(23), np.zeros(23)
    a[3:6], b[15:18] = [1, 2, 1], [1, 2, 1]
    forward, backward = similarity(a + 4.0, b + 4.0), similarity(b + 4.0, a + 4.0)
    assert forward[1] == pytest.approx(12.0, abs=0.2)
    assert backward[1] == pytest.approx(-forward[1], abs=1e-9)
    assert forward[0] == pytest.approx(backward[0])
    assert similarity(a, -2.0 * a)[0] == pytest.approx(1.0)
    assert similarity(a, np.zeros(23))[0] == 0.0
