"""The parts of a calibration one by one: tops, means, rates, wander, pulses; each against what it must say."""

from __future__ import annotations

import math

import allantools  # noqa: F401 - loaded here, so that no test's time is that of SciPy's import
import numpy as np
import pytest
from scipy import stats

from rig.analyse.boardpulse import find_pulses
from rig.analyse.clockrate import ClockRate, even_phase, rate_between
from rig.analyse.heard import Channel, Heard
from rig.analyse.hostrate import host_rate
from rig.analyse.known import Found, alike, clip_dbfs, mean_of, moved_frames, noise_dbfs, student
from rig.analyse.tops import flat_top
from rig.analyse.wander import allan_deviation
from rig.domain.records import BlockArrival, Gap
from rig.domain.seams import Frames
from rig.domain.waveforms import ideal_waveform

RATE_HZ = 48_000


class Samples:
    """`FrameSource` over an array."""

    full_scale: float | None = None

    def __init__(self, frames: np.ndarray) -> None:
        self.rate_hz, self.n_frames, self.n_channels = RATE_HZ, len(frames), frames.shape[1]
        self._frames = frames

    def read(self, start: int, count: int) -> Frames:
        return np.asarray(self._frames[start : start + count], dtype=np.float32)


def heard(lag: float, gain: float = 0.5) -> Heard:
    return Heard(lag, lag, gain, abs(gain), abs(gain), None, 1e4, 0)


@pytest.mark.parametrize("freedom", [2, 3, 5, 9, 30, 200])
def test_the_mean_of_few_is_given_students_interval(freedom: int) -> None:
    assert student(freedom) == pytest.approx(stats.t.ppf(0.975, freedom) / stats.norm.ppf(0.975), rel=0.01)


def test_a_mean_needs_three() -> None:
    with pytest.raises(ValueError, match="no statistics"):
        mean_of([1.0, 2.0], 0.0)
    assert mean_of([1.0, 1.0, 1.0], 0.5) == Found(1.0, 0.5, 3)


@pytest.mark.parametrize("late", [-0.49, 0.0, 0.3])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_flat_top_is_found_below_full_scale(late: float, sign: float, rng: np.random.Generator) -> None:
    wave = ideal_waveform("chirp", RATE_HZ, 0.8).astype(np.float64)
    moved = np.fft.irfft(np.fft.rfft(wave) * np.exp(-2j * np.pi * np.fft.rfftfreq(len(wave)) * late), len(wave))
    noise = 1e-3 * rng.standard_normal(len(wave))
    clipped = np.clip(sign * 1.2 * moved, -0.71, 0.71) + noise
    assert flat_top(clipped, wave, late) == pytest.approx(0.71, abs=5e-4)
    assert flat_top(sign * 1.2 * moved + noise, wave, late) is None, "it follows the shape"


def test_the_level_of_clipping_needs_three_tops() -> None:
    def at(top: float | None) -> Channel:
        return Channel((Heard(0.0, 0.0, 1.0, 1.0, 1.0, top, 1e4, 0),), 1e-4)

    assert clip_dbfs([at(None), at(0.5), at(0.5)]) is None
    soft = clip_dbfs([at(0.50), at(0.52), at(0.54)])
    hard = clip_dbfs([at(0.52), at(0.52), at(0.52)])
    assert soft is not None
    assert hard is not None
    assert soft.value == pytest.approx(20 * math.log10(0.52))
    assert soft.u > 100 * hard.u, "an input that gives way softly is known less well"


def test_a_microphone_that_moves_or_jumps_is_seen(rng: np.random.Generator) -> None:
    still = Channel(tuple(heard(100.0) for _ in range(10)), 1e-4)

    def at(lags: np.ndarray) -> Channel:
        return Channel(tuple(heard(float(lag)) for lag in lags), 1e-4)

    for _ in range(200):
        assert moved_frames(still, at(150.0 + 0.02 * rng.standard_normal(10))) is None
    slid = moved_frames(still, at(150.0 + 0.05 * np.arange(10) + 0.01 * rng.standard_normal(10)))
    assert slid == pytest.approx(0.45, abs=0.05)
    jumped = moved_frames(still, at(150.0 + 2.0 * (np.arange(10) == 7) + 0.01 * rng.standard_normal(10)))
    assert jumped == pytest.approx(2.0, abs=0.1)


