"""Who owns each millisecond: the stages one after the other, those that no log can see set off from the others."""

from __future__ import annotations

from typing import Any

from rig.domain.stages import BY_RIG
from rig.report.digits import decimals_for, ms
from rig.report.html.markup import Child, Markup, section, table, time
from rig.report.html.svg import Axes, box, figure, legend, padded, text
from rig.report.stage_words import title

Json = dict[str, Any]


def waterfall(document: Json) -> Markup:
    """Figure and table of the document's `stages`; nothing where there are none."""
    stages = document["stages"]
    if not stages:
        return Markup("")
    return section("stages", "Who owns each millisecond", _figure(stages), _table(stages))


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


def _table(stages: list[Json]) -> Markup:
    heads = ["stage", "median, ms", "± (95 %), ms", "range, ms", "claimed, ms", "undeclared, ms", "seen by"]
    rows: list[list[Child]] = []
    for stage in stages:
        digits = decimals_for(stage["u95_s"])
        rows.append(
            [
                title(stage["stage"]),
                time(stage["median_s"], digits),
                time(stage["u95_s"], digits),
                time(stage["range_s"], digits),
                time(stage["claimed_s"], digits),
                time(stage["undeclared_s"], digits, signed=True),
                stage["by"],
            ]
        )
    return table("Stages", heads, rows, left=(6,))
