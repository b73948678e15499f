"""Frozen records of stages: what marks and physics together say of where the time went. Seconds, signed, unclamped."""

from __future__ import annotations

from dataclasses import dataclass

from rig.domain.marks import MarkPart

SOFTWARE_STAGES = ("encode", "send", "network", "play")
"""What lies between two of a frame's marks that follow each other."""

CAPTURE, FILL, OUTPUT = "capture", "frame_fill", "output"
BY_RIG, BY_SOFTWARE = "rig", "software"
JOIN = " + "
"""Stages that cannot be told apart have one name made of theirs."""


@dataclass(frozen=True, slots=True)
class RunMarks:
    """The marks of one run, one entry for each clock that they are on, and what is to be said of them.

    `own` False: marks of other runs may be among them."""

    parts: tuple[MarkPart, ...]
    own: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StageSample:
    """One stage in one run. `trials` are the trials whose values these are, () where they are not of single trials.

    `u_noise_s`: standard uncertainty of one value, where it averages out. `u_common_s`: of what all values share; in it
    `half_width_s`, a bound.
    """

    name: str
    by: str
    values_s: tuple[float, ...]
    trials: tuple[int, ...]
    u_noise_s: float = 0.0
    u_common_s: float = 0.0
    half_width_s: float = 0.0
    claimed_s: float | None = None
    claimed_by: str | None = None
    problem: str | None = None  # why the claim cannot be used


@dataclass(frozen=True, slots=True)
class RunStages:
    """What became of one run. Stages in the order of the sound's way; together they are the latency.

    `carriers`: (trial, seq of the frame that carried its beginning). `missing`: trials to which no frame was found, or
    more than one. `residuals_s`: latency minus the stages' sum, trial by
    trial. `hidden`: capture and output together where they are apart too. `tie`: how the marks' clock was tied to the
    host's ("boot", "exchanges", None); `no_split_because` is None exactly where capture and output are apart, and then
    `fillings_s` has for each carrier how long the sound waited for it to be complete, half of it where no mark says.
    """

    run: int
    samples: tuple[StageSample, ...]
    carriers: tuple[tuple[int, int], ...]
    missing: tuple[int, ...]
    residuals_s: tuple[float, ...]
    hidden: StageSample | None
    tie: str | None
    no_split_because: str | None
    half_width_s: float | None  # of host time of a mark against host time of a sound
    resolution_s: float | None  # of the marks
    frame_s: float | None
    notes: tuple[str, ...] = ()
    fillings_s: tuple[float, ...] = ()
