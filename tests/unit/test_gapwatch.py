"""Losses found by counting frames against the clock, and what must not be taken for one."""

from __future__ import annotations

import numpy as np

from rig.bench.gapwatch import GapWatch
from rig.domain.records import Gap

RATE_HZ = 48_000
BLOCK = 480


def watch(late_s: np.ndarray, ppm: float = 0.0) -> list[Gap]:
    """Blocks of 10 ms, each `late_s` after it is complete, of a stream that is `ppm` fast; no earlier than the last.

    All gaps, those at the end of the stream too."""
    gaps: list[Gap] = []
    before_s, gapwatch = 0.0, GapWatch(RATE_HZ)
    for k, late in enumerate(late_s):
        before_s = max(before_s, (k + 1) * BLOCK / RATE_HZ / (1.0 + ppm * 1e-6) + late)
        gaps += gapwatch.hear(k * BLOCK, (k + 1) * BLOCK, before_s)
    return gaps + gapwatch.end()


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


def test_a_computer_that_is_too_busy_for_seconds_makes_none(rng: np.random.Generator) -> None:
    # Seen on a real sound server: for up to two seconds no block comes within 5 ms of the earliest.
    late = 0.02 + rng.exponential(0.003, 6000)
    for first in range(1000, 5000, 700):
        late[first : first + 200] += 0.006 + rng.uniform(0.0, 0.04, 200)
    assert watch(late) == []


def test_a_second_loss_before_the_first_is_certain_is_placed_where_it_is() -> None:
    late = np.full(2000, 0.02)
    late[400:] += 0.05
    late[500:] += 0.03
    late[550:] += 0.02
    assert [(gap.frame, gap.lost_frames) for gap in watch(late)] == [
        (400 * BLOCK, 2400),
        (500 * BLOCK, 1440),
        (550 * BLOCK, 960),
    ]


def test_a_loss_shortly_before_the_end_is_told_at_the_end() -> None:
    late = np.full(1000, 0.02)
    late[900:] += 0.05
    late[940:] += 0.03
    assert [(gap.frame, gap.lost_frames) for gap in watch(late)] == [(900 * BLOCK, 2400), (940 * BLOCK, 1440)]
    late = np.full(1000, 0.02)
    late[970:] += 0.05  # 0.3 s: may have been held up
    assert watch(late) == []


def test_nothing_is_told_twice() -> None:
    gapwatch = GapWatch(RATE_HZ)
    late = np.full(1000, 0.02)
    late[500:] += 0.05
    heard = [gap for k, each in enumerate(late) for gap in gapwatch.hear(k * BLOCK, (k + 1) * BLOCK, k * 0.01 + each)]
    assert [gap.frame for gap in heard] == [500 * BLOCK]
    assert gapwatch.end() == []


def test_a_stream_without_blocks_ends_without_gaps() -> None:
    assert GapWatch(RATE_HZ).end() == []


def test_a_loss_that_the_backend_flagged_is_not_new() -> None:
    gapwatch = GapWatch(RATE_HZ)
    here = [Gap(400 * BLOCK, 2400, "clock")]
    assert gapwatch.is_new(here)
    gapwatch.flagged(300 * BLOCK - 1)
    gapwatch.flagged(500 * BLOCK + 1)
    assert gapwatch.is_new(here), "losses more than a second away are others"
    gapwatch.flagged(480 * BLOCK)
    assert not gapwatch.is_new(here)
    assert not gapwatch.is_new([])
