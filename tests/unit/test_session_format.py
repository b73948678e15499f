"""docs/session-format.md names every event and every key that is written, and no other."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from scripted_bench import AudioScript, LinkScript, ScriptedBench, a_plan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "session-format.md").read_text(encoding="utf-8")


def documented_events() -> dict[str, set[str]]:
    """Event name to its documented fields."""
    section = PAGE.split("## events.jsonl")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \|([^|]*)\|", section, flags=re.M)
    assert len(rows) > 10
    return {name: set(re.findall(r"`(\w+)`", fields)) for name, fields in rows}


def test_every_event_of_the_source_is_documented_and_no_other() -> None:
    written = set()
    for path in (ROOT / "rig").rglob("*.py"):
        if path.parent.name in ("bench", "session"):
            written |= set(re.findall(r"\bevent\(\s*\"(\w+)\"", path.read_text(encoding="utf-8")))
    assert written == set(documented_events())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    script = AudioScript(overflow_at=frozenset({70}), underflow_at=frozenset({71}), lost_before={90: 5})
    bench = ScriptedBench(tmp_path / "board", script, LinkScript(loses_firings=frozenset({1}), safe_fails=True))
    bench.writer.serial_frame("rx", 0.0, b"\0")
    bench.system.ended_early = "ended"
    bench.run(a_plan(runs=1, count=3))
    bench = ScriptedBench(tmp_path / "interface", link=LinkScript(ping_fails=True))
    bench.run(a_plan(runs=1, count=3, source="interface", blank=False))
    return tmp_path


def events(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in folder.glob("*/events.jsonl") for line in path.read_text().splitlines()]


def test_events_have_the_fields_documented(folder: Path) -> None:
    documented = documented_events()
    seen = set()
    for event in events(folder):
        fields = set(event) - {"t_s", "run", "event"}
        assert fields <= documented[event["event"]], event
        if event["event"] != "frame":  # raw, or message and fields
            assert fields == documented[event["event"]], event
        seen.add(event["event"])
    assert seen == set(documented) - {"non_finite", "marks", "marks_failed"}, "tested on their own"


def test_the_manifest_has_the_keys_documented(folder: Path) -> None:
    section = PAGE.split("## manifest.json")[1].split("\n## ")[0]
    top, run = section.split("A run:")
    manifest = json.loads((folder / "board" / "manifest.json").read_text())
    assert set(manifest) == set(re.findall(r"^\| `(\w+)` \|", top, flags=re.M))
    keys = {key for cell in re.findall(r"^\| (`[^|]*) \|", run, flags=re.M) for key in re.findall(r"`(\w+)`", cell)}
    for entry in manifest["runs"]:
        assert set(entry) == keys
    for key in ("asked", "grant", "plan", "armed"):
        for part in manifest["runs"][0][key]:
            assert f"`{part}`" in run, f"{key}.{part}"


def test_host_time_never_goes_back(folder: Path) -> None:
    for path in folder.glob("*/events.jsonl"):
        times = [json.loads(line)["t_s"] for line in path.read_text().splitlines()]
        assert len(times) > 10
        slack_s = 0.02  # a block is logged by when it arrived, a little before it was read
        assert all(later >= earlier - slack_s for earlier, later in pairwise(times))
