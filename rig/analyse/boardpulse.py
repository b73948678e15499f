"""The board's pulse and tone side by side on two inputs: how far the tone is behind its pulse, and how the clocks run.

Both inputs are converted by the same filter, so an edge's half height is where the edge is, whatever rings about it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rig.analyse.clockrate import ClockRate, rate_between
from rig.analyse.heard import hear
from rig.analyse.known import Found, mean_of
from rig.analyse.spectrum import Real
from rig.domain.seams import FrameSource
from rig.domain.waveforms import BOARD_TONE_RATE_HZ, ideal_waveform

STRETCH = 1 << 17
LEAST_HEIGHT = 10.0
"""A pulse stands this many times the noise high."""

LEAST_EDGE_S = 2e-9
"""No offset is stated more certain than this: how far the edge that is found is from the edge, without any noise."""

REST_S = 0.05  # from one pulse to the next at least
TOP_S = (0.2e-3, 0.8e-3)  # of a pulse of 1 ms: where its top is read, away from what rings about the edges
OVER_S = 1.6e-3  # by then it is over
FINE = 16
_AROUND = 64  # frames to either side of an edge that its half height is interpolated from
HELD_S = 0.5 / BOARD_TONE_RATE_HZ
"""The board holds each sample until the next one, which delays the tone by half a sample: so it sounds."""


@dataclass(frozen=True, slots=True)
class Pulses:
    """Rising edges of pulses on one channel, in frames, fractions; `strangers`: edges of what is no pulse."""

    frames: tuple[float, ...]
    strangers: int


def find_pulses(source: FrameSource, channel: int) -> Pulses:
    """Every rectangular pulse of about 1 ms on a channel (zero-based), either way up. Memory stays flat."""
    height, noise = _heights(source, channel)
    if height < LEAST_HEIGHT * noise or height == 0.0:
        return Pulses((), 0)
    edges: list[float] = []
    strangers = 0
    margin = round(0.01 * source.rate_hz)
    last = -math.inf
    for start in range(0, source.n_frames, STRETCH):
        first = max(0, start - margin)
        x = source.read(first, STRETCH + start - first + margin)[:, channel].astype(np.float64)
        x = x - np.median(x)
        above = np.abs(x) > 0.5 * height
        rising = np.flatnonzero(above[1:] & ~above[:-1]) + 1
        for k in rising.tolist():
            at = first + k
            if not start <= at < start + STRETCH or at - last < REST_S * source.rate_hz:
                continue
            last = at
            edge = _edge(x, k, source.rate_hz)
            if edge is None:
                strangers += 1
            else:
                edges.append(first + edge)
    return Pulses(tuple(edges), strangers)


def board_offset_s(
    source: FrameSource,
    ear_channel: int,
    pulses: Sequence[float],
    stamps_s: Sequence[float],
    kind: str,
    amplitude: float,
    skew_frames: Found,
) -> Found:
    """The tone behind the edge of its pulse, in s; positive: the tone is later.

    `pulses`: edges on the other channel, in frames; `stamps_s`: the board's own of the same firings, which say how fast
    it plays: a resonator wanders from one to the next. `skew_frames`: of the two channels, positive where the ear's is
    later. Raises ValueError for fewer than three tones heard."""
    edges_s = np.asarray(pulses, dtype=np.float64) / source.rate_hz
    rates = np.gradient(edges_s, np.asarray(stamps_s, dtype=np.float64))  # audio seconds per second of the board
    late_s = []
    for edge, rate in zip(pulses, rates.tolist(), strict=True):
        wave = ideal_waveform(kind, source.rate_hz * rate, amplitude)
        (heard,) = hear(source, ear_channel, (round(edge),), wave).stimuli
        if heard is not None:
            late_s.append((heard.lag + round(edge) - edge - skew_frames.value) / source.rate_hz / rate - HELD_S)
    found = mean_of(late_s, LEAST_EDGE_S)
    return Found(found.value, math.hypot(found.u, skew_frames.u / source.rate_hz), found.n)


def board_rate(pulses: Sequence[float], stamps_s: Sequence[float], rate_hz: float) -> ClockRate | None:
    """The sample clock against the board's, in ppm, positive: the sample clock is fast. `stamps_s`: the board's own, of
    the same firings. It says something of the sample clock where the board's is the better one. None over less than a
    minute."""
    return rate_between(np.asarray(stamps_s, dtype=np.float64), np.asarray(pulses, dtype=np.float64) / rate_hz)


def _heights(source: FrameSource, channel: int) -> tuple[float, float]:
    """Largest deviation of the channel from its middle, and its noise."""
    height = 0.0
    noises: list[float] = []
    for start in range(0, source.n_frames, STRETCH):
        x = source.read(start, STRETCH)[:, channel].astype(np.float64)
        x = np.abs(x - np.median(x))
        height, noises = max(height, float(x.max())), [*noises, 1.4826 * float(np.median(x))]
    return height, float(np.median(noises)) if noises else 0.0


def _edge(x: Real, k: int, rate_hz: int) -> float | None:
    """Where the pulse that crosses half its height near sample `k` begins, a fraction; None if it is no pulse."""
    top = x[k + round(TOP_S[0] * rate_hz) : k + round(TOP_S[1] * rate_hz)]
    before = x[max(0, k - _AROUND - round(1e-3 * rate_hz)) : k - _AROUND]
    after = x[k + round(OVER_S * rate_hz) : k + round(2.0 * OVER_S * rate_hz)]
    if len(top) < 8 or len(before) < 8 or len(after) < 8 or k + _AROUND >= len(x):
        return None
    base = float(np.mean(before))
    # Inputs pass no DC: the top sinks, in a straight line over so short a time, and is read where the edge is.
    at = np.arange(len(top)) + round(TOP_S[0] * rate_hz)
    slope, height = np.polyfit(at, top - base, 1)
    sign = math.copysign(1.0, height)
    if float(np.min(sign * (top - base))) < 0.5 * abs(height):
        return None
    if float(np.max(np.abs(after - base))) > 0.4 * abs(height) or abs(slope) * len(top) > 0.5 * abs(height):
        return None
    fine = _interpolated((x[k - _AROUND : k + _AROUND] - base) * sign)
    half = 0.5 * abs(height)
    crossing = np.flatnonzero((fine[1:] >= half) & (fine[:-1] < half))
    if not len(crossing):
        return None
    near = crossing[np.argmin(np.abs(crossing - _AROUND * FINE))]
    low, high = fine[near], fine[near + 1]
    return float(k - _AROUND + (near + (half - low) / (high - low)) / FINE)


def _interpolated(x: Real) -> Real:
    """The samples on a grid `FINE` times as fine, by sinc under Kaiser's window."""
    half = _AROUND // 2
    offsets = np.arange(-half + 1, half + 1)
    padded = np.concatenate((np.full(half, x[0]), x, np.full(half, x[-1])))
    out = np.empty(len(x) * FINE)
    for phase in range(FINE):
        distance = offsets - phase / FINE
        weights = np.sinc(distance) * np.i0(9.0 * np.sqrt(np.clip(1.0 - (distance / half) ** 2, 0.0, 1.0)))
        weights /= weights.sum()
        out[phase::FINE] = np.convolve(padded, weights[::-1], mode="valid")[1 : len(x) + 1]
    return out
