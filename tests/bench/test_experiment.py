"""One experiment on simulated worlds, whole through the command line, stopped on its way and taken up again; and what
compare, validate and report make of its sessions. The worlds know what each change really did."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from test_stages import true_medians

from rig import strictjson
from rig.cli.main import main

DOCS = Path(__file__).parents[2] / "docs"
Capture = pytest.CaptureFixture[str]

PLAN = """\
schema = 1
name = "a call"
[measure]
device = "sim:marks"
stimuli = 7
blank = false
[baseline.world]
latency_s = 0.150
capture_buffer_s = 0.012
[[round]]
change = "latency_s"
to = 0.120
stage = "play"
[[round]]
change = "capture_buffer_s"
to = 0.042
[order]
random = true
seed = 3
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment, stopped by hand in its first round and then carried to its end by the same command."""
    where = tmp_path_factory.mktemp("experiment")
    (where / "plan.toml").write_text(PLAN, encoding="utf-8")
    words = ["experiment", str(where / "plan.toml"), "--out", str(where / "e")]
    # A shell that starts a program behind its back has it ignore the signal: the program sets it back.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from rig.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    running = subprocess.Popen([sys.executable, "-c", program, *words], stderr=subprocess.PIPE, text=True)
    assert running.stderr is not None
    said = []
    for line in running.stderr:
        said.append(line)
        if line.startswith("round "):
            os.kill(running.pid, signal.SIGINT)
            break
    said += running.stderr.readlines()
    running.stderr.close()
    assert running.wait(60) == 130, said
    assert any("the same command goes on" in line for line in said), said
    assert main([*words, "--quiet", "--report"]) == 0
    return where / "e"


@pytest.fixture(scope="module")
def documents(folder: Path) -> dict[str, dict[str, Any]]:
    """The document of each session, by the end of its folder's name, and what is true of it."""
    from rig.cli.documents import whole_document_of

    sessions = [path for path in sorted(folder.iterdir()) if path.is_dir() and ".cut-" not in path.name]
    found = {path.name[3:]: whole_document_of(path, True) for path in sessions}
    for path in sessions:
        found[path.name[3:]]["truth"] = json.loads((path / "truth.json").read_text(encoding="utf-8"))
    return found


