"""Fractional delays and resampling against independent, slower or closed-form computations."""

from __future__ import annotations

import numpy as np
import pytest

from rig.domain.waveforms import BOARD_TONE_RATE_HZ, board_samples
from rig.sim.bandlimited import KERNEL_HALF, PASSBAND, kernel, place_impulses, transform_at
from rig.sim.bench import build_bench
from rig.sim.paths import RC_CORNER_HZ
from sim.recorder import open_stream, read_frames


@pytest.mark.parametrize(("n", "spacing", "start", "n_fft"), [(50, 1.0, 0.0, 128), (300, 1.543, 17.31, 1024)])
def test_transform_at_is_the_sum_that_it_stands_for(
    rng: np.random.Generator, n: int, spacing: float, start: float, n_fft: int
) -> None:
    samples = rng.standard_normal(n)
    at = np.longdouble(start) + np.arange(n, dtype=np.longdouble) * np.longdouble(spacing)
    turns = np.fmod(np.arange(n_fft // 2 + 1, dtype=np.longdouble)[:, None] / n_fft * at[None, :], 1.0)
    expected = np.sum(samples * np.exp(-2j * np.pi * turns.astype(np.float64)), axis=1)
    np.testing.assert_allclose(transform_at(samples, spacing, start, n_fft), expected, atol=1e-10)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.8125])
def test_the_kernel_delays_exactly_in_the_passband(fraction: float) -> None:
    taps, u = kernel(fraction), np.arange(-KERNEL_HALF, KERNEL_HALF + 1)
    for cycles in (0.005, 0.05, 0.15, 0.3, PASSBAND):
        response = np.sum(taps * np.exp(-2j * np.pi * cycles * (u - fraction)))
        assert abs(abs(response) - 1.0) < 1e-5, f"gain at {cycles}"
        assert abs(np.angle(response)) / (2 * np.pi * cycles) < 5e-5, f"delay at {cycles}"


@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_the_kernel(order: int) -> None:
    h = 1e-3
    slope = (kernel(0.3 - h, order - 1) - kernel(0.3 + h, order - 1)) / (2 * h)
    assert np.max(np.abs(kernel(0.3, order) - slope)) < 2e-3 * np.max(np.abs(slope))


def test_impulses_land_where_they_are_put_and_wrap_before_zero() -> None:
    response = place_impulses(np.array([0.25, 100.7]), np.array([1.0, -0.5]), 1024)
    spectrum, k = np.fft.rfft(response), np.arange(1, 400)
    expected = np.exp(-2j * np.pi * k * 0.25 / 1024) - 0.5 * np.exp(-2j * np.pi * k * 100.7 / 1024)
    np.testing.assert_allclose(spectrum[1:400], expected, atol=3e-5)


def test_what_the_interface_plays_arrives_at_the_exact_fraction_of_a_frame() -> None:
    # A pulse with a closed form, far inside the band: what is recorded can be written down.
    width, tone = 40.0, 2 * np.pi * 0.06

    def pulse(u: np.ndarray) -> np.ndarray:
        return np.exp(-((u / width) ** 2)) * np.cos(tone * u)

    bench = build_bench("quiet", 1, snr_db=None, reference_snr_db=None, output_delay_s=0.0123456, audio_ppm=0.0)
    bench.system.start(1)
    stream = open_stream(bench)
    wave = pulse(np.arange(-300.0, 301.0)).astype(np.float32)
    at = stream.play(wave, 5000)
    frames = read_frames(bench, stream, 0.6)
    arrival = at + 0.0123456 * 48_000 + 300
    n = np.arange(len(frames))
    np.testing.assert_allclose(frames[:, 0], 0.5 * pulse(n - arrival), atol=3e-7)
    later = bench.truth()["runs"][0]["stimuli"][0]["latency_audio_s"] * 48_000
    gain = 0.5 * 10 ** (-14.0 / 20.0)
    np.testing.assert_allclose(frames[:, 1], gain * pulse(n - arrival - later), atol=3e-7)


def test_the_board_is_a_held_output_through_a_resistor_and_a_capacitor() -> None:
    """Reference channel against the exact exponentials of an RC circuit, filtered and sampled the slow way."""
    ppm, start_s, fine = -4321.0, 0.1000123, 48
    bench = build_bench("quiet", 2, snr_db=None, reference_snr_db=None, audio_ppm=12.0)
    bench.system.start(1)
    samples = board_samples("mls", 1.0)[:200]  # steps as hard as they come
    rate = BOARD_TONE_RATE_HZ * (1 + ppm * 1e-6)
    stream = open_stream(bench)
    bench.scene.tone(start_s, samples, rate)
    frames = read_frames(bench, stream, 0.2)
    frame_s = 1.0 / (48_000 * (1 + 12e-6))
    first_s = bench.truth()["streams"][0]["first_frame_s"]

    low, high = 4600, 5400
    t_s = first_s + (low + np.arange((high - low) * fine) / fine) * frame_s
    times = start_s + np.arange(len(samples) + 1) / rate
    tau = 1.0 / (2 * np.pi * RC_CORNER_HZ)
    levels = np.append(samples / 127.0, 0.0)
    voltage = np.zeros(len(levels))  # on the capacitor when each level begins
    for k in range(1, len(levels)):
        voltage[k] = levels[k - 1] + (voltage[k - 1] - levels[k - 1]) * np.exp(-(times[k] - times[k - 1]) / tau)
    step = np.clip(np.searchsorted(times, t_s, side="right") - 1, 0, None)
    pin = np.where(
        t_s < times[0], 0.0, levels[step] + (voltage[step] - levels[step]) * np.exp(-(t_s - times[step]) / tau)
    )
    # The converters' filter as an impulse response: a raised-cosine low pass, flat to 5/12, zero at 1/2 of the rate.
    u = np.arange(-80 * fine, 80 * fine + 1) / fine + 1e-9
    middle, roll = PASSBAND + 0.5, (0.5 - PASSBAND) / (PASSBAND + 0.5)
    taps = middle * np.sinc(middle * u) * np.cos(np.pi * roll * middle * u) / (1 - (2 * roll * middle * u) ** 2) / fine
    recorded = 0.5 * np.convolve(pin, taps, "same")[::fine]
    inside = slice(100, high - low - 100)
    np.testing.assert_allclose(frames[low:high, 0][inside], recorded[inside], atol=2e-4)
