"""What must not matter: the same recording turned over, offset, humming, quieter, coarser, later, with crosstalk."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from figures import Figures, table
from harness import ROLES, planned
from worlds import RATE_HZ, faults
from worlds.recording import Recording, Scene, build
from worlds.source import ArraySource

from rig.domain.records import AnalysisHints, RunAnalysis

LIMIT = 0.05
"""Samples at 48 kHz."""

Frames = np.ndarray


def inverted(frames: Frames, _: Recording) -> Frames:
    """Ear channel upside down."""
    return frames * np.array([1.0, -1.0])


def offset(frames: Frames, _: Recording) -> Frames:
    """A tenth of full scale of DC on both channels."""
    return frames + np.array([0.1, -0.1])


def humming(frames: Frames, recording: Recording) -> Frames:
    """50 Hz and two harmonics on the ear, 20 dB above the stimulus."""
    power = recording.ear_scale**2 * recording.stimulus.power
    t = np.arange(frames.shape[0]) / RATE_HZ
    hum = np.sin(2 * np.pi * 50 * t) + 0.3 * np.sin(2 * np.pi * 100 * t + 1) + 0.2 * np.sin(2 * np.pi * 150 * t + 2)
    hum *= np.sqrt(100.0 * power / np.mean(hum**2))
    out = frames.copy()
    out[:, 1] += hum
    return out


def quieter(frames: Frames, _: Recording) -> Frames:
    """Both channels at a tenth."""
    return frames * 0.1


def ear_quieter(frames: Frames, _: Recording) -> Frames:
    """Ear channel at a tenth."""
    return frames * np.array([1.0, 0.1])


def later(frames: Frames, _: Recording) -> Frames:
    """Exactly silent for 0.7 s and 511 frames first."""
    return np.concatenate([np.zeros((33_600 + 511, 2)), frames])


def sixteen_bits(frames: Frames, _: Recording) -> Frames:
    """Rounded to 16 bits with triangular dither of its own seed."""
    rng = np.random.default_rng(16)
    dither = rng.uniform(-0.5, 0.5, frames.shape) + rng.uniform(-0.5, 0.5, frames.shape)
    return np.round(frames * 2.0**15 + dither) / 2.0**15


def crosstalk(frames: Frames, recording: Recording) -> Frames:
    """The reference in the ear channel at once, 14 dB below the stimulus there."""
    gain = 10 ** (-14 / 20) * recording.ear_scale / recording.scene.reference_peak
    return faults.with_crosstalk(frames, gain)


CHANGES: dict[str, Callable[[Frames, Recording], Frames]] = {
    "polarity": inverted,
    "DC": offset,
    "hum +20 dB": humming,
    "gain x0.1": quieter,
    "ear x0.1": ear_quieter,
    "leading zeros": later,
    "16-bit copy": sixteen_bits,
    "crosstalk -14 dB": crosstalk,
}


def latencies(frames: Frames, kind: str, bits: int = 24) -> tuple[RunAnalysis, np.ndarray]:
    """The run, and its latencies in samples with NaN for refused trials."""
    from rig.analyse.run import analyse_run

    step = 2.0 ** (bits - 1)
    source = ArraySource(np.round(frames * step) / step, RATE_HZ, 1.0 - 1.0 / step)
    run = analyse_run(source, ROLES, AnalysisHints(stimulus=planned(kind)))
    return run, np.array([np.nan if t.latency_s is None else t.latency_s * RATE_HZ for t in run.trials])


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "mls", "speech"])
def test_what_must_not_matter(kind: str, count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """Invariance: the same latency within 0.05 sample, trial by trial, at 30 dB SNR."""
    rows, wrong = [], []
    worst = dict.fromkeys([*CHANGES, "24-bit copy of floats"], 0.0)
    for k in range(count(10)):
        rng = np.random.default_rng([seed, k])
        scene = Scene(kind=kind, n=8, snr_db=30.0, reference_snr_db=60.0, reference_peak=0.4, ear_gain=0.1, clip_s=0.8)
        recording = build(scene, rng)
        _, base = latencies(recording.frames, kind)
        assert np.isfinite(base).sum() >= 6, f"the unchanged recording is refused: {base}"
        for name, change in CHANGES.items():
            changed_run, changed = latencies(change(recording.frames, recording), kind, 16 if "16" in name else 24)
            assert changed.size == base.size, f"{name}: {changed.size} trials instead of {base.size}"
            if np.isfinite(changed).sum() < np.isfinite(base).sum():
                wrong.append(f"{name}: refused {[t.reason for t in changed_run.trials if not t.valid]}")
            both = np.isfinite(base) & np.isfinite(changed)
            moved = np.abs(changed - base)[both]
            worst[name] = max(worst[name], float(moved.max()) if moved.size else np.inf)
        worst["24-bit copy of floats"] = max(worst["24-bit copy of floats"], moved_by_rounding(recording, kind, base))
    rows = [[name, f"{value:.5f}"] for name, value in worst.items()]
    figures.say(f"{kind}, seed {seed}: largest move of a trial in samples (limit {LIMIT})")
    for line in table(["change", "moved"], rows):
        figures.say(line)
    wrong += [f"{name} moves a trial by {value:.4f} sample" for name, value in worst.items() if not value < LIMIT]
    assert not wrong, f"seed {seed}: {wrong}"


def moved_by_rounding(recording: Recording, kind: str, base: np.ndarray) -> float:
    """How far a float copy of the recording lies from its 24-bit one."""
    from rig.analyse.run import analyse_run

    source = ArraySource(recording.frames, RATE_HZ, None)
    run = analyse_run(source, ROLES, AnalysisHints(stimulus=planned(kind)))
    floats = np.array([np.nan if t.latency_s is None else t.latency_s * RATE_HZ for t in run.trials])
    return float(np.nanmax(np.abs(floats - base)))


def test_polarity_is_told(seed: int) -> None:
    """An inverted loop is upright by 0 samples and says -1."""
    recording = build(Scene(kind="chirp", n=5), np.random.default_rng(seed))
    upright, _ = latencies(recording.frames, "chirp")
    upside_down, _ = latencies(inverted(recording.frames, recording), "chirp")
    assert [t.polarity for t in upright.trials] == [1] * 5
    assert [t.polarity for t in upside_down.trials] == [-1] * 5
