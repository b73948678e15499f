"""What a system claims about the time that its marks do not show. Beside the truth, never part of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rig.domain.marks import MarkPart
from rig.domain.stages import StageSample

IN, OUT = ("input_latency",), ("base_latency", "output_latency")
"""The claims that speak of capture, and of output. A browser's base latency comes before its output latency."""


def claimed(sample: StageSample, part: MarkPart, names: tuple[str, ...]) -> StageSample:
    """The sample with the sum of the claims of these names; of several of one name the median, for it may move.

    A claim that is no latency leaves the sample without one and says why."""
    value_s, sources, problem = 0.0, [], None
    for name in names:
        values = [c.value_s for c in part.claims if c.name == name and c.value_s is not None]
        if values:
            value_s += float(np.median(values))
            sources += [c.source for c in part.claims if c.name == name and c.value_s is not None][:1]
        else:
            problem = problem or next((f"{c.source}: {c.problem}" for c in part.claims if c.name == name), None)
    if not sources or problem is not None:
        return replace(sample, problem=problem)
    return replace(sample, claimed_s=value_s, claimed_by=" + ".join(dict.fromkeys(sources)))


def buffer_note(part: MarkPart) -> str | None:
    """The system's own statistics of its jitter buffer: how long samples waited between its first and last snapshot."""
    if not part.stats:
        return None
    said = "by the system's own statistics its jitter buffer held"
    first, last = part.stats[0], part.stats[-1]
    if len(part.stats) == 1:
        if last.emitted <= 0.0:
            return None
        return f"{said} {_ms(last.delay_s / last.emitted)} (lifetime average)"
    emitted = last.emitted - first.emitted
    if emitted <= 0.0:
        return "the statistics of the jitter buffer do not advance: no delay follows from them"
    return f"{said} {_ms((last.delay_s - first.delay_s) / emitted)} on average"


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.1f} ms"
