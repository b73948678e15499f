"""What a calibration says to the person at the bench, and how it waits for them. All on stderr and stdin."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Callable, Iterable
from enum import Enum
from typing import Protocol, TextIO

from rig.cli.guide_bench import Sized
from rig.errors import UsageError

WIDTH = 80

_LENGTH = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(mm|cm|m)")
_UNITS_M = {"mm": 1e-3, "cm": 1e-2, "m": 1.0}
FARTHEST_M = 20.0

RULER_U_M = 0.005
"""Standard uncertainty of a distance that comes without one: nobody sees where in a loudspeaker its sound begins."""

THERMOMETER_U_C = 1.0
ROOM_C, ROOM_U_C = 20.0, 4.0
"""Of a room whose temperature nobody has told: 0.7 % of the time that sound takes."""

COLDEST_C, WARMEST_C = -40.0, 60.0


class Answer(Enum):
    """What the person wants: go on, leave this step out, or end here."""

    GO = "go"
    LEAVE_OUT = "leave out"
    END = "end"


class Talk(Protocol):
    """Words to the person at the bench."""

    def say(self, *lines: str) -> None:
        """Lines as they are."""
        ...

    def ready(self, what: str) -> Answer:
        """Waits until the bench is as it was asked for."""
        ...

    def again(self) -> Answer:
        """Waits until a mistake has been put right."""
        ...

    def ask(self, question: str, parse: Callable[[str], Sized]) -> Sized | None:
        """A figure that only a person can read; None where it is left out."""
        ...


class Person:
    """A person at a terminal: plain lines, answered by Enter or a letter."""

    def __init__(self, source: TextIO, out: TextIO) -> None:
        self._source = source
        self._out = out

    def say(self, *lines: str) -> None:
        for line in lines:
            print(line, file=self._out, flush=True)

    def ready(self, what: str) -> Answer:
        return self._wait(f"  {what}: Enter (s: leave this step out, q: end) ")

    def again(self) -> Answer:
        return self._wait("  Enter checks again (s: leave this step out, q: end) ")

    def ask(self, question: str, parse: Callable[[str], Sized]) -> Sized | None:
        while True:
            answer = self._line(f"  {question} (Enter: leave it out) ")
            if not answer:
                return None
            try:
                return parse(answer)
            except UsageError as error:
                self.say(f"  {error.what}; {error.expected}")

    def _wait(self, text: str) -> Answer:
        letters = {"": Answer.GO, "s": Answer.LEAVE_OUT, "q": Answer.END}
        while True:
            answer = self._line(text).casefold()
            if answer in letters:
                return letters[answer]
            self.say("  Enter, s or q")

    def _line(self, text: str) -> str:
        print(text, end="", file=self._out, flush=True)
        answer = self._source.readline()
        if not answer:  # the terminal has gone
            raise KeyboardInterrupt
        return answer.strip()


class Nobody:
    """`--yes`: the bench is taken to be ready, and nobody can put a mistake right."""

    def __init__(self, out: TextIO | None) -> None:
        self._out = out

    def say(self, *lines: str) -> None:
        if self._out is not None:
            for line in lines:
                print(line, file=self._out, flush=True)

    def ready(self, what: str) -> Answer:
        return Answer.GO

    def again(self) -> Answer:
        return Answer.LEAVE_OUT

    def ask(self, question: str, parse: Callable[[str], Sized]) -> Sized | None:
        return None


def talk_for(unattended: bool, quiet: bool) -> Talk:
    """Whoever is there. Raises UsageError where a person is needed and stdin is no terminal."""
    if unattended:
        return Nobody(None if quiet else sys.stderr)
    if not sys.stdin.isatty():
        raise UsageError(
            "rig calibrate waits for a person to plug cables, and its input is no terminal",
            "a terminal, or --yes where the cables are plugged already",
            "add --yes, with --quantity for what this wiring can give",
        )
    return Person(sys.stdin, sys.stderr)


def wrapped(text: str, indent: str = "  ", hang: str | None = None) -> list[str]:
    """A paragraph as lines of at most 80 columns."""
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if hang is None else hang,
        break_on_hyphens=False,
    )


def boxed(lines: Iterable[str]) -> list[str]:
    """A drawing with a blank line on each side."""
    return ["", *(f"    {line}".rstrip() for line in lines), ""]


def distance(text: str) -> Sized:
    """`13cm`, `0.13 m`, `130mm +- 2mm` to metres. Raises UsageError."""
    value, _, spread = (part.strip() for part in text.replace("±", "+-").partition("+-"))
    sizes = [_LENGTH.fullmatch(part) for part in ((value, spread) if spread else (value,))]
    if not all(sizes):
        raise UsageError(
            f"{text!r} is no distance", "a length with its unit, such as 13cm or 130mm+-2mm", "write it with a unit"
        )
    metres = [float(size[1]) * _UNITS_M[size[2]] for size in sizes if size is not None]
    if metres[0] > FARTHEST_M or (spread and not 0.0 < metres[1] <= FARTHEST_M):
        raise UsageError(f"{text!r} is out of range", f"up to {FARTHEST_M:g} m", "check the unit")
    return Sized(metres[0], metres[1] if spread else RULER_U_M)


def temperature(text: str) -> Sized:
    """`21`, `21.5C` to degrees Celsius. Raises UsageError."""
    found = re.fullmatch(r"([+-]?\d+(?:\.\d*)?)\s*°?\s*C?", text.strip(), re.IGNORECASE)
    if found is None or not COLDEST_C <= float(found[1]) <= WARMEST_C:
        raise UsageError(
            f"{text!r} is no temperature of a room",
            f"degrees Celsius from {COLDEST_C:g} to {WARMEST_C:g}, such as 21",
            "give it in degrees Celsius",
        )
    return Sized(float(found[1]), THERMOMETER_U_C)
