"""The image for the ATmega328P in its emulator: what is sent to it on a serial line, byte by byte."""

from __future__ import annotations

from firmware import emulator_or_skip
from firmware.emulated import EmulatedBoard
from rig.sim.emulator import Emulator

BYTE_CYCLES = 320  # ten bits at 500000 baud
BOOT_CYCLES = 1_800_000
ANSWER_CYCLES = 120_000
UID = 0x5249_4700_0000_0004


class Board(EmulatedBoard):
    """An emulated board that has booted."""

    def __init__(self, high: int = 0) -> None:
        super().__init__(Emulator([*emulator_or_skip(), "--uid", f"{UID:x}"]), high)
        self._line_free = 0
        self.run_cycles(BOOT_CYCLES)

    def line(self, data: bytes, gap_cycles: int = 0) -> int:
        """Puts bytes on the line, after what is on it already and a gap; returns the cycle at which they are there."""
        at = max(self._line_free + gap_cycles, self.cycle)
        arrivals = [(at + BYTE_CYCLES * (k + 1), byte) for k, byte in enumerate(data)]
        self.emulator.receive(arrivals)
        self._line_free = arrivals[-1][0]
        return self._line_free

    def say(self, data: bytes) -> None:
        self.line(data)
        self.run_cycles(ANSWER_CYCLES)
