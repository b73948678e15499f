"""The clocks of one run brought together: host and board through pings, board and audio through pulses.

The interface's crystal is the flywheel. The board's stamps are carried to audio time first (`flywheel.py`), which takes
the resonator's wandering out of them; what is left between audio and host is a straight line for minutes, and that is
bounded from both sides by every ping (`clockbounds.py`). Without pulses the bounds are laid in the board's own time, in
windows so short that a resonator cannot wander far.

Two figures for every mapped instant: the estimate, and an interval that holds the truth whatever the delays were. What
the interval assumes is written beside the constants: the crystal's curvature, the resonator's where there are no
pulses, and pulses whose errors stay within `COVER` standard deviations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.analyse.clockbounds import Lines, lines_between
from rig.analyse.flywheel import Flywheel, fit_flywheel
from rig.domain.records import ClockDrift, ClockExchange

Floats = npt.NDArray[np.float64]

AUDIO_WINDOW_S, AUDIO_CURVE = 120.0, 4e-9
"""Longest window in audio time, and how fast a crystal's rate may change, per s (0.5 ppm in two minutes)."""

MCU_WINDOW_S, MCU_CURVE = 12.0, 1.5e-6
"""The same in a board's time: a ceramic resonator that warms up changes by about 1 ppm a second."""

COVER = 6.0
MIN_EXCHANGES = 5
MIN_WINDOW_S = 2.0
MIN_SPAN_S = 5.0  # a drift over less says nothing
_MOST_TICKS = 1 << 53  # further on, a float does not count single ticks
BEYOND_PULSES_S = 3.0  # pings this far outside the pulses are still carried to audio time


@dataclass(frozen=True, slots=True)
class Mapped:
    """Instants on another clock, in s, each of shape (n,): the best estimate, and the interval that holds the truth.
    NaN where the fit says nothing."""

    s: Floats
    low_s: Floats
    high_s: Floats


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the flywheel's time in which one line holds. `line`: largest margin between the bounds as they are;
    `lines`: every line that keeps the bounds relaxed by `slack_s` at most; `curve_s`: how far the truth may be from a
    line. `n` exchanges."""

    first_s: float
    last_s: float
    line: Lines
    lines: Lines
    curve_s: float
    n: int

    @property
    def margin_s(self) -> float:
        """The line's distance from the nearest bound."""
        return self.line.margin_s

    def interval(self, x_s: Floats) -> tuple[Floats, Floats]:
        """Where host time may be at `x_s` of the flywheel, shape (n,) each."""
        low, high = self.lines.interval(x_s)
        return low - self.curve_s, high + self.curve_s

    @property
    def half_width_s(self) -> float:
        """The largest distance of the truth from the line that the bounds allow, anywhere in the window."""
        ends = np.array([self.first_s, 0.5 * (self.first_s + self.last_s), self.last_s])
        low, high = self.interval(ends)
        return float(np.max(np.maximum(high - self.line.at(ends), self.line.at(ends) - low)))


