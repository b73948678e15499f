"""A serial port by script: bytes at set times, and reactions to what is written. In virtual time."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Iterable

from rig.acquire import wire
from rig.acquire.wire import FrameDecoder, Message, message
from rig.domain.timebase import Duration, HostClock, Instant
from rig.errors import LinkLost
from rig.sim.clock import VirtualTime

Reaction = Callable[[Message], Iterable[tuple[float, bytes]]]

IDENTITY: dict[str, wire.Value] = {
    "protocol_level": wire.PROTOCOL_LEVEL,
    "table_hash": wire.table_hash(),
    "tick_hz": 2_000_000,
    "tone_hz": 31_250,
    "byte_ns": 20_000,
    "max_count": 128,
    "uid": 0xABCD,
    "board": "uno",
    "build": "1",
}


def identity(seq: int, **changed: wire.Value) -> bytes:
    """The frame of an identity reply."""
    return wire.encode(message("identity", seq, **{**IDENTITY, **changed}))


class ScriptedPipe:
    """`BytePipe`: says what it was told to at its times, and what `react` gives, as (seconds later, bytes)."""

    name = "/dev/ttyTEST"
    baud = 500_000

    def __init__(self, time: VirtualTime, react: Reaction | None = None) -> None:
        self.time = time
        self.react: Reaction = react or (lambda _: ())
        self.heard: list[Message] = []
        self.vanished = False
        self._decoder = FrameDecoder()
        self._due: list[tuple[int, int, bytes]] = []
        self._order = itertools.count()

    def say(self, after_s: float, data: bytes) -> None:
        """`data` can be read from `after_s` seconds from now."""
        at_ns = self.time.now_ns + math.ceil(after_s * 1e9)
        heapq.heappush(self._due, (at_ns, next(self._order), data))

    def write(self, data: bytes) -> None:
        self._check()
        for item in self._decoder.feed(data):
            assert isinstance(item, Message), f"the host wrote {item}"
            self.heard.append(item)
            for after_s, answer in self.react(item):
                self.say(after_s, answer)

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        self._check()
        deadline_ns = math.ceil(deadline.seconds * 1e9)
        if not self._due or self._due[0][0] > max(deadline_ns, self.time.now_ns):
            self.time.advance_to_ns(deadline_ns)
            return b""
        at_ns, _, data = heapq.heappop(self._due)
        self.time.advance_to_ns(at_ns)
        if len(data) > max_bytes:
            heapq.heappush(self._due, (at_ns, -1, data[max_bytes:]))
        return data[:max_bytes]

    def close(self) -> None:
        self.vanished = True

    def _check(self) -> None:
        if self.vanished:
            raise LinkLost(f"port {self.name} disappeared", "a port that stays", "check the cable")


def later(time: VirtualTime, seconds: float) -> Instant[HostClock]:
    """The instant `seconds` from now."""
    return time.now().plus(Duration(seconds))
