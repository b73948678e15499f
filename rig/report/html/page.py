"""One measurement as one HTML file: no network, no other file, readable without the script that zooms."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from rig.domain.exhibits import Exhibits
from rig.domain.report import Report
from rig.report.html import charts, sections
from rig.report.html.markup import Child, Markup, el, join, section
from rig.report.html.pack import pack
from rig.report.html.stages import waterfall
from rig.report.html.svg import shapes
from rig.report.render_json import render_json
from rig.report.render_text import opening

Json = dict[str, Any]

GENERATOR = "rig report"
"""Marks a file as one that a later report may replace."""

MOST_SPECTRA = 3


def render_page(report: Report, exhibits: Exhibits) -> str:
    """The page. Every figure in it is one of the JSON document's, in a `data` element with the document's own value."""
    d: Json = json.loads(render_json(report))
    packed, n_packed = pack(d, exhibits)
    bands = {r["run"]: r["band_hz"] for r in d["runs"]}
    spectra = [
        charts.spectra(run.spectra, run.run, bands[run.run])
        for run in exhibits.runs[:MOST_SPECTRA]
        if run.spectra is not None
    ]
    body = join(
        el("header", el("h1", "Mouth-to-ear latency"), el("p", opening(report.facts), class_=f"bench {d['bench']}")),
        sections.headline(report, d),
        sections.next_steps(d),
        sections.caveats(d),
        waterfall(d),
        section(
            "latency",
            "Latency",
            charts.against_time(d, opens=n_packed > 0),
            charts.distribution(d),
            charts.run_by_run(d),
            sections.run_table(d),
            sections.group_table(d),
        ),
        _viewer(d, n_packed) if n_packed else None,
        section("signals", "Levels and spectra", spectra, sections.levels(d)),
        section("clocks", "Clocks and claims", charts.drifts(d), sections.clocks(d)),
        section("figures", "All figures", sections.trial_table(d), sections.budget(d)),
        sections.provenance(d, exhibits),
    )
    script = (
        el("script", Markup(packed), type="application/json", id="trials"),
        el("script", Markup(asset("viewer.js"))),
    )
    return document_of(_title(d), body, script if n_packed else None)


def document_of(title: str, body: Markup, scripts: Child) -> str:
    """The whole file. The policy in its head forbids every connection, whatever a name from outside may try."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", name="generator", content=GENERATOR),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", title),
        el("style", Markup(asset("page.css"))),
    )
    return "<!DOCTYPE html>\n" + el("html", head, el("body", shapes(), el("main", body), scripts), lang="en") + "\n"


@cache
def asset(name: str) -> str:
    """A file that ships beside this one."""
    return (files("rig.report.html") / name).read_text(encoding="utf-8")


def _title(d: Json) -> str:
    name = d["source"] or d["device"] or d["session"] or "measurement"
    if d["latency_s"] is None:
        return f"no valid measurement: {name}"
    return f"{d['latency_s']['median'] * 1e3:.1f} ms: {name}"


def _viewer(d: Json, n_packed: int) -> Markup:
    """The frame that the script fills: a choice of trials, two pictures to zoom, and the figures in words."""
    total = sum(len(r["trials"]) for r in d["runs"])
    which = f"all {total}" if n_packed == total else f"{n_packed} of {total}, those that tell most among them"
    buttons = [
        ("previous", "‹", "previous trial"),
        ("next", "›", "next trial"),
        ("in", "+", "zoom in"),
        ("out", "−", "zoom out"),
        ("arrival", "arrival", "zoom to the arrival"),
        ("all", "all lags", "show all lags"),
    ]
    return section(
        "trial",
        "Judge a trial by eye",
        el(
            "p",
            f"The samples as recorded (drawn up to 8 kHz) and what the estimator saw in them; {which}."
            " Drag to move, pinch or Ctrl and wheel to zoom; arrow keys, + and − where a picture has the focus.",
        ),
        el("noscript", el("p", "This part needs its script; everything else on the page does without.")),
        el(
            "div",
            el("label", "trial ", el("select", id="choose")),
            [
                el("button", words, type="button", data_do=do, aria_label=label, title=label)
                for do, words, label in buttons
            ],
            el("label", el("input", type="checkbox", id="align", checked=True), " ear moved back by its latency"),
            class_="controls",
        ),
        el("canvas", id="waves", tabindex="0", role="img", height="260"),
        el(
            "p",
            el("span", el("i", class_="key k0"), "reference"),
            el("span", el("i", class_="key k1"), "ear"),
            class_="legend",
        ),
        el("canvas", id="lags", tabindex="0", role="img", height="300"),
        el(
            "p",
            el("span", el("i", class_="key key-s0"), "impulse response, refined about each arrival"),
            el("span", el("i", class_="key key-s3"), "correlation (whitened matched filter)"),
            class_="legend",
        ),
        el("p", id="pointer", class_="pointer"),
        el("dl", id="told", class_="facts", aria_live="polite"),
    )
