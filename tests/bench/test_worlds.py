"""The worlds themselves: a wrong world would condemn a right estimator, or acquit a wrong one."""

from __future__ import annotations

import numpy as np
import pytest
from plain import correlation_peak
from worlds import RATE_HZ, codecs, faults, interferers, oracle, paths, stimuli
from worlds.recording import Scene, build
from worlds.stimuli import GUARD

BAND = (300.0, 3400.0)


@pytest.mark.parametrize("fraction", [0.0, 0.25, 0.5, 0.9])
def test_a_fractional_delay_is_exact(fraction: float) -> None:
    """Of a sum of sines the delayed values can be written down."""
    t = np.arange(4000, dtype=float)
    shape = np.exp(-(((t - 2000) / 300) ** 2))
    wave = shape * np.sin(0.3 * t) + 0.5 * shape * np.sin(1.9 * t)
    out, zero = paths.through(paths.clean(), wave, 0, fraction)
    late = t - fraction
    bell = np.exp(-(((late - 2000) / 300) ** 2))
    expected = bell * np.sin(0.3 * late) + 0.5 * bell * np.sin(1.9 * late)
    assert out[zero : zero + 4000] == pytest.approx(expected, abs=1e-9)


def test_the_truth_of_known_paths() -> None:
    """A pure path, either polarity, arrives at 0; a linear-phase filter at its delay; echoes where they were put."""
    assert oracle.arrivals(paths.clean(), BAND).first == pytest.approx(0.0, abs=1e-6)
    assert oracle.arrivals(paths.clean(-0.3), BAND).first == pytest.approx(0.0, abs=1e-6)
    taps, first = paths.tap(123.4, 1.0)
    assert oracle.arrivals(paths.Path("late", taps, -first), BAND).first == pytest.approx(123.4, abs=1e-3)
    two = oracle.arrivals(paths.echo(0.04, 6.0), BAND)
    assert two.delays == pytest.approx([0.0, 1920.0], abs=0.01)
    assert two.levels_db == pytest.approx([-6.0, 0.0], abs=0.05)
    assert two.dominant == pytest.approx(1920.0, abs=0.01)


def test_the_truth_of_a_slow_phase_is_its_group_delay() -> None:
    """Where group delay hardly changes over the band, the envelope's peak sits at its mean there."""
    narrow = (1500.0, 1700.0)
    path = paths.telephone()
    f = np.array([1599.0, 1601.0]) / RATE_HZ
    response = np.exp(-2j * np.pi * np.outer(f, np.arange(path.ir.size))) @ path.ir
    group = -np.angle(response[1] / response[0]) / (2 * np.pi * (f[1] - f[0]))
    assert oracle.arrivals(path, narrow).first == pytest.approx(group, abs=0.5)


def test_the_direct_sound_of_a_room_is_at_time_zero() -> None:
    """Unit tap at zero, nothing before it, and reverberation that decays as asked."""
    for seed in range(5):
        room = paths.room(np.random.default_rng(seed), 0.5, rt60_s=0.3)
        assert room.ir[room.zero] == pytest.approx(1.0, abs=0.02)
        assert np.max(np.abs(room.ir[: room.zero - 1])) < 0.02
        energy = np.cumsum(room.ir[::-1] ** 2)[::-1]
        drop = np.interp([0.05, 0.15], np.arange(energy.size) / RATE_HZ, 10 * np.log10(energy + 1e-30))
        assert 0.1 / (drop[0] - drop[1]) * 60 == pytest.approx(0.3, rel=0.5)


def test_coders_delay_as_stated() -> None:
    """Opus 312 samples at a high rate; the telephone leg none."""
    wave = 0.3 * stimuli.make("chirp").wave
    ear = 1e-4 * np.random.default_rng(3).standard_normal(60_000)
    ear[20_000 : 20_000 + wave.size] += wave
    heard = codecs.opus(ear, 128_000, "audio")
    assert correlation_peak(wave, heard) - 20_000 == pytest.approx(codecs.OPUS_DELAY, abs=1.0)
    narrow = np.zeros(60_000)
    narrow[20_000 : 20_000 + 2400 + 2 * GUARD] = 0.3 * stimuli.make("chirp-nb").wave
    assert correlation_peak(narrow[20_000:22_656], codecs.mu_law(narrow)) - 20_000 == pytest.approx(0.0, abs=0.1)


@pytest.mark.parametrize("kind", stimuli.KINDS)
def test_the_snr_is_what_was_asked(kind: str) -> None:
    """Power of the stimulus over its duration against the noise between stimuli."""
    r = build(Scene(kind=kind, n=4, snr_db=12.0, latency_s=0.1, spread_samples=0.0), np.random.default_rng(5))
    noise = float(np.var(r.frames[: int(0.9 * RATE_HZ), 1]))
    start, stop = faults.clip_span(r, 1)
    both = float(np.mean(r.frames[start:stop, 1] ** 2))
    assert 10 * np.log10((both - noise) / noise) == pytest.approx(12.0, abs=0.7)


@pytest.mark.parametrize("kind", interferers.KINDS)
def test_interferers_are_of_one_level(kind: str) -> None:
    """Unit RMS, no two draws alike; dither a fraction of a 16-bit step and not silent."""
    a, b = (interferers.make(kind, np.random.default_rng(s), 96_000) for s in (1, 2))
    assert not np.array_equal(a, b)
    rms = float(np.sqrt(np.mean(a**2)))
    if kind == "dither":
        assert 1e-6 < rms < 3e-5
    else:
        assert rms == pytest.approx(1.0, abs=1e-6)


def test_a_repeat_shifts_what_follows() -> None:
    """10 ms repeated: before the joint nothing moves, after it everything by 480 samples."""
    ramp = np.arange(10_000, dtype=float)
    out = faults.insert_repeat(ramp, 5000)
    assert np.array_equal(out[:5000], ramp[:5000])
    assert np.array_equal(out[5100:], ramp[4620:9520])


def test_resampling_keeps_the_seconds() -> None:
    """A chirp at 16 kHz and at 96 kHz starts where it did."""
    r = build(Scene(kind="chirp-nb", n=2), np.random.default_rng(6))
    for rate_hz in (16_000, 96_000):
        frames = faults.resampled(r.frames, rate_hz)
        assert frames.shape[0] == pytest.approx(r.frames.shape[0] * rate_hz / RATE_HZ, abs=2)
        start = int(r.onsets[0] * rate_hz / RATE_HZ)
        clip = frames[start - 40 : start + int(0.06 * rate_hz), 0]
        lag_s = correlation_peak(clip, frames[start - 40 : start + rate_hz, 1]) / rate_hz
        assert lag_s == pytest.approx(r.truth_s[0], abs=0.1 / RATE_HZ)
