"""`rig doctor` on a real sound server, with a real system under test."""

from __future__ import annotations

import json
import shlex

import pytest
from virtual_shell import RIG, Shell, need_library

DEVICE = ("--device", "Virtual USB Audio")


def examine(bench: Shell, *words: str, code: int | None) -> dict[str, dict[str, str]]:
    done = bench.rig("virtual", "run", "--", *RIG, "doctor", *DEVICE, "--json", "--quiet", *words, code=code)
    found = json.loads(done.stdout)
    assert (found["bench"], found["device"], found["port"]) == ("virtual", "Virtual USB Audio", None)
    return {finding["check"]: finding for finding in found["findings"]}


@pytest.mark.parametrize("backend", ["sounddevice", "pyaudio"])
def test_a_virtual_bench_with_a_system_is_well(bench: Shell, backend: str) -> None:
    need_library(backend)
    system = shlex.join([*RIG, "sut", "passthrough"])
    found = examine(bench, "--port", "none", "--backend", backend, "--sut", system, code=None)
    for check in ("portaudio", "firmware", "device", "server", "sound cards", "rates", "stream", "reference", "ear"):
        assert found[check]["status"] == "ok", found[check]
    assert "in 5.0 s" in found["xruns"]["text"], "whatever a busy machine lost"
    assert "PulseAudio" in found["server"]["text"]
    assert found["ear"]["text"].startswith("channel 2: 3 of 3 stimuli come back")


def test_cables_on_each_others_channel_are_found(bench: Shell) -> None:
    need_library("sounddevice")
    found = examine(bench, "--port", "none", "--ref", "2", "--ear", "1", code=4)
    assert found.get("reference", {}).get("status") == "fail", found
    assert "the stimulus comes on channel 1, not on channel 2" in found["reference"]["text"]


def test_a_device_that_is_not_there(bench: Shell) -> None:
    need_library("sounddevice")
    done = bench.rig("virtual", "run", "--", *RIG, "doctor", "--device", "Scarlett", "--quiet", code=4)
    assert "no audio device answers to 'Scarlett'" in " ".join(done.stdout.split())
    assert "stream" not in done.stdout
