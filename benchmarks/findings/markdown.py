"""From results to tables: pure text, no measuring. Times become milliseconds here and nowhere else.

"True" is the median over the runs of each run's median; beside it stand the lowest and the highest of them, and the
largest range of one run's trials. "Claimed" and "not claimed" are medians over the same runs. A cell is never blank: a
dash is a thing that this system does not tell.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

from benchmarks.findings.results import Result, Run
from benchmarks.findings.rows import Row, Table

NONE = "–"
BUSY = 0.25
"""Of all cores: where other programs took more than this, the row is marked."""
MARK = "*"
P99_NEEDS = 100

_CLAIMS = {
    # Head of the column, and the fields of what the system prints that are added up for it.
    "backend": (("stream.latency", ("input_latency_s", "output_latency_s")), ("ADC to DAC", ("adc_to_dac_mean_s",))),
    "page": (("microphone", ("input_latency_s",)), ("outputLatency", ("output_latency_s",))),
    "call": (("microphone", ("input_latency_s",)), ("jitter buffer", ("jitter_buffer_s",))),
    "tail": (),
}
_ALTERNATIVES = {"backend"}
"""Here each claim is of the whole path. Elsewhere they are of parts, and are added up."""


def table_text(table: Table, results: Mapping[str, Result]) -> str:
    """The whole table with its title, ending with a line's end."""
    heads = [table.knob, *_heads(table.kind), "trials", "refused"]
    lines = [_line(heads), _line(["---"] * len(heads))]
    marked = False
    for row in table.rows:
        result = results.get(row.key)
        marked = marked or (result is not None and _is_busy(result))
        lines.append(_line([_knob(row, result), *_cells(table.kind, result, len(heads) - 1)]))
    if marked:
        lines += ["", f"{MARK} other programs took over {BUSY:.0%} of the computer meanwhile."]
    return "\n".join([f"### {table.title}", "", *lines]) + "\n"


def _heads(kind: str) -> list[str]:
    if kind == "tail":
        return ["mean, ms", "p99, ms", "p99 / mean", "medians of the runs, ms", "widest run, ms"]
    claims = [f"claimed: {head}, ms" for head, _ in _CLAIMS[kind]]
    return ["true, ms", "medians of the runs, ms", "widest run, ms", *claims, "not claimed, ms"]


def _cells(kind: str, result: Result | None, count: int) -> list[str]:
    """The cells of one row behind its first."""
    why = _why_nothing(result)
    if result is None or why is not None:
        return [f"not measured: {why}", *[NONE] * (count - 1)]
    good = [run for run in result.runs if run.median_s is not None]
    first = _tail_cells(good) if kind == "tail" else [_ms(statistics.median(_medians(good)))]
    spread = [f"{_ms(min(_medians(good)))} to {_ms(max(_medians(good)))}", _ms(max(_width(run) for run in good))]
    return [*first, *spread, *_claimed(kind, good), _trials(result), _refused(result.runs)]


def _why_nothing(result: Result | None) -> str | None:
    if result is None:
        return "not tried yet"
    if result.why is not None:
        return result.why
    if all(run.median_s is None for run in result.runs):
        reasons = sorted({run.why or "refused" for run in result.runs})
        return f"every run refused: {', '.join(reasons)}; {_refused(result.runs)}"
    return None


def _tail_cells(good: Sequence[Run]) -> list[str]:
    trials = [trial for run in good for trial in run.trials_s]
    mean_s = statistics.fmean(trials)
    if len(trials) < P99_NEEDS:
        return [_ms(mean_s), f"needs {P99_NEEDS} trials", NONE]
    # The smallest trial that 99 % of them do not exceed.
    p99_s = sorted(trials)[math.ceil(0.99 * len(trials)) - 1]
    return [_ms(mean_s), _ms(p99_s), f"{p99_s / mean_s:.2f}"]


def _claimed(kind: str, good: Sequence[Run]) -> list[str]:
    if kind == "tail":
        return []
    columns = [_sums(good, fields) for _, fields in _CLAIMS[kind]]
    cells = [NONE if column is None else _ms(statistics.median(column)) for column in columns]
    told = [column for column in columns if column is not None]
    if not told:
        return [*cells, NONE]
    medians = _medians(good)
    if kind in _ALTERNATIVES:
        rest = [_ms(statistics.median(m - c for m, c in zip(medians, column, strict=True))) for column in told]
        return [*cells, " / ".join(rest)]
    rest_s = [m - sum(parts) for m, *parts in zip(medians, *told, strict=True)]
    return [*cells, _ms(statistics.median(rest_s))]


def _sums(runs: Sequence[Run], fields: Iterable[str]) -> list[float] | None:
    """The sum of these claims in each run; None where one of them was not told in some run."""
    found = []
    for run in runs:
        parts = [None if run.claims is None else run.claims.get(field) for field in fields]
        if any(part is None for part in parts):
            return None
        found.append(sum(float(part) for part in parts if part is not None))
    return found


def _trials(result: Result) -> str:
    accepted, asked = sum(len(run.trials_s) for run in result.runs), sum(run.n_trials for run in result.runs)
    bad = sum(run.median_s is None for run in result.runs)
    runs = f"{len(result.runs)} run{'s' if len(result.runs) != 1 else ''}"
    return f"{accepted} of {asked} in {runs}" + (f", {bad} of them refused" if bad else "")


def _refused(runs: Iterable[Run]) -> str:
    counts: dict[str, int] = {}
    for run in runs:
        for reason, count in run.refused.items():
            counts[reason] = counts.get(reason, 0) + count
    often_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{count} {reason}" for reason, count in often_first) or "none"


def _medians(good: Sequence[Run]) -> list[float]:
    return [run.median_s for run in good if run.median_s is not None]


def _width(run: Run) -> float:
    return max(run.trials_s) - min(run.trials_s)


def _knob(row: Row, result: Result | None) -> str:
    return f"{row.knob}{MARK}" if result is not None and _is_busy(result) else row.knob


def _is_busy(result: Result) -> bool:
    return result.others is not None and result.others > BUSY


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.1f}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "/").replace("\n", " ") for cell in cells) + " |"
