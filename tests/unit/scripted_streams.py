"""Devices of a voice loop that follow a script at the pace of the real clock: what was played is kept, nothing else is
made up. The seam is below everything that is tested."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import numpy as np

from rig.errors import BenchNotReady
from rig.sut.voice.streams import Flags, Granted

RATE_HZ = 48000


class ScriptedStreams:
    """`script`, shape (n,), is heard block by block; silence after it. `played` gathers what was played."""

    def __init__(self, script: np.ndarray, block: int = 480, *, refuses: bool = False, dies_after: int = 10**9) -> None:
        self.flags = Flags()
        self.played: list[np.ndarray] = []
        self.begins_s: list[float] = []
        self._script = script
        self._block = block
        self._refuses = refuses
        self._dies_after = dies_after
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(
        self,
        heard: Callable[[np.ndarray], None],
        wanted: Callable[[int], np.ndarray],
        ended: Callable[[], None],
    ) -> Granted:
        if self._refuses:
            raise BenchNotReady("no microphone", "one", "buy one")

        def run() -> None:
            begin, n = time.monotonic(), 0
            while not self._stop.is_set():
                if n >= self._dies_after:
                    ended()
                    return
                at = n * self._block
                block = np.zeros(self._block, dtype=np.float32)
                own = self._script[at : at + self._block]
                block[: len(own)] = own
                self.begins_s.append(time.monotonic())
                heard(block)
                self.played.append(wanted(self._block).copy())
                n += 1
                self._stop.wait(max(0.0, begin + n * self._block / RATE_HZ - time.monotonic()))

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        return Granted(float(RATE_HZ), 0.01, 0.012, "the script")

    def stop(self) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def block_at(self, at_s: float) -> int:
        """The number of the block that was heard, and asked for, at a time."""
        return int(np.searchsorted(self.begins_s, at_s, side="right")) - 1

    @property
    def sound(self) -> np.ndarray:
        return np.concatenate(self.played)
