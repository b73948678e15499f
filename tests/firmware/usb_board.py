"""The image for the ATmega32U4 in its emulator, with a host at its plug."""

from __future__ import annotations

from firmware import emulator_or_skip
from firmware.emulated import EmulatedBoard
from rig.sim.emulated_usb import UsbEmulator
from rig.sim.emulator import Event

UID = 0x5249_4700_0000_00A5
MS = 16_000  # cycles
OPEN_MS = 250  # until the host has found the board and opened its port
ANSWER_MS = 8


class UsbBoard(EmulatedBoard):
    """An emulated board at a host that has opened its port, unless `open` is False."""

    emulator: UsbEmulator

    def __init__(self, open: bool = True, high: int = 0) -> None:
        options = ["--uid", f"{UID:x}", *([] if open else ["--closed"])]
        super().__init__(UsbEmulator([*emulator_or_skip("atmega32u4"), *options]), high)
        self.run(OPEN_MS)

    def run(self, ms: float) -> list[Event]:
        """Runs on; what happened."""
        return self.run_cycles(round(ms * MS))

    def write(self, data: bytes) -> None:
        """A program on the host writes."""
        self.emulator.receive([(self.cycle, byte) for byte in data])

    def say(self, data: bytes) -> None:
        self.write(data)
        self.run(ANSWER_MS)
