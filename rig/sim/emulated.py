"""The board's real firmware as a `BytePipe` in virtual time: an emulated microcontroller behind a simulated line.

It takes the place of the scripted board: the same line and adapter, the same clock, the same `on_tone`. Of the board
itself nothing is imitated: its bytes and its tones are made by the image that is flashed to real ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rig.acquire import wire
from rig.domain.timebase import HostClock, Instant
from rig.errors import LinkLost
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.emulator import CYCLES_A_TICK, Emulator
from rig.sim.firmware import OnTone
from rig.sim.follower import BoardFollower
from rig.sim.uart import Adapter, Faults, Uart, slot_after

_TICK_HIGH = (0x4A, 0x4B)  # GPIOR1 and GPIOR2 hold the upper half of the tick


class ByteUart(Uart):
    """A line that gets the board's bytes one by one. What falls into one slot of the adapter still comes together."""

    def __init__(self, rng: np.random.Generator, baud: float, board_rate: float, adapter: Adapter) -> None:
        super().__init__(rng, baud, board_rate, adapter)
        self._slot_s = 0.0
        self._slot_delay_s = 0.0

    def byte_to_host(self, start_s: float, byte: int) -> None:
        """A byte whose start bit begins at `start_s`."""
        at_s = max(start_s, self._to_host_free_s) + self._board_byte_s
        self._to_host_free_s = at_s
        if self._lost():
            return
        slot_s = slot_after(at_s, self._adapter.to_host_slot_s, self._to_host_phase_s)
        if slot_s != self._slot_s:
            self._slot_s, self._slot_delay_s = slot_s, self._delay_s()
        self._readable.append((math.ceil(self._after_stalls(slot_s + self._slot_delay_s) * 1e9), byte))


class EmulatedMcu:
    """A board behind a serial port that has just been opened, which switched it on.

    `emulator` is the command that starts the emulator with an image; it gets the uid. `clock` counts ticks at 2 MHz;
    where it starts sets the upper 16 bits of the board's own ticks. `on_tone` is told of every firing when the board
    announces it. `faults` may be replaced at any time. Everything random comes from `rng`.
    """

    name = "emulated board"
    baud = wire.BAUD_RATE

    def __init__(
        self,
        time: VirtualTime,
        clock: DriftingClock,
        rng: np.random.Generator,
        on_tone: OnTone | None = None,
        *,
        emulator: Sequence[str],
        adapter: Adapter | None = None,
        faults: Faults | None = None,
        uid: int = 0x5249_4700_0000_0002,
    ) -> None:
        if clock.rate_hz != 2e6:
            raise ValueError(f"the firmware counts 2000000 ticks a second, not {clock.rate_hz}")
        self._time = time
        self._clock = clock
        self._uart = ByteUart(rng.spawn(1)[0], self.baud, 1.0 + clock.ppm * 1e-6, adapter or Adapter())
        self._uart.faults = faults or Faults()
        self._start_reading = clock.reading(time.now_s)
        high = (math.floor(self._start_reading) >> 16) & 0xFFFF
        self._follower = BoardFollower(self._true_s, on_tone, high << 16)
        self._last_arrival = 0
        self._closed = False
        self._emulator = Emulator([*emulator, "--uid", f"{uid:x}"])
        for address, shift in zip(_TICK_HIGH, (0, 8), strict=True):
            self._emulator.poke(address, (high >> shift) & 0xFF)

    @property
    def faults(self) -> Faults:
        return self._uart.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        self._uart.faults = faults

    @property
    def emulator(self) -> Emulator:
        """The emulator, for a test that looks at the pins."""
        return self._emulator

    def write(self, data: bytes) -> None:
        """Puts bytes on the line; they arrive at the board in their own time. Raises LinkLost when the port is gone."""
        self._check_port()
        self._run_to(self._time.now_ns)
        arrivals = list[tuple[int, int]]()
        for at_s, byte in self._uart.to_board(self._time.now_s, data):
            if not self.faults.silent:
                self._last_arrival = max(self._cycle(at_s), self._last_arrival + 1, self._emulator.cycle + 1)
                arrivals.append((self._last_arrival, byte))
        self._emulator.receive(arrivals)

    def read(self, max_bytes: int, deadline: Instant[HostClock]) -> bytes:
        """Waits in virtual time for a byte, at most until the deadline. Raises LinkLost when the port is gone."""
        if deadline.timebase != self._time.timebase:
            raise TypeError("this board lives in another world than the deadline")
        until_ns = math.ceil(deadline.seconds * 1e9)
        if self.faults.vanish_at_s is not None:
            until_ns = min(until_ns, math.ceil(self.faults.vanish_at_s * 1e9))
        self._check_port()
        while self._uart.next_ns() is None and self._cycle(until_ns * 1e-9) > self._emulator.cycle:
            self._run_to(until_ns, stop_at_tx=True)
        next_ns = self._uart.next_ns()
        self._time.advance_to_ns(until_ns if next_ns is None else min(until_ns, next_ns))
        self._run_to(self._time.now_ns)
        self._check_port()
        return self._uart.take(self._time.now_ns, max_bytes)

    def close(self) -> None:
        """Closes the port and switches the board off."""
        self._closed = True
        self._emulator.close()

    def _cycle(self, true_s: float) -> int:
        return math.ceil((self._clock.reading(true_s) - self._start_reading) * CYCLES_A_TICK)

    def _true_s(self, cycle: int) -> float:
        return self._clock.true_s(self._start_reading + cycle / CYCLES_A_TICK)

    def _run_to(self, at_ns: int, stop_at_tx: bool = False) -> None:
        until = self._cycle(at_ns * 1e-9)
        if until <= self._emulator.cycle:
            return
        for event in self._emulator.run(until, stop_at_tx):
            if event.kind == "tx":
                self._uart.byte_to_host(self._true_s(event.cycle), event.value)
            self._follower.take(event)
        self._follower.told_until(self._emulator.cycle)

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
