"""The sentences under a figure: what a reader must know before quoting it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rig.domain.device_names import is_sound_server
from rig.domain.records import ChannelLevel, Reason, RunAnalysis
from rig.domain.report import (
    BetweenRuns,
    Cluster,
    Grouping,
    LatencyStatistics,
    MeasurementFacts,
    RunReport,
    Spread,
)
from rig.report.groups import is_mixture
from rig.report.series import NOTABLE_S

DC_NOTABLE = 0.01
HUM_NOTABLE_DBFS = -40.0
ECHO_APART_S = 1e-3
SUPPRESSED = (Reason.NO_ARRIVAL, Reason.LOW_SNR)


def caveats_of(
    facts: MeasurementFacts,
    runs: Sequence[RunReport],
    latency: LatencyStatistics | None,
    spread: Spread | None,
    between: BetweenRuns | None,
    grouping: Grouping | None,
) -> tuple[str, ...]:
    """All caveats of a report, the ones that change the reading of the headline first; none twice."""
    found: list[str] = []
    if latency is not None:
        found += _about_the_median(runs, latency, spread, between, grouping)
    found += _about_the_limit(facts, latency)
    found += _about_missing_trials(facts, runs, latency is not None)
    found += _about_the_recording(facts)
    found += _about_the_signals(runs)
    found += _from_the_analysis([r.analysis for r in runs])
    if latency is not None:
        found += _about_the_definition(facts, runs)
    return tuple(dict.fromkeys(found))


def _about_the_median(
    runs: Sequence[RunReport],
    latency: LatencyStatistics,
    spread: Spread | None,
    between: BetweenRuns | None,
    grouping: Grouping | None,
) -> Iterable[str]:
    if grouping is not None and len(grouping.clusters) > 1:
        if is_mixture(grouping):
            groups = _listed([_group_words(c) for c in grouping.clusters])
            yield (
                f"the trials fall into {len(grouping.clusters)} groups, {groups}; the median over all of them is a"
                " mixture and stands for none"
            )
        else:
            starts = sorted((c.runs[0], c.median_s) for c in grouping.clusters)
            places = _listed([f"run {run} at {_ms(median_s)} ms" for run, median_s in starts])
            yield f"each start lands somewhere else: {places}; the next one may land elsewhere again"
    for run in runs:
        for step in run.steps:
            yield (
                f"run {step.run}: the latency steps from {_ms(step.before_s)} to {_ms(step.after_s)} ms"
                f" ({_signed_ms(step.size_s)}) at trial {step.index}, {step.at_s:.1f} s into the recording"
            )
        if run.trend is not None:
            yield (
                f"run {run.trend.run}: the latency slides by {_signed_ms(run.trend.slope_s_per_s * 60.0)} per minute,"
                f" {_signed_ms(run.trend.change_s)} in all; its median is true of one moment only"
            )
    if between is not None and between.slope_s_per_run is not None:
        yield f"the latency creeps by {_signed_ms(between.slope_s_per_run)} from run to run"
    if grouping is not None and grouping.outliers:
        listed = _listed([f"run {o.run} trial {o.index} at {_ms(o.latency_s)} ms" for o in grouping.outliers], most=6)
        plural = len(grouping.outliers) > 1
        yield (
            f"{len(grouping.outliers)} accepted {'trials stand' if plural else 'trial stands'} alone: {listed} (over"
            f" {_ms(grouping.gap_s)} ms from any group of 3); kept in every statistic, since a real hiccup counts"
        )
    if latency.n_effective < 0.999 * latency.n and spread is not None and spread.within_s >= NOTABLE_S:
        yield (
            f"successive trials resemble each other: the interval counts {latency.n} trials as"
            f" {latency.n_effective:.0f} independent ones"
        )
    figured = [r for r in runs if r.latency is not None]
    if len(figured) == 1:
        yield "one run only: how much the latency changes from start to start is not known"
    for run in runs:
        if run.latency is None:
            yield f"run {run.analysis.run} carries no figure ({run.refusal}) and is left out"


def _about_the_limit(facts: MeasurementFacts, latency: LatencyStatistics | None) -> Iterable[str]:
    if facts.limit_s is not None and latency is not None and latency.low_s <= facts.limit_s <= latency.high_s:
        yield f"the limit of {_ms(facts.limit_s)} ms lies inside the 95 % interval: more trials may turn the verdict"


def _about_missing_trials(facts: MeasurementFacts, runs: Sequence[RunReport], figure: bool) -> Iterable[str]:
    usable = (None, Reason.TOO_FEW)
    seen = [t for r in runs if r.refusal in usable for t in r.analysis.trials]
    found = [t for t in seen if t.valid]
    missing = [t for t in seen if t.reason in SUPPRESSED]
    if missing and found and len(missing) >= max(2, round(0.05 * len(seen))):
        fades = all(_fades(r) for r in runs if r.refusal in usable)
        pattern = ", at the start of a run only" if fades else ""
        yield (
            f"the stimulus was played {len(seen)} times and heard {len(found)} times"
            f" ({100.0 * len(found) / len(seen):.0f} %){pattern}: echo cancellation, noise suppression or automatic"
            f" gain in the system may remove the rest{'; the figure stands for what passed' if figure else ''}"
        )
    if facts.plan is not None and facts.cut_short is None:
        for run in runs:
            if run.refusal in usable and run.n_trials != facts.plan.count:
                yield (
                    f"run {run.analysis.run}: {facts.plan.count} stimuli were commanded and {run.n_trials} found on"
                    " the reference channel"
                )


def _fades(run: RunReport) -> bool:
    accepted = [t.index for t in run.analysis.trials if t.valid]
    missing = [t.index for t in run.analysis.trials if t.reason in SUPPRESSED]
    return bool(missing) and bool(accepted) and max(accepted) < min(missing)


def _about_the_recording(facts: MeasurementFacts) -> Iterable[str]:
    yield from facts.notes
    if facts.cut_short is not None:
        yield "the report covers what was recorded until then"
    if facts.xruns:
        yield (
            f"the audio device lost samples {facts.xruns} time{'s' if facts.xruns > 1 else ''}; trials across a loss"
            " are refused"
        )
    asked, granted = facts.asked, facts.granted
    if (
        asked is not None
        and granted is not None
        and (asked.rate_hz, asked.channels) != (granted.rate_hz, granted.channels)
    ):
        yield (
            f"asked for {asked.channels} channels at {asked.rate_hz} Hz, granted {granted.channels} at"
            f" {granted.rate_hz} Hz"
        )
    if granted is not None and granted.host_api != "simulated" and is_sound_server(granted.device):
        yield (
            f"{granted.device} is a sound server or a mixer, not the hardware: the latency stands, since both channels"
            " pass it alike, but what the driver claims says nothing of the hardware, and it may resample"
        )
    if facts.blank is None:
        because = facts.no_blank_because or "the recording brings none"
        yield f"no blank run ({because}): an arrival that reaches the ear past the system would not be noticed"
    elif facts.blank.leak_lag_s is not None:
        level = "" if facts.blank.leak_db is None else f", {facts.blank.leak_db:.0f} dB against the reference"
        yield (
            f"with the system muted the ear still hears the mouth after {_ms(facts.blank.leak_lag_s)} ms{level};"
            " arrivals there are refused as leak"
        )


def _about_the_signals(runs: Sequence[RunReport]) -> Iterable[str]:
    polarities = {t.polarity for r in runs for t in r.analysis.trials if t.valid and t.polarity is not None}
    if len(polarities) > 1:
        yield "the polarity is not the same in all accepted trials"
    accepted = [t for r in runs if r.latency is not None for t in r.analysis.trials if t.valid]
    echoes = sorted(
        t.dominant_s - t.latency_s
        for t in accepted
        if t.dominant_s is not None and t.latency_s is not None and abs(t.dominant_s - t.latency_s) > ECHO_APART_S
    )
    if echoes:
        yield (
            f"in {len(echoes)} of {len(accepted)} accepted trials another arrival is stronger than the first, typically"
            f" {_signed_ms(echoes[len(echoes) // 2])} later: an echo; the latency is that of the first"
        )
    for position, name in enumerate(("reference", "ear")):
        levels = [(r.analysis.run, r.analysis.levels[position]) for r in runs if r.analysis.levels is not None]
        yield from _about_a_channel(name, levels)


def _about_a_channel(name: str, levels: Sequence[tuple[int, ChannelLevel]]) -> Iterable[str]:
    clipped = [(run, level.clipped_samples) for run, level in levels if level.clipped_samples > 0]
    if clipped:
        where = _listed([f"{count} in run {run}" for run, count in clipped])
        yield f"samples at full scale on the {name} channel: {where}; turn its gain down"
    offsets = [level.dc for _, level in levels if abs(level.dc) >= DC_NOTABLE]
    if offsets:
        yield f"the {name} channel carries a DC offset of {max(offsets, key=abs):+.3f} of full scale"
    hums = [level.hum_dbfs for _, level in levels if level.hum_dbfs is not None and level.hum_dbfs >= HUM_NOTABLE_DBFS]
    if hums:
        yield f"mains hum of {max(hums):.0f} dBFS on the {name} channel"


def _from_the_analysis(runs: Sequence[RunAnalysis]) -> Iterable[str]:
    """What the analysis said of single runs; what holds for every run is said once."""
    for text in dict.fromkeys(c for r in runs for c in r.caveats):
        holders = [r.run for r in runs if text in r.caveats]
        yield text if len(holders) == len(runs) else f"run {_listed([str(h) for h in holders])}: {text}"


def _about_the_definition(facts: MeasurementFacts, runs: Sequence[RunReport]) -> Iterable[str]:
    if not facts.corrections:
        yield "no calibration is applied: converters, loudspeakers, microphones and air are part of the figure"
    yield from facts.uncalibrated
    if any(r.analysis.stimulus == "click" for r in runs):
        yield "a tone burst cannot be validated alone: its trials are accepted because they agree with each other"


def _group_words(cluster: Cluster) -> str:
    return f"{cluster.n} at {_ms(cluster.median_s)} ms (run {_listed([str(r) for r in cluster.runs])})"


def _listed(words: Sequence[str], most: int = 8) -> str:
    if len(words) > most:
        return ", ".join(words[:most]) + f" and {len(words) - most} more"
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.2f}"


def _signed_ms(seconds: float) -> str:
    return f"{seconds * 1e3:+.2f} ms"