@dataclass(frozen=True, slots=True)
class ClockFit:
    """The maps of one run. `windows` lie in audio time with a `flywheel`, else in board time; empty: see `refusal`.

    `tick_s` is the length of a board's tick. `span_mcu_s`: the board time that the drifts speak of, from the first to
    the last pulse as far as exchanges reach, or from the first to the last exchange where there are no pulses.
    """

    flywheel: Flywheel | None
    windows: tuple[Window, ...]
    tick_s: float
    span_mcu_s: tuple[float, float] | None
    refusal: str | None

    def mcu_audio(self, mcu_s: Floats) -> Mapped:
        """Audio time at board time `mcu_s`, shape (n,)."""
        if self.flywheel is None:
            return _nothing(mcu_s)
        audio_s = self.flywheel.audio(mcu_s)
        reach = COVER * self.flywheel.u_s(mcu_s) + self.tick_s
        return Mapped(audio_s, audio_s - reach, audio_s + reach)

    def audio_host(self, audio_s: Floats) -> Mapped:
        """Host time at audio time `audio_s`, shape (n,). All NaN without a flywheel."""
        if self.flywheel is None:
            return _nothing(audio_s)
        found = self._host(audio_s)
        # Pulses may all be stamped late by a part of a tick; pings would not show it.
        return Mapped(found.s, found.low_s - self.tick_s, found.high_s + self.tick_s)

    def mcu_host(self, mcu_s: Floats) -> Mapped:
        """Host time at board time `mcu_s`, shape (n,)."""
        if self.flywheel is None:
            return self._host(mcu_s)
        found = self._host(self.flywheel.audio(mcu_s))
        reach = COVER * self.flywheel.u_s(mcu_s)
        return Mapped(found.s, found.low_s - reach, found.high_s + reach)

    def _host(self, x_s: Floats) -> Mapped:
        return blended(self.windows, x_s)

    @property
    def audio_mcu_drift(self) -> ClockDrift | None:
        """How fast the audio clock ran against the board's over the span."""
        if self.flywheel is None or not self._is_long():
            return None
        return _drift(*self._stretch(self.flywheel, self.tick_s))

    @property
    def audio_host_drift(self) -> ClockDrift | None:
        """How fast the audio clock ran against the host's over the span."""
        if self.flywheel is None or not self.windows or not self._is_long():
            return None
        rate, low, high = self._host_rate(self.flywheel)
        return _inverse(rate, low, high)

    @property
    def mcu_host_drift(self) -> ClockDrift | None:
        """How fast the board's clock ran against the host's over the span."""
        if not self.windows or self.span_mcu_s is None or not self._is_long():
            return None
        if self.flywheel is None:
            ends, length_s = self._host(np.array(self.span_mcu_s)), self.span_mcu_s[1] - self.span_mcu_s[0]
            values = (np.diff(ends.s)[0], ends.low_s[1] - ends.high_s[0], ends.high_s[1] - ends.low_s[0])
            rate, low, high = (float(v) / length_s for v in values)
        else:
            along, across = self._host_rate(self.flywheel), self._stretch(self.flywheel, 0.0)
            if across[1] <= 0.0:
                return None
            rate, low, high = (a * b for a, b in zip(along, across, strict=True))
        return _inverse(rate, low, high)

    def _is_long(self) -> bool:
        return self.span_mcu_s is not None and self.span_mcu_s[1] - self.span_mcu_s[0] >= MIN_SPAN_S

    def _stretch(self, wheel: Flywheel, more_s: float) -> tuple[float, float, float]:
        """Audio seconds per board second over the span: estimate, least and largest."""
        assert self.span_mcu_s is not None
        ends = np.array(self.span_mcu_s)
        length_s = float(ends[1] - ends[0])
        rate = float(np.diff(wheel.audio(ends))[0]) / length_s
        reach = (COVER * float(np.hypot(*wheel.u_s(ends))) + more_s) / length_s
        return rate, rate - reach, rate + reach

    def _host_rate(self, wheel: Flywheel) -> tuple[float, float, float]:
        """Host seconds per audio second over the span: estimate, least and largest."""
        assert self.span_mcu_s is not None
        x = wheel.audio(np.array(self.span_mcu_s))
        ends, length_s = self._host(x), float(x[1] - x[0])
        rate = float(ends.s[1] - ends.s[0]) / length_s
        low = float(ends.low_s[1] - ends.high_s[0]) / length_s
        high = float(ends.high_s[1] - ends.low_s[0]) / length_s
        if len(self.windows) == 1:  # the steepest line is not at both extremes at once
            window = self.windows[0]
            bend = 2.0 * window.curve_s / length_s
            least, largest = window.lines.slope_range
            low, high = max(low, least - bend), min(high, largest + bend)
        return rate, low, high


