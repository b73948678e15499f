"""The serial line between host and board, in virtual time: baud rate, USB adapter, and what can go wrong on it."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Adapter:
    """A USB-to-serial bridge: it moves bytes once a slot, plus a random time; each direction has its own slots.

    A slot is 1 ms on a full-speed bus and 0 for a bus that is served at once; towards the host it is 16 ms for an FTDI
    chip with its usual latency timer. `jitter_s` is the median of the host's lognormal wake-up time.
    """

    to_board_slot_s: float = 1e-3
    to_host_slot_s: float = 1e-3
    jitter_s: float = 40e-6


FTDI = Adapter(to_host_slot_s=16e-3)


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong. Probabilities are per byte (`byte_loss`) and per frame sent by the board (`garbage`).

    `stalls` are (true start s, length s) in which nothing reaches the host; what was due comes at the end of it.
    `vanish_at_s` is the true time at which the port disappears.
    """

    byte_loss: float = 0.0
    garbage: float = 0.0
    silent: bool = False
    stalls: tuple[tuple[float, float], ...] = ()
    vanish_at_s: float | None = None
    wrong_table_hash: bool = False
    protocol_level: int | None = None


class Uart:
    """Both directions of the line. Times are true seconds in, integer nanoseconds out."""

    def __init__(self, rng: np.random.Generator, baud: float, board_rate: float, adapter: Adapter) -> None:
        """`board_rate` is how fast the board's clock really runs against nominal: its bytes are that much shorter."""
        self.faults = Faults()
        self._rng = rng
        self._adapter = adapter
        self._to_board_phase_s = float(rng.uniform()) * adapter.to_board_slot_s
        self._to_host_phase_s = float(rng.uniform()) * adapter.to_host_slot_s
        self._host_byte_s = 10.0 / baud
        self._board_byte_s = 10.0 / baud / board_rate
        self._to_board_free_s = 0.0
        self._to_host_free_s = 0.0
        self._readable: deque[tuple[int, int]] = deque()  # (readable from, byte), in order: none overtakes another

    @property
    def to_host_free_s(self) -> float:
        """When the board's transmitter will have sent all that it was given."""
        return self._to_host_free_s

    def to_board(self, now_s: float, data: bytes) -> list[tuple[float, int]]:
        """When each byte that the host writes now arrives at the board, as (true s, byte), without the lost ones."""
        slot_s = slot_after(now_s, self._adapter.to_board_slot_s, self._to_board_phase_s)
        at_s = max(slot_s + self._delay_s(), self._to_board_free_s)
        arrived: list[tuple[float, int]] = []
        for byte in data:
            at_s += self._host_byte_s
            if not self._lost():
                arrived.append((at_s, byte))
        self._to_board_free_s = at_s
        return arrived

    def to_host(self, start_s: float, data: bytes) -> None:
        """The board's transmitter sends `data` from `start_s` on, which must not be before `to_host_free_s`."""
        at_s = start_s
        last_slot_s = delay_s = 0.0
        if self.faults.garbage and self._rng.random() < self.faults.garbage:
            data = self._rng.bytes(int(self._rng.integers(1, 30))) + data
        for byte in data:
            at_s += self._board_byte_s
            if self._lost():
                continue
            slot_s = slot_after(at_s, self._adapter.to_host_slot_s, self._to_host_phase_s)
            if slot_s != last_slot_s:  # all bytes of a slot come together
                last_slot_s, delay_s = slot_s, self._delay_s()
            readable_ns = math.ceil(self._after_stalls(slot_s + delay_s) * 1e9)
            self._readable.append((readable_ns, byte))
        self._to_host_free_s = at_s

    def next_ns(self) -> int | None:
        """When the next byte can be read, or None when none is on its way."""
        return self._readable[0][0] if self._readable else None

    def take(self, now_ns: int, max_bytes: int) -> bytes:
        """What can be read at `now_ns`."""
        taken = bytearray()
        while self._readable and self._readable[0][0] <= now_ns and len(taken) < max_bytes:
            taken.append(self._readable.popleft()[1])
        return bytes(taken)

    def _lost(self) -> bool:
        return self.faults.byte_loss > 0.0 and bool(self._rng.random() < self.faults.byte_loss)

    def _delay_s(self) -> float:
        wake_up_s = self._adapter.jitter_s * math.exp(0.6 * float(self._rng.normal()))
        return float(self._rng.uniform(20e-6, 80e-6)) + wake_up_s

    def _after_stalls(self, at_s: float) -> float:
        for start_s, length_s in self.faults.stalls:
            if start_s <= at_s < start_s + length_s:
                at_s = start_s + length_s
        return at_s


def slot_after(at_s: float, length_s: float, phase_s: float) -> float:
    """The next moment at or after `at_s` at which the adapter moves bytes."""
    return math.ceil((at_s - phase_s) / length_s) * length_s + phase_s if length_s else at_s
