"""The virtual bench on JACK, where the path is known to the frame: what rig reads and what jack_iodelay reads."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from virtual_shell import RIG as ME
from virtual_shell import Shell, need, need_library

from rig.sut.delay import DelayLine
from rig.virtual.bench import standing

INTERFACE = "Virtual USB Audio"
RATE_HZ = 48000
WITHIN_FRAMES = 0.01
READINGS = 3  # of jack_iodelay, two a second


@pytest.mark.parametrize("delay", [0, 1, 7, 64, 1000])
@pytest.mark.parametrize("block", [1, 64, 100])
def test_a_delay_line_holds_back_exactly(delay: int, block: int) -> None:
    line = DelayLine(delay)
    sent = bytes(k % 251 + 1 for k in range(30 * block))
    heard = bytearray()
    for at in range(0, len(sent), block):
        out = bytearray(block)
        line.pass_on(memoryview(sent)[at : at + block], memoryview(out))
        heard += out
    assert bytes(heard) == (bytes(delay) + sent)[: len(sent)]


def started(shell: Shell, *words: str) -> subprocess.Popen[str]:
    """A command inside the bench, once it says that it is ready."""
    process = shell.start("virtual", "run", "--kind", "jack", "--", *words)
    assert process.stderr is not None
    said = []
    for line in process.stderr:
        said.append(line)
        if line == "ready\n":
            return process
    pytest.fail(f"{words}: {''.join(said)}")


def iodelay_frames(shell: Shell, channel: int) -> float:
    """What jack_iodelay reads from the interface's output to one of its channels, periods of JACK included."""
    inside = {**shell.environ, **standing("jack", shell.environ).environment}
    meter = subprocess.Popen(["stdbuf", "-oL", "jack_iodelay"], env=inside, stdout=subprocess.PIPE, text=True)
    try:
        for words in (["jack_delay:out", f"{INTERFACE}:play_1"], [f"{INTERFACE}:channel_{channel}", "jack_delay:in"]):
            for attempt in range(50):
                done = subprocess.run(["jack_connect", *words], env=inside, capture_output=True, text=True, check=False)
                if done.returncode == 0:
                    break
                assert attempt < 49, done.stderr
        assert meter.stdout is not None
        found: list[float] = []
        for line in meter.stdout:
            read = re.match(r"\s*(\d+\.\d+) frames .* total roundtrip latency", line)
            # The first may be of a loop that was still filling; two that agree are of one that stands.
            found += [float(read[1])] if read else []
            if len(found) >= READINGS and found[-1] == found[-2]:
                return found[-1]
        pytest.fail("jack_iodelay has ended")
    finally:
        meter.send_signal(signal.SIGINT)
        meter.wait()
        assert meter.stdout is not None
        meter.stdout.close()


@pytest.mark.parametrize("frames", [256, 1000, 48000])
def test_rig_and_jack_iodelay_read_the_same_delay(jack_bench: Shell, place: Path, frames: int) -> None:
    need("jack_iodelay", "jack_connect", "stdbuf")
    need_library("sounddevice")
    system = ["sut", "delay", "--frames", str(frames)]
    done = jack_bench.rig(
        *("virtual", "run", "--kind", "jack", "--", *ME, "measure", "--device", INTERFACE, "--port", "none"),
        *("--sut", " ".join(f"'{word}'" for word in [*ME, *system]), "--runs", "1", "--stimuli", "5", "--no-blank"),
        *("--out", str(place / "session"), "--json"),
    )
    report = json.loads(done.stdout)
    assert report["bench"] == "virtual"
    trials = report["runs"][0]["trials"]
    read = [trial["latency_s"] * RATE_HZ for trial in trials if trial["valid"]]
    refused = {trial["reason"] for trial in trials if not trial["valid"]}
    assert refused <= {"gap_in_window"}, refused  # where this computer was too busy for JACK
    assert len(read) >= 3
    worst = max(abs(each - frames) for each in read)

    line = started(jack_bench, *ME, *system)
    try:
        ear, reference = iodelay_frames(jack_bench, 2), iodelay_frames(jack_bench, 1)
    finally:
        line.send_signal(signal.SIGTERM)
        out, err = line.communicate(timeout=10)
    assert line.returncode == 0, err
    assert json.loads(out)["delay_frames"] == frames
    print(f"\n{frames:6} frames: rig {sum(read) / len(read):.4f} (worst trial off by {worst:.4f}), ", end="")
    print(f"jack_iodelay {ear:.3f} - {reference:.3f} = {ear - reference:.3f}")
    assert worst < WITHIN_FRAMES
    assert abs(ear - reference - frames) < WITHIN_FRAMES


def test_a_delay_ends_when_the_server_does(jack_bench: Shell, place: Path) -> None:
    line = started(jack_bench, *ME, "sut", "delay", "--frames", "0")
    state = json.loads((place / "v" / "jack" / "state.json").read_text())
    os.kill(int(state["processes"][0]["pid"]), signal.SIGKILL)
    _, err = line.communicate(timeout=20)
    assert line.returncode == 6, err
    assert "has ended" in jack_bench.rig("virtual", "status", "--kind", "jack", code=4).stderr
    jack_bench.up("jack")
    jack_bench.rig("virtual", "status", "--kind", "jack")


def test_down_leaves_nothing_of_the_server_behind(jack_bench: Shell, place: Path) -> None:
    name = standing("jack", jack_bench.environ).environment["JACK_DEFAULT_SERVER"]
    assert list(Path("/dev/shm").glob(f"jack_*{name}*"))
    jack_bench.rig("virtual", "down", "--kind", "jack")
    assert not list(Path("/dev/shm").glob(f"jack_*{name}*"))
    assert not (place / "v" / "jack").exists()


def test_a_delay_says_what_is_missing(jack_bench: Shell) -> None:
    need_library("jack")
    assert "no JACK server" in jack_bench.rig("sut", "delay", "--frames", "1", code=4).stderr
    inside = ("virtual", "run", "--kind", "jack", "--", *ME, "sut", "delay", "--frames", "1")
    assert "'Virtual USB Audio:mouth'" in jack_bench.rig(*inside, "--from", "nobody:nothing", code=2).stderr
    assert "--frames" in jack_bench.rig(*inside[:-1], "100000000", code=2).stderr
