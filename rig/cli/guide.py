"""A calibration: which quantities are still unknown, the steps that find them, and a record of each.

What is found is on disk at once: a calibration that was ended goes on there the next time.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from pathlib import Path

from rig.calibration.choose import Circumstances
from rig.calibration.fresh import holds, of_kind
from rig.calibration.steps import OBTAINABLE, Step, steps_for
from rig.calibration.store import load
from rig.cli.calibrate_words import COVER
from rig.cli.guide_bench import GuideBench, Sized
from rig.cli.guide_measure import Measurer, OpenDisplay, Unmeasured
from rig.cli.guide_readings import Figure, Given, Reading, through_air
from rig.cli.guide_records import Entry, channels_of, keep
from rig.cli.guide_talk import ROOM_C, ROOM_U_C, Answer, Talk, distance, temperature, wrapped
from rig.domain.calibration import Used
from rig.domain.records import BenchKind
from rig.errors import BenchNotReady

PLACES = {"mouth_path": "mouth", "ear_path": "ear"}
NAMED = {
    "mouth": "from the mouth's loudspeaker to the system's microphone, such as 8cm or 80mm+-5mm",
    "ear": "from the system's loudspeaker to the ear's microphone, such as 5cm",
    "air": "from the mouth's loudspeaker to the ear's microphone, such as 30cm",
}


@dataclass(frozen=True, slots=True)
class GuideOptions:
    """What is asked for. `quantities` None: all that are not known already. Channels one-based."""

    quantities: tuple[str, ...] | None
    rate_hz: int
    ref: int
    ear: int
    folder: Path  # of the records
    sessions: Path
    distances: dict[str, Sized] = field(default_factory=dict)  # by mouth, ear, air: what the command line said
    temperature: Sized | None = None


def circumstances(bench: GuideBench, options: GuideOptions, today: datetime.date) -> Circumstances:
    """What the records that are found now hold for. A simulated device does not age."""
    return Circumstances(
        device=bench.identity,
        on=None if bench.kind is BenchKind.SIMULATED else today,
        rate_hz=options.rate_hz,
        block_frames=None,
        reference_channel=options.ref,
        ear_channel=options.ear,
    )


class Guide:
    """One calibration of one device. `today` is the day that the records carry."""

    def __init__(
        self, bench: GuideBench, talk: Talk, options: GuideOptions, today: datetime.date, display: OpenDisplay
    ) -> None:
        self._bench = bench
        self._talk = talk
        self._options = options
        self._today = today
        self._measurer = Measurer(bench, talk, (options.ref, options.ear), options.sessions, display)
        self._where = circumstances(bench, options, today)
        self._warmth: Sized | None = options.temperature
        self.entries: list[Entry] = []
        self.ended = False

    def run(self) -> None:
        """Goes through the steps; `entries` has what became of every quantity, also while it runs, and `ended` says
        that the person went away before the last.

        Raises what the bench raises; what was found until then is kept."""
        asked = OBTAINABLE if self._options.quantities is None else self._options.quantities
        to_find = tuple(name for name in asked if not self._is_known(name))
        steps = steps_for(to_find)
        if steps:
            count = f"{len(steps)} step{'s' if len(steps) > 1 else ''}"
            self._talk.say(*wrapped(f"{self._bench.identity.words()}: {count}", indent=""))
        for number, step in enumerate(steps, start=1):
            wanted = tuple(name for name in step.quantities if name in to_find)
            self._talk.say("", f"step {number} of {len(steps)}: {step.title}")
            answer = self._measurer.ask_for(step)
            if answer is Answer.GO:
                answer = self._carry_out(step, wanted)
            elif answer is Answer.LEAVE_OUT:
                self._miss(wanted, "left out", "", 0)
            if answer is Answer.END:
                self.ended = True
                return

    def _is_known(self, quantity: str) -> bool:
        """Whether it is known for every channel, and nobody named it; then it is entered as it is."""
        if self._options.quantities is not None:
            return False
        channels = channels_of(quantity, self._where)
        found = [self._record_of(quantity, channel) for channel in channels]
        known = [used for used in found if used is not None]
        if len(known) < len(channels):
            return False
        self.entries += [Entry(quantity, used.record.channel, "known", used) for used in known]
        return True

    def _carry_out(self, step: Step, wanted: tuple[str, ...]) -> Answer:
        """Finds what a step has; END: the person ends here."""
        given = self._given(step)
        if not step.records:
            self._by_ruler(step, wanted, given)
            return Answer.GO
        if step.name == "air" and given.distance is None:
            self._miss(wanted, "the distance to the ear's microphone was not told", "give --distance, such as 30cm", 0)
            return Answer.GO
        found = self._measurer.measure(step, wanted, given)
        if isinstance(found, Unmeasured):
            self._miss(wanted, found.what, found.remedy, BenchNotReady.exit_code)
            return Answer.END if found.ended else Answer.GO
        for figure in found.figures:
            self._keep(figure, found.reading, step, given)
        return Answer.GO

    def _by_ruler(self, step: Step, wanted: tuple[str, ...], given: Given) -> None:
        for quantity in wanted:
            away = self._distance(PLACES[quantity])
            if away is None:
                remedy = f"give it with --{PLACES[quantity]}-distance, such as 8cm"
                self._miss((quantity,), "its distance was not told", remedy, 0)
            else:
                warmth = self._temperature()
                told = replace(given, distance=away, temperature=warmth)
                self._keep(through_air(quantity, away, warmth), None, step, told)

    # --- what is known beside the recording ---------------------------------------------------------------------------

    def _given(self, step: Step) -> Given:
        given = Given(self._options.ref, self._options.ear, self._bench.host_clock_u_ppm)
        if step.name == "split":
            leak = self._record_of("crosstalk", None)
            return replace(given, crosstalk_db=None if leak is None else leak.record.value)
        if step.name == "air":
            skew, away = self._record_of("channel_skew", None), self._distance("air")
            return replace(
                given,
                skew=None if skew is None else Sized(skew.record.value, skew.record.u),
                distance=away,
                temperature=None if away is None else self._temperature(),
            )
        return given

    def _record_of(self, quantity: str, channel: int | None) -> Used | None:
        """The newest record, where it holds."""
        used = of_kind(load(self._options.folder), quantity, channel, self._where) if self._has_records() else None
        return used if used is not None and holds(used, self._where) else None

    def _has_records(self) -> bool:
        return self._options.folder.is_dir()

    def _distance(self, place: str) -> Sized | None:
        told = self._options.distances.get(place) or self._bench.ruler(place)
        return told or self._talk.ask(f"Distance {NAMED[place]}:", distance)

    def _temperature(self) -> Sized:
        """Of the air; asked for once. A room's where nobody says."""
        if self._warmth is None:
            question = "Temperature of the air in degrees Celsius:"
            self._warmth = self._bench.thermometer() or self._talk.ask(question, temperature)
        if self._warmth is None:
            taken = f"{ROOM_C:g} +/- {COVER * ROOM_U_C:.0f} degrees"
            self._talk.say(*wrapped(f"no temperature was told: taken as {taken}"))
            self._warmth = Sized(ROOM_C, ROOM_U_C)
        return self._warmth

    # --- what becomes of a quantity -----------------------------------------------------------------------------------

    def _keep(self, figure: Figure, reading: Reading | None, step: Step, given: Given) -> None:
        """Writes a figure down as a record, and says so."""
        entry = keep(figure, reading, step, given, self._where, self._today, self._options.folder)
        self.entries.append(entry)
        self._talk.say(*wrapped(entry.line(), hang="    "))

    def _miss(self, quantities: tuple[str, ...], why: str, remedy: str, exit_code: int) -> None:
        for quantity in quantities:
            for channel in channels_of(quantity, self._where):
                self.entries.append(Entry(quantity, channel, "missing", None, None, exit_code, why, remedy))
