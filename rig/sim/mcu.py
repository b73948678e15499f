"""The board in pure Python: a `BytePipe` that answers the real protocol with real bytes in virtual time."""

from __future__ import annotations

import heapq
import itertools
import math

import numpy as np

from rig.acquire import wire
from rig.domain.timebase import HostClock, Instant
from rig.domain.waveforms import BOARD_TONE_RATE_HZ
from rig.errors import LinkLost
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.firmware import Cancel as Cancel
from rig.sim.firmware import Firmware, Outgoing
from rig.sim.firmware import OnTone as OnTone
from rig.sim.uart import Adapter, Faults, Uart

BOARD = "scripted"
BUILD = "sim"


class ScriptedMcu:
    """A board behind a serial port that has just been opened, which resets it.

    `clock` counts its ticks (a whole number of them to a tone sample); where it starts sets when the 32-bit ticks
    roll over. `on_tone` is told of every firing when the board is fired. `boot_s` after the opening it can hear; until
    then it may send noise. `faults` may be replaced at any time. Everything random comes from `rng`.
    """

    name = "simulated board"
    baud = wire.BAUD_RATE

    def __init__(
        self,
        time: VirtualTime,
        clock: DriftingClock,
        rng: np.random.Generator,
        on_tone: OnTone | None = None,
        *,
        adapter: Adapter | None = None,
        faults: Faults | None = None,
        boot_s: float = 1.6,
        boot_noise: bool = True,
        max_count: int = 128,
        uid: int = 0x5249_4700_0000_0001,
    ) -> None:
        per_sample = clock.rate_hz / BOARD_TONE_RATE_HZ
        if per_sample != round(per_sample):
            raise ValueError(f"{clock.rate_hz} ticks a second are not a whole number for each of the tone's samples")
        self._time = time
        line_rng, board_rng, boot_rng = rng.spawn(3)
        self._uart = Uart(line_rng, self.baud, 1.0 + clock.ppm * 1e-6, adapter or Adapter())
        self._uart.faults = faults or Faults()
        self._decoder = wire.FrameDecoder()
        self._waiting: list[tuple[float, int, Outgoing | bytes]] = []  # a heap: what the board will send, and from when
        self._order = itertools.count()
        self._heard_from_s = time.now_s + boot_s
        self._closed = False
        identity: dict[str, wire.Value] = {
            "protocol_level": wire.PROTOCOL_LEVEL,
            "table_hash": wire.table_hash(),
            "tick_hz": round(clock.rate_hz),
            "tone_hz": BOARD_TONE_RATE_HZ,
            "byte_ns": round(1e10 / self.baud),
            "max_count": max_count,
            "uid": uid,
            "board": BOARD,
            "build": BUILD,
        }
        self._identity = identity
        self._set_identity()
        self._firmware = Firmware(clock, board_rng, on_tone, self._identity, max_count)
        if boot_noise:
            for _ in range(int(boot_rng.integers(1, 4))):
                at_s = time.now_s + boot_s * float(boot_rng.uniform(0.0, 0.95))
                self._queue(at_s, boot_rng.bytes(int(boot_rng.integers(1, 40))))

    @property
    def faults(self) -> Faults:
        return self._uart.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._uart.faults = faults
        self._set_identity()

    def write(self, data: bytes) -> None:
        """Puts bytes on the line; they arrive at the board in their own time. Raises LinkLost when the port is gone."""
        self._check_port()
        for at_s, byte in self._uart.to_board(self._time.now_s, data):
            if at_s < self._heard_from_s or self.faults.silent:
                continue
            for received in self._decoder.feed((byte,)):
                for outgoing in self._firmware.handle(received, at_s):
                    self._queue(outgoing.ready_s, outgoing)

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        """Waits in virtual time for a byte, at most until the deadline. Raises LinkLost when the port is gone."""
        if deadline.timebase != self._time.timebase:
            raise TypeError("this board lives in another world than the deadline")
        deadline_ns = math.ceil(deadline.seconds * 1e9)
        vanish_s = self.faults.vanish_at_s
        until_ns = deadline_ns if vanish_s is None else min(deadline_ns, math.ceil(vanish_s * 1e9))
        self._check_port()
        self._send_until(self._time.now_s)
        while self._uart.next_ns() is None and self._waiting and self._waiting[0][0] * 1e9 <= until_ns:
            self._send_until(self._waiting[0][0])  # nobody can write while this waits
        next_ns = self._uart.next_ns()
        self._time.advance_to_ns(until_ns if next_ns is None else min(until_ns, next_ns))
        self._check_port()
        return self._uart.take(self._time.now_ns, max_bytes)

    def close(self) -> None:
        """Closes the port; what the board was told to play goes on, as with a real one."""
        self._closed = True

    def _set_identity(self) -> None:
        level, wrong = self.faults.protocol_level, self.faults.wrong_table_hash
        self._identity["protocol_level"] = wire.PROTOCOL_LEVEL if level is None else level
        self._identity["table_hash"] = wire.table_hash() ^ (1 if wrong else 0)

    def _queue(self, ready_s: float, what: Outgoing | bytes) -> None:
        heapq.heappush(self._waiting, (ready_s, next(self._order), what))

    def _send_until(self, until_s: float) -> None:
        while self._waiting and self._waiting[0][0] <= until_s:
            ready_s, _, what = heapq.heappop(self._waiting)
            start_s = max(ready_s, self._uart.to_host_free_s)
            if isinstance(what, bytes):
                self._uart.to_host(start_s, what)
                continue
            msg = what.make(start_s)
            if msg is not None:
                self._uart.to_host(start_s, wire.encode(msg))

    def _check_port(self) -> None:
        vanish_s = self.faults.vanish_at_s
        if self._closed:
            raise LinkLost("the port is closed", "an open port", "open the board's port again")
        if vanish_s is not None and self._time.now_ns >= math.ceil(vanish_s * 1e9):
            raise LinkLost(
                f"port {self.name} disappeared or is open in another program",
                "a port that stays until the run is over",
                "check the cable and the hub, close other programs that use the port, and start again",
            )
