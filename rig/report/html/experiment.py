"""An experiment on one page: the rounds with their verdicts, where each stage went, and what else differed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rig.domain.stages import BY_RIG
from rig.report.difference import Json, Named
from rig.report.digits import ABSENT, decimals_for, ms, plain
from rig.report.html import charts
from rig.report.html.markup import Child, Markup, el, join, section, table, time
from rig.report.html.page import document_of
from rig.report.html.svg import Axes, box, figure, legend, padded, text
from rig.report.stage_words import title

GOOD, BAD = ("effective",), ("worse", "unsteady")
SOFTWARE_KINDS = (0, 2, 3, 4, 5)
"""Colours of the stages that software sees, in the order of the sound's way; what only the rig sees has 1."""


def render_experiment(d: Json, measured: Sequence[Named], meanings: Mapping[str, str]) -> str:
    """The page of an experiment's document and of the documents of its measurements, by name, in the table's order.

    `meanings` has a sentence for each verdict."""
    body = join(
        el("header", el("h1", f"Experiment: {d['name']}"), el("p", *_opening(d, measured), class_=_bench(measured))),
        el("section", _rounds(d, meanings), id="headline", aria_label="Result"),
        section("drift", "Has the bench drifted?", _drift(d)),
        section("latency", "Latency", _latencies(measured)),
        section("stages", "Who owns each millisecond", _bars(measured), _stage_table(measured)),
        section("apart", "What differs in the records", _apart(d)),
        section("provenance", "Where it comes from", _provenance(d)),
    )
    return document_of(f"Experiment: {d['name']}", body, None)


def _bench(measured: Sequence[Named]) -> str:
    return f"bench {measured[0][1]['bench']}" if measured else "bench"


def _opening(d: Json, measured: Sequence[Named]) -> list[str]:
    said = []
    if measured:
        first = measured[0][1]
        said.append(
            f"SIMULATED BENCH: scenario {first['scenario']}. No hardware was measured. "
            if first["bench"] == "simulated"
            else f"{first['bench']} bench, device {first['device']}. "
        )
    order = d["order"]
    how = f"in random order, seed {order['seed']}" if order["random"] else "in the plan's order"
    said.append(f"{len(d['rounds'])} rounds of one change each, {how}.")
    if not d["complete"]:
        said.append(" NOT COMPLETE.")
    return said


def _rounds(d: Json, meanings: Mapping[str, str]) -> Markup:
    rows: list[list[Child]] = []
    reasons: list[Child] = []
    for r in d["rounds"]:
        delta = _delta(r)
        digits = 2 if delta is None else decimals_for(0.5 * (delta["high_s"] - delta["low_s"]))
        word = (r["verdict"] or "no verdict").replace("_", " ")
        kind = "good" if r["verdict"] in GOOD else "bad" if r["verdict"] in BAD or r["verdict"] is None else None
        change = r["change"]
        rows.append(
            [
                str(r["round"]),
                join(el("strong", change["name"]), f" {plain(change['old'])} → {plain(change['new'])}"),
                title(delta["name"]) if delta is not None else ABSENT,
                ABSENT if delta is None else time(delta["change_s"], digits, signed=True),
                ABSENT
                if delta is None
                else join(
                    time(delta["low_s"], digits, signed=True), " to ", time(delta["high_s"], digits, signed=True)
                ),
                el("span", word, class_=kind),
            ]
        )
        if r["refused"] is not None:
            remedy = "" if r["error"] is None else f". {r['error']['remedy']}"
            reasons.append(el("li", f"Round {r['round']}: {r['refused']}{remedy}"))
    seen = dict.fromkeys(r["verdict"] for r in d["rounds"] if r["verdict"] is not None)
    reasons += [el("li", f"{word.replace('_', ' ')}: {meanings[word]}") for word in seen]
    heads = ["round", "change", "of", "later by, ms", "95 % interval, ms", "verdict"]
    return join(table("What each change did", heads, rows, left=(1, 2, 5)), el("ul", reasons))


def _delta(r: Json) -> Any:
    """The change that a row shows: of the stage that the round was meant for, else of the total."""
    compared = r["against_baseline"]
    if compared is None:
        return None
    named = [s for s in compared["stages"] or () if s["name"] == compared["stage"]]
    return named[0] if named else compared["total"]


def _drift(d: Json) -> Markup:
    if d["baseline_again"] is None:
        return el("p", "Nobody knows: the baseline was measured once, at the start.")
    compared = d["drift"]
    if compared is None or compared["verdict"] is None or compared["total"] is None:
        return el("p", f"Not known: {'not measured' if compared is None else compared['refused']}.", class_="bad")
    total = compared["total"]
    digits = decimals_for(0.5 * (total["high_s"] - total["low_s"]))
    word = (
        "no drift was seen"
        if compared["verdict"] == "no_effect"
        else f"{compared['verdict'].replace('_', ' ')} at the end"
    )
    return el(
        "p",
        f"The baseline measured again at the end: {word}. It is ",
        time(total["change_s"], digits, signed=True),
        " ms from the first, 95 % interval ",
        time(total["low_s"], digits, signed=True),
        " to ",
        time(total["high_s"], digits, signed=True, unit=True),
        ". A verdict stands only where it holds against both.",
    )


