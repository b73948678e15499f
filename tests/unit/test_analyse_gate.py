"""The gate on the reference: events in any block size, a floor that silence and speech do not fool, trimming."""

from __future__ import annotations

import numpy as np
import pytest

from rig.analyse.gate import Event, Gate, is_silent_between, natural_hold_s, trim
from rig.domain.waveforms import ideal_waveform

RATE = 48_000


def channel(rng: np.random.Generator, starts: list[int], n: int, noise: float = 1e-4) -> np.ndarray:
    samples = rng.normal(0.0, noise, n).astype(np.float32)
    wave = ideal_waveform("chirp", RATE, 0.5)
    for start in starts:
        samples[start : start + len(wave)] += wave
    return samples


def gated(samples: np.ndarray, block: int, hold_s: float = 0.05, silent: bool = False) -> list[Event]:
    gate = Gate(RATE, hold_s, silent)
    for start in range(0, len(samples), block):
        gate.feed(samples[start : start + block])
    gate.finish()
    return gate.finished


@pytest.mark.parametrize("block", [4096, 10_000, 131_072])
def test_events_are_found_where_they_are(block: int, rng: np.random.Generator) -> None:
    starts = [30_000, 100_000, 171_234]
    events = gated(channel(rng, starts, 250_000), block)
    assert len(events) == 3
    for event, start in zip(events, starts, strict=True):
        assert start - 100 <= event.start <= start + 800
        assert start + 4_500 <= event.stop <= start + 5_000


def test_leading_zeros_do_not_make_noise_an_event(rng: np.random.Generator) -> None:
    samples = np.concatenate([np.zeros(60_000, dtype=np.float32), channel(rng, [40_000, 120_000], 200_000)])
    assert [round(e.start / 1000) for e in gated(samples, 131_072)] == [100, 180]


def test_hum_and_offset_are_no_events(rng: np.random.Generator) -> None:
    t = np.arange(200_000) / RATE
    samples = channel(rng, [90_000], 200_000) + (0.05 * np.sin(2 * np.pi * 50 * t) + 0.2).astype(np.float32)
    assert len(gated(samples, 131_072)) == 1


def test_an_event_still_open_at_the_end_is_ended(rng: np.random.Generator) -> None:
    samples = channel(rng, [60_000], 100_000)[:63_000]
    events = gated(samples, 8192)
    assert len(events) == 1
    assert events[0].stop <= 63_000


def test_a_hold_joins_what_a_short_pause_parts(rng: np.random.Generator) -> None:
    samples = channel(rng, [50_000, 57_000], 120_000)  # 46 ms between the two
    assert len(gated(samples, 131_072, hold_s=0.02)) == 2
    assert len(gated(samples, 131_072, hold_s=0.1)) == 1


def test_trim_takes_the_stimulus_and_little_else(rng: np.random.Generator) -> None:
    wave = ideal_waveform("chirp", RATE, 0.5)
    clip = np.concatenate([np.zeros(2000), wave, np.zeros(3000)]) + rng.normal(0, 1e-4, 5000 + len(wave))
    start, stop = trim(clip, RATE)
    assert 1800 <= start <= 2200
    assert 2000 + len(wave) - 300 <= stop <= 2000 + len(wave) + 200


def test_the_pause_between_stimuli_is_told_from_the_pause_inside_one() -> None:
    words = [Event(s, s + 10_000, 0.1, 1e-4) for base in (0, 200_000, 380_000, 590_000) for s in (base, base + 15_000)]
    hold_s = natural_hold_s(words, RATE)
    assert 5_000 / RATE < hold_s < 100_000 / RATE
    alone = [Event(s, s + 5_000, 0.1, 1e-4) for s in (0, 60_000, 130_000, 210_000)]
    assert natural_hold_s(alone, RATE) == 0.02
    assert natural_hold_s(alone[:1], RATE) == 0.02


@pytest.mark.parametrize("first", [0, 30_000, 126_000])
@pytest.mark.parametrize("spacing", [9_000, 40_000])
def test_digital_silence_between_the_sounds_hides_none(first: int, spacing: int, rng: np.random.Generator) -> None:
    starts = [first + k * spacing for k in range(12)]
    samples = channel(rng, starts, starts[-1] + 60_000, noise=0.0)
    assert is_silent_between(samples, RATE)
    events = gated(samples, 131_072, silent=True)
    assert [round((event.start - first) / spacing) for event in events] == list(range(12))


@pytest.mark.parametrize("lost", [0.0, 0.45])
def test_noise_with_zeros_before_it_and_losses_in_it_is_not_digital_silence(
    lost: float, rng: np.random.Generator
) -> None:
    samples = channel(rng, [40_000, 120_000], 200_000)
    samples[100_000 : 100_000 + round(lost * len(samples))] = 0.0
    assert not is_silent_between(np.concatenate([np.zeros(300_000, dtype=np.float32), samples]), RATE)
    assert not is_silent_between(np.zeros(100_000, dtype=np.float32), RATE)
    assert not is_silent_between(np.zeros(0, dtype=np.float32), RATE)
