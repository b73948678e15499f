"""Clocks as types at run time: what may be subtracted, and what a map between two clocks does."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rig.domain.timebase import AudioClock, ClockMap, Duration, HostClock, Instant, McuClock, Timebase, is_finite

HOST: Timebase[HostClock] = Timebase("host", "boot-1")
MCU: Timebase[McuClock] = Timebase("mcu", "board-7")
AUDIO: Timebase[AudioClock] = Timebase("audio", "stream-1")
OTHER_STREAM: Timebase[AudioClock] = Timebase("audio", "stream-2")

SECONDS = st.floats(-1e6, 1e6)
RATES = st.floats(0.99, 1.01)


def a_map(offset_s: float, rate: float, first_s: float = 0.0, last_s: float = 100.0) -> ClockMap[McuClock, HostClock]:
    return ClockMap(MCU, HOST, offset_s, rate, 1e-6, 2e-6, first_s, last_s)


@given(a=SECONDS, b=SECONDS)
def test_the_difference_of_two_instants_is_signed_and_antisymmetric(a: float, b: float) -> None:
    early, late = Instant(HOST, a), Instant(HOST, b)
    assert (late - early).seconds == b - a
    assert late - early == -(early - late)
    assert early.since(early) == Duration(0.0)


@given(a=SECONDS, length=st.floats(-1e4, 1e4))
def test_an_instant_moved_by_a_length_is_that_far_away(a: float, length: float) -> None:
    moved = Instant(AUDIO, a).plus(Duration(length))
    assert moved.timebase == AUDIO
    assert (moved - Instant(AUDIO, a)).seconds == pytest.approx(length, abs=2e-10)


@given(a=SECONDS, b=SECONDS, c=SECONDS)
def test_lengths_add_and_subtract(a: float, b: float, c: float) -> None:
    assert Duration(a) + Duration(b) == Duration(a + b)
    assert Duration(a) - Duration(b) == Duration(a) + -Duration(b)
    assert (Duration(a) < Duration(c)) == (a < c)


@pytest.mark.parametrize(
    ("later", "earlier", "named"),
    [
        (Instant(HOST, 2.0), Instant(MCU, 1.0), ("host:boot-1", "mcu:board-7")),
        (Instant(AUDIO, 2.0), Instant(OTHER_STREAM, 1.0), ("audio:stream-1", "audio:stream-2")),
    ],
)
def test_two_clocks_cannot_be_subtracted_and_both_are_named(
    later: Instant[Any], earlier: Instant[Any], named: tuple[str, str]
) -> None:
    for subtract in (later.since, later.__sub__):
        with pytest.raises(TypeError, match="two clocks") as raised:
            subtract(earlier)
        assert all(name in str(raised.value) for name in named)


@pytest.mark.parametrize("other", [1.0, 1, np.float64(1.0), np.zeros(3), None, Duration(1.0)])
def test_an_instant_minus_anything_else_is_refused(other: Any) -> None:
    with pytest.raises(TypeError, match=f"not with {type(other).__name__}"):
        Instant(HOST, 2.0) - other


@pytest.mark.parametrize("other", [1.0, np.float64(1.0), np.zeros(3)])
def test_anything_else_minus_an_instant_is_refused(other: Any) -> None:
    with pytest.raises(TypeError):
        other - Instant(HOST, 2.0)


def test_instants_have_no_sum_and_no_order() -> None:
    a: Any = Instant(HOST, 1.0)
    b: Any = Instant(HOST, 2.0)
    with pytest.raises(TypeError):
        a + b
    with pytest.raises(TypeError):
        _ = a < b


@given(offset_s=SECONDS, rate=RATES, a=st.floats(0.0, 100.0), b=st.floats(0.0, 100.0))
def test_a_map_is_a_line_of_its_rate(offset_s: float, rate: float, a: float, b: float) -> None:
    line = a_map(offset_s, rate)
    mapped_a, mapped_b = line.apply(Instant(MCU, a)), line.apply(Instant(MCU, b))
    assert mapped_a.timebase == HOST
    assert (mapped_b - mapped_a).seconds == pytest.approx(rate * (b - a), abs=1e-8)


@given(offset_s=st.floats(-1e3, 1e3), rate=RATES, at=st.floats(0.0, 100.0))
def test_a_map_and_its_inverse_lead_back(offset_s: float, rate: float, at: float) -> None:
    there = a_map(offset_s, rate)
    ends = sorted(there.apply(Instant(MCU, s)).seconds for s in (0.0, 100.0))
    back = ClockMap(HOST, MCU, -offset_s / rate, 1.0 / rate, 1e-6, 2e-6, *ends)
    assert back.apply(there.apply(Instant(MCU, at))).seconds == pytest.approx(at, abs=1e-9)


@given(ppm=st.floats(-9000.0, 9000.0))
def test_drift_is_positive_when_the_target_is_fast(ppm: float) -> None:
    line = a_map(0.0, 1.0 + ppm * 1e-6)
    assert line.drift_ppm == pytest.approx(ppm, abs=1e-6)
    gained = (line.apply(Instant(MCU, 100.0)) - line.apply(Instant(MCU, 0.0))).seconds - 100.0
    assert gained == pytest.approx(100.0 * ppm * 1e-6, abs=1e-9)


@given(first=st.floats(-1e3, 1e3), width=st.floats(1e-3, 1e3), beyond=st.floats(0.051, 10.0))
def test_a_map_refuses_outside_its_window(first: float, width: float, beyond: float) -> None:
    line = a_map(3.0, 1.0, first, first + width)
    for inside in (first, first + width / 2, first + width):
        line.apply(Instant(MCU, inside))
    for outside in (first - beyond * width, first + width + beyond * width):
        assume(outside != first)
        with pytest.raises(ValueError, match="outside the fitted window"):
            line.apply(Instant(MCU, outside))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_map_refuses_what_is_no_time(value: float) -> None:
    with pytest.raises(ValueError, match="outside the fitted window"):
        a_map(0.0, 1.0).apply(Instant(MCU, value))


def test_a_map_starts_at_its_own_clock_only() -> None:
    line: Any = a_map(0.0, 1.0)
    with pytest.raises(TypeError, match="starts at mcu:board-7"):
        line.apply(Instant(HOST, 1.0))
    with pytest.raises(TypeError, match="starts at mcu:board-7"):
        line.apply(Instant(Timebase("mcu", "board-8"), 1.0))


def test_absent_values_are_allowed_and_infinite_ones_are_not() -> None:
    assert is_finite(1.0, None, 0.0)
    assert not is_finite(1.0, math.nan)
    assert not is_finite(math.inf)
