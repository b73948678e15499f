"""The player's queue: what goes in comes out once and in order, and when it waits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.errors import UsageError
from rig.sut.voice.player import CALM_S, Player

RATE_HZ = 1000  # small numbers: a sample is a millisecond
FRAME = 20


def frame(seq: int) -> np.ndarray:
    """Samples that say where they come from; none of them is 0."""
    return (1.0 + seq * FRAME + np.arange(FRAME)).astype(np.float32)


STRATEGIES = st.sampled_from([("none", None), ("fixed", 0.05), ("adaptive", None)])


@given(STRATEGIES, st.lists(st.one_of(st.just(0), st.integers(1, 70)), max_size=80))
def test_every_sample_comes_out_at_most_once_and_in_order(strategy: tuple[str, float | None], steps: list[int]) -> None:
    """A step of 0 queues a frame, another takes so many samples."""
    player = Player(*strategy, FRAME, RATE_HZ)
    seq, heard, begun = 0, [], []
    for n in steps:
        if n == 0:
            player.add(seq, frame(seq))
            seq += 1
            continue
        taken = player.take(n)
        assert len(taken.samples) == n
        for number, at in taken.begun:
            assert taken.samples[at] == frame(number)[0]
        begun += [number for number, _ in taken.begun]
        heard += taken.samples[taken.samples > 0.0].tolist()
    assert heard == sorted(set(heard))
    assert begun == sorted(set(begun))
    counts = player.counts
    assert counts.played_samples == len(heard)
    put = seq * FRAME
    assert put == counts.played_samples + counts.trimmed_samples + counts.dropped_samples + player.queued_samples
    if not counts.trimmed_samples:
        assert heard == [float(1 + k) for k in range(len(heard))]


def test_none_plays_what_there_is_at_once() -> None:
    player = Player("none", None, FRAME, RATE_HZ)
    assert not player.take(10).samples.any()
    player.add(0, frame(0))
    assert player.take(10).begun == [(0, 0)]
    assert player.take(30).samples.tolist() == [*frame(0)[10:].tolist(), *[0.0] * 20]
    assert (player.counts.underruns, player.counts.silent_samples) == (1, 20)
    player.add(1, frame(1))
    assert player.take(10).begun == [(1, 0)]


def test_fixed_waits_for_its_target_at_the_start_and_after_each_gap() -> None:
    player = Player("fixed", 0.05, FRAME, RATE_HZ)
    for start in (0, 3):
        for seq in (start, start + 1):
            player.add(seq, frame(seq))
            assert not player.take(5).samples.any()
        player.add(start + 2, frame(start + 2))
        assert player.take(60).begun == [(start, 0), (start + 1, 20), (start + 2, 40)]
        assert not player.take(5).samples.any()
    assert player.counts.underruns == 2


def test_what_was_made_up_has_no_number() -> None:
    player = Player("none", None, FRAME, RATE_HZ)
    player.add(None, frame(0))
    player.add(1, frame(1))
    assert player.take(40).begun == [(1, 20)]


def test_adaptive_grows_with_each_gap_and_shrinks_when_it_was_not_needed() -> None:
    player = Player("adaptive", None, FRAME, RATE_HZ)
    assert player.target_samples == FRAME
    seq = 0
    for _ in range(3):
        while player.queued_samples < player.target_samples:
            player.add(seq, frame(seq))
            seq += 1
        while player.counts.underruns < 1 or player.queued_samples:
            player.take(FRAME)
        player.take(FRAME)
    assert player.counts.underruns == 3
    assert player.target_samples == 4 * FRAME
    while player.queued_samples < player.target_samples:
        player.add(seq, frame(seq))
        seq += 1
    levels = []
    for _ in range(round(5 * CALM_S * RATE_HZ / FRAME)):  # a steady sender
        player.take(FRAME)
        player.add(seq, frame(seq))
        seq += 1
        levels.append(player.queued_samples)
    assert player.counts.underruns == 3
    assert levels[-1] < levels[0]
    assert player.target_samples < 4 * FRAME
    assert min(levels) >= FRAME
    assert player.counts.trimmed_samples == levels[0] - levels[-1]


def test_a_device_that_takes_nothing_does_not_fill_the_memory() -> None:
    player = Player("fixed", 0.05, FRAME, RATE_HZ)
    for seq in range(1000):
        player.add(seq, frame(seq))
    assert player.queued_samples <= 4 * RATE_HZ
    assert player.counts.dropped_samples + player.queued_samples == 1000 * FRAME


@pytest.mark.parametrize(("kind", "target_s"), [("fixed", None), ("none", 0.1), ("fixed", 3.0), ("neteq", None)])
def test_a_strategy_that_there_is_not_is_refused(kind: str, target_s: float | None) -> None:
    with pytest.raises(UsageError, match="--buffering"):
        Player(kind, target_s, FRAME, RATE_HZ)
