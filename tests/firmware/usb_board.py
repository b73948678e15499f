"""The image for the ATmega32U4 in its emulator, with a host at its plug: what a test does to it, and what it does."""

from __future__ import annotations

from dataclasses import dataclass, field

from firmware import emulator_or_skip
from rig.acquire import wire
from rig.sim.emulated_usb import UsbEmulator
from rig.sim.emulator import Event

UID = 0x5249_4700_0000_00A5
MS = 16_000  # cycles
OPEN_MS = 250  # until the host has found the board and opened its port


@dataclass
class UsbBoard:
    """An emulated board at a host that has opened its port. What happens is kept in `events` and `heard`;
    `heard_at` has the cycles at which the packets of those messages began.

    Its ticks begin at `high` times 65536.
    """

    open: bool = True
    high: int = 0
    events: list[Event] = field(default_factory=list)
    heard: list[wire.Message] = field(default_factory=list)
    heard_at: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        options = ["--uid", f"{UID:x}", *([] if self.open else ["--closed"])]
        self.emulator = UsbEmulator([*emulator_or_skip("atmega32u4"), *options])
        self._decoder = wire.FrameDecoder()
        self._seq = 0
        for address, byte in ((0x4A, self.high & 0xFF), (0x4B, self.high >> 8)):
            self.emulator.poke(address, byte)
        self.run(OPEN_MS)
        (self.ticks_from,) = [event.cycle for event in self.events if event.kind == "ticks"]

    def __enter__(self) -> UsbBoard:
        return self

    def __exit__(self, *_: object) -> None:
        self.emulator.close()

    @property
    def cycle(self) -> int:
        return self.emulator.cycle

    def run(self, ms: float) -> list[Event]:
        """Runs on; what happened."""
        return self._keep(self.emulator.run(self.cycle + round(ms * MS)))

    def _keep(self, events: list[Event]) -> list[Event]:
        for event in events:
            if event.kind == "tx":
                whole = [item for item in self._decoder.feed((event.value,)) if isinstance(item, wire.Message)]
                self.heard += whole
                self.heard_at += [event.cycle] * len(whole)
        self.events += events
        return events

    def write(self, data: bytes) -> None:
        """A program on the host writes."""
        self.emulator.receive([(self.cycle, byte) for byte in data])

    def command(self, name: str, **fields: wire.Value) -> bytes:
        self._seq = (self._seq + 1) % 256
        return wire.encode(wire.message(name, self._seq, **fields))

    def ask(self, name: str, **fields: wire.Value) -> wire.Message:
        """One command, and its one reply."""
        n_heard = len(self.heard)
        self.write(self.command(name, **fields))
        self.run(8)
        (reply,) = [message for message in self.heard[n_heard:] if message.type.role == "reply"]
        return reply

    def fire(self, kind: str, *spacing_ticks: int) -> list[int]:
        """Arms and fires a plan at full amplitude; the cycle of each tone's first tick, as announced."""
        granted = self.ask("load", first_index=0, spacing_ticks=spacing_ticks).numbers("spacing_ticks")
        number = wire.KINDS.index(kind)
        self.ask("arm", kind=number, amplitude_256ths=256, count=len(granted) + 1, pulse_us=2000)
        tick = self.ask("fire")["first_tick"]
        cycles = [self.ticks_from + 8 * tick]
        for spacing in granted:
            cycles.append(cycles[-1] + 8 * spacing)
        return cycles

    def edges(self, value: int) -> list[int]:
        """The cycles of the pulse's rising (1) or falling (0) edges."""
        return [event.cycle for event in self.events if event.kind == "pulse" and event.value == value]
