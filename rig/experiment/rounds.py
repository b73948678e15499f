"""From the measurements of an experiment to its rounds: what each change did, against the baseline before and after."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rig.experiment.plan import AGAIN, BASELINE, Plan, Round, steps_of
from rig.verdict.compare import Change, Comparison, Verdict, compare

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Measured:
    """A step's document; None where it has not been measured, with the error where it was tried: what was expected and
    what to do."""

    document: Json | None = None
    error: tuple[str, str, str] | None = None


@dataclass(frozen=True, slots=True)
class RoundResult:
    """One round. `verdict` None: `refused` says why. `before`, `after`: against the baseline at the start and the one
    at the end; None where one of the two was not measured."""

    number: int
    change: Round
    old: Any
    way: str
    folder: str
    measured: Measured
    verdict: Verdict | None
    refused: str | None
    before: Comparison | None
    after: Comparison | None


@dataclass(frozen=True, slots=True)
class Results:
    """Everything that an experiment found so far. `drift`: the baseline at the end against the one at the start."""

    plan: Plan
    sha256: str
    baseline: Measured
    again: Measured | None
    rounds: tuple[RoundResult, ...]
    drift: Comparison | None

    @property
    def is_complete(self) -> bool:
        steps = [self.baseline, *(r.measured for r in self.rounds), *([self.again] if self.again else [])]
        return all(step.document is not None for step in steps)


NOT_MEASURED = "not measured"


def results(plan: Plan, sha256: str, measured: Mapping[int, Measured]) -> Results:
    """The results of a plan. `measured` by the position of the steps; those that are missing were not measured yet."""
    steps = steps_of(plan)
    baseline = next(measured.get(s.position, Measured()) for s in steps if s.kind == BASELINE)
    again = next((measured.get(s.position, Measured()) for s in steps if s.kind == AGAIN), None)
    found = []
    for step in sorted((s for s in steps if s.round is not None), key=lambda s: s.round or 0):
        assert step.round is not None
        own = measured.get(step.position, Measured())
        found.append(_round(plan, step.round, step.folder, own, baseline, again))
    drift = None
    if again is not None and baseline.document is not None and again.document is not None:
        drift = compare(("baseline", baseline.document), (AGAIN, again.document), None, plan.allow)
    return Results(plan, sha256, baseline, again, tuple(found), drift)


def _round(
    plan: Plan, number: int, folder: str, own: Measured, baseline: Measured, again: Measured | None
) -> RoundResult:
    change = plan.rounds[number - 1]
    parameter = plan.parameter(change.name)
    second = None if again is None else again.document
    before = _against(plan, change, number, BASELINE, baseline, own, second)
    after = None if again is None else _against(plan, change, number, AGAIN, again, own, baseline.document)
    verdict, refused = _agreed(own, before, after, guarded=again is not None)
    return RoundResult(number, change, parameter.value, parameter.way, folder, own, verdict, refused, before, after)


def _against(
    plan: Plan, change: Round, number: int, name: str, baseline: Measured, own: Measured, other: Json | None
) -> Comparison | None:
    if own.document is None or baseline.document is None:
        return None
    return compare(
        (name, baseline.document),
        (f"round {number}", own.document),
        Change(change.name),
        (*plan.allow, *change.allow),
        change.stage,
        other,
    )


def _agreed(
    own: Measured, before: Comparison | None, after: Comparison | None, guarded: bool
) -> tuple[Verdict | None, str | None]:
    """The verdict that holds against every baseline, or why there is none."""
    if own.document is None:
        return None, NOT_MEASURED if own.error is None else own.error[0]
    if before is None or (guarded and after is None):
        return None, "the baseline was not measured" if before is None else "the baseline at the end was not measured"
    if before.verdict is None or after is None or after.verdict is before.verdict:
        return before.verdict, before.refused
    if after.verdict is None:
        return None, f"against the baseline at the end: {after.refused}"
    return None, (
        f"{before.verdict} against the baseline at the start, {after.verdict} against the one at the end: the bench"
        " drifted between, or the effect is at the edge of what can be seen"
    )
