"""The report as text and as JSON: what must be readable, what must validate, what must not change."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from report_cases import CORRECTION, FACTS, FILE_FACTS, jittering_runs, run_of

from rig.domain.records import BenchKind, BlankFloor, Reason, RunAnalysis
from rig.domain.report import MeasurementFacts
from rig.report.digits import decimals_for, ms, number, table
from rig.report.render_json import SCHEMA, render_json
from rig.report.render_text import render_text
from rig.report.summary import summarise

SCHEMA_FILE = Path(__file__).parents[2] / "docs" / "measurement.schema.json"
SECONDS = re.compile(r"_s$|_s_")

Case = tuple[list[RunAnalysis], MeasurementFacts]


@cache
def schema() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(found)
    return found


def cases() -> dict[str, Case]:
    """One of each kind of report."""
    rng = np.random.default_rng(11)
    steps = run_of(np.repeat([0.15, 0.17], 10) + rng.normal(0.0, 1e-4, 20))
    slide = run_of(0.15 + np.arange(20) * 5e-4 + rng.normal(0.0, 1e-4, 20), run=2, drift_ppm=-812.3)
    late = 0.18 + rng.normal(0.0, 1e-4, 20)
    late[3] = 0.3
    mixed = [Reason.LOW_SNR, *rng.normal(0.15, 1e-4, 12), Reason.NO_ARRIVAL, Reason.NO_ARRIVAL]
    bare = replace(FACTS, bench=BenchKind.HARDWARE, asked=None, granted=None, plan=None, blank=None, seed=None)
    return {
        "clean": (jittering_runs(3), FACTS),
        "over": (jittering_runs(3), replace(FACTS, limit_s=0.1)),
        "many": (jittering_runs(3, n=50), replace(FACTS, corrections=(CORRECTION,))),
        "file": ([run_of(late)], FILE_FACTS),
        "steps": ([steps, slide], FACTS),
        "refusals": ([run_of(mixed)], FILE_FACTS),
        "refused": ([run_of([Reason.NO_ARRIVAL] * 4, levels=None, band_hz=None, stimulus=None)], FILE_FACTS),
        "no runs": ([], FACTS),
        "hardware": (jittering_runs(4, n=4, runs=1), bare),
        "leak": (jittering_runs(5), replace(FACTS, blank=BlankFloor(0.0029, None, 5), cut_short="stopped by hand")),
        "virtual": (jittering_runs(6), replace(FACTS, bench=BenchKind.VIRTUAL, environment=())),
    }


@pytest.mark.parametrize("name", cases())
def test_json_validates_against_the_schema(name: str) -> None:
    document = json.loads(render_json(summarise(*cases()[name])), parse_constant=pytest.fail)
    jsonschema.validate(document, schema())
    assert document["schema"] == SCHEMA


@pytest.mark.parametrize("name", cases())
def test_the_same_input_gives_the_same_bytes(name: str) -> None:
    first, second = summarise(*cases()[name]), summarise(*cases()[name])
    assert render_json(first) == render_json(second)
    assert render_text(first, verbose=True) == render_text(second, verbose=True)


def objects(part: Any) -> list[dict[str, Any]]:
    """Every object that a schema describes."""
    if isinstance(part, list):
        return [o for item in part for o in objects(item)]
    if not isinstance(part, dict):
        return []
    own = [part] if part.get("type") == "object" else []
    return own + [o for item in part.values() for o in objects(item)]


def test_the_schema_is_closed() -> None:
    found = objects(schema())
    assert len(found) > 15
    open_ones = [o for o in found if o.get("additionalProperties") is not False]
    # What names are in them depends on the system under test and on the machine.
    assert [o.get("description", "")[:12] for o in open_ones] == ["how the syst", "what the sys", "what the mac"]


def test_an_unknown_field_is_refused_by_the_schema() -> None:
    document = json.loads(render_json(summarise(*cases()["clean"])))
    document["runs"][0]["trials"][0]["surprise"] = 1
    with pytest.raises(jsonschema.ValidationError, match="surprise"):
        jsonschema.validate(document, schema())


def test_the_schema_knows_every_reason() -> None:
    assert set(schema()["properties"]["refusals"]["properties"]) == {r.value for r in Reason}


def test_absent_is_null_and_never_zero() -> None:
    document = json.loads(render_json(summarise(*cases()["refused"])))
    assert document["latency_s"] is None
    assert document["runs"][0]["latency_s"] is None
    assert all(t["latency_s"] is None and t["u_s"] is None for t in document["runs"][0]["trials"])
    assert document["refusals"]["no_arrival"] == 4
    assert document["refusals"]["clipped"] == 0
    assert document["stages"] is None
    assert document["over_limit"] is None


def test_a_figure_that_is_not_finite_is_absent() -> None:
    run = run_of([0.15] * 5, drift_ppm=float("nan"), latency_slope_ppm=float("inf"))
    document = json.loads(render_json(summarise([run], FILE_FACTS)), parse_constant=pytest.fail)
    assert document["runs"][0]["drift_ppm"] is None
    assert document["runs"][0]["latency_slope_ppm"] is None


def test_numpy_scalars_become_plain_ones() -> None:
    run = run_of([0.15] * 5, drift_ppm=np.float32(1.5), first_frame_s=0.0)
    run = replace(run, n_frames=np.int64(5))  # type: ignore[arg-type]
    document = json.loads(render_json(summarise([run], FILE_FACTS)))
    assert document["runs"][0]["drift_ppm"] == 1.5
    assert document["runs"][0]["n_frames"] == 5


def test_json_figures_are_the_reports() -> None:
    report = summarise(*cases()["clean"])
    document = json.loads(render_json(report))
    assert report.latency is not None
    assert document["latency_s"]["median"] == pytest.approx(report.latency.median_s, abs=1e-10)
    assert document["latency_s"]["u95"] == pytest.approx(report.latency.u95_s, abs=1e-10)
    assert document["claimed_s"] == {"input": 0.0058, "output": 0.0123}
    assert document["granted"]["block_frames"] == 256
    assert document["channels"] == {"reference": 1, "ear": 2}


@pytest.mark.parametrize("verbose", [False, True])
@pytest.mark.parametrize("name", cases())
def test_text_fits_80_columns(name: str, verbose: bool) -> None:
    lines = render_text(summarise(*cases()[name]), verbose=verbose).splitlines()
    assert max(len(line) for line in lines) <= 80, max(lines, key=len)
    assert all(line == line.rstrip() for line in lines)


@pytest.mark.parametrize("name", cases())
def test_colour_is_only_paint(name: str) -> None:
    report = summarise(*cases()[name])
    painted = render_text(report, colour=True)
    assert "\x1b[" in painted
    assert "\x1b" not in render_text(report)
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == render_text(report)


def test_the_first_line_says_what_was_measured() -> None:
    def first(name: str) -> str:
        return render_text(summarise(*cases()[name])).splitlines()[0]

    assert first("clean") == "SIMULATED BENCH: scenario default, seed 7. No hardware was measured."
    assert first("file").startswith("recording call.wav")
    assert first("virtual").startswith("virtual bench")
    assert first("hardware").startswith("device")


def test_the_number_comes_first() -> None:
    report = summarise(*cases()["clean"])
    lines = [line for line in render_text(report).splitlines() if line]
    assert report.latency is not None
    shown = re.match(r"  ([\d.]+) ms   mouth-to-ear latency, median of 60 trials in 3 runs", lines[1])
    assert shown is not None, lines[1]
    assert float(shown[1]) == pytest.approx(report.latency.median_s * 1e3, abs=0.06)
    assert lines[2].startswith("  95 % interval")


def test_text_of_a_refusal_has_no_number_but_a_remedy() -> None:
    text = render_text(summarise(*cases()["refused"]))
    assert "no valid measurement" in text
    assert not re.search(r"\d ms", text)
    assert "no_arrival, 4 trials" in text
    assert "-> check that the system is running" in text


def test_text_shows_both_spreads_levels_and_claims() -> None:
    text = render_text(summarise(*cases()["clean"]))
    for words in ("within runs", "between runs", "polarity upright", "band 300 to 3400 Hz", "-71.2", "claimed  input"):
        assert words in text
    assert "OVER THE LIMIT of 100 ms" in render_text(summarise(*cases()["over"]))
    assert "p99 needs 100 trials" in text
    assert "p99 needs" not in render_text(summarise(*cases()["many"]))


def test_verbose_adds_the_budget_and_every_trial() -> None:
    report = summarise(*cases()["refusals"])
    text, plain = render_text(report, verbose=True), render_text(report)
    for words in ("definition on a dispersive path", "Cramer-Rao bound", "trials of run 1", "0.0130 ms  B"):
        assert words in text
        assert words not in plain
    rows = text[text.index("trials of run 1") :].split("\n\n")[0].splitlines()[2:]
    assert len(rows) == len(report.runs[0].analysis.trials)
    assert rows[0].endswith("low_snr")


def test_groups_have_a_table() -> None:
    (steps, slide), facts = cases()["steps"]
    text = render_text(summarise([steps], facts))
    assert "a mixture of groups" in text
    assert "\ngroups\n" in text
    assert "1 step" in text
    assert "slides" in render_text(summarise([slide], facts))


@pytest.mark.parametrize(
    ("u_s", "decimals"),
    [(5.3e-3, 1), (1.0e-3, 1), (0.99e-3, 2), (0.043e-3, 3), (12e-3, 0), (0.4, 0), (1e-9, 4), (None, 2), (0.0, 2)],
)
def test_digits_follow_the_uncertainty(u_s: float | None, decimals: int) -> None:
    assert decimals_for(u_s) == decimals


def test_numbers_as_text() -> None:
    assert ms(0.15) == "150.00"
    assert ms(None) == "-"
    assert ms(-1e-9, 2) == "0.00"
    assert ms(-1e-9, 2, signed=True) == "+0.00"
    assert number(-0.0004, 2, signed=True) == "+0.00"
    assert table([["a", "b"], ["100", "x"]]) == ["    a  b", "  100  x"]
