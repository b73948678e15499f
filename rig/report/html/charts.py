"""The figures of one measurement: latency against time, its distribution, run by run, spectra, clocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rig.domain.exhibits import RunSpectra
from rig.report.digits import ms, number
from rig.report.html.markup import Child, Markup
from rig.report.html.svg import (
    Axes,
    box,
    figure,
    legend,
    line,
    mark,
    padded,
    polyline,
    run_kind,
    text,
)

Json = dict[str, Any]

MOST_MARKS = 2500
"""More trials than this are thinned to what a figure's pixels can show: the extremes of each column stay."""

TITLED = 400
"""Up to so many trials each mark tells its trial."""

LEAST_SPAN_MS = 0.02
MOST_ROWS = 40
"""A figure with a row for each run stops here; the table has them all."""


def against_time(document: Json, opens: bool = True) -> Markup:
    """Latency of each trial against the time of its stimulus, the runs side by side; refused trials below.

    `opens`: the page has the trials that a click on a mark opens."""
    runs = [r for r in document["runs"] if r["trials"]]
    accepted = [t["latency_s"] * 1e3 for r in runs for t in r["trials"] if t["valid"]]
    if not runs:
        return Markup("")
    low, high = padded(min(accepted), max(accepted), 0.1, LEAST_SPAN_MS) if accepted else (0.0, 1.0)
    count = sum(len(r["trials"]) for r in runs)
    n_refused = count - len(accepted)

    def draw(width: int) -> tuple[int, Child]:
        lengths = [max(1.0, r["n_frames"] / r["rate_hz"]) for r in runs]
        gap = 0.03 * sum(lengths) / len(lengths)
        axes = Axes(width, 300, (0.0, sum(lengths) + gap * (len(runs) - 1)), (low, high), bottom=64)
        strip = axes.bottom_px + 15
        parts: list[Child] = [axes.y_axis("latency, ms"), axes.border()]
        parts.append(text(axes.left - 6, strip + 4, "refused", "end"))
        begin = 0.0
        for position, (run, length) in enumerate(zip(runs, lengths, strict=True)):
            parts.append(_one_run(axes, run, position, begin, strip, count))
            left, right = axes.px(begin), axes.px(begin + length)
            if position:
                parts.append(line(left, axes.top, left, strip + 8, "grid"))
            if right - left > 70:
                parts.append(text(0.5 * (left + right), strip + 22, f"run {run['run']}, {length:.0f} s", "middle"))
            begin += length + gap
        parts.append(text(0.5 * (axes.left + axes.right_px), axes.height - 5, "time in the recordings", "middle"))
        return axes.height, parts

    words = f"Each mark is one trial: {len(accepted)} accepted, {n_refused} refused."
    if accepted:
        words += f" They lie between {min(accepted):.3f} and {max(accepted):.3f} ms."
    words += " The line is the median of the run."
    if opens:
        words += " A click on a mark opens the trial below."
    return figure("Latency against time", words, draw, _run_legend(runs, n_refused > 0))


def _one_run(axes: Axes, run: Json, position: int, begin: float, strip: float, count: int) -> list[Child]:
    kind = run_kind(position)
    parts: list[Child] = []
    rate, length = run["rate_hz"], run["n_frames"] / run["rate_hz"]
    if run["latency_s"] is not None:
        y = axes.py(run["latency_s"]["median"] * 1e3)
        parts.append(line(axes.px(begin), y, axes.px(begin + length), y, f"l{kind}"))
    shown = run["trials"] if count <= MOST_MARKS else _thinned(run["trials"], axes.width)
    for trial in shown:
        x = axes.px(begin + trial["reference_frame"] / rate)
        name = f"{run['run']}-{trial['index']}"
        if trial["valid"]:
            title = f"run {run['run']} trial {trial['index']}: {ms(trial['latency_s'], 3)} ms"
            y = axes.py(trial["latency_s"] * 1e3)
        else:
            title = f"run {run['run']} trial {trial['index']}: refused, {trial['reason']}"
            y = strip
        titled = title if count <= TITLED else None
        parts.append(mark(kind if trial["valid"] else None, x, y, titled, name))
    return parts


def _thinned(trials: list[Json], columns: int) -> list[Json]:
    """The least, the greatest and one refused trial of each stretch of a run."""
    kept = []
    for part in np.array_split(np.arange(len(trials)), min(columns, len(trials))):
        stretch = [trials[i] for i in part]
        good = sorted((t for t in stretch if t["valid"]), key=lambda t: t["latency_s"])
        kept += good[:1] + good[1:][-1:] + [t for t in stretch if not t["valid"]][:1]
    return kept


