"""What tests do with an emulated board of either kind, cycle by cycle, and what its tones and pulses must be."""

from __future__ import annotations

import itertools
from typing import Self

from rig.acquire import wire
from rig.domain.waveforms import board_samples
from rig.sim.emulator import CYCLES_A_SAMPLE, CYCLES_A_TICK, SILENCE, Emulator, Event

PULSE_US = 2000
TONE_AFTER_PULSE_CYCLES = 2
"""From the pulse's edge to the tone's first sample, at every firing. The emulators start the two timers that make them
with two instructions where the chip releases both at once; a tick is 8 cycles."""
LATEST_WRITE_CYCLES = 32  # at least this long before a PWM period its level must have been written


class EmulatedBoard:
    """A board in `emulator`, its ticks set to begin at `high` times 65536.

    What happens is kept in `events` and `heard`; `heard_at` has the cycles at which the last bytes of those messages
    began (on USB their packets).
    """

    def __init__(self, emulator: Emulator, high: int) -> None:
        self.emulator = emulator
        self.high = high
        self.events: list[Event] = []
        self.heard: list[wire.Message] = []
        self.heard_at: list[int] = []
        self._decoder = wire.FrameDecoder()
        self._seq = 0
        for address, byte in ((0x4A, high & 0xFF), (0x4B, high >> 8)):
            emulator.poke(address, byte)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.emulator.close()

    @property
    def cycle(self) -> int:
        return self.emulator.cycle

    def run_cycles(self, n_cycles: int) -> list[Event]:
        """Runs on; what happened."""
        return self._keep(self.emulator.run(self.cycle + n_cycles))

    def _keep(self, events: list[Event]) -> list[Event]:
        """Adds what happened to what is kept."""
        for event in events:
            if event.kind == "ticks":
                self.ticks_from = event.cycle
            elif event.kind == "tx":
                whole = [item for item in self._decoder.feed((event.value,)) if isinstance(item, wire.Message)]
                self.heard += whole
                self.heard_at += [event.cycle] * len(whole)
        self.events += events
        return events

    def command(self, name: str, **fields: wire.Value) -> bytes:
        self._seq = (self._seq + 1) % 256
        return wire.encode(wire.message(name, self._seq, **fields))

    def ask(self, name: str, **fields: wire.Value) -> wire.Message:
        """One command, and its one reply."""
        n_heard = len(self.heard)
        self.say(self.command(name, **fields))
        (reply,) = [message for message in self.heard[n_heard:] if message.type.role == "reply"]
        return reply

    def say(self, data: bytes) -> None:
        """Bytes to the board, and the time for an answer."""
        raise NotImplementedError

    def fire(self, kind: str, *spacing_ticks: int) -> list[int]:
        """Arms and fires a plan at full amplitude; the cycle of each tone's first tick, as announced."""
        granted: list[int] = []
        for first in range(0, len(spacing_ticks), wire.MAX_SPACINGS_A_FRAME):
            part = spacing_ticks[first : first + wire.MAX_SPACINGS_A_FRAME]
            granted += self.ask("load", first_index=first, spacing_ticks=part).numbers("spacing_ticks")
        number = wire.KINDS.index(kind)
        self.ask("arm", kind=number, amplitude_256ths=256, count=len(granted) + 1, pulse_us=PULSE_US)
        first_tick = self.ask("fire")["first_tick"]
        return [self.cycle_of(tick % 2**32) for tick in itertools.accumulate([first_tick, *granted])]

    def cycle_of(self, tick: int) -> int:
        """The cycle of a tick of 32 bits, after the start."""
        return self.ticks_from + CYCLES_A_TICK * ((tick - (self.high << 16)) % 2**32)

    def edges(self, value: int) -> list[int]:
        """The cycles of the pulse's rising (1) or falling (0) edges."""
        return [event.cycle for event in self.events if event.kind == "pulse" and event.value == value]


def check_tones(board: EmulatedBoard, kind: str, starts: list[int]) -> None:
    """Every tone whole, every sample and every edge at its cycle, and each firing reported as it was."""
    samples = board_samples(kind, 1.0).tolist()
    assert board.edges(1) == starts
    width = min(-(-PULSE_US * 16 // CYCLES_A_SAMPLE), len(samples)) * CYCLES_A_SAMPLE
    assert board.edges(0) == [start + width for start in starts]
    expected, level = list[tuple[int, int]](), SILENCE
    for start in starts:
        for k, sample in enumerate([*samples, 0]):
            if sample + SILENCE != level:
                level = sample + SILENCE
                expected.append((start + TONE_AFTER_PULSE_CYCLES + CYCLES_A_SAMPLE * k, level))
    pwm = [event for event in board.events if event.kind == "pwm" and event.cycle > starts[0] - 1000]
    assert [(event.cycle, event.value) for event in pwm] == expected
    assert min(event.cycle - (event.written_cycle or 0) for event in pwm) >= LATEST_WRITE_CYCLES
    fired = [message for message in board.heard if message.name == "fired"]
    assert [board.cycle_of(message["tick"]) for message in fired] == starts
    assert {message["played_samples"] for message in fired} == {len(samples)}
