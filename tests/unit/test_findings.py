"""The tables of findings are what was measured, no cell of them is blank, and a pass that was stopped goes on."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import pytest

from benchmarks.findings.main import filled_in, to_measure
from benchmarks.findings.markdown import NONE, table_text
from benchmarks.findings.measure import runs_of
from benchmarks.findings.results import Result, Run, append, load
from benchmarks.findings.rows import TABLES, Row, Table, tables

ROW = Row("a knob", ("browser", "--rate", "24000"))


def table(kind: str) -> Table:
    return Table("one", "browser", kind, "A title", "the knob", (ROW,))


def run(*trials_ms: float, **claims_ms: float | None) -> Run:
    """A run with these trials; its median is the middle one."""
    trials_s = tuple(1e-3 * trial for trial in trials_ms)
    claims = {f"{name}_s": None if ms is None else 1e-3 * ms for name, ms in claims_ms.items()}
    return Run(sorted(trials_s)[len(trials_s) // 2], trials_s, len(trials_s), {}, claims or None)


def result(*runs: Run, why: str | None = None, others: float | None = 0.1) -> Result:
    return Result(ROW.key, runs, why, others, "2026-01-01T00:00:00+00:00")


def cells(kind: str, found: Result | None) -> list[str]:
    """The cells of the table's one row."""
    lines = table_text(table(kind), {} if found is None else {ROW.key: found}).splitlines()
    head, rule, row = (line.strip("|").split("|") for line in lines[2:5])
    assert len(head) == len(rule) == len(row)
    words = [cell.strip() for cell in row]
    assert all(words), "no cell is blank"
    return words


THREE = (
    run(99, 100, 103, input_latency=20, output_latency=30),
    run(119, 120, 121, input_latency=21, output_latency=30),
    run(109, 110, 111, input_latency=22, output_latency=33),
)


def test_a_page_is_shown_with_what_it_claims_and_what_nobody_claimed() -> None:
    # Not claimed: 100 - 50, 120 - 51, 110 - 55; the median of the differences, not the difference of the medians.
    spread = ["110.0", "100.0 to 120.0", "4.0"]
    assert cells("page", result(*THREE)) == [
        "a knob",
        *spread,
        "21.0",
        "30.0",
        "55.0",
        "9 of 9 in 3 runs",
        "none",
    ]


def test_claims_of_the_whole_path_are_not_added_up() -> None:
    runs = [run(100, 100, 100, input_latency=20, output_latency=30, adc_to_dac_mean=70)]
    assert cells("backend", result(*runs))[4:7] == ["50.0", "70.0", "50.0 / 30.0"]


def test_a_claim_that_is_missing_in_one_run_is_told_of_none() -> None:
    runs = (*THREE[:2], run(109, 110, 111, input_latency=22, output_latency=None))
    assert cells("page", result(*runs))[4:7] == ["21.0", NONE, "88.0"]
    silent = run(100, 101, 102)
    assert cells("page", result(silent))[4:7] == [NONE, NONE, NONE]


def test_a_tail_needs_its_trials() -> None:
    few = cells("tail", result(run(*range(100, 199))))
    assert few[1:4] == ["149.0", "needs 100 trials", NONE]
    many = cells("tail", result(run(*range(101, 151)), run(*range(151, 201))))
    assert many[1:4] == ["150.5", "199.0", "1.32"]


def test_what_was_not_measured_says_why() -> None:
    assert cells("page", None)[1] == "not measured: not tried yet"
    assert cells("page", result(why="exit 2: no such option: --transport"))[1].endswith("no such option: --transport")
    refused = Run(None, (), 8, {"no_arrival": 6, "low_snr": 2}, None, "too_few")
    said = cells("call", result(refused, refused))
    assert said[1] == "not measured: every run refused: too_few; 12 no_arrival, 4 low_snr"
    assert set(said[2:]) == {NONE}


def test_a_run_that_was_refused_is_counted_and_left_out() -> None:
    refused = Run(None, (0.5,), 8, {"no_arrival": 7}, {"input_latency_s": 0.02, "output_latency_s": 0.03}, "too_few")
    said = cells("page", result(*THREE[:1], refused))
    assert said[1:3] == ["100.0", "100.0 to 100.0"]
    assert said[-2:] == ["4 of 11 in 2 runs, 1 of them refused", "7 no_arrival"]


def test_a_row_of_a_busy_time_is_marked() -> None:
    text = table_text(table("page"), {ROW.key: result(*THREE, others=0.4)})
    assert "| a knob* |" in text
    assert "\n* other programs took over 25%" in text
    assert "*" not in table_text(table("page"), {ROW.key: result(*THREE, others=None)})


def test_words_of_others_do_not_break_the_table() -> None:
    assert cells("page", result(why="a | b\nc"))[1] == "not measured: a / b c"


def test_results_are_kept_and_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl"
    assert load(path) == {}
    append(path, result(why="first"))
    append(path, result(*THREE))
    with path.open("a") as file:
        file.write('{"key": "cut sho')
    assert load(path) == {ROW.key: result(*THREE)}


def test_only_what_is_missing_is_measured() -> None:
    asked = argparse.Namespace(only=None, runs=3, again=None)
    everything = (table("page"), table("call"))
    assert to_measure(everything, {}, asked) == [ROW], "a row of two tables is measured once"
    assert to_measure(everything, {ROW.key: result(*THREE)}, asked) == []
    assert to_measure(everything, {ROW.key: result(*THREE[:2])}, asked) == [ROW]
    assert to_measure(everything, {ROW.key: result(why="exit 4")}, asked) == [ROW]
    asked.again = 0.25
    assert to_measure(everything, {ROW.key: result(*THREE, others=0.3)}, asked) == [ROW]
    assert to_measure(everything, {ROW.key: result(*THREE, others=0.2)}, asked) == []
    asked.again, asked.only = None, "--blocksize"
    assert to_measure(everything, {}, asked) == []


def test_tables_go_where_the_page_wants_them() -> None:
    page = "before\n<!-- findings: one -->\nold\n<!-- end -->\nafter\n"
    once = filled_in(page, {"one": "new\n"})
    assert once == "before\n<!-- findings: one -->\nnew\n<!-- end -->\nafter\n"
    assert filled_in(once, {"one": "new\n"}) == once
    with pytest.raises(SystemExit, match="two"):
        filled_in(page, {"two": "new\n"})


def test_runs_are_read_from_the_reports_document() -> None:
    trials: list[dict[str, Any]] = [
        {"valid": True, "latency_s": 0.1, "reason": None},
        {"valid": False, "latency_s": 0.7, "reason": "gap_in_window"},
        {"valid": False, "latency_s": None, "reason": "gap_in_window"},
    ]
    good = {"latency_s": {"median": 0.1}, "trials": trials, "refusal": None}
    bad = {"latency_s": None, "trials": trials[1:], "refusal": "too_few"}
    claims = {"output_latency_s": 0.03}
    first, second = runs_of({"runs": [good, bad]}, [claims, None])
    assert first == Run(0.1, (0.1,), 3, {"gap_in_window": 2}, claims)
    assert second == Run(None, (), 2, {"gap_in_window": 2}, None, "too_few")
    # One system printed nothing: whose the other's claims are is not known.
    assert [each.claims for each in runs_of({"runs": [good, bad]}, [claims])] == [None, None]


def test_names_are_apart_and_parts_are_whole() -> None:
    assert len({each.name for each in TABLES}) == len(TABLES)
    assert {each.name for each in tables("all")} == {
        each.name for part in ("backends", "browser") for each in tables(part)
    }