def _run_legend(runs: list[Json], refused: bool) -> Markup:
    entries = [(f"k{run_kind(i)}", f"run {r['run']}") for i, r in enumerate(runs[:6])]
    if len(runs) > 6:
        entries.append(("", f"colours repeat after 6 of the {len(runs)} runs"))
    return legend(*entries, *([("kx", "refused")] if refused else []))


def distribution(document: Json) -> Markup:
    """Histogram of the accepted trials of the runs that carry a figure, with groups, median and its interval."""
    figured = [r for r in document["runs"] if r["latency_s"] is not None]
    values = np.array([t["latency_s"] * 1e3 for r in figured for t in r["trials"] if t["valid"]])
    latency = document["latency_s"]
    if latency is None or values.size < 3:
        return Markup("")
    low, high = padded(
        min(values.min(), latency["low"] * 1e3), max(values.max(), latency["high"] * 1e3), 0.04, LEAST_SPAN_MS
    )

    def draw(width: int) -> tuple[int, Child]:
        edges = np.linspace(low, high, min(width // 12, max(12, 4 * math.isqrt(values.size))) + 1)
        stacks = [np.histogram([t["latency_s"] * 1e3 for t in r["trials"] if t["valid"]], edges)[0] for r in figured]
        axes = Axes(width, 250, (low, high), (0.0, 1.05 * max(1, int(np.sum(stacks, axis=0).max()))), top=26)
        parts: list[Child] = [axes.y_axis("trials"), axes.x_axis("latency, ms", grid=False)]
        left, right = axes.px(latency["low"] * 1e3), axes.px(latency["high"] * 1e3)
        parts.append(box(left, axes.top, right, axes.bottom_px, "interval"))
        base = np.zeros(len(edges) - 1)
        for position, counts in enumerate(stacks):
            for k in np.flatnonzero(counts):
                x1, x2 = axes.px(edges[k]) + 0.5, axes.px(edges[k + 1]) - 0.5
                parts.append(box(x1, axes.py(base[k]), x2, axes.py(base[k] + counts[k]), f"c{run_kind(position)}"))
            base = base + counts
        middle = axes.px(latency["median"] * 1e3)
        parts.append(line(middle, axes.top - 4, middle, axes.bottom_px, "median"))
        parts.append(text(middle, axes.top - 9, f"median {ms(latency['median'], 2)}", "middle"))
        parts.append(axes.border())
        if document["mixture"]:
            for cluster in document["clusters"]:
                x1, x2 = axes.px(cluster["min_s"] * 1e3) - 2, axes.px(cluster["max_s"] * 1e3) + 2
                parts.append(line(x1, axes.bottom_px + 3, x2, axes.bottom_px + 3, "group"))
        return axes.height, parts

    words = f"{values.size} accepted trials; the band is the 95 % interval of the median."
    if len(document["clusters"]) > 1:
        words += f" They fall into {len(document['clusters'])} groups."
    return figure("Distribution", words, draw)


def run_by_run(document: Json) -> Markup:
    """The median of each run with its interval and range, and the pooled one."""
    runs = [r for r in document["runs"] if r["latency_s"] is not None]
    total = document["latency_s"]
    if total is None or not 2 <= len(runs) <= MOST_ROWS:
        return Markup("")
    rows = [(f"run {r['run']}", r["latency_s"], run_kind(i)) for i, r in enumerate(runs)]
    return intervals(
        "Run by run",
        "Median, its 95 % interval (thick) and the range of the trials (thin).",
        [*rows, ("all runs", total, None)],
    )


def intervals(title: str, words: str, rows: list[tuple[str, Json, int | None]]) -> Markup:
    """One row each: median, interval (thick), range (thin). `rows`: name, latency object, kind of mark."""
    low = min(min(row["min"], row["low"]) for _, row, _ in rows) * 1e3
    high = max(max(row["max"], row["high"]) for _, row, _ in rows) * 1e3
    span = padded(low, high, 0.05, LEAST_SPAN_MS)

    def draw(width: int) -> tuple[int, Child]:
        axes = Axes(width, 48 + 24 * len(rows), span, (0.0, 1.0), left=_room(rows, width))
        parts: list[Child] = [axes.x_axis("latency, ms"), axes.border()]
        for position, (name, row, kind) in enumerate(rows):
            y = axes.top + 12 + 24 * position
            colour = "all" if kind is None else str(kind)
            parts.append(
                text(
                    axes.left - 8, y + 4, name if len(name) * 7 < axes.left else name[: axes.left // 7 - 1] + "…", "end"
                )
            )
            parts.append(line(axes.px(row["min"] * 1e3), y, axes.px(row["max"] * 1e3), y, f"thin l{colour}"))
            parts.append(line(axes.px(row["low"] * 1e3), y, axes.px(row["high"] * 1e3), y, f"thick l{colour}"))
            x = axes.px(row["median"] * 1e3)
            parts.append(line(x, y - 7, x, y + 7, "median") if kind is None else mark(kind, x, y))
        return axes.height, parts

    return figure(title, words, draw)


def _room(rows: list[tuple[str, Json, int | None]], width: int) -> int:
    return min(width // 3, 16 + 7 * max(len(name) for name, _, _ in rows))


def spectra(found: RunSpectra, run: int, band_hz: list[float] | None) -> Markup:
    """Power densities of both channels, with the stimulus and without it."""
    curves = [
        ("reference, stimulus", found.reference_db, "s0"),
        ("reference, pause", found.reference_pause_db, "s0 dashed"),
        ("ear, arrival", found.ear_db, "s1"),
        ("ear, pause", found.ear_pause_db, "s1 dashed"),
    ]
    there = [(name, np.maximum(values, -160.0), kind) for name, values, kind in curves if values is not None]
    top = max(float(values.max()) for _, values, _ in there)
    bottom = max(min(float(values.min()) for _, values, _ in there), top - 110.0)
    f = found.frequency_hz
    ticks = [t for t in (100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10000.0, 20000.0) if t < f[-1]]

    def draw(width: int) -> tuple[int, Child]:
        axes = Axes(width, 280, (float(f[0]), float(f[-1])), padded(bottom, top, 0.05), log_x=True)
        parts: list[Child] = []
        if band_hz is not None:
            parts.append(box(axes.px(band_hz[0]), axes.top, axes.px(band_hz[1]), axes.bottom_px, "interval"))
        parts += [
            axes.y_axis("dB of full scale² per Hz"),
            axes.x_axis("frequency, Hz", ticks if width > 500 else ticks[::2]),
        ]
        for _, values, kind in there:
            inside = values >= bottom - 1e-9
            parts.append(
                polyline(((axes.px(x), axes.py(y)) for x, y in zip(f[inside], values[inside], strict=True)), kind)
            )
        return axes.height, [*parts, axes.border()]

    words = (
        f"Mean over {found.n_trials} trials of run {run}, in twelfths of an octave;"
        " the band is where the headline is read."
    )
    return figure("Spectra", words, draw, legend(*((f"key-{kind.replace(' ', '-')}", name) for name, _, kind in there)))


def drifts(document: Json) -> Markup:
    """How fast the interface's clock ran against the host's, run by run, with the interval that holds the truth."""
    audio = [
        (f"run {r['run']}", r["clocks"]["audio_host_ppm"], run_kind(i))
        for i, r in enumerate(document["runs"])
        if r["clocks"] is not None and r["clocks"]["audio_host_ppm"] is not None
    ]
    if not audio or len(audio) > MOST_ROWS:
        return Markup("")
    low = min(min(row["low"] for _, row, _ in audio), 0.0)
    high = max(max(row["high"] for _, row, _ in audio), 0.0)

    def draw(width: int) -> tuple[int, Child]:
        axes = Axes(width, 48 + 22 * len(audio), padded(low, high, 0.08, 1.0), (0.0, 1.0), left=64)
        parts: list[Child] = [axes.x_axis("ppm, positive: the interface's clock is fast"), axes.border()]
        parts.append(line(axes.px(0.0), axes.top, axes.px(0.0), axes.bottom_px, "axis"))
        for position, (name, row, kind) in enumerate(audio):
            y = axes.top + 11 + 22 * position
            parts.append(text(axes.left - 8, y + 4, name, "end"))
            parts.append(line(axes.px(row["low"]), y, axes.px(row["high"]), y, f"thick l{kind}"))
            parts.append(mark(kind, axes.px(row["value"]), y, f"{number(row['value'], 2, signed=True)} ppm"))
        return axes.height, parts

    return figure("Drift of the interface's clock", "Against the host's; the bar holds the truth.", draw)
