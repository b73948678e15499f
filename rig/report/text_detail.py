"""The parts of the text report below the headline: signals and levels, the uncertainty budget, every trial."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Sequence

import numpy as np

from rig.domain.records import ChannelLevel, RunAnalysis
from rig.domain.report import Report, RunReport
from rig.report.digits import ABSENT, WIDTH, ms, number, table


def signal_lines(report: Report) -> list[str]:
    """Polarity, band, drift and the levels of both channels, worst case over the runs."""
    runs = [r.analysis for r in report.runs]
    lines = []
    facts = []
    if report.polarity is not None:
        facts.append(f"polarity {'upright' if report.polarity > 0 else 'inverted'}")
    for low, high in dict.fromkeys(r.band_hz for r in runs if r.band_hz is not None):
        facts.append(f"band {low:.0f} to {high:.0f} Hz")
    facts += [f"stimulus {name}" for name in dict.fromkeys(r.stimulus for r in runs if r.stimulus is not None)]
    facts += [f"{rate} Hz" for rate in dict.fromkeys(r.rate_hz for r in runs)]
    if facts:
        lines.append("  " + ", ".join(facts))
    drifts = [r.drift_ppm for r in runs if r.drift_ppm is not None]
    by_interface = report.facts.plan is not None and report.facts.plan.source == "interface"
    shown = any(r.clocks is not None and r.clocks.audio_mcu is not None for r in runs)
    if drifts and not by_interface and not shown:  # the interface played: its clock is compared with itself
        lines.append(f"  audio clock against the board's: {_span(drifts)} ppm")
    slopes = [r.latency_slope_ppm for r in runs if r.latency_slope_ppm is not None]
    if slopes:
        lines.append(f"  latency against time: {_span(slopes)} ppm")
    return lines + _level_table(runs)


def budget_lines(report: Report) -> list[str]:
    """The budget of each run that carries a figure: every term, how it was come by, and what it amounts to."""
    lines: list[str] = []
    for run in report.runs:
        if run.latency is None:
            continue
        lines.append(f"  run {run.analysis.run}: U95 of the median {ms(run.latency.u95_s, 4)} ms")
        for term in run.analysis.budget:
            lines += _budget_line(term.u_s, term.kind, f"{term.term} ({term.source})")
        common = math.sqrt(math.fsum(t.u_s**2 for t in run.analysis.budget if t.kind == "B"))
        lines += _budget_line(common, "B", "all of kind B: common to every trial, they do not average out")
        lines += _precision_lines(run)
    return lines


def trial_lines(run: RunReport) -> list[str]:
    """Every trial of a run: its figure or the reason why not, and the figures that decided it."""
    if not run.analysis.trials:
        return ["  none"]
    rows = [["#", "ms", "u ms", "snr", "z", "decoy", "coh", "split ms", "prec ms", ""]]
    for t in run.analysis.trials:
        remark = "" if t.valid else str(t.reason)
        if not t.valid and t.unconfirmed_s is not None:
            remark += f" ({ms(t.unconfirmed_s)}?)"
        rows.append(
            [
                str(t.index),
                ms(t.latency_s, 3),
                ms(t.u_s, 3),
                number(t.snr_db, 0),
                number(t.z, 0),
                number(t.decoy_db, 0),
                number(t.coherence, 2),
                ms(t.split_s, 2, signed=True),
                ms(t.precision_s, 3),
                remark,
            ]
        )
    return table(rows)


def _budget_line(u_s: float, kind: str, words: str) -> list[str]:
    first = f"    {ms(u_s, 4):>8} ms  {kind}  "
    return textwrap.wrap(words, WIDTH, initial_indent=first, subsequent_indent=" " * len(first), break_on_hyphens=False)


def _precision_lines(run: RunReport) -> list[str]:
    """The correlation peak beside its Cramer-Rao bound: how near the estimator is to what is possible at all."""
    pairs = [
        (t.precision_s, t.crlb_s)
        for t in run.analysis.trials
        if t.valid and t.precision_s is not None and t.crlb_s is not None
    ]
    if not pairs:
        return []
    bound = float(np.median([crlb for _, crlb in pairs]))
    median = float(np.median([precision for precision, _ in pairs]))
    noises = [t.u_noise_s for t in run.analysis.trials if t.valid and t.u_noise_s is not None]
    noise = ABSENT if not noises else ms(float(np.median(noises)), 5)
    return [
        f"    precision figure (correlation peak): median {ms(median, 4)} ms",
        f"    its Cramer-Rao bound, per trial {ms(bound, 5)} ms",
        f"    noise of the headline figure, per trial {noise} ms",
    ]


def _level_table(runs: Sequence[RunAnalysis]) -> list[str]:
    levels = [r.levels for r in runs if r.levels is not None]
    if not levels:
        return []
    rows = [["channel", "peak dBFS", "noise dBFS", "DC", "hum dBFS", "clipped", ""]]
    for position, name in enumerate(("reference", "ear")):
        rows.append([name, *_level_cells([pair[position] for pair in levels])])
    return table(rows)


def _level_cells(levels: Sequence[ChannelLevel]) -> list[str]:
    silent = all(level.digital_silence for level in levels)
    return [
        number(_largest(level.peak_dbfs for level in levels)),
        number(_largest(level.noise_dbfs for level in levels)),
        number(max((level.dc for level in levels), key=abs), 4, signed=True),
        number(_largest(level.hum_dbfs for level in levels)),
        str(sum(level.clipped_samples for level in levels)),
        "digital silence" if silent else "",
    ]


def _largest(values: Iterable[float | None]) -> float | None:
    found = [v for v in values if v is not None]
    return max(found) if found else None


def _span(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    return f"{low:+.2f}" if f"{low:.2f}" == f"{high:.2f}" else f"{low:+.2f} to {high:+.2f}"
