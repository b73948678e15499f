"""Jitter buffers against any network: loss, other orders, duplicates, lateness."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.errors import UsageError
from rig.sut.voice.delays import LateTracker
from rig.sut.voice.jitter import (
    ADDED,
    FRAME,
    LATE_IN_A_ROW,
    LOST,
    JitterBuffer,
    NoBuffer,
    Slot,
    TimedBuffer,
    parse,
)

FRAME_S = 0.02


@dataclass(frozen=True)
class Played:
    at_s: float
    slot: Slot


def payload(seq: int) -> bytes:
    return b"%d" % seq


def run(buffer: JitterBuffer, arrivals: list[tuple[float, int]], until_s: float | None = None) -> list[Played]:
    """What is released, asked at every arrival and whenever the buffer says that something is due."""
    out: list[Played] = []

    def ask(now_s: float) -> None:
        out.extend(Played(now_s, slot) for slot in buffer.release(now_s))

    for at_s, seq in sorted(arrivals):
        while (due_s := buffer.next_due_s()) is not None and due_s <= at_s:
            ask(due_s)
        buffer.push(seq, payload(seq), at_s)
        ask(at_s)
    end_s = max((a for a, _ in arrivals), default=0.0) + 3.0 if until_s is None else until_s
    while (due_s := buffer.next_due_s()) is not None and due_s <= end_s:
        ask(due_s)
    return out


def frames(played: list[Played]) -> list[int]:
    return [p.slot.seq for p in played if p.slot.kind == FRAME and p.slot.seq is not None]


BUFFERS = st.sampled_from(["none", "fixed", "adaptive"])
# Any network: for each packet none, one or two arrivals, up to 0.4 s late.
NETWORKS = st.lists(st.lists(st.floats(0.0, 0.4), max_size=2), min_size=1, max_size=80)


def make(kind: str) -> JitterBuffer:
    return parse(kind, FRAME_S, 0.06 if kind == "fixed" else None)


@given(BUFFERS, NETWORKS)
def test_no_frame_is_played_twice_and_none_goes_back(kind: str, network: list[list[float]]) -> None:
    buffer = make(kind)
    arrivals = [(seq * FRAME_S + late, seq) for seq, lates in enumerate(network) for late in lates]
    played = run(buffer, arrivals)
    seqs = frames(played)
    assert seqs == sorted(set(seqs))
    assert all(p.slot.payload == payload(p.slot.seq) for p in played if p.slot.kind == FRAME and p.slot.seq is not None)
    assert set(seqs) <= {seq for _, seq in arrivals}
    counts = buffer.counts
    assert counts.received == len(arrivals)
    assert counts.played == len(seqs)
    assert counts.duplicates == len(arrivals) - len({seq for _, seq in arrivals})
    assert counts.received == counts.played + counts.duplicates + counts.late + counts.dropped
    assert [p.at_s for p in played] == sorted(p.at_s for p in played)
    kinds = [p.slot.kind for p in played]
    assert kinds.count(ADDED) == counts.added
    if kind == "fixed":
        assert kinds.count(LOST) == counts.lost
        assert counts.added == counts.dropped - counts.dropped == 0


@given(st.lists(st.floats(0.0, 0.059), min_size=1, max_size=60), st.integers(0, 3))
def test_what_comes_within_the_target_of_the_first_is_played_in_time(lates: list[float], lost_every: int) -> None:
    lates[0] = 0.0  # the first one sets the time
    buffer = make("fixed")
    network = [(k * FRAME_S + late, k) for k, late in enumerate(lates) if not lost_every or k % (lost_every + 1) == 0]
    played = run(buffer, network, until_s=(len(lates) - 1) * FRAME_S + 0.06 + 1e-6)
    for k, p in enumerate(played):
        assert p.at_s == pytest.approx(k * FRAME_S + 0.06, abs=1e-9)
        assert p.slot.seq == k
    assert frames(played) == [seq for _, seq in sorted(network, key=lambda a: a[1])]
    assert buffer.counts.late == 0


def test_without_a_buffer_each_packet_is_played_as_it_comes() -> None:
    played = run(NoBuffer(), [(0.0, 0), (0.02, 1), (0.05, 3), (0.055, 2), (0.06, 3), (0.08, 4)])
    assert [(p.at_s, p.slot.seq) for p in played] == [(0.0, 0), (0.02, 1), (0.05, 3), (0.08, 4)]


def test_without_a_buffer_losses_are_counted() -> None:
    buffer = NoBuffer()
    run(buffer, [(0.0, 0), (0.02, 1), (0.05, 3), (0.055, 2), (0.06, 3), (0.08, 4)])
    assert (buffer.counts.lost, buffer.counts.late, buffer.counts.duplicates) == (1, 1, 1)


def test_a_first_packet_that_was_overtaken_is_played_first() -> None:
    played = run(make("fixed"), [(0.021, 1), (0.03, 0), (0.05, 2)], until_s=0.12)
    assert frames(played) == [0, 1, 2]


def test_a_network_that_became_slower_begins_anew_and_loses_little() -> None:
    buffer = make("fixed")
    arrivals = [(k * FRAME_S + (0.0 if k < 20 else 0.3), k) for k in range(60)]
    seqs = frames(run(buffer, arrivals))
    assert buffer.counts.restarts == 1
    assert buffer.counts.late == LATE_IN_A_ROW - 1
    assert seqs == [k for k in range(60) if not 20 <= k < 20 + LATE_IN_A_ROW - 1]


def test_a_sender_that_stops_and_goes_on_is_held_for_the_target_again() -> None:
    buffer = make("fixed")
    played = run(buffer, [(0.0, 0), (0.02, 1), (5.0, 2), (5.02, 3)], until_s=5.1)
    assert frames(played) == [0, 1, 2, 3]
    assert next(p.at_s for p in played if p.slot.seq == 2 and p.slot.kind == FRAME) == pytest.approx(5.06)
    assert 0 < buffer.counts.lost <= 52  # it waits for a second, not for four


def test_a_number_from_elsewhere_does_not_end_the_call() -> None:
    buffer = make("fixed")
    arrivals = [(k * FRAME_S, k) for k in range(20)]
    played = run(buffer, [*arrivals, (0.1, 4_000_000_000)], until_s=1.0)
    assert frames(played) == list(range(20))
    assert buffer.counts.dropped == 1


def test_an_adaptive_target_follows_the_jitter_up_and_down(seed: int) -> None:
    import random

    draw = random.Random(seed)
    buffer = make("adaptive")
    out: list[float] = []
    calm, bad = 300, 600
    played = []
    arrivals = [(k * FRAME_S + (draw.uniform(0.0, 0.08) if calm <= k < bad else 0.0), k) for k in range(1600)]
    for at_s, seq in sorted(arrivals):
        while (due_s := buffer.next_due_s()) is not None and due_s <= at_s:
            played += buffer.release(due_s)
        buffer.push(seq, payload(seq), at_s)
        out.append(buffer.target_s)
    quiet, jittery, after = out[calm - 10], out[bad - 10], out[-1]
    print("targets, ms:", 1e3 * quiet, 1e3 * jittery, 1e3 * after, buffer.counts)
    assert quiet == pytest.approx(FRAME_S, abs=0.011)
    assert 0.07 < jittery < 0.11
    assert after < 0.045
    # Late only while it learns; what was added is left out again.
    assert buffer.counts.late < 25
    assert buffer.counts.added >= 2
    assert buffer.counts.dropped + buffer.counts.lost >= 2


@given(st.lists(st.floats(0.0, 1.0), min_size=1, max_size=300))
def test_the_spread_holds_most_of_the_last_packets(lates: list[float]) -> None:
    tracker = LateTracker(FRAME_S)
    for k, late in enumerate(lates):
        tracker.add(k, k * FRAME_S + late)
    recent = [k * FRAME_S + late - k * FRAME_S for k, late in enumerate(lates)][-200:]
    within = sum(late <= tracker.fastest_s + tracker.spread_s + 1e-12 for late in recent)
    assert within >= 0.95 * len(recent)
    assert tracker.spread_s >= 0.0
    assert tracker.n == len(recent)


@pytest.mark.parametrize(("kind", "target_s"), [("fixed", None), ("none", 0.1), ("fixed", 3.0), ("neteq", None)])
def test_a_buffer_that_there_is_not_is_refused(kind: str, target_s: float | None) -> None:
    with pytest.raises(UsageError, match="--jitter-buffer"):
        parse(kind, FRAME_S, target_s)


def test_the_target_of_a_fixed_buffer_is_told() -> None:
    buffer = TimedBuffer(FRAME_S, 0.06, adaptive=False)
    assert buffer.target_s == 0.06
    buffer.push(0, b"", 1.0)
    buffer.push(1, b"", 1.01)  # faster than the first by 10 ms
    assert buffer.target_s == pytest.approx(0.07)
