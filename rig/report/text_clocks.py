"""The clocks in the text report: how fast each ran against the others, and the driver's claims beside that."""

from __future__ import annotations

from rig.domain.records import ClockDrift, ClockFacts, Span
from rig.domain.report import Report
from rig.report.digits import ABSENT, decimals_for, ms, number, table


def drift_table(report: Report) -> list[str]:
    """One row a run with the three drifts and the reach of their intervals; nothing where no run compares clocks."""
    rows = [["run", "audio against host", "board against host", "audio against board", ""]]
    for run, clocks in _runs(report):
        drifts = (clocks.audio_host, clocks.mcu_host, clocks.audio_mcu)
        if any(d is not None for d in drifts):
            rows.append([str(run), *(_ppm(d) for d in drifts), ""])
    return table(rows) if len(rows) > 1 else []


def claim_table(report: Report) -> list[str]:
    """One row a run: delays by the clocks, and what the driver says of them."""
    granted = report.facts.granted
    rows = [["run", "block to program", "claimed", "capture to program", "claimed", "ADC times off", ""]]
    for run, clocks in _runs(report):
        if clocks.after_last_s is not None and clocks.after_first_s is not None:
            rows.append(
                [
                    str(run),
                    _span(clocks.after_last_s),
                    ms(None if granted is None else granted.input_latency_claimed_s),
                    _span(clocks.after_first_s),
                    ms(clocks.adc_claim_age_s),
                    ABSENT if clocks.adc_claim_error_s is None else _span(clocks.adc_claim_error_s, signed=True),
                    "",
                ]
            )
    return table(rows) if len(rows) > 1 else []


def words_about(report: Report) -> list[str]:
    """What the tables need to be read, what the interface's output really took, and which run has no clocks and why."""
    said = []
    if len(claim_table(report)) > 1:
        said.append(
            "block to program: from a block's last sample until the program had it, the median; capture to program:"
            " from its first sample; ADC times off: positive, the driver states them later than the sound was there"
        )
    granted = report.facts.granted
    claimed = ABSENT if granted is None else ms(granted.output_latency_claimed_s)
    for run, clocks in _runs(report):
        if clocks.output_s is not None:
            said.append(
                f"run {run}: the interface's sound is on the reference {_span(clocks.output_s)} ms after the frame"
                f" asked for; output claimed {claimed} ms"
            )
    unknown: dict[str, list[int]] = {}
    for run, clocks in _runs(report):
        if clocks.refusal is not None:
            unknown.setdefault(clocks.refusal, []).append(run)
    for why, runs in unknown.items():
        listed = ", ".join(str(run) for run in runs)
        said.append(f"clocks of run {listed}: {why}")
    return said


def _runs(report: Report) -> list[tuple[int, ClockFacts]]:
    return [(r.analysis.run, r.analysis.clocks) for r in report.runs if r.analysis.clocks is not None]


def _ppm(drift: ClockDrift | None) -> str:
    if drift is None:
        return ABSENT
    reach = max(drift.high_ppm - drift.ppm, drift.ppm - drift.low_ppm)
    decimals = min(2, decimals_for(1e-3 * reach))
    return f"{number(drift.ppm, decimals, signed=True)} +/- {number(reach, decimals)}"


def _span(span: Span, signed: bool = False) -> str:
    reach_s = max(span.high_s - span.value_s, span.value_s - span.low_s)
    return f"{ms(span.value_s, 2, signed)} +/- {ms(reach_s, 2)}"
