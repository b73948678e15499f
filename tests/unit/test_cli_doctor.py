"""`rig doctor` as a user meets it: on the simulated bench, without PortAudio, and with options that cannot be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from rig.cli.main import main

Capture = pytest.CaptureFixture[str]


def doctor(capsys: Capture, *arguments: str, code: int = 0) -> dict[str, tuple[str, str, str | None]]:
    """The findings of `rig doctor ARGUMENTS --json` by check: (status, text, remedy)."""
    capsys.readouterr()
    assert main(["doctor", "--json", "--quiet", *arguments]) == code
    found = json.loads(capsys.readouterr().out)
    assert found["ready"] is (code == 0)
    return {f["check"]: (f["status"], f["text"], f["remedy"]) for f in found["findings"]}


def test_the_simulated_bench_is_well(capsys: Capture) -> None:
    found = doctor(capsys, "--device", "sim")
    assert {
        status for check, (status, _, _) in found.items() if check not in ("portaudio", "machine", "calibration")
    } == {"ok"}
    for check in ("firmware", "board", "self-test", "link", "stream", "xruns", "reference", "ear"):
        assert check in found
    assert "3 of 3 stimuli heard" in found["reference"][1]


@pytest.mark.parametrize(
    ("scenario", "check", "said"),
    [
        ("swapped", "reference", "comes on channel 2, not on channel 1"),
        ("same-signal", "reference", "carry the same signal"),
        ("dead-ear", "ear", "digitally silent"),
        ("clipped", "ear", "clips"),
    ],
)
def test_what_is_wrong_with_a_simulated_bench(capsys: Capture, scenario: str, check: str, said: str) -> None:
    status, text, remedy = doctor(capsys, "--device", f"sim:{scenario}", "--port", "none", code=4)[check]
    assert status == "fail"
    assert said in text
    assert remedy


def test_a_system_that_does_not_answer_is_a_warning(capsys: Capture) -> None:
    status, text, _ = doctor(capsys, "--device", "sim:no-answer")["ear"]
    assert status == "warn"
    assert "hears none of the stimuli" in text


def test_silent_plays_nothing(capsys: Capture) -> None:
    found = doctor(capsys, "--device", "sim:swapped", "--silent")
    assert "xruns" in found
    assert "reference" not in found


def test_roles_by_option(capsys: Capture) -> None:
    found = doctor(capsys, "--device", "sim:swapped", "--ref", "2", "--ear", "1")
    assert found["reference"][1].startswith("channel 2: 3 of 3 stimuli heard")


def test_without_portaudio_it_says_so_and_goes_on(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    found = doctor(capsys, "--device", "sim")
    assert found["portaudio"][0] == "warn", "the simulated bench does without"
    assert "pip install sounddevice" in str(found["portaudio"][2])
    assert found["reference"][0] == "ok"
    found = doctor(capsys, "--port", "none", "--device", "USB Audio", code=4)
    assert found["portaudio"][0] == "fail"
    assert found["firmware"][0] == "ok", "what does not need it is looked at all the same"
    assert "device" not in found


def test_without_pyaudio_it_names_the_way_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyaudio", None)
    status, text, remedy = doctor(capsys, "--backend", "pyaudio", code=4)["portaudio"]
    assert (status, "PyAudio is not installed" in text) == ("fail", True)
    assert "pip install pyaudio" in str(remedy)


def test_a_port_that_is_not_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    status, text, _ = doctor(capsys, "--port", str(tmp_path / "ttyX"), code=4)["board"]
    assert status == "fail"
    assert "there is no port" in text


def test_as_text_it_fits_the_terminal(capsys: Capture) -> None:
    assert main(["doctor", "--device", "sim:swapped"]) == 4
    said = capsys.readouterr()
    assert max(len(line) for line in said.out.splitlines()) <= 80
    assert said.out.rstrip().splitlines()[-1].startswith("not ready: 1 fail")
    assert said.err == ""


@pytest.mark.parametrize(
    "arguments", [["--backend", "asio"], ["--ref", "1", "--ear", "1"], ["--device", "sim", "--sut", "true"]]
)
def test_options_that_cannot_be(capsys: Capture, arguments: list[str]) -> None:
    assert main(["doctor", *arguments]) == 2
    assert "remedy" in capsys.readouterr().err


def test_the_page_shows_what_it_says(capsys: Capture) -> None:
    page = (Path(__file__).parents[2] / "docs" / "doctor.md").read_text(encoding="utf-8")
    shown = page.split("compared with the real output")[1].split("```")[1].strip("\n")
    assert main(["doctor", "--device", "sim:swapped"]) == 4
    assert shown in capsys.readouterr().out
