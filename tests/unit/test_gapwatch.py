"""Losses found by counting frames against the clock, and what must not be taken for one."""

from __future__ import annotations

import numpy as np

from rig.bench.gapwatch import GapWatch
from rig.domain.records import Gap

RATE_HZ = 48_000
BLOCK = 480


def watch(late_s: np.ndarray, ppm: float = 0.0) -> list[Gap]:
    """Blocks of 10 ms, each `late_s` after it is complete, of a stream that is `ppm` fast; no earlier than the last."""
    gaps, before_s, gapwatch = [], 0.0, GapWatch(RATE_HZ)
    for k, late in enumerate(late_s):
        before_s = max(before_s, (k + 1) * BLOCK / RATE_HZ / (1.0 + ppm * 1e-6) + late)
        gaps += gapwatch.hear(k * BLOCK, (k + 1) * BLOCK, before_s)
    return gaps


def test_a_steady_stream_has_none(rng: np.random.Generator) -> None:
    for ppm in (-100.0, 0.0, 100.0):
        assert watch(0.02 + rng.exponential(0.003, 12_000), ppm) == []


def test_a_loss_is_counted_and_placed() -> None:
    late = np.full(1000, 0.02)
    late[400:] += 0.2
    assert watch(late) == [Gap(400 * BLOCK, round(0.2 * RATE_HZ), "clock")]


def test_what_was_buffered_before_the_loss_is_told_from_it() -> None:
    # The program stands still for 300 ms; the driver keeps 100 ms of it and loses 200 ms.
    late = np.full(1000, 0.02)
    late[400:410] += np.linspace(0.3, 0.21, 10)
    late[410:] += 0.2
    first, second = watch(late)
    assert first == Gap(400 * BLOCK, None, "clock")
    assert second.lost_frames == round(0.2 * RATE_HZ)
    assert 409 * BLOCK <= second.frame <= 410 * BLOCK


def test_a_hold_up_without_loss_is_none() -> None:
    late = np.full(1000, 0.02)
    late[400:440] += np.linspace(0.4, 0.0, 40)
    assert watch(late) == []


def test_losses_too_small_to_tell_from_jitter_are_left_to_others() -> None:
    late = np.full(1000, 0.02)
    late[400:] += 0.004
    assert watch(late) == []


def test_frames_put_in_are_a_gap_too() -> None:
    late = np.full(1000, 0.1)
    late[400:] -= 0.05
    (gap,) = watch(late)
    assert (gap.lost_frames, gap.flagged_by) == (None, "clock")
    assert 400 * BLOCK <= gap.frame <= 406 * BLOCK


def test_two_losses_are_two() -> None:
    late = np.full(2000, 0.02)
    late[400:] += 0.05
    late[1200:] += 0.03
    assert [(gap.frame, gap.lost_frames) for gap in watch(late)] == [(400 * BLOCK, 2400), (1200 * BLOCK, 1440)]


def test_a_stream_that_settles_late_has_none() -> None:
    late = np.concatenate([np.linspace(0.3, 0.02, 25), np.full(500, 0.02)])
    assert watch(late) == []
