"""Reference lines: which there are, where an interval lies to them, and what is not compared."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from report_cases import FACTS, run_of
from test_html import words_of

from rig.cli.main import main
from rig.cli.options import duration_s
from rig.cli.pipeline import Choices
from rig.domain.exhibits import Exhibits
from rig.domain.records import Reason
from rig.domain.report import Report
from rig.errors import UsageError
from rig.report.html.comparison import render_comparison
from rig.report.html.page import render_page
from rig.report.references import REFERENCES, held_against, in_words, lines_of
from rig.report.render_json import render_json
from rig.report.render_text import render_text
from rig.report.summary import summarise

ROOT = Path(__file__).parents[2]
SCHEMA = jsonschema.Draft202012Validator(
    json.loads((ROOT / "docs" / "measurement.schema.json").read_text(encoding="utf-8"))
)


def report(rng: np.random.Generator, *lines: str, mode: str = "call") -> Report:
    """About 150 ms, known within half a millisecond or so."""
    runs = [run_of(rng.normal(0.150, 1e-3, 20), run=k + 1) for k in range(3)]
    return summarise(runs, replace(FACTS, against=lines_of(lines, duration_s), mode=mode))


def test_above_below_and_not_decided_by_the_interval(rng: np.random.Generator) -> None:
    plain = report(rng)
    assert plain.latency is not None
    low, high = plain.latency.low_s, plain.latency.high_s
    texts = [f"{s * 1e3:.6f}ms" for s in (low - 1e-6, low + 1e-6, high - 1e-6, high + 1e-6)]
    found = held_against(lines_of(texts, duration_s), plain.latency, "call")
    assert [h.position for h in found] == ["above", "not_decided", "not_decided", "below"]


def test_each_line_names_its_source_everywhere(rng: np.random.Generator) -> None:
    found = report(rng, "300ms", "g114", "GPT-4o", "g114")
    document = json.loads(render_json(found))
    SCHEMA.validate(document)
    assert [line["value_s"] for line in document["against"]] == [0.15, 0.232, 0.3, 0.32, 0.4]
    assert [line["position"] for line in document["against"]] == ["not_decided", None, "below", None, "below"]
    text, page = " ".join(render_text(found).split()), words_of(render_page(found, Exhibits()))
    both = words_of(render_comparison([("a", found), ("b", report(rng))]))
    for held in held_against(found.facts.against, found.latency, "call"):
        assert held.line.source
        for shown in (text, page, both):
            assert " ".join(in_words(held, found.latency).split()) in shown
    assert max(map(len, render_text(found).splitlines())) <= 80


def test_a_response_time_is_no_one_way_delay(rng: np.random.Generator) -> None:
    document = json.loads(render_json(report(rng, "gpt-4o")))
    assert {line["position"] for line in document["against"]} == {None}
    assert all("response time" in line["not_compared_because"] for line in document["against"])
    assert all(line.of is not None for lines in REFERENCES.values() for line in lines)


def test_without_a_figure_nothing_is_held_against_anything() -> None:
    found = summarise([run_of([Reason.NO_ARRIVAL] * 6)], replace(FACTS, against=lines_of(["g114"], duration_s)))
    document = json.loads(render_json(found))
    assert [line["position"] for line in document["against"]] == [None, None]
    assert "no valid figure" in render_text(found)
    assert "no valid figure" in words_of(render_page(found, Exhibits()))


@pytest.mark.parametrize("line", ["300", "g113", "", "-5ms", "nan"])
def test_a_line_that_nobody_knows_is_refused_before_anything_is_measured(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["measure", "--device", "sim", "--against", line, "--out", str(tmp_path / "s"), "-q"]) == 2
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "s").exists()
    with pytest.raises(UsageError):
        lines_of([f"{k + 1}ms" for k in range(17)], duration_s)


def test_a_session_remembers_its_lines_and_what_is_said_now_goes_first() -> None:
    stored = {"against": ["g114", "nonsense", 7, "300ms"]}
    assert Choices().over(stored).against == ("g114", "300ms")
    assert Choices(against=("200ms",)).over(stored).against == ("200ms",)
    assert Choices().over({"against": "g114"}).against == ()


def test_on_a_recording(capsys: pytest.CaptureFixture[str]) -> None:
    source = ROOT / "tests" / "golden" / "chromium-direct-48k-click.flac"
    assert main(["analyze", str(source), "--against", "g114", "--json", "-q"]) == 0
    assert [line["position"] for line in json.loads(capsys.readouterr().out)["against"]] == ["below", "below"]
