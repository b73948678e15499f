"""An experiment over scripted PortAudio whose system is a real program: its command, its environment, and settings that
it takes over its marks connection, or does not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from scripted_portaudio import Loop, Row, Table
from test_cli_portaudio import plug

from rig.cli.main import main
from rig.session.marks import read_marks

pytest.importorskip("aiohttp")

ROOT = Path(__file__).parents[2]

SYSTEM = f"""
import os, sys, time
sys.path.insert(0, {str(ROOT)!r})
from rig.marks import Marks

knobs = {{"target": 0, "block": int(sys.argv[2]), "mode": os.environ["MODE"]}}

def on_config(settings):
    for name, value in settings.items():
        if name not in knobs or value > 500:
            raise ValueError(f"{{name}} cannot be {{value}}")
        knobs[name] = value
    return knobs

marks = Marks(os.environ["RIG_MARKS"], on_config=on_config)
print("ready", flush=True)
seq = 0
while True:
    marks.mark(seq, "t_capture")
    marks.mark(seq, "t_first_play")
    seq += 1
    time.sleep(0.02)
"""


def test_changes_reach_a_real_program_and_what_it_refuses_is_that_rounds_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plug(monkeypatch, Table([Row("USB Audio")], loop=Loop()))
    (tmp_path / "system.py").write_text(SYSTEM, encoding="utf-8")
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f"""schema = 1
[measure]
device = "USB Audio"
port = "none"
sut = "{sys.executable} {tmp_path / "system.py"} --block {{block}}"
sut_ready = "ready"
marks = "listen"
stimulus = "click"
spacing = "500ms"
settle = "10ms"
blank = false
runs = 1
stimuli = 4
[baseline.command]
block = 256
[baseline.environment]
MODE = "plain words"
[baseline.config]
target = 0
[[round]]
change = "target"
to = 900
[[round]]
change = "target"
to = 200
""",
        encoding="utf-8",
    )
    code = main(["experiment", str(plan), "--out", str(tmp_path / "e"), "--json", "-q"])
    heard = capsys.readouterr()
    assert code == 4, heard.err  # the round that could not be measured
    assert "target cannot be 900" in heard.err
    said = json.loads(heard.out)
    refused, taken = said["rounds"]
    assert "target cannot be 900" in refused["error"]["what"]
    assert refused["session"] is None
    assert taken["session"] is not None
    assert "fewer than 3 runs" in taken["refused"]  # one start each, to be quick: no verdict, and it says so
    session = tmp_path / "e" / "02-target-200"
    manifest = json.loads((session / "manifest.json").read_text(encoding="utf-8"))
    system = manifest["system"]
    assert {name: system[name] for name in ("block", "$MODE", "config target", "--block")} == {
        "block": "256",
        "$MODE": "plain words",
        "config target": "200",
        "--block": "{block}",
    }
    (part,) = read_marks(session / "marks.jsonl").parts
    assert part.config == {"target": 200, "block": 256, "mode": "plain words"}, "what the program itself says it has"
    assert [a["name"] for a in taken["against_baseline"]["apart"]] == ["system: config target", "config: target"]
    assert {a["accepted_as"] for a in taken["against_baseline"]["apart"]} == {"changed"}
