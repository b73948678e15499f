"""The parts of the page that are words and tables: headline, what to do next, circumstances, every trial."""

from __future__ import annotations

import math
from typing import Any

from rig.domain.exhibits import Exhibits
from rig.domain.report import Report
from rig.report.digits import ABSENT, decimals_for, ms, number
from rig.report.html.markup import Child, Markup, el, figure_of, join, more, section, table, time
from rig.report.references import held_against, in_words

Json = dict[str, Any]

MOST_ROWS = 2000
"""A table of more trials than this helps nobody and slows a phone down; the JSON document has them all."""


def headline(report: Report, d: Json) -> Markup:
    """The figure with its interval, or the refusal with its remedies."""
    latency = d["latency_s"]
    if latency is None:
        return _no_figure(report, d)
    digits = decimals_for(latency["u95"])
    runs = sum(r["latency_s"] is not None for r in d["runs"])
    kind = "a mixture of groups: median" if d["mixture"] else "mouth-to-ear latency, median"
    facts: list[tuple[str, Child]] = [
        ("95 % interval", join(time(latency["low"], digits), " to ", time(latency["high"], digits, unit=True))),
        (
            "instrument alone",
            join("± ", time(latency["instrument_u95"], decimals_for(latency["instrument_u95"]), unit=True)),
        ),
        ("range", join(time(latency["min"], digits), " to ", time(latency["max"], digits, unit=True))),
        ("mean", time(latency["mean"], digits, unit=True)),
        *(
            (f"{p} percentile", time(latency[p], digits, unit=True))
            for p in ("p5", "p95", "p99")
            if latency[p] is not None
        ),
        ("spread within runs", _spread(d["spread_within_s"])),
    ]
    between = d["between_runs_s"]
    if between is not None:
        verdict = "the runs agree" if between["agree"] else "the runs differ"
        facts.append(("spread between runs", join(_spread(between["sd"]), f"; {verdict}")))
    return el(
        "section",
        el(
            "p",
            el("data", ms(latency["median"], digits), value=repr(latency["median"]), id="median", class_="big"),
            el("span", " ms", class_="unit"),
            class_="headline",
        ),
        el("p", f"{kind} of {_count(latency['n'], 'trial')} in {_count(runs, 'run')}", class_="what"),
        _limit(report, d),
        against(report),
        el("dl", [el("div", el("dt", name), el("dd", value)) for name, value in facts], class_="facts"),
        id="headline",
        aria_label="Result",
    )


def _spread(value_s: float | None) -> Markup:
    return time(value_s, decimals_for(value_s), unit=True)


def _limit(report: Report, d: Json) -> Markup | None:
    if d["limit_s"] is None:
        return None
    words = "OVER THE LIMIT of " if d["over_limit"] else "within the limit of "
    return el("p", words, time(d["limit_s"], 1, unit=True), class_="bad" if d["over_limit"] else "good")


def against(report: Report) -> Markup | None:
    """The reference lines that were asked for: where the interval lies to each, and its source."""
    found = held_against(report.facts.against, report.latency, report.facts.mode)
    if not found:
        return None
    return el("ul", [el("li", in_words(held, report.latency)) for held in found], class_="against")


def _no_figure(report: Report, d: Json) -> Markup:
    lines = [
        el(
            "li",
            f"run {r['run']}: ",
            el("code", r["refusal"]),
            f", {r['refusal_detail']}" if r["refusal_detail"] else "",
        )
        for r in d["runs"]
    ]
    return el(
        "section",
        el("p", "no valid measurement", class_="headline bad", id="refused"),
        el("p", "There is no latency here, and none is implied. Why, and what to do:", class_="what"),
        el("ul", lines or el("li", "nothing was recorded")),
        against(report),
        id="headline",
        aria_label="Result",
    )


def next_steps(d: Json) -> Markup:
    """Remedies of what was refused first, then what would narrow the interval or remove a doubt."""
    steps: list[Child] = [
        el(
            "li",
            el("strong", r["reason"]),
            f" ({_where(r)}): {r['meaning']}. ",
            el("span", _sentence(r["remedy"]), class_="remedy"),
        )
        for r in d["remedies"]
    ]
    latency, between, blank = d["latency_s"], d["between_runs_s"], d["blank"]
    if latency is not None:
        figured = sum(r["latency_s"] is not None for r in d["runs"])
        if d["mixture"]:
            steps.append(
                el("li", "The trials fall into groups: find what differs between them before quoting a median.")
            )
        if between is not None and not between["agree"]:
            steps.append(
                el(
                    "li",
                    "The runs differ: more runs narrow the interval, more stimuli do not (",
                    el("code", "--runs"),
                    ").",
                )
            )
        elif figured == 1:
            steps.append(el("li", "One start of the system says nothing about the next: measure at least three runs."))
        if latency["p95"] is None:
            steps.append(el("li", "A 95th percentile needs 20 accepted trials (", el("code", "--stimuli"), ")."))
        if not blank["made"]:
            steps.append(
                el("li", "Record a blank run (system muted): nothing else can rule out that the ear hears the mouth.")
            )
        if not d["corrections"]:
            steps.append(
                el(
                    "li",
                    "Nothing is calibrated: converters, loudspeakers and air (2.9 ms per metre) are in the figure.",
                )
            )
    return section("next", "What to do next", el("ul", steps) if steps else None)


