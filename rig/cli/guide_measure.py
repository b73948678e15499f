"""One step of a calibration: ask for its wiring, check it, tell the mistake, check again, measure until certain.

Nothing is written here but the sessions: what becomes of the figures is in `guide.py` and `guide_check.py`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from rig.analyse.wired import Miswired
from rig.calibration.steps import AIMS, Step
from rig.cli.calibrate_words import COVER
from rig.cli.guide_bench import GuideBench, Wanted
from rig.cli.guide_readings import Figure, Given, Reading, figures, mistake, read
from rig.cli.guide_talk import Answer, Talk, boxed, wrapped
from rig.domain.seams import ProgressSink

AMPLITUDE = 0.5

CHECKED_WITH, CHECKED_S = 3, 1.5
"""A connection is checked with so many chirps, and with so much silence where nothing is connected."""

FIRST_COUNT, MOST_COUNT = 12, 200
FIRST_QUIET_S, MOST_QUIET_S = 62.0, 600.0
ROUNDS = 3
"""So often a step is measured, the longer the further it was from its aim."""

OpenDisplay = Callable[[], AbstractContextManager[ProgressSink]]
"""Opens what shows the progress of one recording."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What a step gave."""

    figures: list[Figure]
    reading: Reading


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """A step that gave nothing: the mistake that nobody put right, in words. `ended`: the person ends here."""

    what: str
    remedy: str
    ended: bool


@dataclass(frozen=True, slots=True)
class _Size:
    """How much is recorded: chirps, or seconds of silence."""

    count: int
    quiet_s: float | None


class Measurer:
    """Carries steps out on a bench; each recording is a session below `sessions`. Channels one-based."""

    def __init__(
        self, bench: GuideBench, talk: Talk, channels: tuple[int, int], sessions: Path, display: OpenDisplay
    ) -> None:
        self._bench = bench
        self._talk = talk
        self._channels = channels
        self._sessions = sessions
        self._display = display
        self._recorded = 0

    def ask_for(self, step: Step) -> Answer:
        """Says what to connect, and waits until it is."""
        for sentence in step.words(*self._channels):
            self._talk.say(*wrapped(sentence))
        self._talk.say(*boxed(step.picture(*self._channels)))
        return self._talk.ready("Connected" if step.records else "Set up")

    def measure(self, step: Step, wanted: tuple[str, ...], given: Given) -> Measured | Unmeasured:
        """The figures of the quantities `wanted`. Raises what the bench raises; what was recorded is kept."""
        while True:
            found = self._checked(step, given) or self._measured(step, wanted, given)
            if isinstance(found, Measured):
                return found
            what, remedy = self._numbered(found.what), self._numbered(found.remedy)
            self._talk.say(*wrapped(f"NOT AS ASKED: {what}."), *wrapped(f"To put right: {remedy}."))
            answer = self._talk.again()
            if answer is not Answer.GO:
                return Unmeasured(what, remedy, answer is Answer.END)
            self._bench.put_right()

    def _checked(self, step: Step, given: Given) -> Miswired | None:
        """A short recording, before the long one; where that is short itself, it is its own check."""
        if step.name == "limit":
            return None
        size = _Size(CHECKED_WITH, CHECKED_S if step.name == "open" else None)
        return mistake(self._record(step, "check", size, given), step.name, given)

    def _measured(self, step: Step, wanted: tuple[str, ...], given: Given) -> Measured | Miswired:
        """Records until every figure is good enough, or more would not help."""
        size = _Size(FIRST_COUNT, FIRST_QUIET_S if step.name == "open" else None)
        for last in (False,) * (ROUNDS - 1) + (True,):
            reading = self._record(step, "measure", size, given)
            wrong = mistake(reading, step.name, given)
            if wrong is not None:
                return wrong
            found = [figure for quantity in wanted for figure in figures(reading, quantity, given)]
            larger = size if last else _larger(size, max(map(_shortfall, found), default=0.0))
            if larger == size:
                return Measured(found, reading)
            self._talk.say("  not certain enough yet: recording again, for longer")
            size = larger
        raise AssertionError("the last round ends with what it has")

    def _record(self, step: Step, what: str, size: _Size, given: Given) -> Reading:
        self._recorded += 1
        folder = self._sessions / f"{self._recorded:02d}-{step.name}-{what}"
        away_m = None if given.distance is None or step.name != "air" else given.distance.value
        self._talk.say("  checking the connection" if what == "check" else "  measuring")
        with self._display() as progress:  # for this recording alone: else it would paint over what is said
            self._bench.record(Wanted(step.name, size.count, AMPLITUDE, size.quiet_s, away_m), folder, progress)
        return read(folder, step.name)

    def _numbered(self, text: str) -> str:
        return text.replace("{ref}", str(self._channels[0])).replace("{ear}", str(self._channels[1]))


def _shortfall(figure: Figure) -> float:
    """How many times too wide the part of a figure's interval is that more recording can narrow; 0 for one that is
    certain enough, or cannot become so."""
    aim_u = AIMS[figure.quantity].u95 / COVER
    if figure.found is None or aim_u <= figure.floor_u or figure.found.u <= aim_u:
        return 0.0
    random_u = math.sqrt(max(0.0, figure.found.u**2 - figure.floor_u**2))
    return random_u / math.sqrt(aim_u**2 - figure.floor_u**2)


def _larger(size: _Size, shortfall: float) -> _Size:
    """As much as the aim needs, with a fifth to spare: a mean's uncertainty falls with the root of the count, that of a
    clock's rate with the power 1.5 of the time. The same where nothing is short, or it is the most already."""
    if shortfall <= 1.0:
        return size
    if size.quiet_s is not None:
        return replace(size, quiet_s=min(MOST_QUIET_S, 1.2 * size.quiet_s * shortfall ** (2.0 / 3.0)))
    return replace(size, count=min(MOST_COUNT, math.ceil(1.2 * size.count * shortfall**2)))
