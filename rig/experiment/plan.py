"""The plan of an experiment: what is measured, the baseline's values, and rounds that change one of them each."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

Scalar = str | int | float | bool

COMMAND, ENVIRONMENT, CONFIG, WORLD = "command", "environment", "config", "world"
WAYS = (COMMAND, ENVIRONMENT, CONFIG, WORLD)
"""How a value reaches the system: {NAME} in its command, a variable, a message over its marks connection, and a setting
of a simulated world."""

BASELINE, ROUND, AGAIN = "baseline", "round", "baseline again"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that may be changed, by its way and its name; `value` is the baseline's."""

    name: str
    way: str
    value: Any


@dataclass(frozen=True, slots=True)
class Round:
    """One change: parameter `name` from the baseline's value to `to`. `stage`: which one it is meant for. `allow`: what
    may differ beside it."""

    name: str
    to: Any
    stage: str | None
    allow: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`measure` holds options of `rig measure` by their names, as written. `seed` of the order and the measurements."""

    name: str
    measure: Mapping[str, Any]
    parameters: tuple[Parameter, ...]
    rounds: tuple[Round, ...]
    shuffled: bool
    repeats_baseline: bool
    seed: int
    allow: tuple[str, ...]

    def sha256(self, played_sha256: str | None) -> str:
        """Stands for everything that the plan says, but for its comments; `played_sha256` of a file that is played."""
        text = json.dumps([self.as_json(), played_sha256], sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()

    def as_json(self) -> dict[str, Any]:
        """The plan as plain values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self)))
        return plain

    def parameter(self, name: str) -> Parameter:
        return next(p for p in self.parameters if p.name == name)

    def values(self, step: Step, way: str) -> dict[str, Any]:
        """What reaches the system by one way in a step, by name."""
        found = {p.name: p.value for p in self.parameters if p.way == way}
        if step.round is not None:
            change = self.rounds[step.round - 1]
            if change.name in found:
                found[change.name] = change.to
        return found


@dataclass(frozen=True, slots=True)
class Step:
    """One measurement, the `position`-th from 0. `round` counts from 1 as the plan lists them, None for a baseline."""

    position: int
    kind: str
    round: int | None
    folder: str


def steps_of(plan: Plan) -> tuple[Step, ...]:
    """The measurements in the order in which they are made: the baseline, the rounds, the baseline again by choice."""
    order = list(range(1, len(plan.rounds) + 1))
    if plan.shuffled:
        random.Random(plan.seed).shuffle(order)
    kinds: list[tuple[str, int | None]] = [(BASELINE, None), *((ROUND, number) for number in order)]
    if plan.repeats_baseline:
        kinds.append((AGAIN, None))
    steps = []
    for position, (kind, number) in enumerate(kinds):
        words = kind if number is None else f"{plan.rounds[number - 1].name} {plan.rounds[number - 1].to}"
        slug = re.sub(r"[^\w.]+", "-", words.encode("ascii", "replace").decode()).strip("-.")[:40]
        steps.append(Step(position, kind, number, f"{position:02d}-{slug}"))
    return tuple(steps)
