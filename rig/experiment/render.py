"""An experiment as text in 80 columns and as one JSON document: the rounds, what each changed, and what it did."""

from __future__ import annotations

import textwrap
from typing import Any

from rig.experiment.plan import AGAIN
from rig.experiment.rounds import Measured, Results, RoundResult
from rig.report.digits import ABSENT, WIDTH, decimals_for, ms, plain, table
from rig.report.stage_words import title
from rig.verdict.compare import Comparison, Delta, Verdict
from rig.verdict.render import MEANING, as_document

SCHEMA = "rig.experiment/1"

Json = dict[str, Any]
TOTAL = "total"


def as_json(found: Results) -> Json:
    """The document (docs/experiment.schema.json): times in s, None for what is not known."""
    plan = found.plan
    return {
        "schema": SCHEMA,
        "name": plan.name,
        "plan_sha256": found.sha256,
        "order": {"random": plan.shuffled, "seed": plan.seed, "repeat_baseline": plan.repeats_baseline},
        "complete": found.is_complete,
        "baseline": _measured(found.baseline),
        "baseline_again": None if found.again is None else _measured(found.again),
        "drift": None if found.drift is None else as_document(found.drift),
        "rounds": [_round(r) for r in found.rounds],
    }


def _measured(own: Measured) -> Json:
    d = own.document
    error = None if own.error is None else dict(zip(("what", "expected", "remedy"), own.error, strict=True))
    return {
        "session": None if d is None else d["session"],
        "error": error,
        "median_s": None if d is None or d["latency_s"] is None else d["latency_s"]["median"],
        "range_s": None if d is None or d["latency_s"] is None else d["latency_s"]["range"],
        "stages": None
        if d is None or d["stages"] is None
        else [{"stage": s["stage"], "median_s": s["median_s"], "range_s": s["range_s"]} for s in d["stages"]],
    }


def _round(r: RoundResult) -> Json:
    return {
        "round": r.number,
        "folder": r.folder,
        "change": {"name": r.change.name, "by": r.way, "old": r.old, "new": r.change.to},
        "stage": r.change.stage,
        "verdict": None if r.verdict is None else r.verdict.value.replace(" ", "_"),
        "refused": r.refused,
        **_measured(r.measured),
        "against_baseline": None if r.before is None else as_document(r.before),
        "against_baseline_again": None if r.after is None else as_document(r.after),
    }


def as_text(found: Results) -> str:
    """The rounds for a person, at most 80 columns wide."""
    plan = found.plan
    order = f"in random order (seed {plan.seed})" if plan.shuffled else "in the plan's order"
    lines = _wrapped(f"{plan.name}: {len(plan.rounds)} rounds of one change each, {order}", "")
    if not found.is_complete:
        lines.append("NOT COMPLETE: the same command goes on where it stopped")
    lines += [
        "",
        "rounds, ms (change: of the stage that a round is for, else the total; +: later)",
        *_round_table(found),
        *_reasons(found),
    ]
    lines += ["", *_drift(found)]
    measured = _columns(found)
    if measured:
        lines += ["", "medians (ranges), ms", *_stage_table(measured)]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _round_table(found: Results) -> list[str]:
    """One row a round; what was changed stands last and is wrapped below itself."""
    cells = [["round", "total", "change", "95 % interval", "verdict", ""], ["-", *_own(found.baseline), "", "", "", ""]]
    cells[1][-1] = "baseline"
    for r in found.rounds:
        d = _shown(r)
        digits = 2 if d is None else decimals_for(0.5 * (d.high_s - d.low_s))
        interval = "" if d is None else f"{ms(d.low_s, digits, signed=True)} to {ms(d.high_s, digits, signed=True)}"
        change = "" if d is None else ms(d.change_s, digits, signed=True)
        verdict = "no verdict" if r.verdict is None else r.verdict.value
        cells.append([str(r.number), *_own(r.measured), change, interval, verdict, changed_words(r)])
    lines: list[str] = []
    for line, row in zip(table([[*row[:-1], "|"] for row in cells]), cells, strict=True):
        room = max(20, WIDTH - len(line) + 1)
        words = textwrap.wrap(row[-1], room) or [""]
        lines.append(line[:-1] + words[0])
        lines += [" " * (len(line) - 1) + more for more in words[1:]]
    return lines


def _own(own: Measured) -> list[str]:
    d = own.document
    if d is None or d["latency_s"] is None:
        return [ABSENT]
    return [ms(d["latency_s"]["median"], decimals_for(d["latency_s"]["u95"]))]