def _latencies(measured: Sequence[Named]) -> Markup:
    rows: list[tuple[str, Json, int | None]] = [
        (name, d["latency_s"], None) for name, d in measured if d["latency_s"] is not None
    ]
    if not rows:
        return Markup("")
    return charts.intervals("Medians", "95 % interval (thick) and range of the trials (thin).", rows)


def _names(measured: Sequence[Named]) -> dict[str, str]:
    """The stages of all measurements in the order of the sound's way, and who saw each."""
    return {s["stage"]: s["by"] for _, d in measured for s in d["stages"] or ()}


def _kinds(names: Mapping[str, str]) -> dict[str, int]:
    free = iter(SOFTWARE_KINDS * len(names))
    return {name: 1 if by == BY_RIG else next(free) for name, by in names.items()}


def _bars(measured: Sequence[Named]) -> Markup:
    """One bar a measurement, its stages' medians one after the other."""
    names = _names(measured)
    kinds = _kinds(names)
    shown = [(name, {s["stage"]: s["median_s"] for s in d["stages"]}) for name, d in measured if d["stages"]]
    if not shown:
        return Markup("")
    longest_ms = max(sum(max(v, 0.0) for v in stages.values()) for _, stages in shown) * 1e3
    span = padded(0.0, longest_ms, 0.0, 0.1)

    def draw(width: int) -> tuple[int, Child]:
        axes = Axes(width, 48 + 26 * len(shown), (0.0, span[1]), (0.0, 1.0), left=min(110, width // 4))
        parts: list[Child] = [axes.x_axis("ms since the sound left the mouth"), axes.border()]
        for row, (name, stages) in enumerate(shown):
            y, at_ms = axes.top + 4 + 26 * row, 0.0
            parts.append(text(axes.left - 8, y + 13, name, "end"))
            for stage, kind in kinds.items():
                length_ms = max(stages.get(stage, 0.0), 0.0) * 1e3
                words = f"{name}, {title(stage)}: {ms(stages.get(stage))} ms"
                parts.append(box(axes.px(at_ms), y, axes.px(at_ms + length_ms), y + 18, f"c{kind}", words))
                at_ms += length_ms
        return axes.height, parts

    keys = legend(*((f"k{kind}", title(stage)) for stage, kind in kinds.items()))
    return figure("Stages", "Medians, one after the other; capture and output are seen by the rig alone.", draw, keys)


def _stage_table(measured: Sequence[Named]) -> Markup:
    names = _names(measured)
    shown = [(name, d) for name, d in measured if d["latency_s"] is not None]
    if not shown:
        return Markup("")
    rows: list[list[Child]] = [[title(stage), *(_cell(_stage_of(d, stage)) for _, d in shown)] for stage in names]
    latencies = [d["latency_s"] for _, d in shown]
    totals = [{"median_s": own["median"], "range_s": own["range"], "u95_s": own["u95"]} for own in latencies]
    rows.append(["total", *map(_cell, totals)])
    return table("Medians (ranges), ms", ["stage", *(name for name, _ in shown)], rows)


def _stage_of(d: Json, stage: str) -> Json | None:
    return next((s for s in d["stages"] or () if s["stage"] == stage), None)


def _cell(own: Json | None) -> Child:
    if own is None:
        return ABSENT
    digits = min(2, decimals_for(own["u95_s"]))
    return join(time(own["median_s"], digits), " (", time(own["range_s"], digits), ")")


def _apart(d: Json) -> Markup:
    rows: list[list[Child]] = []
    for r in d["rounds"]:
        for one in (r["against_baseline"] or {"apart": ()})["apart"]:
            how = one["accepted_as"] or "neither the change nor allowed"
            rows.append([str(r["round"]), one["name"], plain(one["before"]), plain(one["after"]), how])
    heads = ["round", "what", "baseline", "round", "is"]
    return table("Circumstances that differ", heads, rows, left=(1, 2, 3, 4)) if rows else Markup("")


def _provenance(d: Json) -> Markup:
    rows: list[list[Child]] = [["baseline", d["baseline"]["session"] or ABSENT, ""]]
    rows += [[f"round {r['round']}", r["session"] or ABSENT, r["folder"]] for r in d["rounds"]]
    if d["baseline_again"] is not None:
        rows.append(["baseline again", d["baseline_again"]["session"] or ABSENT, ""])
    return join(
        el("p", "Plan ", el("code", d["plan_sha256"])),
        table("Sessions", ["", "session", "folder"], rows, left=(1, 2)),
    )
