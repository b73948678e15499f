"""Stages from simulated measurements, whole through the command line, against what the world really did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.cli.main import main

NAMES = ("capture", "frame_fill", "encode", "send", "network", "play", "output")


def measured(
    folder: Path, capsys: pytest.CaptureFixture[str], scenario: str, seed: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The JSON document of three runs of eight stimuli, and the truth kept with the session."""
    words = ["measure", "--device", f"sim:{scenario}", "--seed", str(seed), "--stimuli", "8", "--no-blank", "--json"]
    capsys.readouterr()
    assert main([*words, "--quiet", "--out", str(folder)]) == 0
    return json.loads(capsys.readouterr().out), json.loads((folder / "truth.json").read_text(encoding="utf-8"))


def true_medians(truth: dict[str, Any]) -> dict[str, float]:
    """Medians over all stimuli, of what the rig calls by these names: air and transducers are in capture and output."""
    stimuli = [s for run in truth["runs"] for s in run["stimuli"]]
    stages = {name: [s["stage_s"][name] for s in stimuli] for name in ("encode", "send", "network", "play")}
    stages["capture"] = [s["hidden_capture_s"] + s["stage_s"]["acoustic_in"] for s in stimuli]
    excess_s = truth["definition"]["excess_s"]
    stages["output"] = [s["hidden_output_s"] + s["stage_s"]["acoustic_out"] + excess_s for s in stimuli]
    stages["frame_fill"] = [truth["settings"]["frame_s"] for _ in stimuli]
    return {name: float(np.median(values)) for name, values in stages.items()}


@pytest.mark.parametrize(("scenario", "within_s"), [("marks", 0.3e-3), ("marks-page", 0.8e-3)])
def test_each_stage_is_what_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int, scenario: str, within_s: float
) -> None:
    """`within_s`: the most that the interval of capture and output may be; a page's clock counts in steps of 0.1 ms."""
    document, truth = measured(tmp_path / "s", capsys, scenario, seed % 1000)
    rows = {row["stage"]: row for row in document["stages"]}
    assert tuple(rows) == NAMES
    grid_s = truth["settings"]["marks_resolution_s"]
    for name, true_s in true_medians(truth).items():
        row = rows[name]
        if row["by"] == "software":
            # Every stimulus has its frame: the software's own medians are exact but for its clock's steps.
            assert row["median_s"] == pytest.approx(true_s, abs=1.1 * grid_s + 1e-8), name
        else:
            assert abs(row["median_s"] - true_s) <= row["u95_s"] <= within_s, name
    claims = truth["settings"]["capture_claimed_s"], truth["settings"]["playback_claimed_s"]
    for name, claimed_s in zip(("capture", "output"), claims, strict=True):
        assert rows[name]["claimed_s"] == claimed_s
        assert rows[name]["undeclared_s"] == pytest.approx(rows[name]["median_s"] - claimed_s, abs=1e-9)
        assert rows[name]["distinguishable"] is True
    told = document["reconciliation"]
    frames = {run["run"]: [s["seq"] for s in run["stimuli"]] for run in truth["runs"]}
    assert {c["run"]: [f["seq"] for f in c["frames"]] for c in told["carriers"]} == frames
    stimuli = {run["run"]: run["stimuli"] for run in truth["runs"]}
    for run in told["carriers"]:
        for frame in run["frames"]:
            true = stimuli[run["run"]][frame["trial"]]["stage_s"]
            own = dict(zip(rows, frame["stages_s"], strict=True))
            assert all(own[n] == pytest.approx(true[n], abs=2.2 * grid_s + 1e-8) for n in ("encode", "network", "play"))
            assert 0.0 <= frame["filled_s"] <= own["frame_fill"]
    assert told["residual_low_s"] <= told["residual_s"] <= told["residual_high_s"]
    assert abs(told["trial_residual_s"]) < 2e-5 + grid_s, "trial by trial the stages add up"
    both = rows["capture"]["median_s"] + rows["output"]["median_s"]
    assert told["hidden"]["median_s"] == pytest.approx(both, abs=1e-4 + grid_s)
    assert told["hidden"]["u95_s"] < 0.2 * rows["capture"]["u95_s"], "the clocks' error cancels in the sum"


def test_without_a_tie_the_sum_is_exact_and_the_reason_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    document, truth = measured(tmp_path / "s", capsys, "marks-bare", seed % 1000)
    rows = {row["stage"]: row for row in document["stages"]}
    assert "capture" not in rows
    true = true_medians(truth)
    row = rows["capture + output"]
    assert abs(row["median_s"] - true["capture"] - true["output"]) <= row["u95_s"] + 2e-5
    assert "too few to tie performance.now" in document["reconciliation"]["not_split_because"]


def test_a_broken_file_of_marks_costs_no_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int) -> None:
    folder = tmp_path / "s"
    with_marks, _ = measured(folder, capsys, "marks", seed % 1000)
    (folder / "marks.jsonl").write_text('{"seq":1,"t_capture":5}\n', encoding="utf-8")
    assert main(["analyze", str(folder), "--json", "--quiet"]) == 0
    without = json.loads(capsys.readouterr().out)
    assert without["latency_s"] == with_marks["latency_s"]
    assert without["stages"] is None
    assert any("marks without a header" in caveat for caveat in without["caveats"])


def test_marks_that_come_later_say_the_same_and_leave_the_session_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    folder, later = tmp_path / "s", tmp_path / "later.jsonl"
    document, _ = measured(folder, capsys, "marks", seed % 1000)
    later.write_bytes((folder / "marks.jsonl").read_bytes())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert main(["reconcile", str(folder), "--marks", str(later), "--json", "--quiet"]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["stages"] == document["stages"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_marks_of_another_measurement_give_no_stages(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], seed: int
) -> None:
    measured(tmp_path / "a", capsys, "marks", seed % 1000)
    measured(tmp_path / "b", capsys, "marks-bare", seed % 1000 + 1)
    other = tmp_path / "other.jsonl"
    lines = (tmp_path / "b" / "marks.jsonl").read_text(encoding="utf-8").splitlines()
    second = next(k for k, line in enumerate(lines) if k and line.startswith('{"marks"'))
    other.write_text("\n".join(lines[:second]) + "\n", encoding="utf-8")  # one start for three runs: whose is it?
    assert main(["reconcile", str(tmp_path / "a"), "--marks", str(other), "--quiet"]) == 7
    said = capsys.readouterr()
    assert said.out == ""
    assert "no mark of other.jsonl belongs" in said.err
