"""A clock fit as `ClockMap`s: lines between clocks that are types, each with the window in which its bound holds.

`ClockFit` follows the resonator's curve. A `ClockMap` is a line, so a curve becomes lines of a few seconds; what is
lost is part of each line's half-width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np

from rig.analyse.clockfit import ClockFit, Floats, Mapped
from rig.domain.timebase import AudioClock, ClockMap, HostClock, Instant, McuClock, Timebase

PIECE_S = 8.0
"""A resonator whose rate changes by 1 ppm a second bends by 4 us away from a line of this length."""

_GRID = 33  # instants of a piece that its line is laid through
_SQRT3 = 3.0**0.5

C = TypeVar("C")
D = TypeVar("D")


@dataclass(frozen=True, slots=True)
class ClockMaps:
    """The maps of one run, each a series of lines in order; () where a clock is missing."""

    mcu_host: tuple[ClockMap[McuClock, HostClock], ...]
    audio_host: tuple[ClockMap[AudioClock, HostClock], ...]
    mcu_audio: tuple[ClockMap[McuClock, AudioClock], ...]


def clock_maps(
    fit: ClockFit, host: Timebase[HostClock], mcu: Timebase[McuClock], audio: Timebase[AudioClock]
) -> ClockMaps:
    """All maps of the fit. Windows overlap by half: each line answers for the part around its own middle."""
    own, reached = [], -np.inf
    for k, window in enumerate(fit.windows):
        after = fit.windows[k + 1].first_s if k + 1 < len(fit.windows) else window.last_s
        last_s = 0.5 * (window.last_s + after) if after < window.last_s else window.last_s
        own.append((max(window.first_s, reached), last_s))
        reached = last_s
    whole = [] if fit.span_mcu_s is None else _pieces(*fit.span_mcu_s, PIECE_S)
    wheel = fit.flywheel
    pulses = [] if wheel is None else _pieces(float(wheel.mcu_s[0]), float(wheel.mcu_s[-1]), PIECE_S)
    return ClockMaps(
        mcu_host=_lines(mcu, host, whole if fit.windows else [], fit.mcu_host, 0.0),
        audio_host=_lines(audio, host, own if wheel is not None else [], fit.audio_host, 0.0),
        mcu_audio=_lines(mcu, audio, pulses, fit.mcu_audio, 0.0 if wheel is None else wheel.residual_s),
    )


def map_for(maps: Sequence[ClockMap[C, D]], instant: Instant[C]) -> ClockMap[C, D]:
    """The line whose window holds the instant. Raises ValueError where none does."""
    for line in maps:
        if line.first_s <= instant.seconds <= line.last_s:
            return line
    raise ValueError(f"no map reaches {instant.seconds:.6f} s on the {instant.timebase.kind} clock")


def _pieces(first_s: float, last_s: float, longest_s: float) -> list[tuple[float, float]]:
    edges = np.linspace(first_s, last_s, max(1, int(np.ceil((last_s - first_s) / longest_s))) + 1).tolist()
    return list(pairwise(edges))


def _lines(
    source: Timebase[C],
    target: Timebase[D],
    pieces: Sequence[tuple[float, float]],
    convert: Callable[[Floats], Mapped],
    residual_s: float,
) -> tuple[ClockMap[C, D], ...]:
    """One line a piece through what `convert` says there; a piece with a hole in it is left out."""
    lines = []
    for first_s, last_s in pieces:
        x = np.linspace(first_s, last_s, _GRID)
        found = convert(x)
        if np.isnan(found.s).any():
            continue
        middle = 0.5 * (first_s + last_s)
        slope, level = np.polynomial.polynomial.polyfit(x - middle, found.s - found.s[0], 1)[::-1]
        line = found.s[0] + level + slope * (x - middle)
        half_width_s = float(np.max(np.maximum(found.high_s - line, line - found.low_s)))
        lines.append(
            ClockMap(
                source=source,
                target=target,
                offset_s=float(found.s[0] + level - slope * middle),
                rate=float(slope),
                residual_s=max(residual_s, float(np.sqrt(np.mean((found.s - line) ** 2)))),
                u_s=half_width_s / _SQRT3,  # anywhere within the bound is as likely (GUM 4.3.7)
                first_s=first_s,
                last_s=last_s,
                half_width_s=half_width_s,
            )
        )
    return tuple(lines)
