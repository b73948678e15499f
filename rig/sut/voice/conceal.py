"""What is played in the place of a frame that is not there: the last one again, softer, and then silence."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Samples = npt.NDArray[np.float32]

REPEATS = 2
"""Of one frame. Longer than 40 ms a repetition is heard as a buzz."""

SOFTER = 0.5


class Concealer:
    """Counts what it makes up, frame by frame."""

    def __init__(self, frame_samples: int) -> None:
        self.repeated = 0
        self.silent = 0
        self._silence = np.zeros(frame_samples, dtype=np.float32)
        self._last: Samples | None = None
        self._times = 0

    def heard(self, samples: Samples) -> None:
        """A frame that was decoded."""
        self._last = samples
        self._times = 0

    def made_up(self) -> Samples:
        """The next frame that stands for a missing one, shape (frame_samples,)."""
        if self._last is None or self._times >= REPEATS:
            self.silent += 1
            return self._silence
        self._times += 1
        self.repeated += 1
        return np.asarray(self._last * np.float32(SOFTER**self._times), dtype=np.float32)
