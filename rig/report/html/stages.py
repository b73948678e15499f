"""Who owns each millisecond: the stages one after the other, those that no log can see set off from the others."""

from __future__ import annotations

from typing import Any

from rig.domain.stages import BY_RIG
from rig.report.digits import ABSENT, decimals_for, ms
from rig.report.html.markup import Child, Markup, el, section, table, time
from rig.report.html.svg import Axes, box, figure, legend, padded, text
from rig.report.stage_words import title

Json = dict[str, Any]

MOST_RUNS = 12
"""So many runs stand beside each other; a narrow screen scrolls the table."""


def waterfall(document: Json) -> Markup:
    """Words, figure and tables of the stages, and what they do not explain; nothing where there are none."""
    stages, whole = document["stages"], document["reconciliation"]
    if not stages:
        return Markup("")
    return section(
        "stages",
        "Who owns each millisecond",
        el("ul", [el("li", line) for line in whole["words"]]),
        _figure(stages),
        _table(stages, whole),
        _residual(whole),
        _run_table(stages),
        el("ul", [el("li", line) for line in whole["notes"]]) if whole["notes"] else None,
    )


def _figure(stages: list[Json]) -> Markup:
    placed, at_ms = [], 0.0
    for stage in stages:
        if stage["median_s"] is not None:
            placed.append((stage, at_ms))
            at_ms += stage["median_s"] * 1e3
    edges = [begin + share for stage, begin in placed for share in (0.0, stage["median_s"] * 1e3)]
    span = padded(min(edges, default=0.0), max(edges, default=1.0), 0.02, 0.1)

    def draw(width: int) -> tuple[int, Child]:
        axes = Axes(width, 48 + 26 * len(placed), span, (0.0, 1.0), left=min(130, width // 3))
        parts: list[Child] = [axes.x_axis("ms since the sound left the mouth"), axes.border()]
        for row, (stage, begin) in enumerate(placed):
            y = axes.top + 4 + 26 * row
            length = stage["median_s"] * 1e3
            hidden = stage["by"] == BY_RIG
            parts.append(text(axes.left - 8, y + 13, title(stage["stage"]), "end"))
            words = f"{title(stage['stage'])}: {ms(stage['median_s'])} ms, seen by {stage['by']}"
            parts.append(box(axes.px(begin), y, axes.px(begin + length), y + 18, "c1" if hidden else "c0", words))
            if hidden and stage["claimed_s"] is not None:
                end = axes.px(begin + min(stage["claimed_s"] * 1e3, length))
                parts.append(box(axes.px(begin), y + 5, end, y + 13, "claim"))
            parts.append(
                text(min(axes.px(begin + max(length, 0.0)) + 5, axes.right_px - 40), y + 13, ms(stage["median_s"], 1))
            )
        return axes.height, parts

    words = "Medians, one after the other. " + " ".join(
        f"{title(stage['stage'])} {ms(stage['median_s'])} ms (by {stage['by']})." for stage, _ in placed
    )
    keys = legend(
        ("k0", "seen by software or calibration"),
        ("k1", "only the rig sees it"),
        ("kclaim", "what software claims of it"),
    )
    return figure("Stages", words, draw, keys)


def _table(stages: list[Json], whole: Json) -> Markup:
    heads = ["stage", "median, ms", "± (95 %), ms", "range, ms", "claimed, ms", "undeclared, ms", "seen by"]
    rows: list[list[Child]] = []
    for stage in stages:
        digits = decimals_for(stage["u95_s"])
        exact = not stage["u95_s"]
        rows.append(
            [
                title(stage["stage"]),
                time(stage["median_s"], digits),
                ABSENT if exact else time(stage["u95_s"], digits),
                time(stage["range_s"], digits),
                time(stage["claimed_s"], digits),
                time(stage["undeclared_s"], digits, signed=True),
                f"{stage['by']}; under one step of its clock" if stage["below_resolution"] else stage["by"],
            ]
        )
    digits = decimals_for(max(stage["u95_s"] for stage in stages))
    blank: list[Child] = [""] * 4
    rows += [
        ["sum of medians", time(whole["sum_s"], digits), *blank, ""],
        ["latency", time(whole["total_s"], digits), *blank, f"{whole['trials']} trials"],
    ]
    return table("Stages", heads, rows, left=(6,))


def _residual(whole: Json) -> Markup:
    """What the sum of the stages leaves over, with its interval: it is in no stage."""
    low_s, high_s = whole["residual_low_s"], whole["residual_high_s"]
    digits = decimals_for(0.5 * (high_s - low_s))
    return el(
        "p",
        "Not explained: ",
        time(whole["residual_s"], digits, signed=True),
        " ms, 95 % interval ",
        time(low_s, digits, signed=True),
        " to ",
        time(high_s, digits, signed=True, unit=True),
        ". Medians need not add up; it is spread over no stage.",
        id="residual",
    )


def _run_table(stages: list[Json]) -> Markup | None:
    """The stages' medians run by run; nothing for one run, or for too many to stand beside each other."""
    runs = [own["run"] for own in stages[0]["runs"]]
    if not 2 <= len(runs) <= MOST_RUNS:
        return None
    rows: list[list[Child]] = []
    for stage in stages:
        digits = decimals_for(stage["u95_s"])
        rows.append([title(stage["stage"]), *(time(own["median_s"], digits) for own in stage["runs"])])
    return table("Stages run by run", ["median, ms", *(f"run {run}" for run in runs)], rows)