def blended(windows: Sequence[Window], x_s: Floats) -> Mapped:
    """The middle of the interval is the estimate: it beats the line with the largest margin, by a sixth in error.
    Overlapping windows are blended, and their intervals intersected: the truth lies in all of them."""
    total, value = np.zeros_like(x_s), np.zeros_like(x_s)
    low, high = np.full_like(x_s, -np.inf), np.full_like(x_s, np.inf)
    for window in windows:
        inside = np.minimum(x_s - window.first_s, window.last_s - x_s)
        weight = np.where(inside >= 0.0, inside + 1e-9, 0.0)
        a, b = window.interval(x_s)
        total += weight
        value += weight * (0.5 * (a + b) - x_s)
        low = np.where(weight > 0.0, np.maximum(low, a), low)
        high = np.where(weight > 0.0, np.minimum(high, b), high)
    known = total > 0.0
    value = x_s + value / np.where(known, total, 1.0)
    return Mapped(*(np.where(known, v, np.nan) for v in (np.clip(value, low, high), low, high)))


def fit_clocks(
    exchanges: Sequence[ClockExchange],
    tick_rate_hz: float,
    pulse_ticks: Sequence[float] = (),
    heard_s: Sequence[float] = (),
) -> ClockFit:
    """Fits all maps that the facts allow.

    `exchanges` with the known time on the wire taken off already (`without_wire_time`), `tick_rate_hz` nominal, as is
    the rate behind `heard_s`: where on the recording each pulse of `pulse_ticks` starts, both growing. Lost samples
    must lie outside: a stretch between two losses is one fit. Raises ValueError where the two lengths differ.
    """
    if len(pulse_ticks) != len(heard_s):
        raise ValueError(f"{len(pulse_ticks)} stamps and {len(heard_s)} pulses are not pairs")
    tick_s = 1.0 / tick_rate_hz
    wheel = fit_flywheel(np.array(pulse_ticks, dtype=np.float64) * tick_s, np.array(heard_s, dtype=np.float64))
    exchanges = [e for e in exchanges if _is_possible(e)]
    # A count stands still between two ticks: received no later than the next, sent no earlier than this one.
    received = np.array([e.mcu_received_tick + 1 for e in exchanges], dtype=np.float64) * tick_s
    sent = np.array([e.mcu_sent_tick for e in exchanges], dtype=np.float64) * tick_s
    low = np.array([e.host_sent_s for e in exchanges], dtype=np.float64)
    high = np.array([e.host_received_s for e in exchanges], dtype=np.float64)
    span = None if wheel is None else (float(wheel.mcu_s[0]), float(wheel.mcu_s[-1]))
    window_s, curve = (MCU_WINDOW_S, MCU_CURVE) if wheel is None else (AUDIO_WINDOW_S, AUDIO_CURVE)
    if span is not None:
        near = (received >= span[0] - BEYOND_PULSES_S) & (sent <= span[1] + BEYOND_PULSES_S)
        received, sent, low, high = received[near], sent[near], low[near], high[near]
    if len(received) < MIN_EXCHANGES:
        return ClockFit(wheel, (), tick_s, span, f"{len(received)} clock exchanges are too few")
    slack = np.zeros((2, len(received)))
    x, x2 = received, sent
    if wheel is not None:
        x, x2 = wheel.audio(received), wheel.audio(sent)
        slack = COVER * np.stack([wheel.u_s(received), wheel.u_s(sent)])
    bounds = Bounds(x, low, x2, high, slack)
    windows: list[Window] = []
    for first_s, last_s in spans(x, float(x2.max()), window_s):
        windows += bounds.windows(first_s, last_s, curve)
    if not windows:
        return ClockFit(wheel, (), tick_s, span, "the clock exchanges contradict each other: no line keeps all bounds")
    inside = (x >= min(w.first_s for w in windows)) & (x2 <= max(w.last_s for w in windows))
    ends = float(received[inside].min()), float(sent[inside].max())
    span = ends if span is None else (max(ends[0], span[0]), min(ends[1], span[1]))
    return ClockFit(wheel, tuple(windows), tick_s, span, None)


