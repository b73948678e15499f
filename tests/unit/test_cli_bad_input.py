"""What `rig analyze` says of input that cannot be used: three lines, exit code 2, no traceback, nothing on stdout."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile
from test_cli import GOLDEN, Capture, complaint, rig

Make = Callable[[Path], None]
RATE_HZ = 48_000


def noise(channels: int, seconds: float = 1.0) -> np.ndarray:
    return np.random.default_rng(1).normal(0.0, 0.01, (round(seconds * RATE_HZ), channels))


def write_wav(channels: int, seconds: float = 1.0, rate_hz: int = RATE_HZ) -> Make:
    return lambda path: soundfile.write(path, noise(channels, seconds), rate_hz, format="WAV", subtype="PCM_16")


def write_bytes(data: bytes) -> Make:
    return lambda path: path.write_bytes(data) and None


CASES: dict[str, tuple[Make | None, str]] = {
    "absent": (None, "does not exist"),
    "empty": (write_bytes(b""), "is empty"),
    "not audio": (write_bytes(b"Dear diary, today I measured nothing.\n" * 50), "is not an audio file"),
    "mp3": (write_bytes(b"\xff\xfb\x90\x00" * 500), "is an MP3 file"),
    "header only": (write_wav(2, 0.0), "no samples"),
    "mono": (write_wav(1), "one channel (mono)"),
    "too short": (write_wav(2, 0.3), "0.30 s long"),
    "rate": (write_wav(2, 1.0, 4000), "4000 Hz"),
    "half a header": (write_bytes(b"RIFF\x24\x00\x00\x00WAVEfmt "), ""),
    "flac magic alone": (write_bytes(b"fLaC" + b"\0" * 100), ""),
}


@pytest.mark.parametrize("case", CASES)
def test_unusable_files(case: str, tmp_path: Path, capsys: Capture) -> None:
    make, what = CASES[case]
    path = tmp_path / "take.wav"
    if make is not None:
        make(path)
    first = complaint(rig(capsys, "analyze", path), 2)
    assert what in first
    assert "take.wav" in first


@pytest.mark.parametrize(("option", "channel"), [("--ref", 3), ("--ear", 5)])
def test_a_channel_beyond_the_file(option: str, channel: int, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "take.wav"
    write_wav(2)(path)
    first = complaint(rig(capsys, "analyze", path, option, str(channel)), 2)
    assert first == f"{option} {channel}: take.wav has 2 channels"


def test_the_other_role_may_clash_with_a_default(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "take.wav"
    write_wav(2)(path)
    assert "both name channel 2" in complaint(rig(capsys, "analyze", path, "--ref", "2"), 2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "take.wav"
    write_wav(2)(path)
    path.chmod(0)
    try:
        assert "may not be read" in complaint(rig(capsys, "analyze", path), 2)
    finally:
        path.chmod(stat.S_IRUSR | stat.S_IWUSR)


def test_a_folder_that_is_no_session(tmp_path: Path, capsys: Capture) -> None:
    assert "has no manifest.json" in complaint(rig(capsys, "analyze", tmp_path), 2)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"schema":"rig.session/9"}', '{"schema":null}', "\x00" * 50])
def test_a_manifest_that_cannot_be_read(text: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "manifest.json").write_text(text, encoding="utf-8")
    assert "manifest.json" in complaint(rig(capsys, "analyze", tmp_path), 2)


def test_a_file_without_any_stimulus_is_refused_and_not_an_error(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "take.wav"
    write_wav(2, 3.0)(path)
    said = rig(capsys, "analyze", path, "--json")
    assert said.code == 7
    document = json.loads(said.out)
    assert document["latency_s"] is None
    assert document["runs"][0]["refusal"] == "no_stimulus"


def test_a_wav_that_ends_too_early_is_read_up_to_there_and_says_so(tmp_path: Path, capsys: Capture) -> None:
    samples, rate_hz = soundfile.read(GOLDEN / "chromium-rtc-chirp.flac")
    path = tmp_path / "take.wav"
    soundfile.write(path, samples, rate_hz, subtype="PCM_16")
    whole = path.read_bytes()
    path.write_bytes(whole[: round(0.8 * len(whole))])
    said = rig(capsys, "analyze", path, "--json")
    document = json.loads(said.out)
    assert document["cut_short"] is not None
    assert any("take.wav" in caveat for caveat in document["caveats"])
    assert said.code == 0
    assert document["latency_s"]["median"] == pytest.approx(0.143542, abs=150e-6)


def test_a_session_with_a_changed_recording_says_so(tmp_path: Path, capsys: Capture) -> None:
    arguments = ["--device", "sim:quiet", "--runs", "1", "--stimuli", "3", "--no-blank", "--quiet"]
    assert rig(capsys, "measure", *arguments, "--out", tmp_path / "s").code == 0
    wav = tmp_path / "s" / "run-001.wav"
    data = bytearray(wav.read_bytes())
    data[-100] ^= 1
    wav.write_bytes(data)
    document = json.loads(rig(capsys, "analyze", tmp_path / "s", "--json").out)
    assert any("run-001.wav was changed" in caveat for caveat in document["caveats"])
    shutil.rmtree(tmp_path / "s")
