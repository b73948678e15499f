"""The report as text for a person in a hurry: the number first. 80 columns, no times of day, no paths."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from rig.domain.records import BenchKind
from rig.domain.report import LatencyStatistics, MeasurementFacts, Outcome, Report, RunReport
from rig.report.digits import ABSENT, WIDTH, decimals_for, ms, table
from rig.report.references import held_against, in_words
from rig.report.text_clocks import claim_table, drift_table, words_about
from rig.report.text_detail import budget_lines, signal_lines, trial_lines
from rig.report.text_stages import run_lines, stage_lines

BOLD, RED, YELLOW, DIM, PLAIN = "1", "1;31", "33", "2", ""


class _Page:
    """Lines of text, wrapped; colour codes only where asked for."""

    def __init__(self, colour: bool) -> None:
        self._colour = colour
        self._lines: list[str] = []

    def add(self, line: str = "", style: str = PLAIN) -> None:
        self._lines.append(f"\x1b[{style}m{line}\x1b[0m" if self._colour and style and line else line)

    def wrap(self, text: str, first: str = "  ", rest: str | None = None, style: str = PLAIN) -> None:
        indent = " " * len(first) if rest is None else rest
        for line in textwrap.wrap(
            text, WIDTH, initial_indent=first, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
        ):
            self.add(line, style)

    def section(self, title: str, lines: list[str]) -> None:
        if lines:
            self.add()
            self.add(title, BOLD)
            for line in lines:
                self.add(line)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def render_text(report: Report, verbose: bool = False, colour: bool = False) -> str:
    """The whole report, ending in a newline. `verbose` adds the budget and every trial; `colour` adds ANSI codes."""
    page = _Page(colour)
    page.wrap(opening(report.facts), first="", style=YELLOW if report.facts.bench is BenchKind.SIMULATED else DIM)
    page.add()
    if report.latency is not None:
        _headline(page, report, report.latency)
    else:
        _no_figure(page, report)
    _against(page, report)
    page.section("runs", _run_table(report))
    page.section("groups", _group_table(report))
    _refusals(page, report)
    page.section("stages, ms: who owns which part of the latency", stage_lines(report))
    page.section("stages run by run, medians in ms", run_lines(report))
    if report.stages is not None:
        page.add()
        for line in (*report.stages.words, *report.stages.notes):
            page.wrap(line, first="  - ")
    page.section("signal", signal_lines(report))
    drifts, claims = drift_table(report), claim_table(report)
    page.section("clocks, ppm (positive: the first is fast; +/-: the truth is inside)", drifts)
    page.section("the driver's claims beside the clocks, ms", claims)
    words = words_about(report)
    if words and not drifts and not claims:
        page.add()
        page.add("clocks", BOLD)
    for line in words:
        page.wrap(line)
    if verbose:
        page.section("uncertainty budget (standard uncertainties)", budget_lines(report))
        for run in report.runs:
            page.section(f"trials of run {run.analysis.run}", trial_lines(run))
    page.section("bench", _bench_lines(report.facts))
    if report.caveats:
        page.add()
        page.add("caveats", YELLOW)
        for caveat in report.caveats:
            page.wrap(caveat, first="  - ")
    return page.text()


def opening(facts: MeasurementFacts) -> str:
    if facts.bench is BenchKind.SIMULATED:
        seed = "" if facts.seed is None else f", seed {facts.seed}"
        return f"SIMULATED BENCH: scenario {facts.scenario or ABSENT}{seed}. No hardware was measured."
    if facts.bench is BenchKind.VIRTUAL:
        return f"virtual bench: {facts.device or ABSENT}. Real software, no sound in air."
    if facts.bench is BenchKind.FILE:
        return f"recording {facts.source or ABSENT}, made by another recorder"
    return f"device {facts.device or ABSENT}"


def _headline(page: _Page, report: Report, latency: LatencyStatistics) -> None:
    digits = decimals_for(latency.u95_s)
    figured = [r for r in report.runs if r.latency is not None]
    of_what = "a mixture of groups: median" if report.mixture else "mouth-to-ear latency, median"
    page.wrap(
        f"{ms(latency.median_s, digits)} ms   {of_what} of {_count(latency.n, 'trial')} in"
        f" {_count(len(figured), 'run')}",
        style=BOLD,
    )
    limit_s = report.facts.limit_s
    if limit_s is not None:
        over = report.outcome is Outcome.OVER_LIMIT
        verdict = "OVER THE LIMIT of" if over else "within the limit of"
        page.wrap(f"{verdict} {limit_s * 1e3:g} ms", style=RED if over else PLAIN)
    page.wrap(
        f"95 % interval  {ms(latency.low_s, digits)} to {ms(latency.high_s, digits)} ms"
        f"   (the instrument alone: +/- {ms(latency.instrument_u95_s, decimals_for(latency.instrument_u95_s))} ms)"
    )
    page.wrap(
        f"range          {ms(latency.min_s, digits)} to {ms(latency.max_s, digits)} ms,"
        f" {ms(latency.range_s, digits)} wide; mean {ms(latency.mean_s, digits)}"
    )
    page.wrap("percentiles    " + _percentiles(latency, digits))
    page.wrap(_spread(report), first="  spread         ")


def _percentiles(latency: LatencyStatistics, digits: int) -> str:
    shown = [
        f"{name} {ms(value, digits)}"
        for name, value in (("p5", latency.p5_s), ("p95", latency.p95_s), ("p99", latency.p99_s))
        if value is not None
    ]
    if latency.p95_s is None:
        return f"none: p95 needs 20 trials, p99 100; there are {latency.n}"
    unit = " ms"
    return ", ".join(shown) + unit + ("" if latency.p99_s is not None else "   (p99 needs 100 trials)")


def _spread(report: Report) -> str:
    spread, between = report.spread, report.between
    within = ABSENT if spread is None else f"{ms(spread.within_s, decimals_for(spread.within_s))} ms"
    if between is None:
        return f"within the run {within} (standard deviation)"
    verdict = "the runs agree" if between.agree else "the runs differ"
    return (
        f"within runs {within}, between runs {ms(between.sd_s, decimals_for(between.sd_s))} ms"
        f" (standard deviations); {verdict}"
    )


def _against(page: _Page, report: Report) -> None:
    """The reference lines that were asked for, each with where the interval lies to it and its source."""
    if not report.facts.against:
        return
    page.add()
    page.add("against", BOLD)
    for held in held_against(report.facts.against, report.latency, report.facts.mode):
        page.wrap(in_words(held, report.latency), first="  - ")


def _no_figure(page: _Page, report: Report) -> None:
    page.wrap("no valid measurement", style=RED)
    for run in report.runs:
        detail = "" if run.refusal_detail is None else f": {run.refusal_detail}"
        page.wrap(f"run {run.analysis.run}  {run.refusal}{detail}")
    if not report.runs:
        page.wrap("nothing was recorded")


def _run_table(report: Report) -> list[str]:
    if report.latency is None and len(report.runs) < 2:
        return []
    rows = [["run", "median ms", "95 % interval", "range", "accepted", ""]]
    for run in report.runs:
        rows.append(_run_row(run))
    return table(rows)


def _run_row(run: RunReport) -> list[str]:
    accepted = f"{run.n_accepted} of {run.n_trials}"
    latency = run.latency
    if latency is None:
        return [str(run.analysis.run), ABSENT, ABSENT, ABSENT, accepted, str(run.refusal)]
    digits = decimals_for(latency.u95_s)
    remarks = [f"{len(run.steps)} step{'s' if len(run.steps) > 1 else ''}"] if run.steps else []
    if run.trend is not None:
        remarks.append("slides")
    return [
        str(run.analysis.run),
        ms(latency.median_s, digits),
        f"{ms(latency.low_s, digits)} to {ms(latency.high_s, digits)}",
        f"{ms(latency.min_s, digits)} to {ms(latency.max_s, digits)}",
        accepted,
        ", ".join(remarks),
    ]


def _group_table(report: Report) -> list[str]:
    if not report.mixture or report.grouping is None:
        return []
    rows = [["trials", "median ms", "range", "in runs"]]
    for cluster in report.grouping.clusters:
        rows.append(
            [
                str(cluster.n),
                ms(cluster.median_s),
                f"{ms(cluster.min_s)} to {ms(cluster.max_s)}",
                " ".join(str(run) for run in cluster.runs),
            ]
        )
    return table(rows)


def _refusals(page: _Page, report: Report) -> None:
    if not report.refusals:
        return
    page.add()
    page.add("refused", BOLD)
    for count in report.refusals:
        where = [_count(count.n_runs, "run")] if count.n_runs else []
        where += [_count(count.n_trials, "trial")] if count.n_trials else []
        page.wrap(f"{count.reason}, {' and '.join(where)}: {count.meaning}", rest="    ")
        page.wrap(f"-> {count.remedy}", first="    ", rest="       ")


def _bench_lines(facts: MeasurementFacts) -> list[str]:
    lines = []
    if facts.asked is not None:
        lines.append(
            f"  asked    {facts.asked.rate_hz} Hz, {facts.asked.channels} channels{_blocks(facts.asked.block_frames)}"
        )
    if facts.granted is not None:
        granted = facts.granted
        api = "" if granted.host_api is None else f", {granted.host_api}"
        lines.append(
            f"  granted  {granted.rate_hz} Hz, {granted.channels} channels{_blocks(granted.block_frames)}{api}"
        )
        lines.append(
            f"  claimed  input {_claim(granted.input_latency_claimed_s)}, output"
            f" {_claim(granted.output_latency_claimed_s)} (the driver's word, not used)"
        )
    if facts.plan is not None:
        lead = "" if facts.plan.lead_in is None else f" after a lead-in of {facts.plan.lead_in}"
        runs = "" if facts.runs_planned is None else f"{_count(facts.runs_planned, 'run')} of "
        lines.append(
            f"  played   {runs}{facts.plan.count} x {facts.plan.kind}{lead}, by the {_source(facts.plan.source)}"
        )
        lines.append(f"  muted    {_blank(facts)}")
    for correction in facts.corrections:
        digits = decimals_for(1.96 * correction.u_s)
        value, half = ms(correction.value_s, digits, signed=True), ms(1.96 * correction.u_s, digits)
        lines.append(f"  applied  {correction.name}: {value} +/- {half} ms")
        lines.append(f"           by {correction.calibration}")
    if facts.build is not None:
        lines.append(f"  build    {facts.build}")
    lines += _listed("  system   ", facts.system)
    lines += _listed("  its word ", facts.config)
    if facts.session is not None:
        lines.append(f"  session  {facts.session}")
    return lines


def _listed(lead: str, pairs: Sequence[tuple[str, str]]) -> list[str]:
    """Names and values in a row, wrapped; nothing where there are none."""
    text = ", ".join(f"{name} {value}".removeprefix("command ") for name, value in pairs)
    return textwrap.wrap(text, WIDTH, initial_indent=lead, subsequent_indent=" " * len(lead), break_on_hyphens=False)


def _blank(facts: MeasurementFacts) -> str:
    if facts.blank is None:
        return "not measured"
    if facts.blank.leak_lag_s is None:
        return f"{_count(facts.blank.n_trials, 'stimulus', 'stimuli')} with the system muted: no leak heard"
    return f"a leak from mouth to ear after {ms(facts.blank.leak_lag_s)} ms"


def _blocks(frames: int | None) -> str:
    return "" if frames is None else f", blocks of {frames}"


def _claim(seconds: float | None) -> str:
    return "not given" if seconds is None else f"{ms(seconds)} ms"


def _source(source: str) -> str:
    return {"mcu": "board", "interface": "interface's output"}.get(source, source)


def _count(n: int, noun: str, plural: str | None = None) -> str:
    return f"{n} {noun if n == 1 else plural or noun + 's'}"