def test_noise_that_comes_and_goes_is_known_less_well(rng: np.random.Generator) -> None:
    even = rng.standard_normal(60 * RATE_HZ // 4) * 1e-3
    slow = 1.0 + 0.5 * np.sin(2 * np.pi * np.arange(len(even)) / (5.0 * RATE_HZ))
    steady, unsteady = noise_dbfs(even, RATE_HZ), noise_dbfs(even * slow, RATE_HZ)
    assert steady is not None
    assert unsteady is not None
    assert steady.value == pytest.approx(-60.0, abs=0.05)
    assert unsteady.u > 20 * steady.u
    assert noise_dbfs(np.full(RATE_HZ, 0.25), RATE_HZ) is None, "digital silence has no level"


def arrivals(rng: np.random.Generator, ppm: float, length_s: float = 62.0) -> list[BlockArrival]:
    """Blocks of 10 ms, one in 25 written down: late by some 40 us, one in 50 by milliseconds."""
    frames = np.arange(0, round(length_s * 100), 25) * 480
    late_s = 40e-6 * np.exp(0.5 * rng.standard_normal(len(frames)))
    late_s += np.where(rng.uniform(size=len(frames)) < 0.02, rng.uniform(1e-3, 5e-3, len(frames)), 0.0)
    at_s = 7.0 + (frames + 480) / RATE_HZ / (1.0 + ppm * 1e-6) + late_s
    return [BlockArrival(float(s), int(f), 480, None, None) for s, f in zip(at_s, frames, strict=True)]


def test_stragglers_do_not_turn_the_clock(rng: np.random.Generator) -> None:
    ratios = []
    for _ in range(200):
        rate = host_rate(arrivals(rng, 17.0), RATE_HZ)
        assert rate is not None
        ratios.append((rate.found.value - 17.0) / rate.found.u)
    assert 0.9 < np.std(ratios) < 1.15
    assert np.max(np.abs(ratios)) < 4.5


def test_a_loss_parts_the_minute(rng: np.random.Generator) -> None:
    blocks = arrivals(rng, -20.0, 100.0)
    lost = [BlockArrival(b.arrived_s, b.frame - 960 * (b.frame > 30 * RATE_HZ), 480, None, None) for b in blocks]
    wrong, right = host_rate(lost, RATE_HZ), host_rate(lost, RATE_HZ, (Gap(30 * RATE_HZ, 960, "backend"),))
    assert wrong is not None
    assert right is not None
    assert abs(wrong.found.value + 20.0) > 50.0
    assert abs(right.found.value + 20.0) < 1.0
    assert host_rate(lost, RATE_HZ, (Gap(50 * RATE_HZ, None, "clock"),)) is None, "neither part is a minute long"
    assert host_rate([], RATE_HZ) is None


def test_arrivals_that_are_alike_count_for_fewer(rng: np.random.Generator) -> None:
    x = rng.standard_normal(5000)
    walk = np.convolve(x, 0.8 ** np.arange(60), mode="valid")
    assert alike(x) < 0.05
    assert alike(walk) == pytest.approx(0.8, abs=0.05)


def test_a_rate_between_the_ends_is_not_blurred_by_wander(rng: np.random.Generator) -> None:
    """Against a clock that swings by 20 ppm: the rate from the first event to the last, as it was."""
    board_s = np.arange(63.0)
    ratios = []
    for _ in range(300):
        phase = rng.uniform(0.0, 2.0 * np.pi)
        swing_s = 20e-6 / (2 * np.pi / 90.0) * (np.cos(phase) - np.cos(2 * np.pi / 90.0 * board_s + phase))
        true_audio_s = board_s * (1.0 - 3000e-6) + swing_s
        rate = rate_between(board_s, true_audio_s + 2e-8 * rng.standard_normal(63))
        assert rate is not None
        true = 1e6 * ((true_audio_s[-1] - true_audio_s[0]) / 62.0 - 1.0)
        ratios.append((rate.found.value - true) / rate.found.u)
    assert 0.85 < np.std(ratios) < 1.15
    assert rate_between(board_s[:50], board_s[:50]) is None, "less than a minute"


def test_the_wander_is_the_overlapping_allan_deviation(rng: np.random.Generator) -> None:
    """The library's figures against the definition, written out: second differences of the phase."""
    phase_s = 1e-6 * np.cumsum(np.cumsum(rng.standard_normal(64)))
    found = allan_deviation(ClockRate(Found(0.0, 1.0, 64), np.arange(64.0), phase_s))
    assert [span for span, _ in found] == [1.0, 2.0, 4.0, 8.0, 16.0]
    for span, deviation in found:
        k = round(span)
        second = phase_s[2 * k :] - 2.0 * phase_s[k:-k] + phase_s[: -2 * k]
        assert deviation == pytest.approx(math.sqrt(np.mean(second**2) / 2.0) / span, rel=1e-9)


def test_blocks_are_averaged_over_seconds_and_holes_bridged() -> None:
    at_s = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 3.0, 3.25])
    step_s, phase_s = even_phase(ClockRate(Found(0.0, 1.0, 8), at_s, 3e-6 * at_s))
    assert step_s == 1.0
    assert phase_s == pytest.approx(3e-6 * np.arange(4.0), abs=1e-12)


def test_only_pulses_are_pulses(rng: np.random.Generator) -> None:
    """Rectangles of 1 ms are found to a part of a frame, either way up and without DC; chirps are strangers."""
    n = 3 * RATE_HZ
    x = 1e-4 * rng.standard_normal((n, 4))
    t = np.arange(n, dtype=np.float64)
    edges = [20_000.25, 70_000.5, 110_000.0]
    for edge in edges:
        # A rectangle through a filter that ends at half the rate: its samples are integrals of a sinc.
        near = (t > edge - 400) & (t < edge + 500)
        grid = t[near][:, None] - (edge + np.arange(0.0, 49.0, 0.05) + 0.025)[None, :]
        pulse = 0.05 * np.sinc(grid).sum(axis=1)
        x[near, 0] += 0.5 * pulse
        x[near, 1] -= 0.3 * pulse
        x[near, 2] += 0.5 * pulse * np.exp(-np.clip(t[near] - edge, 0, None) / 2400.0)
        start = round(edge)
        x[start : start + 4800, 3] += 0.5 * ideal_waveform("chirp", RATE_HZ, 0.5)
    source = Samples(x)
    for channel, within in ((0, 5e-3), (1, 5e-3), (2, 0.02)):
        found = find_pulses(source, channel)
        assert found.strangers == 0
        assert found.frames == pytest.approx(edges, abs=within)
    chirps = find_pulses(source, 3)
    assert chirps.frames == ()
    assert chirps.strangers > 0
    assert find_pulses(Samples(1e-4 * rng.standard_normal((n, 1))), 0).frames == ()
