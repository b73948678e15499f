"""The page without a browser: what is escaped, what is left out, what fits, and where it is written."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report_cases import FACTS, jittering_runs, run_of
from stage_cases import report_with_stages

from rig.cli.main import main
from rig.cli.page_file import page_path
from rig.domain.exhibits import Curve, Exhibits, RunExhibits, TrialCurves
from rig.domain.records import Reason
from rig.domain.report import Report
from rig.errors import UsageError
from rig.report.difference import difference_s, settings_apart
from rig.report.html.comparison import render_comparison
from rig.report.html.pack import pack
from rig.report.html.page import render_page
from rig.report.html.stages import waterfall
from rig.report.render_json import render_json
from rig.report.summary import summarise

VOID = {"meta", "input"}


class Balanced(HTMLParser):
    """Fails on an end tag that does not close the last open one, and keeps the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] not in ("script", "style"):
            self.words.append(data)


def words_of(page: str) -> str:
    parser = Balanced()
    parser.feed(page)
    assert parser.open == []
    return " ".join(" ".join(parser.words).split())


def jittering() -> Report:
    return summarise(jittering_runs(1), FACTS)


def curves(run: int, index: int, n: int = 2000) -> TrialCurves:
    wave = Curve(0.0, 6.25e-5, np.sin(np.arange(n) / 7.0))
    envelope = Curve(-0.01, 1e-3, np.linspace(0.0, 1.0, 1500))
    return TrialCurves(run, index, (300.0, 3400.0), wave, wave, envelope, envelope, None, None, (wave,))


def exhibits(report: Report, n: int = 2000) -> Exhibits:
    kept = [
        RunExhibits(r.analysis.run, tuple(curves(r.analysis.run, t.index, n) for t in r.analysis.trials), None)
        for r in report.runs
    ]
    return Exhibits(tuple(kept), (("run-001.wav", "ab" * 32),))


def test_a_page_is_well_formed_and_needs_nothing_from_outside() -> None:
    report = jittering()
    page = render_page(report, exhibits(report))
    words = words_of(page)
    assert "mouth-to-ear latency, median of 60 trials in 3 runs" in words
    assert "ab" * 32 in words
    assert "default-src &#x27;none&#x27;" in page
    assert not re.search(r"""(?:src|href)=["'](?!#)|url\(|@import|https?://""", page)


def test_names_from_elsewhere_cannot_become_markup() -> None:
    bad = "</script><script>alert(1)</script><img src=x>"
    facts = replace(FACTS, device=bad, scenario=bad, environment=(("host", bad),), notes=(bad,))
    report = summarise(jittering_runs(1), facts)
    page = render_page(report, Exhibits(files=((bad, bad),), facts=((bad, bad),)))
    assert "<img" not in page
    assert "<script>alert" not in page
    assert bad in words_of(page)
    assert bad in words_of(render_comparison([(bad, report), ("other", report)]))


def test_a_note_of_a_trial_cannot_end_the_script_that_carries_it() -> None:
    run = run_of([0.15, 0.151, 0.152])
    noted = replace(run, trials=tuple(replace(t, note="</script><b>") for t in run.trials))
    report = summarise([noted], FACTS)
    packed, count = pack(json.loads(render_json(report)), exhibits(report))
    assert count == 3
    assert "<" not in packed
    assert json.loads(packed)[0]["note"] == "</script><b>"


def test_a_refusal_is_no_figure_and_says_what_to_do() -> None:
    report = summarise([run_of([Reason.NO_ARRIVAL] * 6)], FACTS)
    page = render_page(report, Exhibits())
    words = words_of(page)
    assert 'id="median"' not in page
    assert "no valid measurement" in words
    assert "Check that the system is running and unmuted" in words


