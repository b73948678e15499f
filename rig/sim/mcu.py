"""The board in pure Python: a `BytePipe` that answers the real protocol with real bytes in virtual time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from rig.domain.timebase import HostClock, Instant
from rig.sim.clock import DriftingClock, VirtualTime

Cancel = Callable[[float], None]
"""Called with the true time (s) at which a tone told of before is cut off; before its start: it never sounds."""

OnTone = Callable[[float, npt.NDArray[np.int8], float], Cancel | None]
"""Called as (true_start_s, samples -127..127, tone_rate_hz_true) for every firing, as soon as the board is fired."""


class ScriptedMcu:
    def __init__(
        self, time: VirtualTime, clock: DriftingClock, rng: np.random.Generator, on_tone: OnTone | None = None
    ) -> None:
        self._time = time

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
