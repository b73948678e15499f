"""What the table of stages means, in words: where the time is, what kind of cause that points to, what is hidden."""

from __future__ import annotations

from rig.domain.report import StageRow, StageTable
from rig.domain.stages import BY_RIG, CAPTURE, FILL, JOIN, OUTPUT
from rig.report.digits import decimals_for, ms

TITLES = {
    "network": "network + server",
    FILL: "frame fill",
    "acoustic_in": "acoustic in",
    "acoustic_out": "acoustic out",
}

UNSTEADY_S, UNSTEADY_SHARE = 5e-3, 0.5
"""A stage is unsteady whose range is over this, or over this share of its median and 1 ms."""

CAUSES = {
    CAPTURE: "the microphone's buffers and the operating system's mixing: a smaller block or another audio interface",
    FILL: "the frame's length, a fixed setting",
    "encode": "the encoder's work: its complexity, or a busy processor",
    "send": "handing over to the network: a full socket, or a blocked event loop",
    "network": "the link or the server",
    "play": "playback buffering inside the program: the jitter buffer, its target, the player's queue",
    OUTPUT: "the playback queue, the driver's buffer and the device: a smaller block, or another output",
}

UNSTEADY_CAUSES = {
    "network": "the link or the server",
    "play": "an adaptive jitter buffer, scheduling, or garbage collection",
    "encode": "scheduling, garbage collection, or a busy processor",
    "send": "scheduling, garbage collection, or a full socket",
    CAPTURE: "scheduling, or buffers that fill unevenly",
    OUTPUT: "scheduling, or a playback queue that grows and drains",
}


def title(name: str) -> str:
    """A stage's name for a person."""
    return JOIN.join(TITLES.get(part, part) for part in name.split(JOIN))


def is_unsteady(row: StageRow) -> bool:
    """Is its range large against what it takes?"""
    s = row.statistics
    return s.range_s > UNSTEADY_S or s.range_s > max(UNSTEADY_SHARE * abs(s.median_s), 1e-3)


def stage_words(table: StageTable) -> tuple[str, ...]:
    """Sentences, the most important first."""
    rows = table.rows
    largest = max(rows, key=lambda row: row.statistics.median_s)
    widest = max(rows, key=lambda row: row.statistics.range_s)
    said = [_largest(largest, table)]
    if widest.statistics.range_s > 0.0:
        said.append(_widest(widest))
    said += [line for row in rows if (line := _hidden(row)) is not None]
    if any("network" in row.name.split(JOIN) for row in rows):
        said.append(
            "outside local control: network + server, beyond the choice of link, region and server; everything else"
            " is this machine's"
        )
    said += [_cold(c.stage, c.where, c.first_s, c.later_s) for c in table.cold]
    if table.no_split_because is not None:
        said.append(f"capture and output are known in sum only: {table.no_split_because}")
    elif table.hidden is not None:
        s = table.hidden.statistics
        said.append(
            f"capture and output share the clocks' error with opposite signs; together they take"
            f" {ms(s.median_s, decimals_for(s.u95_s))} +/- {ms(s.u95_s, decimals_for(s.u95_s))} ms"
        )
    return tuple(said)


def _largest(row: StageRow, table: StageTable) -> str:
    s = row.statistics
    share = f", {s.median_s / table.total_s:.0%} of the latency" if table.total_s > 0.0 else ""
    said = f"largest: {title(row.name)}, {ms(s.median_s, 1)} ms{share}"
    if is_unsteady(row):
        return f"{said}, and unsteady; it points to {_causes(row.name, UNSTEADY_CAUSES)}"
    return f"{said}, stable and so a fixed setting or a fixed path; it points to {_causes(row.name, CAUSES)}"


def _widest(row: StageRow) -> str:
    s = row.statistics
    apart = "" if row.runs_apart_s is None else f" (medians of runs {ms(row.runs_apart_s, 1)} ms apart)"
    said = f"largest range over the runs: {title(row.name)}, {ms(s.range_s, 1)} ms{apart}"
    if is_unsteady(row):
        return f"{said}; it points to {_causes(row.name, UNSTEADY_CAUSES)}"
    return f"{said}: small, every stage is steady"


def _causes(name: str, causes: dict[str, str]) -> str:
    known = [causes.get(part, CAUSES[part]) for part in name.split(JOIN) if part in CAUSES]
    return "; or ".join(dict.fromkeys(known))


def _hidden(row: StageRow) -> str | None:
    """What is to be said of a stage that only the rig sees."""
    if row.by != BY_RIG:
        return None
    s, name = row.statistics, title(row.name)
    digits = decimals_for(s.u95_s)
    if s.high_s < 0.0:
        return (
            f"{name} is negative, {ms(s.median_s, digits)} ms: the marks beside it are stamped at another moment than"
            " their names say, or on another clock"
        )
    if row.problem is not None and row.claimed_s is None:
        return f"{name}: the claim is not used, {row.problem}"
    if row.undeclared_s is None or row.claimed_s is None:
        return f"{name}: nothing is claimed of it"
    shown = f"{ms(row.undeclared_s, digits, signed=True)} +/- {ms(s.u95_s, digits)} ms"
    if not row.distinct:
        return f"{name}: undeclared {shown}, not distinguishable from 0"
    if row.undeclared_s < 0.0:
        return f"{name}: undeclared {shown}: {row.claimed_by} claims more than there is"
    return f"{name}: undeclared {shown}: hidden from every log, {row.claimed_by} claims {ms(row.claimed_s)} ms"


def _cold(stage: str, where: str, first_s: float, later_s: float) -> str:
    return (
        f"cold start: {title(stage)} takes {ms(first_s, 1)} ms in the {where} and {ms(later_s, 1)} ms later;"
        " the table holds both"
    )