def test_every_round_is_there_and_the_command_says_the_same_again(folder: Path, capsys: Capture) -> None:
    plan = str(folder.with_name("plan.toml"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    assert main(["experiment", plan, "--out", str(folder), "--json"]) == 0
    heard = capsys.readouterr()
    assert heard.err.count("measured before") == 3
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before
    said = json.loads(heard.out)
    jsonschema.validate(said, json.loads((DOCS / "experiment.schema.json").read_text(encoding="utf-8")))
    assert said["complete"] is True
    assert [r["verdict"] for r in said["rounds"]] == ["effective", "moved"]
    assert [r["change"]["new"] for r in said["rounds"]] == [0.12, 0.042]


def test_another_plan_is_refused(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    other = tmp_path / "plan.toml"
    other.write_text(PLAN.replace("0.042", "0.043"), encoding="utf-8")
    assert main(["experiment", str(other), "--out", str(folder), "-q"]) == 2
    assert "rounds differ" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "stage"), [("latency_s-0.12", "play"), ("capture_buffer_s-0.042", "capture")])
def test_each_stage_changed_by_what_the_world_changed(
    folder: Path, documents: dict[str, dict[str, Any]], capsys: Capture, name: str, stage: str
) -> None:
    paths = {path.name[3:]: str(path) for path in folder.iterdir()}
    changed = name.partition("-")[0]
    code = main(["compare", paths["baseline"], paths[name], "--changed", changed, "--stage", stage, "--json", "-q"])
    said = json.loads(capsys.readouterr().out)
    before, after = (true_medians(documents[which]["truth"]) for which in ("baseline", name))
    outside = [
        s["name"]
        for s in said["stages"]
        if not s["low_s"] - 1e-7 <= after[s["name"]] - before[s["name"]] <= s["high_s"] + 1e-7
    ]
    assert outside == []
    by_stage = {s["name"]: s["change_s"] for s in said["stages"]}
    moved_s = {"play": -0.030, "capture": 0.030}[stage]
    assert by_stage[stage] == pytest.approx(moved_s, abs=4e-3)
    assert (code, said["verdict"]) == ((0, "effective") if stage == "play" else (0, "moved"))
    assert [(one["name"], one["accepted_as"]) for one in said["apart"]] == [(f"system: world {changed}", "changed")]


def test_without_the_change_named_it_refuses_and_lists_it(folder: Path, capsys: Capture) -> None:
    paths = {path.name[3:]: str(path) for path in folder.iterdir()}
    assert main(["compare", paths["baseline"], paths["latency_s-0.12"], "-q"]) == 2
    heard = capsys.readouterr()
    assert "system: world latency_s: 0.15 -> 0.12" in heard.out
    assert "more differs" in heard.err
    assert main(["compare", paths["baseline"], paths["baseline"], "-q"]) == 0
    assert "both sides are the same session" in capsys.readouterr().out


def test_a_budget_on_stages(
    folder: Path, documents: dict[str, dict[str, Any]], tmp_path: Path, capsys: Capture
) -> None:
    document = documents["baseline"]
    rows = {row["stage"]: row for row in document["stages"]}
    output = rows["output"]
    own = np.array([s["stage_s"]["play"] for run in document["truth"]["runs"] for s in run["stimuli"]])
    assert own.min() <= rows["play"]["p95_s"] <= own.max()
    measured = tmp_path / "measured.json"
    measured.write_text(strictjson.dump({k: v for k, v in document.items() if k != "truth"}), encoding="utf-8")
    limits = {
        '[stages.play]\np95 = "{}ms"': rows["play"]["p95_s"],
        '[stages.play]\nrange = "{}ms"': rows["play"]["range_s"],
        '[stages.output]\nmedian = "{}ms"': output["median_s"],
        '[stages.output]\nundeclared = "{}ms"': output["undeclared_s"],
        '[total]\np95 = "{}ms"': document["latency_s"]["p95"],
    }
    budget = tmp_path / "budget.toml"
    for text, value_s in limits.items():
        for beside_s, code in ((1e-6, 0), (-1e-6, 3)):
            budget.write_text(text.format(f"{(value_s + beside_s) * 1e3:.7f}"), encoding="utf-8")
            assert main(["validate", str(measured), "--budget", str(budget), "-q"]) == code, (text, beside_s)
    # 21 trials have no 99th percentile, and nobody claims anything of play.
    for text in ('[stages.play]\np99 = "9s"', '[stages.play]\nundeclared = "9s"', '[total]\np99 = "9s"'):
        budget.write_text(text, encoding="utf-8")
        assert main(["validate", str(measured), "--budget", str(budget), "-q"]) == 3, text
        assert "not measured" in capsys.readouterr().out
    # Inside the limit by its value, over it by its interval: that is what --strict is for.
    budget.write_text(
        f'[stages.output]\nundeclared = "{(output["undeclared_s"] + 1e-5) * 1e3:.4f}ms"', encoding="utf-8"
    )
    assert main(["validate", str(measured), "--budget", str(budget), "-q"]) == 0
    assert "interval over" in capsys.readouterr().out
    assert main(["validate", str(measured), "--budget", str(budget), "--strict", "-q"]) == 3


def test_the_page_has_every_round(folder: Path, tmp_path: Path, capsys: Capture) -> None:
    page = folder.with_name("e-report.html").read_text(encoding="utf-8")
    for words in ("effective", "moved", "SIMULATED BENCH", "0.15 → 0.12", "network + server"):
        assert words in page
    assert not re.search(r"(?:src|href)=", page)
    again = tmp_path / "page.html"
    assert main(["report", str(folder), "--out", str(again), "-q"]) == 0
    assert again.read_text(encoding="utf-8") == page
    assert main(["report", str(folder), str(folder), "-q"]) == 2