def test_stages_are_shown_where_there_are_any_and_only_there(rng: np.random.Generator) -> None:
    assert waterfall(json.loads(render_json(jittering()))) == ""
    assert "Who owns each millisecond" not in render_page(jittering(), Exhibits())
    report = report_with_stages(rng)
    document = json.loads(render_json(report))
    shown = waterfall(document)
    capture = document["stages"][0]
    assert f'value="{capture["undeclared_s"]!r}"' in shown
    assert len(re.findall(r'class="claim"', shown)) == 4  # capture and output, for the desk and for the phone
    words, whole = words_of(shown), document["reconciliation"]
    for line in whole["words"]:
        assert line in words
    for name in ("residual_s", "residual_low_s", "residual_high_s"):
        assert f'value="{whole[name]!r}"' in shown, name
    assert whole["residual_low_s"] < whole["residual_s"] < whole["residual_high_s"]
    assert render_page(report, Exhibits()).count('id="residual"') == 1


def test_the_curves_of_a_long_session_stay_in_their_budget_and_tell_most_first() -> None:
    values = [0.15 + 1e-6 * k for k in range(400)]
    values[123] = 0.2
    report = summarise([run_of([Reason.CLIPPED if k % 50 == 49 else v for k, v in enumerate(values)])], FACTS)
    packed, count = pack(json.loads(render_json(report)), exhibits(report), budget_bytes=300_000)
    there = {t["index"] for t in json.loads(packed)}
    assert len(packed) < 310_000
    assert 5 < count == len(there) < 400
    assert {0, 123} <= there
    assert sum(k % 50 == 49 for k in there) >= 1
    assert render_page(report, exhibits(report)).count("data-trial") >= 800


def test_thousands_of_trials_still_make_a_page_under_3_mb() -> None:
    rng = np.random.default_rng(3)
    runs = [run_of(rng.normal(0.15, 0.002, 1500), run=k + 1) for k in range(2)]
    report = summarise(runs, FACTS)
    page = render_page(report, exhibits(report, 4000))
    assert len(page.encode()) < 3_000_000
    assert "The first 2000 of 3000 trials" in words_of(page)


def test_a_difference_has_the_interval_of_both() -> None:
    a = {"median": 0.150, "low": 0.147, "high": 0.154}
    b = {"median": 0.140, "low": 0.137, "high": 0.143}
    d, low, high = difference_s(a, b)
    assert d == pytest.approx(-0.010)
    assert low == pytest.approx(-0.010 - 0.005)
    assert high == pytest.approx(-0.010 + np.hypot(3e-3, 3e-3))


def test_a_comparison_names_what_else_differs_and_refuses_without_figures() -> None:
    report = jittering()
    other = replace(report, facts=replace(FACTS, scenario="echo", seed=8, session="ffffffffffff"))
    named = [(name, json.loads(render_json(r))) for name, r in (("a", report), ("b", other))]
    assert settings_apart(named) == [("scenario", ["default", "echo"])]
    refused = summarise([run_of([Reason.NO_ARRIVAL] * 6)], FACTS)
    words = words_of(render_comparison([("a", report), ("b", refused)]))
    assert "No difference: b" in words


def test_a_page_goes_beside_its_session_and_over_nothing_of_the_users(tmp_path: Path) -> None:
    session = tmp_path / "2026-01-05-sim.v2"
    session.mkdir()
    assert page_path(session, None) == tmp_path / "2026-01-05-sim.v2-report.html"
    assert page_path(session / "manifest.json", None) == tmp_path / "2026-01-05-sim.v2-report.html"
    (tmp_path / "take.wav").touch()
    assert page_path(tmp_path / "take.wav", None) == tmp_path / "take-report.html"
    mine = tmp_path / "mine.html"
    mine.write_text("<p>mine</p>")
    with pytest.raises(UsageError, match="no report of rig's"):
        page_path(session, mine)
    mine.write_text(render_page(jittering(), Exhibits()))
    assert page_path(session, mine) == mine
    with pytest.raises(UsageError, match="is a folder"):
        page_path(session, session)
    with pytest.raises(UsageError, match="does not exist"):
        page_path(session, tmp_path / "nowhere" / "x.html")


def test_a_source_that_is_not_there_is_three_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", "no-such-session"]) == UsageError.exit_code
    assert len(capsys.readouterr().err.splitlines()) == 3
