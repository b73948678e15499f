"""Levels while they are recorded: peak, RMS, flat tops and digital silence of every channel, over all and lately."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np

from rig.domain.levels import dbfs, rail_samples
from rig.domain.seams import Frames

LATELY_S = 0.3
"""What "lately" means: long enough to be read, short enough to follow a hand on a knob."""

SILENT_S = 1.0
"""Every sample the same for this long is digital silence: converters are never so quiet."""

RAIL = 1.0
"""A session keeps 24-bit integers: what reaches full scale is cut there, whatever the driver's format."""


@dataclass(frozen=True, slots=True)
class ChannelReading:
    """One channel. Levels in dBFS, None where every sample is 0; `dc` is the mean, of full scale."""

    peak_dbfs: float | None
    rms_dbfs: float | None  # about the mean
    dc: float
    clipped_samples: int  # in flat tops of 3 or more
    digital_silence: bool  # every sample has had the same value, for SILENT_S at least


@dataclass(frozen=True, slots=True)
class _Piece:
    """Sums over one block: what a window needs to know of it."""

    n: int
    total: np.ndarray
    squares: np.ndarray
    high: np.ndarray
    low: np.ndarray


class Meter:
    """Feed it frames of shape (n, n_channels)."""

    def __init__(self, channels: int, rate_hz: int) -> None:
        self._rate_hz = rate_hz
        self._n = 0
        self._total = np.zeros(channels)
        self._squares = np.zeros(channels)
        self._high = np.full(channels, -np.inf)
        self._low = np.full(channels, np.inf)
        self._rails = np.zeros(channels, np.int64)
        self._last = np.full(channels, np.nan)
        self._still = np.zeros(channels, np.int64)  # frames since the channel last changed its value
        self._pieces: deque[_Piece] = deque()
        self._held = 0  # frames in the pieces

    def feed(self, frames: Frames) -> None:
        if not len(frames):
            return
        wide = frames.astype(np.float64)
        piece = _Piece(len(frames), wide.sum(axis=0), (wide**2).sum(axis=0), wide.max(axis=0), wide.min(axis=0))
        self._n += piece.n
        self._total += piece.total
        self._squares += piece.squares
        self._high = np.maximum(self._high, piece.high)
        self._low = np.minimum(self._low, piece.low)
        for channel in np.flatnonzero(np.maximum(piece.high, -piece.low) >= 0.999 * RAIL):
            self._rails[channel] += rail_samples(frames[:, channel], RAIL)
        same = (piece.high == piece.low) & ((piece.low == self._last) | np.isnan(self._last))
        self._still = np.where(same, self._still + piece.n, np.where(piece.high == piece.low, piece.n, 0))
        self._last = wide[-1]
        self._pieces.append(piece)
        self._held += piece.n
        while self._held - self._pieces[0].n >= LATELY_S * self._rate_hz:
            self._held -= self._pieces.popleft().n

    def lately(self) -> tuple[ChannelReading, ...]:
        """Levels over the last LATELY_S; flat tops and silence as over all. Empty when nothing was fed."""
        if not self._pieces:
            return ()
        total = np.sum([piece.total for piece in self._pieces], axis=0)
        squares = np.sum([piece.squares for piece in self._pieces], axis=0)
        high = np.max([piece.high for piece in self._pieces], axis=0)
        low = np.min([piece.low for piece in self._pieces], axis=0)
        return self._readings(self._held, total, squares, high, low)

    def overall(self) -> tuple[ChannelReading, ...]:
        """Levels of everything that was fed; empty when nothing was."""
        return self._readings(self._n, self._total, self._squares, self._high, self._low) if self._n else ()

    def _readings(
        self, n: int, total: np.ndarray, squares: np.ndarray, high: np.ndarray, low: np.ndarray
    ) -> tuple[ChannelReading, ...]:
        still = self._still >= min(SILENT_S * self._rate_hz, self._n)
        return tuple(
            ChannelReading(
                peak_dbfs=dbfs(max(float(high[k]), -float(low[k]))),
                rms_dbfs=dbfs(math.sqrt(max(0.0, float(squares[k]) / n - (float(total[k]) / n) ** 2))),
                dc=float(total[k]) / n,
                clipped_samples=int(self._rails[k]),
                digital_silence=bool(still[k]),
            )
            for k in range(len(total))
        )
