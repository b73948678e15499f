"""A comparison as text in 80 columns and as one JSON document."""

from __future__ import annotations

import textwrap
from typing import Any

from rig.report.digits import WIDTH, decimals_for, ms, plain, table
from rig.report.stage_words import title
from rig.verdict.compare import Comparison, Delta, Verdict

SCHEMA = "rig.comparison/1"

REMEDY = {
    "more differs": "repeat one side with the rest as it was; or name what does not matter: --allow NAME",
    "fewer than": "measure both sides with --runs 3 or more",
    "was not found": "measure both sides with marks: docs/reconcile.md",
    "no valid figure": "rig analyze SESSION says why, and what to do",
    "not the same": "compare two measurements of one mode",
}

MEANING = {
    Verdict.EFFECTIVE: "the median fell by more than its uncertainty; the range grew by no more than chance",
    Verdict.MOVED: "one stage fell, another rose, and the total stayed",
    Verdict.NO_EFFECT: "the median fell or rose by no more than its uncertainty, the range grew by no more than chance",
    Verdict.UNSTEADY: "the range grew by more than chance explains; the median did not rise",
    Verdict.WORSE: "the median rose by more than its uncertainty",
}


def remedy(refused: str) -> str:
    """What to do about a comparison without a verdict."""
    return next(text for begin, text in REMEDY.items() if begin in refused)


def as_document(found: Comparison) -> dict[str, Any]:
    """The document (docs/comparison.schema.json): times in s, None for what is not known."""
    changed = found.changed
    return {
        "schema": SCHEMA,
        "verdict": None if found.verdict is None else found.verdict.value.replace(" ", "_"),
        "refused": found.refused,
        "before": found.before,
        "after": found.after,
        "stage": found.stage,
        "changed": None if changed is None else {"name": changed.name, "old": changed.old, "new": changed.new},
        "total": None if found.total is None else _delta(found.total),
        "range_chance": None if found.growth is None else found.growth.share,
        "stages": None if found.stages is None else [_delta(stage) for stage in found.stages],
        "apart": [
            {"name": one.name, "before": one.before, "after": one.after, "accepted_as": one.why or None}
            for one in found.apart
        ],
        "caveats": list(found.caveats),
    }


def _delta(d: Delta) -> dict[str, Any]:
    return {
        "name": d.name,
        "before_s": d.before_s,
        "after_s": d.after_s,
        "change_s": d.change_s,
        "low_s": d.low_s,
        "high_s": d.high_s,
        "before_range_s": d.before_range_s,
        "after_range_s": d.after_range_s,
        "range_grew": d.range_grew,
    }


def as_text(found: Comparison) -> str:
    """The comparison for a person, at most 80 columns wide where names allow it."""
    lines = [f"{found.after} against {found.before}"]
    if found.changed is not None:
        c = found.changed
        lines.append(f"changed: {c.name}" + (f": {c.old} -> {c.new}" if c.new is not None else ""))
    if found.stage is not None:
        lines.append(f"meant for: {title(found.stage)}")
    lines.append("")
    if found.verdict is not None:
        lines += [f"  {found.verdict.upper()}", *_wrapped(MEANING[found.verdict], "  ")]
    else:
        assert found.refused is not None
        lines += ["  NO VERDICT", *_wrapped(found.refused, "  "), *_wrapped("remedy: " + remedy(found.refused), "  ")]
    if found.total is not None:
        lines += ["", *_figures(found)]
    if found.apart:
        lines += ["", "what differs in the records"]
        for one in found.apart:
            why = f"  ({one.why})" if one.why else ""
            lines += _wrapped(f"{one.name}: {plain(one.before)} -> {plain(one.after)}{why}", "  ")
    if found.caveats:
        lines += ["", "caveats", *(line for text in found.caveats for line in _wrapped(text, "  - "))]
    return "\n".join(lines) + "\n"


def _figures(found: Comparison) -> list[str]:
    assert found.total is not None
    rows = [["before", "after", "change", "95 % interval", "range before", "after", ""]]
    for d in (*(found.stages or ()), found.total):
        digits = decimals_for(0.5 * (d.high_s - d.low_s))
        rows.append(
            [
                ms(d.before_s, digits),
                ms(d.after_s, digits),
                ms(d.change_s, digits, signed=True),
                f"{ms(d.low_s, digits, signed=True)} to {ms(d.high_s, digits, signed=True)}",
                ms(d.before_range_s, digits),
                ms(d.after_range_s, digits) + ("+" if d.range_grew else ""),
                title(d.name),
            ]
        )
    lines = ["medians and ranges, ms (positive change: later)", *table(rows)]
    if any(d.range_grew for d in (*(found.stages or ()), found.total)):
        lines.append("  +: the range grew by more than chance explains")
    if found.stages is None:
        lines += _wrapped("stages: none, one side was measured without marks of the system under test", "  ")
    return lines


def _wrapped(text: str, lead: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_long_words=False)
