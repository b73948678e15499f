"""The emulated board on the virtual bench: heard in real time, measured with from end to end, loud when it breaks."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import sys
import time
from pathlib import Path

import pytest
from virtual_shell import RIG as ME
from virtual_shell import Shell, need, need_library, runs, started

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `firmware`

from firmware import emulator_or_skip
from rig.session import open_session

INTERFACE = "Virtual USB Audio"
N_RUNS, N_STIMULI = 3, 4


@pytest.fixture
def board_bench(shell: Shell) -> Shell:
    """A bench with an Uno that can be heard."""
    need("pulseaudio", "pacat")
    emulator_or_skip()
    said = shell.rig("virtual", "up", "--board", "uno")
    assert "its board is at" in said.stderr
    return shell


def hashes(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_a_measurement_from_the_firmware_to_the_report(board_bench: Shell, place: Path) -> None:
    """No part of it is simulated but the chip: firmware, serial port, PortAudio, sound server and system run."""
    need_library("sounddevice")
    sut = shlex.join([*ME, "sut", "passthrough", "--blocksize", "1024", "--latency", "high"])
    few = ["--runs", str(N_RUNS), "--stimuli", str(N_STIMULI), "--spacing", "400ms", "--max-latency", "500ms"]
    port = ["--device", INTERFACE, "--port", str(place / "v" / "pulse" / "board")]
    words = ["measure", *port, *few, "--no-blank", "--sut-ready", "ready", "--out", str(place / "s"), "--json", "-q"]
    said = board_bench.rig("virtual", "run", "--", *ME, *words, "--sut", sut).stdout
    document = json.loads(said)
    assert (document["bench"], document["device"]) == ("virtual", INTERFACE)
    assert document["plan"]["stimulus_source"] == "mcu"
    why = [(trial["reason"], trial["latency_s"]) for run in document["runs"] for trial in run["trials"]]
    assert [run["refusal"] for run in document["runs"]] == [None] * N_RUNS, why
    assert document["latency_s"]["n"] >= N_RUNS * 3, why
    for run in document["runs"]:
        for trial in (t for t in run["trials"] if t["valid"]):
            assert 0.005 < trial["latency_s"] < 0.5
        assert "nobody measures how long" in run["clocks"]["refusal"]
        assert run["clocks"]["after_last_s"] is None, "no time of the board's is a time of the sound"
    kept = hashes(place / "s")
    assert "truth.json" not in kept
    session = open_session(place / "s")
    for run in session.runs:
        assert sorted(fired.index for fired in run.events.fired) == list(range(N_STIMULI))
        assert len(run.pings) >= 5
    session.close()
    assert board_bench.rig("analyze", str(place / "s"), "--json").stdout == said, "byte for byte"
    assert hashes(place / "s") == kept
    assert "heard about " in board_bench.rig("virtual", "status").stdout, "it never ran dry"


def test_a_board_that_breaks_off_is_gone_and_says_why(board_bench: Shell, place: Path) -> None:
    before = started(place)
    assert list(before) == ["pulseaudio", "board"]
    exports = board_bench.rig("virtual", "up", "--board", "uno").stdout
    assert started(place) == before, "it was there already"
    assert f"export RIG_VIRTUAL_BOARD={place}/v/pulse/board\n" in exports
    os.kill(before["board"], signal.SIGSTOP)  # a machine that is busy for longer than there is sound
    time.sleep(3.0)
    os.kill(before["board"], signal.SIGCONT)
    for _ in range(100):
        done = board_bench.rig("virtual", "status", code=None)
        if done.returncode:
            break
        time.sleep(0.1)
    assert done.returncode == 4, done.stdout
    assert "board has ended (the sound of the emulated board broke off: the sound server ran out of" in done.stderr
    assert not (place / "v" / "pulse" / "board").is_symlink(), "its port went with it"
    assert "already" not in board_bench.rig("virtual", "up", "--board", "uno").stderr
    again = started(place)
    assert again["board"] != before["board"]
    board_bench.rig("virtual", "down")
    assert not (place / "v" / "pulse").exists()
    assert not any(runs(pid) for pid in again.values())


def test_a_board_comes_to_a_bench_that_is_up_already(bench: Shell, place: Path) -> None:
    need("pacat")
    emulator_or_skip()
    server = started(place)["pulseaudio"]
    bench.rig("virtual", "up", "--board", "uno")
    assert started(place)["pulseaudio"] == server
    assert "heard about" in bench.rig("virtual", "status").stdout


def test_what_cannot_be_is_said(shell: Shell, place: Path) -> None:
    assert "there is no such choice" in shell.rig("virtual", "up", "--board", "mega", code=2).stderr
    emulator_or_skip()
    said = shell.rig("virtual", "up", "--kind", "jack", "--board", "uno", code=2).stderr
    assert "no place for a board" in said
    assert not (place / "v" / "jack").exists()
