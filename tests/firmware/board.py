"""The real image in its emulator, cycle by cycle: what is sent to it, what its pins do, what it answers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from firmware import emulator_or_skip
from rig.acquire import wire
from rig.domain.waveforms import board_samples
from rig.sim.emulator import CYCLES_A_SAMPLE, CYCLES_A_TICK, SILENCE, Emulator, Event

BYTE_CYCLES = 320  # ten bits at 500000 baud
BOOT_CYCLES = 1_800_000
UID = "5249470000000004"


@dataclass
class Board:
    """An emulated board that has booted. Its ticks begin at `high` times 65536."""

    high: int = 0
    pins: list[Event] = field(default_factory=list)
    heard: list[wire.Message] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.emulator = Emulator([*emulator_or_skip(), "--uid", UID])
        self._decoder = wire.FrameDecoder()
        self._seq = 0
        self._line_free = 0
        for address, byte in ((0x4A, self.high & 0xFF), (0x4B, self.high >> 8)):
            self.emulator.poke(address, byte)
        self.run(BOOT_CYCLES)
        (self.ticks_from,) = [event.cycle for event in self.pins if event.kind == "ticks"]
        self.pins.clear()

    def __enter__(self) -> Board:
        return self

    def __exit__(self, *_: object) -> None:
        self.emulator.close()

    @property
    def cycle(self) -> int:
        return self.emulator.cycle

    def run(self, n_cycles: int) -> list[Event]:
        """Runs on; what happened, which is added to `pins` and `heard` too."""
        events = self.emulator.run(self.cycle + n_cycles)
        for event in events:
            if event.kind != "tx":
                self.pins.append(event)
                continue
            self.heard += [item for item in self._decoder.feed((event.value,)) if isinstance(item, wire.Message)]
        return events

    def line(self, data: bytes, gap_cycles: int = 0) -> int:
        """Puts bytes on the line, after what is on it already and a gap; returns the cycle at which they are there."""
        at = max(self._line_free + gap_cycles, self.cycle)
        arrivals = [(at + BYTE_CYCLES * (k + 1), byte) for k, byte in enumerate(data)]
        self.emulator.receive(arrivals)
        self._line_free = arrivals[-1][0]
        return self._line_free

    def command(self, name: str, **fields: wire.Value) -> bytes:
        self._seq = (self._seq + 1) % 256
        return wire.encode(wire.message(name, self._seq, **fields))

    def ask(self, name: str, **fields: wire.Value) -> wire.Message:
        """One command on a quiet line, and its reply."""
        n_heard = len(self.heard)
        self.line(self.command(name, **fields))
        self.run(120_000)
        (reply,) = [message for message in self.heard[n_heard:] if message.type.role == "reply"]
        return reply

    def fire(self, kind: str, spacing_ticks: tuple[int, ...], amplitude_256ths: int = 256) -> list[int]:
        """Fires a plan; the tick of each tone's first sample, as announced."""
        spacings: list[int] = []
        for first in range(0, len(spacing_ticks), wire.MAX_SPACINGS_A_FRAME):
            part = spacing_ticks[first : first + wire.MAX_SPACINGS_A_FRAME]
            spacings += self.ask("load", first_index=first, spacing_ticks=part).numbers("spacing_ticks")
        settings = {"kind": wire.KINDS.index(kind), "amplitude_256ths": amplitude_256ths}
        self.ask("arm", **settings, count=len(spacings) + 1, pulse_us=2000)
        self.line(self.command("fire"))
        self.run(80_000)
        (firing,) = [message for message in self.heard if message.name == "firing"]
        return [tick % 2**32 for tick in itertools.accumulate([firing["first_tick"], *spacings])]

    def cycle_of(self, tick: int) -> int:
        """The cycle of a tick of 32 bits, after the start."""
        return self.ticks_from + CYCLES_A_TICK * ((tick - (self.high << 16)) % 2**32)


def expected_levels(board: Board, kind: str, ticks: list[int], amplitude_256ths: int = 256) -> list[tuple[int, int]]:
    """(cycle, PWM level) of each change that the tones must make."""
    changes = list[tuple[int, int]]()
    samples = board_samples(kind, amplitude_256ths / 256).astype(np.int64) + SILENCE
    for tick in ticks:
        level = SILENCE
        for k, wanted in enumerate([*samples.tolist(), SILENCE]):
            if wanted != level:
                changes.append((board.cycle_of(tick) + CYCLES_A_SAMPLE * k, wanted))
                level = wanted
    return changes
