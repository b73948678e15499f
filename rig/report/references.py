"""Reference lines that a latency can be held against, each with its source, and where the interval lies to them.

A line is no verdict: whether 150 ms are good is for the reader to say. Only what the named source says stands here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rig.domain.report import LatencyStatistics, ReferenceLine
from rig.errors import UsageError
from rig.report.digits import decimals_for, ms

ONE_WAY, RESPONSE = "one-way delay", "response time"

OF_MODE = {"call": ONE_WAY}
"""Which quantity the latency of a mode is. Lines of another one are shown and not compared."""

G114 = "ITU-T G.114 (05/2003)"
GPT_4O = "OpenAI, GPT-4o System Card (2024)"

REFERENCES: dict[str, tuple[ReferenceLine, ...]] = {
    "g114": (
        ReferenceLine("g114", 0.150, ONE_WAY, f"{G114}: kept below it, most applications are transparent to it"),
        ReferenceLine("g114", 0.400, ONE_WAY, f"{G114}: not to be exceeded in general network planning"),
    ),
    "gpt-4o": (
        ReferenceLine("gpt-4o", 0.232, RESPONSE, f"{GPT_4O}: the least response time to speech that it claims"),
        ReferenceLine("gpt-4o", 0.320, RESPONSE, f"{GPT_4O}: the average response time that it claims"),
    ),
}

MOST_LINES = 16
ABOVE, BELOW, NOT_DECIDED = "above", "below", "not_decided"


@dataclass(frozen=True, slots=True)
class Held:
    """A line, and where the 95 % interval of the median lies to it: above, below, not_decided; None: `why` not."""

    line: ReferenceLine
    position: str | None
    why: str | None


def lines_of(texts: Sequence[str], duration_s: Callable[[str], float]) -> tuple[ReferenceLine, ...]:
    """The lines behind the words of `--against`: names of REFERENCES, or durations, which `duration_s` reads.

    Raises UsageError for another name; `duration_s` raises what it raises."""
    found: list[ReferenceLine] = []
    for text in texts:
        word = text.strip().casefold()
        if word in REFERENCES:
            found += REFERENCES[word]
        elif word[:1].isalpha():
            raise UsageError(
                f"--against {text!r}: no reference line is called so",
                f"a duration such as 300ms, or one of {', '.join(REFERENCES)}",
                "choose one of these",
            )
        else:
            found.append(ReferenceLine(word, duration_s(word), None, "by your choice"))
    if len(found) > MOST_LINES:
        raise UsageError(f"--against names {len(found)} lines", f"{MOST_LINES} at most", "leave some out")
    return tuple(dict.fromkeys(found))


def held_against(lines: Sequence[ReferenceLine], latency: LatencyStatistics | None, mode: str) -> tuple[Held, ...]:
    """Where the interval lies to each line, the smallest first."""
    return tuple(_held(line, latency, mode) for line in sorted(lines, key=lambda line: line.value_s))


def in_words(held: Held, latency: LatencyStatistics | None) -> str:
    """One line for a person: the position, the value and the source."""
    value = f"{held.line.value_s * 1e3:g} ms"
    if held.position is None or latency is None:
        return f"{value}: {held.why}. {held.line.source}"
    digits = decimals_for(latency.u95_s)
    interval = f"{ms(latency.low_s, digits)} to {ms(latency.high_s, digits)} ms"
    said = {ABOVE: f"above {value}", BELOW: f"below {value}", NOT_DECIDED: f"not decided: {value} lies in {interval}"}
    return f"{said[held.position]}. {held.line.source}"


def _held(line: ReferenceLine, latency: LatencyStatistics | None, mode: str) -> Held:
    if latency is None:
        return Held(line, None, "not compared, there is no valid figure")
    own = OF_MODE.get(mode)
    if line.of is not None and line.of != own:
        return Held(line, None, f"not compared, it is a {line.of} and this is the {own or 'latency'} of a {mode}")
    if latency.low_s > line.value_s:
        return Held(line, ABOVE, None)
    return Held(line, BELOW if latency.high_s < line.value_s else NOT_DECIDED, None)
