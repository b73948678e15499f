"""Blocks of a device, of any length, into frames of one length."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]


class Framer:
    """Collects samples; a frame comes out when its last sample is there. Counts frames from 0."""

    def __init__(self, frame_samples: int) -> None:
        if frame_samples < 1:
            raise ValueError("a frame has samples")
        self._frame = np.zeros(frame_samples, dtype=np.float32)
        self._filled = 0
        self._seq = 0

    def push(self, block: Samples) -> Iterator[tuple[int, Samples]]:
        """(seq, frame) of each frame that `block`, shape (n,), completes. The frames are copies."""
        at = 0
        while at < len(block):
            n = min(len(block) - at, len(self._frame) - self._filled)
            self._frame[self._filled : self._filled + n] = block[at : at + n]
            self._filled += n
            at += n
            if self._filled == len(self._frame):
                self._filled = 0
                self._seq += 1
                yield self._seq - 1, self._frame.copy()
