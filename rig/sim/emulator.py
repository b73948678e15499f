"""The emulator of a board as a process in lock-step: what goes in and what comes out, stamped in CPU cycles.

`firmware/emu.c` and `firmware/emu_atmega32u4.c` are the other half and describe the commands and events. No clock is
involved: the same commands give the same events, byte for byte.
"""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rig.errors import LinkLost

CPU_HZ = 16_000_000
CYCLES_A_TICK = 8
CYCLES_A_SAMPLE = 512
SILENCE = 128
"""The PWM level of silence: half of the supply."""

EVENTS = ("ticks", "tx", "pwm", "pulse", "led", "reset", "overrun")
USB_EVENTS = ("open", "closed", "packet", "bootkey", "peek")


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened.

    `kind` is ticks (the tick counter starts), tx (`value`: a byte whose start bit begins), pwm (`value`: a level that
    takes effect; it was written at `written_cycle`), pulse, led (`value`: 0 or 1), reset or overrun (a byte was lost
    in the board's receiver). A board on native USB has no start bit: tx is a byte that the host has got. It adds open
    and closed (a program on the host holds the port), packet (the board has taken `value` bytes), bootkey (a reset that
    asks for the bootloader) and peek (`value`: a byte of its memory).
    """

    kind: str
    cycle: int
    value: int = 0
    written_cycle: int | None = None


def event_of(word: str, numbers: Sequence[str]) -> Event | None:
    """The event of a line `WORD NUMBERS`; None for another kind of line. Raises ValueError for a damaged one."""
    if word == "tx":
        return Event(word, int(numbers[0]), int(numbers[1], 16))
    if word not in EVENTS and word not in USB_EVENTS:
        return None
    cycle, value, written = (*map(int, numbers), 0, 0)[:3]
    return Event(word, cycle, value, written if word == "pwm" else None)


class Emulator:
    """A board that was switched on at cycle 0. `command` starts the emulator with the image and its options.

    Raises LinkLost when the emulator cannot be started or ends.
    """

    def __init__(self, command: Sequence[str]) -> None:
        self.cycle = 0
        try:
            self._process = subprocess.Popen(
                list(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
            )
        except OSError as error:
            raise LinkLost(
                f"the emulator did not start: {error}", "an emulator built for this machine", "build it: ./do setup"
            ) from error

    def run(self, until_cycle: int, stop_at_tx: bool = False) -> list[Event]:
        """Runs up to a cycle (one instruction further at most), or until a byte leaves when `stop_at_tx`."""
        return self._tell([f"run {until_cycle} tx" if stop_at_tx else f"run {until_cycle}"])

    def receive(self, arrivals: Iterable[tuple[int, int]]) -> None:
        """Bytes on their way to the board as (cycle at which it has arrived, byte), in order."""
        self._tell([f"rx {cycle} {byte:x}" for cycle, byte in arrivals])

    def poke(self, address: int, value: int) -> None:
        """Writes a byte of the board's data memory."""
        self._tell([f"poke {address:x} {value:x}"])

    def wire_capture(self, wired: bool) -> None:
        """Wires the pulse to the capture input, or takes the wire away."""
        self._tell([f"loop {int(wired)}"])

    def hang(self) -> None:
        """Makes the program hang at its present instruction, until a reset."""
        self._tell(["hang"])

    def reset(self) -> list[Event]:
        """Pulls the reset pin."""
        return self._tell(["reset"])

    def close(self) -> None:
        """Ends the process; may be repeated."""
        process = self._process
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # it has ended already
                    stream.close()
        process.wait()

    def _tell(self, lines: list[str]) -> list[Event]:
        process, events = self._process, list[Event]()
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdin.closed:
            raise self._ended("it was closed")
        try:
            process.stdin.write("".join(f"{line}\n" for line in lines))
            process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended(self._last_words()) from error
        answered = 0
        while answered < len(lines):
            word, *numbers = process.stdout.readline().split() or [""]
            if word == "at":
                answered += 1
                self.cycle = int(numbers[0])
                continue
            event = self._event(word, numbers)
            if event is not None:
                events.append(event)
            else:
                raise self._ended(f"{word} {' '.join(numbers)}".strip() or self._last_words())
        return events

    def _event(self, word: str, numbers: Sequence[str]) -> Event | None:
        return event_of(word, numbers)

    def _last_words(self) -> str:
        assert self._process.stderr is not None
        return self._process.stderr.read().strip() or "no reason given"

    @staticmethod
    def _ended(why: str) -> LinkLost:
        return LinkLost(f"the emulator ended: {why}", "an emulator that runs", "build it anew: rig firmware build")
