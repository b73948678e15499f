"""`rig virtual` on a real PulseAudio: its life, its crashes, and that it keeps to itself."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest
from virtual_shell import RIG as ME
from virtual_shell import Shell, need, need_library, runs, started


def server(place: Path) -> int:
    """The number of the sound server that the bench's state names."""
    return started(place)["pulseaudio"]


def test_up_prints_what_makes_a_program_find_it(bench: Shell, place: Path) -> None:
    need("pactl")
    again = bench.rig("virtual", "up")
    assert "already up" in again.stderr
    exports = dict(shlex.split(line)[1].split("=", 1) for line in again.stdout.splitlines())
    said = subprocess.run(
        ["pactl", "info"], env=bench.environ | exports, capture_output=True, text=True, check=True
    ).stdout
    assert f"Server String: unix:{place}/v/pulse/native" in said
    assert "Default Sink: speaker" in said
    assert "Default Source: microphone" in said
    sinks = subprocess.run(["pactl", "list", "sinks"], env=bench.environ | exports, capture_output=True, text=True)
    for name in ("Virtual USB Audio", "Virtual Mouth", "Virtual System Speaker"):
        assert f"Description: {name}\n" in sinks.stdout


def test_status_and_down(bench: Shell, place: Path) -> None:
    pid = server(place)
    assert f"number {pid}" in bench.rig("virtual", "status").stdout
    assert "is down" in bench.rig("virtual", "down").stderr
    assert not runs(pid)
    assert not (place / "v" / "pulse").exists()
    assert "not up" in bench.rig("virtual", "status", code=4).stderr
    assert "there was no" in bench.rig("virtual", "down").stderr


def test_a_server_that_was_killed_is_noticed_and_replaced(bench: Shell, place: Path) -> None:
    before = server(place)
    os.kill(before, signal.SIGKILL)
    said = bench.rig("virtual", "run", "--", "true", code=4).stderr
    assert "pulseaudio has ended" in said
    assert "already" not in bench.rig("virtual", "up").stderr
    assert server(place) != before
    bench.rig("virtual", "status")


def test_a_number_that_another_process_has_now_is_left_alone(shell: Shell, place: Path) -> None:
    need("pulseaudio")
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        (place / "v" / "pulse").mkdir(parents=True, mode=0o700)
        stale = {"kind": "pulse", "processes": [{"name": "pulseaudio", "pid": stranger.pid, "started": "1"}]}
        (place / "v" / "pulse" / "state.json").write_text(json.dumps(stale))
        shell.rig("virtual", "status", code=4)
        shell.rig("virtual", "up")
        shell.rig("virtual", "down")
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"kind": "pulse", "processes": [{"pid": 1}]}'])
def test_a_state_that_cannot_be_read_blocks_nothing(shell: Shell, place: Path, text: str) -> None:
    need("pulseaudio")
    (place / "v" / "pulse").mkdir(parents=True, mode=0o700)
    (place / "v" / "pulse" / "state.json").write_text(text)
    assert "is up" in shell.rig("virtual", "up").stderr


def test_it_leaves_home_and_runtime_folder_alone(bench: Shell, place: Path) -> None:
    need("pactl")
    bench.rig("virtual", "run", "--", "pactl", "list", "short", "sinks")
    bench.rig("virtual", "down")
    assert list((place / "home").iterdir()) == []
    assert list((place / "runtime").iterdir()) == []


def test_run_passes_words_and_exit_code_on(bench: Shell) -> None:
    done = bench.rig("virtual", "run", "--", "sh", "-c", 'echo "$1 $RIG_VIRTUAL_BENCH"; exit 9', "sh", "--kind", code=9)
    assert done.stdout == "--kind pulse\n"
    assert "cannot be run" in bench.rig("virtual", "run", "--", "no-such-program", code=2).stderr


def test_a_folder_that_others_may_write_is_refused(shell: Shell, place: Path) -> None:
    (place / "v").mkdir()
    (place / "v").chmod(0o777)
    said = shell.rig("virtual", "up", code=4).stderr
    (place / "v").chmod(0o700)
    assert "can be written by others" in said


def test_a_path_too_long_for_a_socket_is_refused(shell: Shell, place: Path) -> None:
    long = Shell(shell.environ | {"RIG_VIRTUAL_DIR": str(place / ("x" * 100))})
    assert "bytes" in long.rig("virtual", "up", code=2).stderr


def test_a_missing_server_names_its_package(shell: Shell, place: Path) -> None:
    bare = Shell(shell.environ | {"PATH": str(place)})
    said = bare.rig("virtual", "up", code=4).stderr
    assert "apt-get install" in said
    assert "pulseaudio" in said


@pytest.mark.parametrize("backend", ["sounddevice", "pyaudio"])
def test_passthrough_runs_until_it_is_told(bench: Shell, backend: str) -> None:
    need_library(backend)
    loop = bench.start("virtual", "run", "--", *ME, "sut", "passthrough", "--backend", backend, "--blocksize", "480")
    assert loop.stderr is not None
    said = ""
    for line in loop.stderr:
        said += line
        if line == "ready\n":
            break
    assert "ready\n" in said
    bench.rig("virtual", "status")  # a moment for the stream to run
    loop.send_signal(signal.SIGTERM)
    out, err = loop.communicate(timeout=10)
    assert loop.returncode == 0, err
    claimed = json.loads(out)
    assert claimed["backend"] == backend
    assert claimed["rate_hz"] == 48000
    assert claimed["callbacks"] > 0
    assert 0.0 < claimed["input_latency_s"] < 1.0
    assert 0.0 < claimed["output_latency_s"] < 1.0


def test_passthrough_ends_when_the_server_does(bench: Shell, place: Path) -> None:
    need_library("sounddevice")
    loop = bench.start("virtual", "run", "--", *ME, "sut", "passthrough")
    assert loop.stderr is not None
    assert any(line == "ready\n" for line in loop.stderr)
    os.kill(server(place), signal.SIGKILL)
    _, err = loop.communicate(timeout=10)
    assert loop.returncode == 6, err


def test_pyaudio_cannot_be_asked_for_latency(shell: Shell) -> None:
    said = shell.rig("sut", "passthrough", "--backend", "pyaudio", "--latency", "high", code=2).stderr
    assert "PyAudio always asks" in said
