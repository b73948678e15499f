"""The steps of a calibration as data: what is found in each, how a person connects it, and what is good enough."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Step:
    """One way of wiring the interface, and what is found with it.

    `connect` and `drawing` (lines of at most 70 ASCII characters) say what to plug; `{ref}` and `{ear}` stand for the
    channels. `records`: whether anything is recorded; a distance is read off a ruler.
    """

    name: str
    title: str
    quantities: tuple[str, ...]
    connect: tuple[str, ...]
    drawing: str
    records: bool = True

    def words(self, ref: int, ear: int) -> list[str]:
        """What to do, a sentence a line, for these channels (one-based)."""
        return [line.format(ref=ref, ear=ear) for line in self.connect]

    def picture(self, ref: int, ear: int) -> list[str]:
        """The drawing for these channels, whose numbers have one or two digits."""
        lines = self.drawing.strip("\n").splitlines()
        return [line.replace("{ref}", f"{ref:<2}").replace("{ear}", f"{ear:<2}") for line in lines]


@dataclass(frozen=True, slots=True)
class Aim:
    """How well a quantity is to be known, as a 95 % interval's half-width in its unit, and for how many days."""

    u95: float
    good_for_days: int


AIMS: dict[str, Aim] = {
    "channel_skew": Aim(0.02, 365),
    "sample_clock": Aim(5.0, 180),
    "mouth_path": Aim(5e-5, 30),
    "ear_path": Aim(5e-5, 30),
    "transducer": Aim(5e-5, 365),
    "interface_loop": Aim(0.05, 365),
    "noise_floor": Aim(1.0, 365),
    "clip_level": Aim(0.2, 365),
    "polarity": Aim(0.0, 3650),
    "crosstalk": Aim(2.0, 365),
}
"""Chosen: each is below what a latency of 150 ms can show (0.001 ms), or what a ruler can (17 mm of air)."""

_OPEN = r"""
  +- interface ----+
  | output 1     o |
  | input {ref}     o |    nothing
  | input {ear}     o |    nothing
  +----------------+
"""

_LOOP = r"""
  +- interface ----+
  | output 1     o-+-----.
  |                |     |  one cable
  | input {ref}     o-+-----'
  | input {ear}     o |        nothing
  +----------------+
"""

_SPLIT = r"""
  +- interface ----+
  | output 1     o-+-----.
  |                |     |  a Y-cable: one plug into
  | input {ref}     o-+-----+  the output, one into
  | input {ear}     o-+-----'  each input
  +----------------+
"""

_LIMIT = r"""
  +- interface ----+
  | output 1     o-+-----.
  |                |     |  the same Y-cable, and the gain
  | input {ref}     o-+-----+  of both inputs turned up:
  | input {ear}     o-+-----'  the loudest chirps must clip
  +----------------+
"""

_AIR = r"""
  +- interface ----+
  | output 1     o-+--.--------------> mouth's loudspeaker
  |                |  |                     )))
  | input {ref}     o-+--'  Y-cable             ) ) )    distance by ruler
  | input {ear}     o-+-----------------< ear's microphone
  +----------------+
"""

_RULER = r"""
   mouth's loudspeaker )))   <-- mouth's distance -->  [mic] system
                                                         |
   ear's microphone [mic]    <-- ear's distance -->  ((( loudspeaker
"""

STEPS: tuple[Step, ...] = (
    Step(
        "open",
        "nothing connected",
        ("noise_floor", "sample_clock"),
        (
            "Pull the plugs out of inputs {ref} and {ear}. Leave their gain as it is in a measurement.",
            "A minute of silence is recorded: the noise of the inputs, and the clock against the computer's.",
        ),
        _OPEN,
    ),
    Step(
        "loop",
        "output into the reference's input",
        ("interface_loop", "crosstalk"),
        (
            "One cable from output 1 into input {ref}. Nothing in input {ear}.",
            "Chirps are played: how long the interface takes, and what of input {ref} leaks into input {ear}.",
        ),
        _LOOP,
    ),
    Step(
        "split",
        "output into both inputs",
        ("channel_skew", "polarity"),
        (
            "A Y-cable from output 1 into inputs {ref} and {ear}: both hear the same wire.",
            "Chirps are played: how far apart the inputs are, and which way up.",
        ),
        _SPLIT,
    ),
    Step(
        "limit",
        "output into both inputs, gain up",
        ("clip_level",),
        (
            "Leave the Y-cable. Turn the gain of both inputs up until the loudest chirps clip, the softest not.",
            "Chirps from soft to loud are played: where each input stops following.",
        ),
        _LIMIT,
    ),
    Step(
        "air",
        "mouth and ear's microphone in front of each other",
        ("transducer",),
        (
            "Output 1 by Y-cable into input {ref} and into the mouth's loudspeaker. The ear's microphone into input"
            " {ear}, straight in front of the loudspeaker, at a distance that you know; nothing may move.",
            "Chirps are played: what loudspeaker and microphone add to the time of the air between them.",
        ),
        _AIR,
    ),
    Step(
        "ruler",
        "how far mouth and ear are from the system",
        ("mouth_path", "ear_path"),
        (
            "Set the system up as it is measured. Two distances, by ruler: from the mouth's loudspeaker to the"
            " system's microphone, and from the system's loudspeaker to the ear's microphone.",
        ),
        _RULER,
        records=False,
    ),
)

_BY_NAME = {step.name: step for step in STEPS}


def step_named(name: str) -> Step:
    """The step of that name. Raises KeyError."""
    return _BY_NAME[name]


def steps_for(quantities: tuple[str, ...]) -> tuple[Step, ...]:
    """The steps that find any of the quantities, in their order."""
    return tuple(step for step in STEPS if set(step.quantities) & set(quantities))


OBTAINABLE: tuple[str, ...] = tuple(name for step in STEPS for name in step.quantities)
"""Every quantity that a step finds, in the order of the steps."""
