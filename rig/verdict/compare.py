"""One change and its verdict: what it did to the latency and to each stage, or why there is no verdict.

A difference has one cause only where one thing was changed. So everything recorded that differs beside the named change
is a reason to refuse, unless the user says that it does not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rig.errors import UsageError
from rig.report.difference import difference_s, settings_apart
from rig.report.stage_words import title
from rig.verdict.steadiness import MIN_RUNS, Growth, Run, growth

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
    stage: str | None = None  # the one that the change was meant for


def compare(
    before: tuple[str, Json],
    after: tuple[str, Json],
    changed: Change | None,
    allowed: Sequence[str],
    stage: str | None = None,
    again: Json | None = None,
) -> Comparison:
    """Compares two named documents of measurements. `stage` is the one that the change was meant for. `again` is a
    second measurement of what was before; its runs join the test of the ranges, which tells more so.

    Raises UsageError where `changed` contradicts what is recorded, or where no side has that stage."""
    (a_name, a), (b_name, b) = before, after
    simulated = a["scenario"] is not None and b["scenario"] is not None  # the device is its scenario once more
    apart = tuple(
        _apart(name, values, changed, allowed)
        for name, values in settings_apart([before, after])
        if name.split(":")[0] not in NO_CIRCUMSTANCE and not (name == "device" and simulated)
    )
    meant = None if stage is None else stage_called(stage, (a, b))
    refused = _refusal(before, after, apart)
    if a["latency_s"] is None or b["latency_s"] is None or a["mode"] != b["mode"]:
        return Comparison(a_name, b_name, changed, None, refused, None, None, None, apart, (), meant)
    others = [d for d in (a, again) if d is not None and d["latency_s"] is not None]
    known = [run for d in others for run in _centred(_runs(d), d["latency_s"]["median"])]
    grown = growth(known, 0.0, _runs(b), b["latency_s"]["median"])
    total = _total(a["latency_s"], b["latency_s"], grown)
    stages = _stages(a["stages"], b["stages"], None if again is None else again["stages"])
    if refused is None and meant is not None and not any(s.name == meant for s in stages or ()):
        refused = f"the stage {meant} was not found on both sides"
    caveats = [*_doubts(total, grown), *_caveats(before, after)]
    verdict = None
    if refused is None:
        target = next((s for s in stages or () if s.name == meant), None)
        verdict = verdict_of(total, stages or (), target)
        if target is not None and total.fell and not target.fell:
            caveats.append(f"the total fell, and {meant} did not: the change acted elsewhere, or something else did")
    return Comparison(a_name, b_name, changed, verdict, refused, total, grown, stages, apart, tuple(caveats), meant)


def verdict_of(total: Delta, stages: Sequence[Delta], target: Delta | None) -> Verdict:
    """The rule, in the order in which it is asked (docs/comparing.md). `target`: the stage that the change was meant
    for. Without one the total decides, and where it fell, the stage that fell most must not have become unsteady."""
    others = [s for s in stages if s is not target]
    if total.rose:
        return Verdict.WORSE
    fallen = [s for s in stages if s.fell]
    changed = target or (min(fallen, key=lambda s: s.change_s) if total.fell and fallen else None)
    if total.range_grew or (changed is not None and changed.range_grew):
        return Verdict.UNSTEADY
    if (total if target is None else target).fell:
        return Verdict.MOVED if not total.fell and any(s.rose for s in others) else Verdict.EFFECTIVE
    if not total.fell and fallen and any(s.rose for s in stages):
        return Verdict.MOVED
    return Verdict.WORSE if target is not None and target.rose else Verdict.NO_EFFECT


def stage_called(word: str, documents: Sequence[Json]) -> str:
    """The stage that a user's word names, by its name or its title. Raises UsageError where no document has it."""
    known = list(dict.fromkeys(s["stage"] for d in documents for s in d["stages"] or ()))
    found = next((name for name in known if word.strip().casefold() in (name, title(name))), None)
    if found is None and known:
        raise UsageError(
            f"no stage is called {word!r}", f"one of {', '.join(known)}", "name one of these, or leave it out"
        )
    return found or word


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


def _runs(d: Json) -> list[Run]:
    return [(r["latency_s"]["min"], r["latency_s"]["max"]) for r in d["runs"] if r["latency_s"] is not None]


def _total(a: Json, b: Json, grown: Growth) -> Delta:
    change_s, low_s, high_s = difference_s(a, b)
    return Delta("total", a["median"], b["median"], change_s, low_s, high_s, a["range"], b["range"], grown.grew)


def _centred(runs: Sequence[Run], median_s: float) -> list[Run]:
    return [(low_s - median_s, high_s - median_s) for low_s, high_s in runs]


def _stages(a: Any, b: Any, again: Any) -> tuple[Delta, ...] | None:
    """Stages that both have with a median and an interval; None where one side was measured without marks."""
    if not a or not b:
        return None
    others = {stage["stage"]: stage for stage in b}
    more = {stage["stage"]: stage for stage in again or ()}
    pairs = [(one, others[one["stage"]]) for one in a if one["stage"] in others]
    return tuple(
        _stage(*pair, more.get(pair[0]["stage"])) for pair in pairs if all(s["median_s"] is not None for s in pair)
    )


def _stage(a: Json, b: Json, again: Json | None) -> Delta:
    change_s, low_s, high_s = difference_s(_interval(a), _interval(b))
    sides = [a, b] if again is None or again["median_s"] is None else [a, b, again]
    runs = [_centred([(r["min_s"], r["max_s"]) for r in one["runs"]], one["median_s"]) for one in sides]
    grown = growth([*runs[0], *(runs[2] if len(runs) > 2 else [])], 0.0, runs[1], 0.0)
    # The clocks' error is another in each run: a range that grew by less than the stage's uncertainty has not grown.
    within = grown.growth_s <= math.hypot(a["u95_s"], b["u95_s"])
    return Delta(
        a["stage"],
        a["median_s"],
        b["median_s"],
        change_s,
        low_s,
        high_s,
        a["range_s"],
        b["range_s"],
        grown.grew and not within,
    )


def _interval(stage: Json) -> Json:
    return {"median": stage["median_s"], "low": stage["low_s"], "high": stage["high_s"]}


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
    """Does the word name the setting: by its whole name, by what follows the colon, or by that without the signs of
    where it was set ("--buffer", "$BUFFER", "config buffer")?"""
    own = setting.partition(": ")[2] or setting
    return _bare(word) in (_bare(setting), _bare(own), _bare(own.removeprefix("config ").removeprefix("world ")))


def _bare(name: str) -> str:
    return name.strip().casefold().lstrip("-$").replace("-", "_")