def without_wire_time(
    exchanges: Sequence[ClockExchange], to_board_s: float, to_host_s: float
) -> tuple[ClockExchange, ...]:
    """The exchanges with the time that the frames are known to be on the wire taken off, each way its own.

    A tighter bound is no less true: no byte is faster than its bits. The link of the board does this itself.
    """
    return tuple(
        ClockExchange(e.host_sent_s + to_board_s, e.mcu_received_tick, e.mcu_sent_tick, e.host_received_s - to_host_s)
        for e in exchanges
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """Host time is at least `low` at `x` and at most `high` at `x2`; `slack` (2, n): how wrong `x` and `x2` may be."""

    x: Floats
    low: Floats
    x2: Floats
    high: Floats
    slack: Floats

    def windows(self, first_s: float, last_s: float, curve: float) -> list[Window]:
        """The window, or its halves where no line keeps its bounds, and so on down; what contradicts is left out."""
        own = (self.x >= first_s) & (self.x2 <= last_s)
        n = int(np.count_nonzero(own))
        if n < MIN_EXCHANGES or last_s - first_s < MIN_WINDOW_S:
            return []
        x, low, x2, high = self.x[own], self.low[own], self.x2[own], self.high[own]
        if not (x.max() > x2.min() and x2.max() > x.min()):
            return []
        # The least distance from the nearest line that such a curve can have.
        bend = curve * (last_s - first_s) ** 2 / 16.0
        before, after = self.slack[0, own] + bend, self.slack[1, own] + bend
        relaxed = lines_between(x, low - before, x2, high + after)
        if relaxed is not None:
            # With the bounds as they are there may be no line left: then the middle of the relaxed ones.
            line = lines_between(x, low, x2, high) or relaxed
            return [Window(first_s, last_s, line, relaxed, bend, n)]
        middle_s = 0.5 * (first_s + last_s)
        return self.windows(first_s, middle_s, curve) + self.windows(middle_s, last_s, curve)


def spans(x: Floats, last_s: float, longest_s: float) -> list[tuple[float, float]]:
    """Equal spans that overlap by half and cover all from the least of `x`, shape (n,), to `last_s`, each at most
    `longest_s` (a single one: a quarter more). Of many only those that hold one of `x`: stamps that lie may be years
    apart, and between them there is nothing to fit."""
    first_s = float(x.min())
    length_s = last_s - first_s
    if length_s <= 1.25 * longest_s:
        return [(first_s, last_s)]
    n = int(np.ceil(2.0 * length_s / longest_s)) - 1
    half = length_s / (n + 1)
    at = np.unique(np.floor((x - first_s) / half))
    held = np.unique(np.clip(np.concatenate([at - 1.0, at]), 0.0, n - 1.0))
    return [(first_s + k * half, first_s + (k + 2.0) * half) for k in held.tolist()]


def _is_possible(e: ClockExchange) -> bool:
    """Whether the four stamps are numbers in the order that time has."""
    ordered = e.host_sent_s < e.host_received_s and e.mcu_received_tick <= e.mcu_sent_tick
    return ordered and abs(e.mcu_sent_tick) < _MOST_TICKS and np.isfinite(e.host_received_s - e.host_sent_s)


def _inverse(rate: float, low: float, high: float) -> ClockDrift | None:
    """The drift the other way round; None where a clock may have stood still, which is no clock of ours."""
    return _drift(1.0 / rate, 1.0 / high, 1.0 / low) if low > 0.0 else None


def _drift(rate: float, low: float, high: float) -> ClockDrift:
    return ClockDrift((rate - 1.0) * 1e6, (low - 1.0) * 1e6, (high - 1.0) * 1e6)


def _nothing(x_s: Floats) -> Mapped:
    empty = np.full(np.shape(x_s), np.nan)
    return Mapped(empty, empty, empty)
