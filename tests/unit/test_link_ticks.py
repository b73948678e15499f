"""32-bit ticks made whole: across wraps, out of order, and where it cannot be known."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.acquire.ticks import WRAP, TickWidener, widen
from rig.errors import AcquisitionLost, LinkLost


def test_a_microsecond_counter_across_its_wrap() -> None:
    # A stamp at 4294.90 s of the counter and one at 0.05 s are 0.117296 s apart.
    ticks = TickWidener(1e6)
    before = ticks.fresh(4_294_900_000, 100.0)
    assert (ticks.fresh(50_000, 100.118) - before) / 1e6 == 0.117296


def test_a_counter_that_wraps_never_gives_a_negative_interval() -> None:
    ticks = TickWidener(2e6)
    stamps = [ticks.fresh((WRAP - 1_000_000 + 200_000 * k) % WRAP, 0.1 * k) for k in range(12)]
    assert [b - a for a, b in itertools.pairwise(stamps)] == [200_000] * 11


@given(start=st.integers(0, WRAP - 1), elapsed_s=st.floats(0.0, 50_000.0), ppm=st.floats(-9000.0, 9000.0))
def test_any_number_of_wraps_is_counted_with_the_host_clock(start: int, elapsed_s: float, ppm: float) -> None:
    ticks = TickWidener(2e6)
    ticks.fresh(start, 10.0)
    true = start + int(elapsed_s * 2e6 * (1.0 + ppm * 1e-6))
    assert ticks.fresh(true % WRAP, 10.0 + elapsed_s) == true


@given(back_s=st.floats(0.0, 1000.0), start=st.integers(0, WRAP - 1))
def test_a_stamp_from_before_is_widened_backwards(back_s: float, start: int) -> None:
    ticks = TickWidener(2e6)
    now = ticks.fresh(start, 2000.0)
    earlier = now - int(back_s * 2e6)
    assert ticks.earlier(earlier % WRAP, 2000.0) == earlier


def test_after_a_silence_too_long_the_wraps_cannot_be_known_and_that_is_said() -> None:
    ticks = TickWidener(2e6)
    ticks.fresh(5, 0.0)
    with pytest.raises(AcquisitionLost, match="how often it wrapped cannot be known") as raised:
        ticks.fresh(6, 60_000.0)
    assert "2147 s" in raised.value.what
    assert "60000 s" in raised.value.what


def test_a_restart_is_told_from_a_wrap() -> None:
    ticks = TickWidener(2e6)
    ticks.fresh(WRAP - 2_000_000, 100.0)
    assert ticks.fresh(0, 101.0) == WRAP  # on time: a wrap
    with pytest.raises(LinkLost, match=r"jumped by -3\d\.\d s .*the board restarted"):
        ticks.fresh(20_000, 140.0)


@given(true=st.integers(0, 2**50), off=st.integers(-(WRAP // 2) + 1, WRAP // 2 - 1))
def test_widening_finds_the_count_from_anything_within_half_a_wrap(true: int, off: int) -> None:
    assert widen(true % WRAP, float(true + off)) == true


def test_the_host_time_of_a_tick_is_unknown_before_the_first_stamp() -> None:
    ticks = TickWidener(2e6)
    assert ticks.host_s(100) is None
    ticks.fresh(1000, 5.0)
    assert ticks.host_s(2_001_000) == 6.0