def _where(remedy: Json) -> str:
    parts = [_count(remedy["runs"], "run")] if remedy["runs"] else []
    return " and ".join([*parts, _count(remedy["trials"], "trial")] if remedy["trials"] else parts)


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + "."


def caveats(d: Json) -> Markup:
    if not d["caveats"]:
        return Markup("")
    return section("caveats", "Before quoting the number", el("ul", [el("li", c) for c in d["caveats"]]))


def run_table(d: Json) -> Markup:
    rows: list[list[Child]] = []
    for r in d["runs"]:
        latency, accepted = r["latency_s"], f"{r['n_accepted']} of {r['n_trials']}"
        remarks = [f"{_count(len(r['steps']), 'step')}"] if r["steps"] else []
        remarks += ["slides"] if r["trend"] is not None else []
        if latency is None:
            rows.append([str(r["run"]), ABSENT, ABSENT, ABSENT, accepted, r["refusal"] or ""])
            continue
        digits = decimals_for(latency["u95"])
        rows.append(
            [
                str(r["run"]),
                time(latency["median"], digits),
                join(time(latency["low"], digits), " to ", time(latency["high"], digits)),
                join(time(latency["min"], digits), " to ", time(latency["max"], digits)),
                accepted,
                ", ".join(remarks),
            ]
        )
    heads = ["run", "median, ms", "95 % interval, ms", "range, ms", "accepted", "remarks"]
    return table("Runs", heads, rows, left=(5,)) if rows else Markup("")


def group_table(d: Json) -> Markup:
    if not d["mixture"]:
        return Markup("")
    rows: list[list[Child]] = [
        [
            str(c["n"]),
            time(c["median_s"]),
            join(time(c["min_s"]), " to ", time(c["max_s"])),
            " ".join(map(str, c["runs"])),
        ]
        for c in d["clusters"]
    ]
    return table("Groups of trials", ["trials", "median, ms", "range, ms", "in runs"], rows)


def trial_table(d: Json) -> Markup:
    """Every trial, up to MOST_ROWS: the table behind the plots."""
    heads = [
        "trial",
        "time, s",
        "latency, ms",
        "u, ms",
        "SNR, dB",
        "z",
        "decoy, dB",
        "coherence",
        "split, ms",
        "verdict",
    ]
    rows: list[list[Child]] = []
    total = sum(len(r["trials"]) for r in d["runs"])
    for r in d["runs"]:
        for t in r["trials"][: max(0, MOST_ROWS - len(rows))]:
            verdict = "accepted" if t["valid"] else t["reason"]
            if t["unconfirmed_s"] is not None:
                verdict += f" (would be {ms(t['unconfirmed_s'])} ms)"
            rows.append(
                [
                    f"{r['run']}.{t['index']}",
                    number(t["reference_frame"] / r["rate_hz"], 2),
                    time(t["latency_s"], 3),
                    ms(t["u_s"], 4),
                    number(t["snr_db"], 1),
                    number(t["z"], 0),
                    number(t["decoy_db"], 1),
                    number(t["coherence"], 2),
                    ms(t["split_s"], 3, signed=True),
                    verdict,
                ]
            )
    if not rows:
        return Markup("")
    left_out = (
        el("p", f"The first {len(rows)} of {total} trials; rig analyze --json has them all.")
        if len(rows) < total
        else None
    )
    return more(f"Every trial ({len(rows)})", left_out, table("Every trial", heads, rows, left=(9,)))


def budget(d: Json) -> Markup:
    """The uncertainty budget of each run that carries a figure."""
    rows: list[list[Child]] = []
    for r in d["runs"]:
        if r["latency_s"] is not None:
            rows += [[str(r["run"]), b["term"], b["kind"], time(b["u_s"], 4), b["source"]] for b in r["budget"]]
            common = math.sqrt(math.fsum(b["u_s"] ** 2 for b in r["budget"] if b["kind"] == "B"))
            rows.append(
                [str(r["run"]), "all of kind B", "B", ms(common, 4), "common to every trial, they do not average out"]
            )
    if not rows:
        return Markup("")
    heads = ["run", "term", "kind", "standard uncertainty, ms", "source"]
    return more("Uncertainty budget", table("Uncertainty budget", heads, rows, left=(1, 2, 4)))


def levels(d: Json) -> Markup:
    rows: list[list[Child]] = []
    for r in d["runs"]:
        for name in ("reference", "ear") if r["levels"] is not None else ():
            level = r["levels"][name]
            rows.append(
                [
                    f"{r['run']} {name}",
                    figure_of(level["peak_dbfs"]),
                    figure_of(level["noise_dbfs"]),
                    number(level["dc"], 4, signed=True),
                    figure_of(level["hum_dbfs"]),
                    str(level["clipped_samples"]),
                    "digital silence" if level["digital_silence"] else "",
                ]
            )
    heads = ["run, channel", "peak, dBFS", "noise, dBFS", "DC", "hum, dBFS", "clipped samples", "remarks"]
    return table("Levels", heads, rows, left=(6,)) if rows else Markup("")


