"""A sound in which every frame says its number: what a recording of it has lost is seen to the frame.

The numbers run from 1 to 2**20 - 1 (21.8 s at 48 kHz) and begin anew; as samples they are multiples of 2**-20, which
32-bit floats and 24-bit files hold exactly. 0 is silence, which nobody sends.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

PERIOD = (1 << 20) - 1
_SCALE = np.float32(1 << 20)
_STRANGE = 1e-3  # of a number: a sample further away from one has been changed on its way


def cycle() -> npt.NDArray[np.float32]:
    """All numbers once, as samples between 0 and 1; shape (PERIOD,)."""
    return np.arange(1, PERIOD + 1, dtype=np.float32) / _SCALE


@dataclass(frozen=True, slots=True)
class Loss:
    """`lost` numbers are missing before `frame` of the recording; `silent` frames of zeros stand in their place.

    A player that starved is no loss: its silence lies between two numbers that follow each other.
    """

    frame: int
    lost: int
    silent: int


class Counter:
    """Fed with a recording block by block; keeps the losses. Memory grows with their number alone."""

    def __init__(self) -> None:
        self.losses: list[Loss] = []
        self.n_frames = 0
        self.n_numbers = 0
        self.n_starved = 0  # frames of silence that cost no number: the player's
        self.n_strange = 0
        self._last: tuple[int, int] | None = None  # frame and number

    def feed(self, channel: npt.NDArray[np.floating]) -> None:
        """The next samples of the channel, shape (n,)."""
        scaled = np.asarray(channel, np.float64) * float(_SCALE)
        numbers = np.rint(scaled).astype(np.int64)
        right = (np.abs(scaled - numbers) < _STRANGE) & (numbers >= 0) & (numbers <= PERIOD)
        self.n_strange += int(np.count_nonzero(~right))
        at = np.flatnonzero(right & (numbers > 0))
        frames, found = self.n_frames + at, numbers[at]
        self.n_frames += len(channel)
        self.n_numbers += len(at)
        if not len(at):
            return
        if self._last is not None:
            frames, found = np.append(self._last[0], frames), np.append(self._last[1], found)
        self._last = int(frames[-1]), int(found[-1])
        between = np.diff(frames) - 1
        missing = (np.diff(found) - 1) % PERIOD
        for k in np.flatnonzero((between > 0) | (missing > 0)):
            if missing[k]:
                self.losses.append(Loss(int(frames[k + 1]), int(missing[k]), int(between[k])))
            else:
                self.n_starved += int(between[k])