def changed_words(r: RoundResult) -> str:
    """What a round changed: old -> new, and the stage that it was meant for."""
    stage = "" if r.change.stage is None else f" (for {r.change.stage})"
    return f"{r.change.name} {plain(r.old)} -> {plain(r.change.to)}{stage}"


def _shown(r: RoundResult) -> Delta | None:
    """The change that a row shows: of the stage that was named, else of the total."""
    return None if r.before is None else shown_delta(r.before)


def shown_delta(found: Comparison) -> Delta | None:
    named = next((s for s in found.stages or () if s.name == found.stage), None)
    return named or found.total


def _reasons(found: Results) -> list[str]:
    lines: list[str] = []
    for r in found.rounds:
        if r.refused is not None:
            lines += _wrapped(f"round {r.number}: {r.refused}", "  ")
            lines += [
                line
                for one in (r.before.apart if r.before is not None else ())
                if not one.why
                for line in _wrapped(f"{one.name}: {plain(one.before)} -> {plain(one.after)}", "    ")
            ]
            if r.measured.error is not None:
                lines += _wrapped(f"remedy: {r.measured.error[2]}", "    ")
    said = dict.fromkeys(r.verdict for r in found.rounds if r.verdict is not None)
    for verdict in said:
        lines += _wrapped(f"{verdict}: {MEANING[verdict]}", "  ")
    return ["", *lines] if lines else []


def _drift(found: Results) -> list[str]:
    if found.again is None:
        return _wrapped("drift: not watched, the baseline was measured once (order.repeat_baseline)", "")
    if found.drift is None:
        return _wrapped("drift: not known, the baseline has not been measured again", "")
    d = found.drift.total
    if d is None or found.drift.verdict is None:
        return _wrapped(f"drift: not known, {found.drift.refused}", "")
    digits = decimals_for(0.5 * (d.high_s - d.low_s))
    said = "none was seen" if found.drift.verdict is Verdict.NO_EFFECT else f"{found.drift.verdict} at the end"
    return _wrapped(
        f"drift: {said}. The baseline measured again is {ms(d.change_s, digits, signed=True)} ms from the first,"
        f" 95 % interval {ms(d.low_s, digits, signed=True)} to {ms(d.high_s, digits, signed=True)};"
        " a verdict stands only where it holds against both",
        "",
    )


def _columns(found: Results) -> list[tuple[str, Json]]:
    steps = [("baseline", found.baseline), *((f"round {r.number}", r.measured) for r in found.rounds)]
    steps += [] if found.again is None else [(AGAIN.replace("baseline ", ""), found.again)]
    return [(name, d) for name, own in steps if (d := own.document) is not None and d["latency_s"] is not None]


def _stage_table(measured: list[tuple[str, Json]]) -> list[str]:
    """Stages downwards, measurements sideways, as many beside each other as fit."""
    names = list(dict.fromkeys(s["stage"] for _, d in measured for s in d["stages"] or ()))
    labels = [title(name) for name in names] + [TOTAL]
    columns = [(head, [_stage_cell(d, name) for name in names] + [_total_cell(d)]) for head, d in measured]
    lines: list[str] = []
    while columns:
        chunk: list[tuple[str, list[str]]] = []
        width = 2 + max(map(len, labels))
        while columns and (not chunk or width + _width(columns[0]) <= WIDTH):
            width += _width(columns[0])
            chunk.append(columns.pop(0))
        rows = [["", *(head for head, _ in chunk), ""]]
        rows += [[label, *(cells[k] for _, cells in chunk), ""] for k, label in enumerate(labels)]
        lines += [*([""] if lines else []), *table(rows)]
    return lines


def _width(column: tuple[str, list[str]]) -> int:
    return 2 + max(len(column[0]), *map(len, column[1]))


def _stage_cell(d: Json, name: str) -> str:
    stage = next((s for s in d["stages"] or () if s["stage"] == name), None)
    return ABSENT if stage is None else _cell(stage["median_s"], stage["range_s"], stage["u95_s"])


def _total_cell(d: Json) -> str:
    latency = d["latency_s"]
    return _cell(latency["median"], latency["range"], latency["u95"])


def _cell(median_s: float, range_s: float, u95_s: float) -> str:
    digits = min(2, decimals_for(u95_s))
    return f"{ms(median_s, digits)} ({ms(range_s, digits)})"


def _wrapped(text: str, lead: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=lead + "  ", break_long_words=False)
