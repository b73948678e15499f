"""`rig validate`: limits that hold, that do not, and that nobody measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from shelf_cases import result

from rig import strictjson
from rig.cli.main import main


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """A measurement of 150 ms, five trials, with one stage of 30 ms of which 12 are undeclared."""
    stage = {"stage": "output", "median_s": 0.030, "u95_s": 0.004, "range_s": 0.002, "undeclared_s": 0.012}
    return put(tmp_path, result(0.150, 1e-3, stages=[stage]))


def put(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / "measured.json"
    path.write_text(strictjson.dump(document), encoding="utf-8")
    return path


def outcome(measured: Path, budget: str, *more: str) -> int:
    path = measured.with_name("budget.toml")
    path.write_text(budget, encoding="utf-8")
    return main(["validate", str(measured), "--budget", str(path), *more])


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        ('[total]\nmedian = "200ms"', 0),
        ('[total]\nmedian = "149ms"', 3),
        ('[total]\nrange = "4.1ms"\nmedian = "0.2s"', 0),
        ('[total]\nrange = "3.9ms"\nmedian = "0.2s"', 3),
        ('[total]\np99 = "9s"', 3),  # five trials have none
        ('[stages.output]\nmedian = "35ms"\nundeclared = "20ms"', 0),
        ('[stages.output]\nundeclared = "11ms"', 3),
        ('[stages.capture]\nmedian = "9s"', 3),  # nobody saw it
    ],
)
def test_a_limit(measured: Path, budget: str, code: int) -> None:
    assert outcome(measured, budget) == code


def test_an_interval_over_its_limit_is_said_and_fails_when_strict(
    measured: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = '[stages.output]\nmedian = "33ms"'
    assert outcome(measured, budget) == 0
    assert "interval over" in capsys.readouterr().out
    assert outcome(measured, budget, "--strict") == 3


@pytest.mark.parametrize(
    "budget",
    [
        "",
        "[total]",
        "total = 3",
        "[total]\nmedian = 200",
        '[total]\nmedian = "200"',
        '[total]\nmean = "200ms"',
        '[total]\nundeclared = "200ms"',
        '[stages]\noutput = "200ms"',
        '[whole]\nmedian = "200ms"',
        "[total\n",
        "\x00",
    ],
)
def test_a_budget_that_cannot_be_read(measured: Path, budget: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(measured, budget) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 3


def test_without_a_figure_nothing_is_checked(tmp_path: Path) -> None:
    assert outcome(put(tmp_path, result(None)), '[total]\nmedian = "9s"') == 7


def test_junit_has_a_case_for_each_limit(measured: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.xml"
    assert outcome(measured, '[total]\nmedian = "149ms"\nrange = "1s"\np99 = "1s"', "--junit", str(out)) == 3
    suite = ElementTree.parse(out).getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("3", "2")
    failed = [case.get("name") for case in suite if case.find("failure") is not None]
    assert failed == ["total median", "total p99"]
