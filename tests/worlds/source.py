"""A `FrameSource` over an array in memory."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Frames = npt.NDArray[np.float32]


class ArraySource:
    """Frames of shape (n_frames, n_channels), float32, as if read from a file of that sample format."""

    def __init__(self, frames: npt.ArrayLike, rate_hz: int = 48_000, full_scale: float | None = 1.0 - 2.0**-23) -> None:
        self._frames: Frames = np.asarray(frames, dtype=np.float32)
        if self._frames.ndim != 2:
            raise ValueError(f"frames must have two dimensions, not {self._frames.ndim}")
        self._rate_hz = rate_hz
        self._full_scale = full_scale

    @property
    def rate_hz(self) -> int:
        """Nominal sample rate."""
        return self._rate_hz

    @property
    def n_frames(self) -> int:
        """Number of frames."""
        return int(self._frames.shape[0])

    @property
    def n_channels(self) -> int:
        """Number of channels."""
        return int(self._frames.shape[1])

    @property
    def full_scale(self) -> float | None:
        """Largest value of the sample format, None for float formats."""
        return self._full_scale

    def read(self, start: int, count: int) -> Frames:
        """Frames [start, start + count), clipped to what there is; a copy, so that a reader cannot alter the world."""
        begin = min(max(start, 0), self.n_frames)
        end = min(max(start + count, begin), self.n_frames)
        return self._frames[begin:end].copy()
