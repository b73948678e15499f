"""One change and its verdict: what it did to the latency and to each stage, or why there is no verdict.

A difference has one cause only where one thing was changed. So everything recorded that differs beside the named change
is a reason to refuse, unless the user says that it does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rig.errors import UsageError
from rig.report.difference import difference_s, settings_apart
from rig.verdict.steadiness import MIN_RUNS, Growth, growth

Json = dict[str, Any]

NO_CIRCUMSTANCE = ("claimed_s",)
"""What a driver claims of itself is a result, not a setting."""

FEW_RUNS = f"fewer than {MIN_RUNS} runs on a side: a change cannot be told from another start of the system"


class Verdict(StrEnum):
    """What the change did. UNSTEADY: the range grew, and the median is not worse."""

    EFFECTIVE = "effective"
    MOVED = "moved"
    NO_EFFECT = "no effect"
    UNSTEADY = "unsteady"
    WORSE = "worse"


@dataclass(frozen=True, slots=True)
class Change:
    """The named change; `old` and `new` as the user wrote them, None where only a name was given."""

    name: str
    old: str | None = None
    new: str | None = None


@dataclass(frozen=True, slots=True)
class Apart:
    """A recorded circumstance that differs. `why`: "changed" (it is the change), "allowed", or "" (neither)."""

    name: str
    before: Any
    after: Any
    why: str


@dataclass(frozen=True, slots=True)
class Delta:
    """The change of one figure in s, positive: later. The 95 % interval is `low_s` to `high_s`; `range_grew` is None
    where too few runs tell."""

    name: str
    before_s: float
    after_s: float
    change_s: float
    low_s: float
    high_s: float
    before_range_s: float | None
    after_range_s: float | None
    range_grew: bool | None

    @property
    def fell(self) -> bool:
        return self.high_s < 0.0

    @property
    def rose(self) -> bool:
        return self.low_s > 0.0


@dataclass(frozen=True, slots=True)
class Comparison:
    """`verdict` is None exactly where `refused` says why. `stages` is None where one side has none."""

    before: str
    after: str
    changed: Change | None
    verdict: Verdict | None
    refused: str | None
    total: Delta | None
    growth: Growth | None
    stages: tuple[Delta, ...] | None
    apart: tuple[Apart, ...]
    caveats: tuple[str, ...]


def compare(
    before: tuple[str, Json], after: tuple[str, Json], changed: Change | None, allowed: Sequence[str]
) -> Comparison:
    """Compares two named documents of measurements. Raises UsageError where `changed` contradicts what is recorded."""
    (a_name, a), (b_name, b) = before, after
    simulated = a["scenario"] is not None and b["scenario"] is not None  # the device is its scenario once more
    apart = tuple(
        _apart(name, values, changed, allowed)
        for name, values in settings_apart([before, after])
        if name.split(":")[0] not in NO_CIRCUMSTANCE and not (name == "device" and simulated)
    )
    refused = _refusal(before, after, apart)
    if a["latency_s"] is None or b["latency_s"] is None or a["mode"] != b["mode"]:
        return Comparison(a_name, b_name, changed, None, refused, None, None, None, apart, ())
    grown = growth(_runs(a), a["latency_s"]["median"], _runs(b), b["latency_s"]["median"])
    total = _total(a["latency_s"], b["latency_s"], grown)
    stages = _stages(a["stages"], b["stages"])
    caveats = (*_doubts(total, grown), *_caveats(before, after))
    verdict = None if refused else _verdict(total, stages or ())
    return Comparison(a_name, b_name, changed, verdict, refused, total, grown, stages, apart, caveats)


def _verdict(total: Delta, stages: Sequence[Delta]) -> Verdict:
    """The rule, in the order in which it is asked (docs/comparing.md)."""
    if total.rose:
        return Verdict.WORSE
    if total.range_grew:
        return Verdict.UNSTEADY
    if total.fell:
        return Verdict.EFFECTIVE
    if any(s.fell for s in stages) and any(s.rose for s in stages):
        return Verdict.MOVED
    return Verdict.NO_EFFECT


def _refusal(before: tuple[str, Json], after: tuple[str, Json], apart: Sequence[Apart]) -> str | None:
    (a_name, a), (b_name, b) = before, after
    for name, d in (before, after):
        if d["latency_s"] is None:
            return f"{name} has no valid figure"
    if a["mode"] != b["mode"]:
        return f"{a_name} is a {a['mode']}, {b_name} a {b['mode']}: not the same quantity"
    if any(not one.why for one in apart):
        return "more differs than the one change"
    return FEW_RUNS if min(len(_runs(a)), len(_runs(b))) < MIN_RUNS else None


def _runs(d: Json) -> list[tuple[float, float]]:
    return [(r["latency_s"]["min"], r["latency_s"]["max"]) for r in d["runs"] if r["latency_s"] is not None]


def _total(a: Json, b: Json, grown: Growth) -> Delta:
    change_s, low_s, high_s = difference_s(a, b)
    return Delta("total", a["median"], b["median"], change_s, low_s, high_s, a["range"], b["range"], grown.grew)


def _stages(a: Any, b: Any) -> tuple[Delta, ...] | None:
    """Stages that both have with a median and an interval; None where one side was measured without marks."""
    if not a or not b:
        return None
    found = []
    others = {stage["stage"]: stage for stage in b}
    for one in a:
        other = others.get(one["stage"])
        if other is None or any(s["median_s"] is None or s["u95_s"] is None for s in (one, other)):
            continue
        change_s, low_s, high_s = difference_s(_interval(one), _interval(other))
        found.append(
            Delta(
                one["stage"],
                one["median_s"],
                other["median_s"],
                change_s,
                low_s,
                high_s,
                one["range_s"],
                other["range_s"],
                None,
            )
        )
    return tuple(found)


def _interval(stage: Json) -> Json:
    median_s, u95_s = stage["median_s"], stage["u95_s"]
    return {"median": median_s, "low": median_s - u95_s, "high": median_s + u95_s}


def _doubts(total: Delta, grown: Growth) -> tuple[str, ...]:
    """A range that doubled is worth a look even where so few runs prove nothing."""
    doubled = total.before_range_s is not None and grown.growth_s > total.before_range_s
    if not doubled or grown.share is None or grown.grew:
        return ()
    return (
        f"the range more than doubled, but {grown.share:.0%} of chance deals of the runs do as much: measure more runs",
    )


def _caveats(before: tuple[str, Json], after: tuple[str, Json]) -> tuple[str, ...]:
    found = []
    for name, d in (before, after):
        if d["mixture"]:
            found.append(f"{name} has several groups of trials: its median may be the latency of no call")
        if d["cut_short"]:
            found.append(f"{name} was cut short: {d['cut_short']}")
        accepted, trials = (sum(r[key] for r in d["runs"]) for key in ("n_accepted", "n_trials"))
        if accepted < trials:
            found.append(f"{trials - accepted} of {trials} trials of {name} were refused and are not compared")
    (_, a), (_, b) = before, after
    if a["session"] is not None and a["session"] == b["session"]:
        found.append("both sides are the same session")
    return tuple(found)


def _apart(name: str, values: list[Any], changed: Change | None, allowed: Sequence[str]) -> Apart:
    before, after = values
    if any(_names(name, one) for one in allowed):
        return Apart(name, before, after, "allowed")
    if changed is None or not _names(name, changed.name):
        return Apart(name, before, after, "")
    for said, recorded, word in ((changed.old, before, "before"), (changed.new, after, "after")):
        if said is not None and said.strip().casefold() != str(recorded).casefold():
            raise UsageError(
                f"--changed says that {name} was {said} {word} the change, and the session says {recorded}",
                f"{changed.name}: {before} -> {after}, as recorded",
                "correct --changed, or exchange the two sessions",
            )
    return Apart(name, before, after, "changed")


def _names(setting: str, word: str) -> bool:
    """Does the word name the setting, by its whole name or by what follows the colon?"""
    word, setting = word.strip().casefold(), setting.casefold()
    return word in (setting, setting.partition(": ")[2])
