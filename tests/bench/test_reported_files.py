"""Faults seen in the field, one test each: sample formats, headers, and what the command line says of a refusal."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from harness import ROLES
from worlds import RATE_HZ, faults
from worlds.recording import Recording, Scene, build

from rig.domain.records import AnalysisHints
from rig.recording import open_recording

SAMPLE_S = 1.0 / RATE_HZ
TAIL_OF_GUID = bytes.fromhex("0000000010008000 00aa00389b71".replace(" ", ""))


def recorded(seed: int, **scene: object) -> Recording:
    """A recording; keywords go to the scene."""
    fields: dict[str, object] = {"kind": "chirp", "n": 5, "snr_db": 30.0} | scene
    return build(Scene(**fields), np.random.default_rng(seed))  # type: ignore[arg-type]


def wav_bytes(frames: np.ndarray, rate_hz: int, form: str) -> bytes:
    """A WAV file written by hand: "pcm16", "pcm24x" (extensible), "pcm32x" (extensible), "float", "floatx"."""
    extensible, kind = form.endswith("x"), form.removesuffix("x")
    if kind == "float":
        bits, tag, data = 32, 3, frames.astype("<f4").tobytes()
    else:
        bits, tag = int(kind[3:]), 1
        whole = np.round(frames * 2.0 ** (bits - 1)).clip(-(2.0 ** (bits - 1)), 2.0 ** (bits - 1) - 1).astype("<i8")
        data = whole.reshape(-1, 1).view(np.uint8)[:, : bits // 8].tobytes()
    channels = frames.shape[1]
    align = channels * bits // 8
    fmt = struct.pack("<HHIIHH", 0xFFFE if extensible else tag, channels, rate_hz, rate_hz * align, align, bits)
    if extensible:
        fmt += struct.pack("<HHIH", 22, bits, 3, tag) + TAIL_OF_GUID
    body = b"WAVE" + b"fmt " + struct.pack("<I", len(fmt)) + fmt + b"data" + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


@pytest.mark.parametrize("rate_hz", [48_000, 96_000])
@pytest.mark.parametrize("form", ["pcm24x", "pcm24", "pcm32x", "float", "floatx"])
def test_formats_that_a_plain_reader_rejects(form: str, rate_hz: int, seed: int, tmp_path: Path) -> None:
    """A standard reader rejected the extensible header that 24-bit and 96 kHz files carry."""
    from rig.analyse.run import analyse_run

    r = recorded(seed)
    frames = r.frames if rate_hz == RATE_HZ else faults.resampled(r.frames, rate_hz)
    found = {}
    for which in ("pcm16", form):
        path = tmp_path / f"{which}.wav"
        path.write_bytes(wav_bytes(frames, rate_hz, which))
        with open_recording(path) as source:
            run = analyse_run(source, ROLES, AnalysisHints(stimulus="chirp"))
        found[which] = [t.latency_s for t in run.trials]
    assert found[form] == pytest.approx(found["pcm16"], abs=0.05 * SAMPLE_S)
    assert found[form] == pytest.approx(list(r.truth_s), abs=0.2 * SAMPLE_S)


def analyze(path: Path, *arguments: str) -> tuple[int, dict[str, object] | None, str]:
    """`rig analyze --json` in a process of its own: exit code, the document (None if none), stderr."""
    code = "from rig.cli.main import run; run()"
    command = [sys.executable, "-c", code, "analyze", str(path), "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    document = json.loads(done.stdout, parse_constant=not_a_number) if done.stdout.strip() else None
    return done.returncode, document, done.stderr


def not_a_number(token: str) -> float:
    """Called for NaN and Infinity, which are not JSON."""
    raise AssertionError(f"{token} in the report")


def zeros_of_time(value: object, name: str = "") -> list[str]:
    """Names of latency figures that are exactly 0 anywhere in the document."""
    if isinstance(value, dict):
        return [z for k, v in value.items() for z in zeros_of_time(v, f"{name}.{k}")]
    if isinstance(value, list):
        return [z for k, v in enumerate(value) for z in zeros_of_time(v, f"{name}[{k}]")]
    return [name] if value == 0 and value is not False and "latency_s" in name else []


def test_no_figure_is_null_and_exit_7(seed: int, tmp_path: Path) -> None:
    """Every exit without a valid figure is not 0, and the document holds null, never 0."""
    r = recorded(seed, snr_db=None)
    path = tmp_path / "nothing.wav"
    path.write_bytes(wav_bytes(r.frames, RATE_HZ, "pcm24x"))
    code, document, stderr = analyze(path)
    assert code == 7, stderr
    assert document is not None, stderr
    assert document["latency_s"] is None
    assert zeros_of_time(document) == []
    assert "Traceback" not in stderr


def test_a_figure_is_a_number_and_exit_0(seed: int, tmp_path: Path) -> None:
    """The same with a response: exit 0, and the median is the truth."""
    r = recorded(seed, spread_samples=0.0)
    path = tmp_path / "response.wav"
    path.write_bytes(wav_bytes(r.frames, RATE_HZ, "pcm24x"))
    code, document, stderr = analyze(path)
    assert code == 0, stderr
    assert document is not None
    latency = document["latency_s"]
    assert isinstance(latency, dict)
    assert latency["median"] == pytest.approx(r.centre_s, abs=0.1 * SAMPLE_S)


def test_a_stimulus_alone_is_too_short(tmp_path: Path, seed: int) -> None:
    """0.3 s of sound, and a header with nothing behind it: one line that says how long is needed, no traceback."""
    r = recorded(seed)
    for name, frames in (("short.wav", r.frames[:14_400]), ("empty.wav", r.frames[:0])):
        path = tmp_path / name
        path.write_bytes(wav_bytes(frames, RATE_HZ, "pcm16"))
        code, document, stderr = analyze(path)
        assert code in (2, 7), (name, code, stderr)
        assert document is None or document["latency_s"] is None
        assert "Traceback" not in stderr
        assert stderr.strip()
