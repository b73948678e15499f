"""The command line over scripted PortAudio: odd devices as a person meets them, and one that is pulled out."""

from __future__ import annotations

import io
import json
import sys
import threading
from pathlib import Path

import pytest
from scripted_portaudio import Loop, Row, ScriptedPyaudio, ScriptedSounddevice, Table

from rig.cli.main import main
from rig.session import open_session

Capture = pytest.CaptureFixture[str]
Monkey = pytest.MonkeyPatch


def plug(monkeypatch: Monkey, table: Table) -> Table:
    """Both libraries find what the table holds."""
    monkeypatch.setitem(sys.modules, "sounddevice", ScriptedSounddevice(table))  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "pyaudio", ScriptedPyaudio(table))  # type: ignore[arg-type]
    return table


def rig(capfd: pytest.CaptureFixture[str], *arguments: str, code: int) -> tuple[str, str]:
    """(stdout, stderr) of a command, descriptors and all, that ends with `code`."""
    capfd.readouterr()
    ended = main(list(arguments))
    out, err = capfd.readouterr()
    assert ended == code, (out, err)
    return out, err


NAMES = ["Микрофон (Устройство с поддержк", "Düsenjäger – 2ch", "日本語オーディオ"]


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp852", "utf-8"])
def test_names_of_any_alphabet_on_any_console(monkeypatch: Monkey, encoding: str) -> None:
    plug(monkeypatch, Table([Row(name) for name in NAMES]))
    for arguments, code in (
        (["devices"], 0),
        (["devices", "--json"], 0),
        (["doctor", "--port", "none"], 0),
        (["levels", "--device", "nothing"], 4),
        (["levels", "--device", "2ch", "--rate", "1000000"], 2),
    ):
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding, errors) for errors in ("strict", "backslashreplace"))
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", out)
            patch.setattr(sys, "stderr", err)
            assert main(arguments) == code
            err.flush()
        said = (out.buffer.getvalue() + err.buffer.getvalue()).decode(encoding)  # type: ignore[attr-defined]
        assert said
        assert "Traceback" not in said


def test_what_c_libraries_print_stays_off_the_screen_and_explains_the_error(
    monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]
) -> None:
    chatter = "ALSA lib pcm.c:2666:(snd_pcm_open_noupdate) Unknown PCM\nExpression 'ret' failed in 'pa_linux_alsa.c'\n"
    plug(monkeypatch, Table([Row("USB Audio", busy="Unanticipated host error")], chatter=chatter))
    out, err = rig(capfd, "levels", "--device", "USB Audio", "--quiet", code=4)
    assert out == ""
    assert len(err.splitlines()) == 3, err
    assert err.startswith("rig: USB Audio is in use by another program")
    assert "failed in 'pa_linux_alsa.c'" in err.splitlines()[0]