def clocks(d: Json) -> Markup:
    """Drifts and what the driver claims beside what the clocks say."""
    names = ("audio_host_ppm", "mcu_host_ppm", "audio_mcu_ppm")
    found = [(r["run"], r["clocks"]) for r in d["runs"] if r["clocks"] is not None]
    drift_rows: list[list[Child]] = [
        [str(run), *(_reach(c[name], 2) for name in names)]
        for run, c in found
        if any(c[name] is not None for name in names)
    ]
    claimed = (d["claimed_s"] or {}).get("input")
    claim_rows: list[list[Child]] = [
        [
            str(run),
            _span(c["after_last_s"]),
            time(claimed),
            _span(c["after_first_s"]),
            time(c["adc_claim_age_s"]),
            _span(c["adc_claim_error_s"], signed=True),
        ]
        for run, c in found
        if c["after_last_s"] is not None and c["after_first_s"] is not None
    ]
    why = sorted({c["refusal"] for _, c in found if c["refusal"] is not None})
    drift_heads = ["run", "audio against host, ppm", "board against host, ppm", "audio against board, ppm"]
    claim_heads = [
        "run",
        "block to program, ms",
        "claimed, ms",
        "capture to program, ms",
        "claimed, ms",
        "ADC times off, ms",
    ]
    return join(
        table("Drift of each clock (positive: the first is fast; ±: the truth is inside)", drift_heads, drift_rows)
        if drift_rows
        else None,
        table("The driver's claims beside the clocks", claim_heads, claim_rows) if claim_rows else None,
        [el("p", f"Clocks not compared: {reason}") for reason in why],
    )


def _reach(interval: Json | None, decimals: int) -> Child:
    if interval is None:
        return ABSENT
    reach = max(interval["high"] - interval["value"], interval["value"] - interval["low"])
    return join(figure_of(interval["value"], decimals, signed=True), f" ± {number(reach, decimals)}")


def _span(span: Json | None, signed: bool = False) -> Child:
    if span is None:
        return ABSENT
    return join(
        time(span["value"], 2, signed), f" ± {ms(max(span['high'] - span['value'], span['value'] - span['low']), 2)}"
    )


def provenance(d: Json, exhibits: Exhibits) -> Markup:
    """Bench, plan, environment, board and hashes: what is needed to make the same measurement again, or to check it."""
    granted, plan, channels = d["granted"], d["plan"], d["channels"]
    rows: list[tuple[str, Child]] = [("rig", d["rig_version"]), ("bench", d["bench"]), ("device", d["device"])]
    rows += [("build", d["build"])]
    rows += [(f"system: {name}", value) for name, value in d["system"].items()]
    rows += [(f"the system says: {name}", value) for name, value in d["config"].items()]
    rows += [("recording", d["source"]), ("session", d["session"]), ("scenario", d["scenario"]), ("seed", d["seed"])]
    if d["asked"] is not None:
        rows.append(("asked", f"{d['asked']['rate_hz']} Hz, {d['asked']['channels']} channels"))
    if granted is not None:
        blocks = "" if granted["block_frames"] is None else f", blocks of {granted['block_frames']}"
        rows.append(
            (
                "granted",
                f"{granted['rate_hz']} Hz, {granted['channels']} channels{blocks}, {granted['host_api'] or ABSENT}",
            )
        )
    if d["claimed_s"] is not None:
        claim = join(
            "input ", time(d["claimed_s"]["input"], unit=True), ", output ", time(d["claimed_s"]["output"], unit=True)
        )
        rows.append(("claimed by the driver (not used)", claim))
    if plan is not None:
        runs = "" if plan["runs"] is None else f"{_count(plan['runs'], 'run')} of "
        rows.append(("played", f"{runs}{plan['stimuli']} x {plan['stimulus']}, by {plan['stimulus_source']}"))
    rows.append(("channels", f"reference {channels['reference']}, ear {channels['ear']}"))
    rows += [(f"correction: {c['name']}", time(c["value_s"], 3, signed=True, unit=True)) for c in d["corrections"]]
    rows += [("losses flagged by the backend", d["xruns"])]
    rows += [*exhibits.facts, *d["environment"].items()]
    listed = el("dl", [el("div", el("dt", k), el("dd", v)) for k, v in rows if v is not None], class_="facts")
    files: list[list[Child]] = [[name, el("code", digest)] for name, digest in exhibits.files]
    hashes = (
        more(f"SHA-256 of {_count(len(files), 'file')}", table("Files", ["file", "SHA-256"], files, left=(1,)))
        if files
        else None
    )
    return section("provenance", "Where it comes from", listed, hashes)


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'' if n == 1 else 's'}"
