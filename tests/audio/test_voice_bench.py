"""The voice loop on the virtual bench: measured whole, its stages told, and a delay that no mark sees found."""

from __future__ import annotations

import json
import shlex
import signal
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from virtual_shell import RIG as ME
from virtual_shell import Shell, need_library

HIDDEN_S = 0.04
HIDDEN_ROW = "capture + output"


@pytest.fixture(autouse=True)
def libraries() -> None:
    for name in ("sounddevice", "aiohttp", "av"):
        need_library(name)


def measured(bench: Shell, place: Path, *knobs: str, runs: int = 1, stimuli: int = 4) -> dict[str, Any]:
    """The document of a measurement of the loop with these knobs, its marks in m.jsonl."""
    marks = place / "m.jsonl"
    marks.unlink(missing_ok=True)
    sut = shlex.join([*ME, "sut", "voice-loop", *knobs, "--marks", str(marks)])
    plan = ["--port", "none", "--runs", str(runs), "--stimuli", str(stimuli), "--no-blank", "--sut-ready", "ready"]
    words = ["measure", "--device", "Virtual USB Audio", *plan, "--marks", str(marks), "--json", "--quiet"]
    done = bench.rig("virtual", "run", "--", *ME, *words, "--sut", sut, code=None, timeout_s=60.0 * runs + 60.0)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def stages_s(document: dict[str, Any]) -> dict[str, list[float]]:
    """Of each stage the medians of the runs."""
    return {row["stage"]: [run["median_s"] for run in row["runs"]] for row in document["stages"]}


def test_the_loop_is_measured_with_its_stages(bench: Shell, place: Path) -> None:
    document = measured(bench, place, "--frame", "20ms", "--server-delay", "30ms")
    stages = stages_s(document)
    print(stages)
    assert list(stages) == ["frame_fill", "encode", "send", "network", "play", HIDDEN_ROW]
    (network_s,) = stages["network"]
    assert 0.03 <= network_s < 0.06
    (play_s,) = stages["play"]
    assert play_s > 0.04  # the jitter buffer's own target
    (row,) = [row for row in document["stages"] if row["stage"] == HIDDEN_ROW]
    assert row["claimed_s"] > 0.0
    assert "Stream.latency" in row["claimed_by"]
    said = bench.rig("marks", str(place / "m.jsonl"), "--strict").stdout
    assert "clock CLOCK_MONOTONIC" in said
    assert "network + server" in said


@pytest.mark.truth
@pytest.mark.parametrize("backend", ["sounddevice", "pyaudio"])
def test_a_delay_that_no_mark_sees_is_found_where_it_is(backend: str, bench: Shell, place: Path) -> None:
    need_library(backend)
    plain = measured(bench, place, "--backend", backend, runs=3, stimuli=6)
    hidden = [
        measured(bench, place, "--backend", backend, where, "40ms", runs=3, stimuli=6)
        for where in ("--hidden-output", "--hidden-capture")
    ]
    before = stages_s(plain)
    for document in hidden:
        after = stages_s(document)
        moved = {name: median(after[name]) - median(before[name]) for name in before}
        print({name: f"{1e3 * by_s:+.3f} ms" for name, by_s in moved.items()})
        assert moved.pop(HIDDEN_ROW) == pytest.approx(HIDDEN_S, abs=2e-3)
        play_s = moved.pop("play")  # of the network and the queue, whose first moments differ from start to start
        assert abs(play_s) < 0.03
        assert all(abs(by_s) < 2e-3 for by_s in moved.values())
        claims = [next(r["claimed_s"] for r in d["stages"] if r["stage"] == HIDDEN_ROW) for d in (plain, document)]
        assert claims[0] == claims[1]  # it is not declared


def test_a_loop_ends_when_it_is_told_and_leaves_no_server(bench: Shell, place: Path) -> None:
    loop = bench.start("virtual", "run", "--", *ME, "sut", "voice-loop", "--codec", "pcm", "--buffering", "adaptive")
    assert loop.stderr is not None
    assert any(line == "ready\n" for line in loop.stderr)
    servers = children(loop.pid)
    assert len(servers) == 1
    loop.send_signal(signal.SIGTERM)
    out, err = loop.communicate(timeout=10)
    assert loop.returncode == 0, err
    counted = json.loads(out)
    assert counted["packets"]["received"] > 0
    assert counted["output_latency_s"] > 0.0
    assert not any(Path(f"/proc/{pid}").exists() for pid in servers)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