def test_a_refused_rate_is_one_line_with_the_rates_that_are_not(
    monkeypatch: Monkey, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    chatter = "Expression 'paInvalidSampleRate' failed in 'src/hostapi/alsa/pa_linux_alsa.c', line: 2048\n"
    plug(monkeypatch, Table([Row("USB Audio", rates_hz=(48000,))], chatter=chatter))
    arguments = ["--device", "USB Audio", "--port", "none", "--rate", "44100", "--out", str(tmp_path / "s"), "-q"]
    _, err = rig(capfd, "measure", *arguments, code=4)
    assert err.splitlines() == [
        "rig: USB Audio does not take 44100 Hz",
        "  expected: one of 48000 Hz",
        "  remedy: ask for one of these: --rate 48000; a device that resamples would add delay that nobody measures",
    ]


def test_every_argument_that_an_ambiguity_lists_works(monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [Row("Line (Scarlett)", api=api) for api in ("MME", "Windows DirectSound", "Windows WASAPI")]
    plug(monkeypatch, Table([*rows, Row("Codec"), Row("Codec")]))
    for wanted, listed in (
        ("Line (Scarlett)", ["MME:Line (Scarlett)", "Windows DirectSound:Line (Scarlett)"]),
        ("Codec", ["3", "4"]),
    ):
        _, err = rig(capfd, "levels", "--device", wanted, "--quiet", code=4)
        assert "Traceback" not in err
        for argument in listed:
            assert f"--device {argument}" in err.replace('"', "")
            out, _ = rig(capfd, "doctor", "--device", argument, "--port", "none", "--silent", "--json", "-q", code=4)
            found = {f["check"]: f["status"] for f in json.loads(out)["findings"]}
            assert found["device"] == "ok", "only its stream delivers nothing here"
            assert found["stream"] == "fail"


def test_the_doctor_of_an_interface_in_a_loop(monkeypatch: Monkey, capfd: pytest.CaptureFixture[str]) -> None:
    plug(monkeypatch, Table([Row("USB Audio (hw:1,0)"), Row("pulse", inputs=32)], loop=Loop()))
    out, _ = rig(capfd, "doctor", "--device", "USB Audio", "--port", "none", "--json", "--quiet", code=0)
    found = {f["check"]: f for f in json.loads(out)["findings"]}
    for check in ("portaudio", "device", "rates", "stream", "reference", "ear"):
        assert found[check]["status"] == "ok", found[check]
    assert "3 of 3 stimuli come back" in found["ear"]["text"]


@pytest.mark.parametrize("backend", ["sounddevice", "pyaudio"])
def test_an_interface_that_is_pulled_out_in_the_second_run(
    monkeypatch: Monkey, capfd: pytest.CaptureFixture[str], tmp_path: Path, backend: str
) -> None:
    """Its callbacks stop, the stream still claims to be active, and closing it never comes back."""
    monkeypatch.setattr("rig.acquire.portaudio.CLOSE_S", 0.1)
    pulled = threading.Event()
    table = plug(monkeypatch, Table([Row("USB Audio (hw:1,0)")], loop=Loop(dies_after_s={1: 2.0})))

    def watch_for_the_second() -> None:
        while len(table.streams) < 2 and not pulled.wait(0.05):
            pass
        table.blocks_on_close = pulled  # from now on

    watcher = threading.Thread(target=watch_for_the_second)
    watcher.start()
    session = tmp_path / "s"
    arguments = ["--device", "USB Audio", "--port", "none", "--runs", "3", "--stimuli", "4", "--spacing", "300ms"]
    try:
        out, err = rig(capfd, "measure", *arguments, "--backend", backend, "--out", str(session), "-q", code=6)
    finally:
        pulled.set()
        watcher.join()
    assert out == ""
    first, _, remedy = err.splitlines()
    assert first.startswith("rig: USB Audio (hw:1,0) delivered nothing for 1.")
    assert "after 2.00 s of run 2" in first, "how much came before"
    assert "still plugged in" in remedy
    assert f"rig analyze {session}" in remedy
    kept = open_session(session)
    kept.close()
    assert kept.status == "lost"
    assert [(run.number, run.ok) for run in kept.runs] == [(1, True), (2, False)]
    out, _ = rig(capfd, "analyze", str(session), "--json", code=0)
    first_run = json.loads(out)["runs"][0]
    trials = [trial["latency_s"] for trial in first_run["trials"] if trial["valid"]]
    assert len(trials) == 4
    # A block passes between what the callback gives out and what it hears.
    assert trials == pytest.approx([4800 / 48000] * 4, abs=2e-6)


def test_a_sound_server_in_the_path_is_told_under_the_figure(
    monkeypatch: Monkey, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    plug(monkeypatch, Table([Row("pulse", inputs=32, outputs=32)], loop=Loop()))
    arguments = ["--device", "pulse", "--port", "none", "--runs", "1", "--stimuli", "3", "--spacing", "300ms"]
    out, _ = rig(capfd, "measure", *arguments, "--out", str(tmp_path / "s"), "--json", "-q", code=0)
    found = json.loads(out)
    assert any(text.startswith("pulse is a sound server or a mixer") for text in found["caveats"])
    assert found["granted"]["device"] == "pulse"
