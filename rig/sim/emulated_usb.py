"""A board on native USB in virtual time: the emulated ATmega32U4, whose emulator brings the host's end of the bus too.

What is simulated here is only the host's operating system: the time from a program's call to the bus, and back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.emulated import ByteUart, EmulatedMcu
from rig.sim.emulator import Emulator, Event
from rig.sim.firmware import OnTone
from rig.sim.uart import Adapter, Faults


class UsbLine(ByteUart):
    """The host's side of a bulk endpoint: no line speed, all bytes of a call or of a packet come together."""

    def __init__(self, rng: np.random.Generator, jitter_s: float = 40e-6) -> None:
        super().__init__(rng, 1e9, 1.0, Adapter(to_board_slot_s=0.0, to_host_slot_s=0.0, jitter_s=jitter_s))
        self._packet_s = -math.inf
        self._readable_s = 0.0

    def to_board(self, now_s: float, data: bytes) -> list[tuple[float, int]]:
        """When each byte that the host writes now is ready for the bus, as (true s, byte), without the lost ones."""
        at_s = max(now_s + self._delay_s(), self._to_board_free_s)
        self._to_board_free_s = at_s
        return [(at_s, byte) for byte in data if not self._lost()]

    def byte_to_host(self, start_s: float, byte: int) -> None:
        """A byte of a packet that began at `start_s`. No packet overtakes another."""
        if self._lost():
            return
        if start_s != self._packet_s:
            self._packet_s = start_s
            self._readable_s = max(self._readable_s, self._after_stalls(start_s + self._delay_s()))
        self._readable.append((math.ceil(self._readable_s * 1e9), byte))


class EmulatedUsbMcu(EmulatedMcu):
    """A board with an ATmega32U4 that has just been plugged in, and whose port a program opens as soon as it is there.

    Arguments as for `EmulatedMcu`; `emulator` starts the emulator of this board.
    """

    name = "emulated board on USB"

    def __init__(
        self,
        time: VirtualTime,
        clock: DriftingClock,
        rng: np.random.Generator,
        on_tone: OnTone | None = None,
        *,
        emulator: Sequence[str],
        faults: Faults | None = None,
        uid: int = 0x5249_4700_0000_0003,
    ) -> None:
        super().__init__(time, clock, rng, on_tone, emulator=emulator, faults=faults, uid=uid)
        self._uart = UsbLine(rng.spawn(1)[0])
        self._uart.faults = faults or Faults()


class UsbEmulator(Emulator):
    """The emulator of a board on native USB, with a hand on its host. `command` starts it."""

    def __init__(self, command: Sequence[str]) -> None:
        self._answers: list[tuple[str, bytes]] = []
        self.mistakes: list[str] = []
        """What the program did wrong with the USB controller, and what the host was refused."""
        super().__init__(command)

    def open(self, baud: int) -> None:
        """A program on the host opens the port as soon as it is there."""
        self._tell([f"open {baud}"])

    def close_port(self) -> None:
        """The program closes it."""
        self._tell(["close"])

    def plug(self, is_in: bool) -> None:
        """Puts the USB plug in, or pulls it while the board is supplied otherwise."""
        self._tell([f"plug {int(is_in)}"])

    def poll_every(self, cycles: int) -> None:
        """How often the host asks for data; 0: once a frame."""
        self._tell([f"poll {cycles}"])

    def peek(self, address: int) -> int:
        """A byte of the board's data memory."""
        (event,) = (e for e in self._tell([f"peek {address:x}"]) if e.kind == "peek")
        return event.value

    def control_later(self, setup: bytes) -> None:
        """Puts a control transfer in the host's queue; what comes of it is not waited for."""
        self._tell([f"control {setup.hex()}"])

    def control(self, setup: bytes, data: bytes = b"", patience_cycles: int = 16_000_000) -> tuple[str, bytes]:
        """One control transfer: ok, stall, silent or timeout, and what the board answered.

        Raises LinkLost when the host does not come to it within `patience_cycles`.
        """
        self._answers.clear()
        self._tell([f"control {setup.hex()} {data.hex()}".rstrip()])
        until = self.cycle + patience_cycles
        while not self._answers:
            if self.cycle >= until:
                raise self._ended("no answer to a control transfer")
            self.run(self.cycle + 16_000)
        return self._answers[0]

    def _event(self, word: str, numbers: Sequence[str]) -> Event | None:
        if word == "control":
            self._answers.append((numbers[1], bytes.fromhex(numbers[2]) if len(numbers) > 2 else b""))
            return Event(word, int(numbers[0]))
        if word in ("toggle", "overflow", "underflow", "killed", "refused"):
            self.mistakes.append(" ".join((word, *numbers)))
            return Event(word, int(numbers[0]))
        return super()._event(word, numbers)
