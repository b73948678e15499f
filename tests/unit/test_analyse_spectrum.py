"""Lengths, tapers, noise densities: the ground that the estimators stand on."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.analyse.spectrum import VOICE_BAND, band_taper, envelope_sigma, fast_length, flat_taper, median_psd, smooth


@given(st.integers(1, 400_000), st.sampled_from([1, 2, 6, 10, 14]))
def test_a_fast_length_is_long_enough_smooth_and_a_multiple(at_least: int, multiple: int) -> None:
    length = fast_length(at_least, multiple)
    assert length >= at_least
    assert length % multiple == 0
    rest = length // multiple
    for prime in (2, 3, 5):
        while rest % prime == 0:
            rest //= prime
    assert rest == 1
    assert length < 2 * at_least + multiple


def test_the_band_taper_is_one_in_the_middle_and_nothing_outside() -> None:
    f = np.array([0.0, 299.0, 300.0, 1850.0, 3400.0, 3401.0, 9000.0])
    np.testing.assert_allclose(band_taper(f, VOICE_BAND), [0, 0, 0, 1, 0, 0, 0], atol=1e-9)
    assert band_taper(np.array([300.0 + 3100.0 / 6.0]), VOICE_BAND)[0] == pytest.approx(0.5**1.5)


def test_the_flat_taper_is_flat() -> None:
    f = np.linspace(500.0, 3200.0, 50)
    np.testing.assert_allclose(flat_taper(f, VOICE_BAND), 1.0)
    assert flat_taper(np.array([300.0, 3400.0, 100.0]), VOICE_BAND) == pytest.approx([0.0, 0.0, 0.0])


@pytest.mark.parametrize("n", [2_000, 9_000, 60_000])
def test_the_median_density_of_white_noise_is_its_variance(n: int, rng: np.random.Generator) -> None:
    powers = []
    for _ in range(40):
        f, power = median_psd(rng.normal(0.0, 0.3, n), 48_000.0)
        powers.append(power[(f > 300) & (f < 20_000)].mean())
    assert np.mean(powers) == pytest.approx(0.09, rel=0.03)


def test_the_median_density_ignores_a_stimulus_in_a_tenth_of_the_time(rng: np.random.Generator) -> None:
    noise = rng.normal(0.0, 0.01, 96_000)
    noise[20_000:24_800] += np.sin(2 * np.pi * 1000.0 * np.arange(4800) / 48_000.0)
    f, power = median_psd(noise, 48_000.0)
    assert power[(f > 900) & (f < 1100)].max() < 3.0 * 1e-4  # the mean would show 0.05


def test_smoothing_keeps_the_mean_and_shortens_at_the_ends() -> None:
    values = np.array([0.0, 0.0, 6.0, 0.0, 0.0])
    np.testing.assert_allclose(smooth(values, 1), [0, 2, 2, 2, 0])
    np.testing.assert_allclose(smooth(values, 0), values)
    assert smooth(np.array([1.0, 3.0]), 5) == pytest.approx([2.0, 2.0])


def test_envelope_sigma_is_that_of_one_quadrature(rng: np.random.Generator) -> None:
    envelope = np.abs(rng.normal(0, 2.0, 40_000) + 1j * rng.normal(0, 2.0, 40_000))
    envelope[1000:1400] = 500.0
    assert envelope_sigma(envelope) == pytest.approx(2.0, rel=0.06)
    assert not math.isnan(envelope_sigma(np.zeros(10)))
