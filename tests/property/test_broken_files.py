"""Files by the thousand that are broken somewhere: only BadInput comes out, in words, and what is read stays sane."""

from __future__ import annotations

import io
import shutil
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig.domain.records import BenchKind, ChannelRoles, StimulusPlan, StreamGrant
from rig.errors import BadInput
from rig.recording import open_recording
from rig.session import SessionWriter, open_session
from rig.sim.clock import VirtualTime

RATE_HZ = 8_000
N_FRAMES = 6_000

Edit = tuple[str, float, bytes]
"""What to do (overwrite, insert, delete, cut), where (a fraction of the length), with what."""

MOST_INTERESTING = st.sampled_from(
    [
        b"",
        b"\0",
        b"\xff\xff\xff\xff",
        b"\0\0\0\0",
        b"\x7f\xff\xff\xff",
        b"\0\0\0\x80",
        b"data",
        b"fmt ",
        b"ds64",
        b"RF64",
    ]
)
EDITS = st.lists(
    st.tuples(
        st.sampled_from(["overwrite", "insert", "delete", "cut"]),
        # Half of them in the first hundredth: that is where the header is.
        st.one_of(st.floats(0.0, 1.0), st.floats(0.0, 0.01)),
        st.one_of(st.binary(max_size=12), MOST_INTERESTING),
    ),
    max_size=4,
)


def edited(raw: bytes, edits: list[Edit]) -> bytes:
    """`raw` after the edits, one after the other."""
    for what, where, with_bytes in edits:
        at = round(where * len(raw))
        if what == "overwrite":
            raw = raw[:at] + with_bytes + raw[at + len(with_bytes) :]
        elif what == "insert":
            raw = raw[:at] + with_bytes + raw[at:]
        elif what == "delete":
            raw = raw[:at] + raw[at + len(with_bytes) :]
        else:
            raw = raw[:at]
    return raw


def audio(kind: str, subtype: str) -> bytes:
    rng = np.random.default_rng(20_260)
    buffer = io.BytesIO()
    soundfile.write(buffer, 0.3 * rng.standard_normal((N_FRAMES, 2)), RATE_HZ, format=kind, subtype=subtype)
    return buffer.getvalue()


WAVS = {f"{kind} {sub}": audio(kind, sub) for kind in ("WAV", "WAVEX", "RF64") for sub in ("PCM_16", "PCM_24", "FLOAT")}
FLACS = {sub: audio("FLAC", sub) for sub in ("PCM_16", "PCM_24")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("broken")


def read_somehow(path: Path) -> None:
    """Opens and reads a recording in ways that an analysis would; BadInput may come, anything else may not."""
    try:
        with open_recording(path) as source:
            assert source.n_channels >= 2
            assert 8_000 <= source.rate_hz <= 192_000
            assert 0 < source.n_frames <= max(8 * path.stat().st_size, 1 << 20)
            assert all(isinstance(caveat, str) and caveat for caveat in source.caveats)
            for start in (0, source.n_frames // 2, source.n_frames - 100, 0):
                try:
                    frames = source.read(start, 1000)
                except BadInput as error:
                    said(error)
                    continue
                start = max(0, start)
                assert frames.shape == (min(1000, source.n_frames - start), source.n_channels)
                assert np.all(np.isfinite(frames))
    except BadInput as error:
        said(error)


def said(error: BadInput) -> None:
    assert all(isinstance(text, str) and text for text in (error.what, error.expected, error.remedy))
    assert "\n" not in error.what


@settings(max_examples=600, suppress_health_check=[HealthCheck.too_slow])
@given(base=st.sampled_from(sorted(WAVS)), edits=EDITS)
def test_a_broken_wav(folder: Path, base: str, edits: list[Edit]) -> None:
    path = folder / "x.wav"
    path.write_bytes(edited(WAVS[base], edits))
    read_somehow(path)


@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
@given(base=st.sampled_from(sorted(FLACS)), edits=EDITS)
def test_a_broken_flac(folder: Path, base: str, edits: list[Edit]) -> None:
    path = folder / "x.flac"
    path.write_bytes(edited(FLACS[base], edits))
    read_somehow(path)


@settings(max_examples=300)
@given(
    tag=st.one_of(st.sampled_from([1, 3, 0xFFFE]), st.integers(0, 0xFFFF)),
    channels=st.one_of(st.integers(0, 9), st.integers(0, 0xFFFF)),
    rate_hz=st.one_of(st.sampled_from([0, 7_999, 8_000, 48_000, 192_001, 2**32 - 1]), st.integers(0, 2**32 - 1)),
    align=st.one_of(st.integers(0, 40), st.integers(0, 0xFFFF)),
    bits=st.one_of(st.sampled_from([0, 8, 16, 20, 24, 32, 64]), st.integers(0, 0xFFFF)),
    extra=st.binary(max_size=40),
    stated=st.one_of(st.sampled_from([0, 1, 2**31, 2**32 - 1]), st.integers(0, 2**32 - 1)),
    data=st.binary(max_size=64),
    repeat=st.integers(0, 2000),
)
def test_any_header_at_all(
    folder: Path,
    tag: int,
    channels: int,
    rate_hz: int,
    align: int,
    bits: int,
    extra: bytes,
    stated: int,
    data: bytes,
    repeat: int,
) -> None:
    fmt = struct.pack("<HHIIHH", tag, channels, rate_hz, 0, align, bits) + extra
    body = b"WAVE" + struct.pack("<4sI", b"fmt ", len(fmt)) + fmt + b"\0" * (len(fmt) & 1)
    body += struct.pack("<4sI", b"data", stated) + data * repeat
    path = folder / "h.wav"
    path.write_bytes(struct.pack("<4sI", b"RIFF", len(body) & 0xFFFFFFFF) + body)
    read_somehow(path)


@settings(max_examples=200)
@given(raw=st.binary(max_size=300))
def test_no_audio_at_all(folder: Path, raw: bytes) -> None:
    path = folder / "x.wav"
    path.write_bytes(raw)
    with pytest.raises(BadInput):
        open_recording(path)


@settings(max_examples=200)
@given(cut=st.integers(0, 80 + 6 * N_FRAMES))
def test_a_wav_of_ours_cut_anywhere_gives_what_is_left(session: Path, folder: Path, cut: int) -> None:
    raw = (session / "run-001.wav").read_bytes()
    unfinished = raw[:4] + b"\xff" * 4 + raw[8:76] + b"\xff" * 4 + raw[80:]
    path = folder / "cut.wav"
    path.write_bytes(unfinished[:cut])
    whole_frames = max(0, cut - 80) // 6
    if whole_frames == 0:
        with pytest.raises(BadInput):
            open_recording(path, min_duration_s=0.0)
        return
    with open_recording(path, min_duration_s=0.0) as source:
        assert source.n_frames == whole_frames
        with open_recording(session / "run-001.wav") as whole:
            np.testing.assert_array_equal(source.read(0, N_FRAMES), whole.read(0, whole_frames))


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good session of one run and a blank run, with every kind of event."""
    path = tmp_path_factory.mktemp("good") / "s"
    rng = np.random.default_rng(20_261)
    manifest = {"bench": BenchKind.SIMULATED, "mode": "call", "seed": 1, "roles": ChannelRoles(0, 1)}
    writer = SessionWriter.create(path, manifest, VirtualTime())
    grant = StreamGrant("desk", None, RATE_HZ, 2, None, None, None)
    for number in (0, 1):
        plan = StimulusPlan("chirp", 3, (0.2, 0.25), 0.5, "mcu")
        run = writer.start_run(number, "run" if number else "blank", grant=grant, plan=plan)
        run.write((0.3 * rng.standard_normal((N_FRAMES, 2))).astype(np.float32))
        run.event("first_block", first_frame=0, overflow_known=True)
        run.event("fired", index=0, tick=5, tick_rate_hz=2e6)
        run.event("gap", frame=20, lost_frames=4, flagged_by="backend")
        run.event("ping", host_sent_s=1.5, mcu_received_tick=7, mcu_sent_tick=9, host_received_s=1.502)
        run.event("scheduled", index=0, frame=5, asked=5, given=6)
        run.close(ok=True, elapsed_s=0.75, xruns=0)
    writer.write_truth({"a": 1.5})
    writer.finish()
    return path


def open_somehow(path: Path) -> None:
    """Opens a session and uses everything of it; BadInput may come, anything else may not."""
    try:
        opened = open_session(path)
    except BadInput as error:
        said(error)
        return
    problems = opened.verify()
    assert all(isinstance(text, str) for text in (*problems, *opened.caveats))
    for run in (*opened.runs, *(() if opened.blank is None else (opened.blank,))):
        assert run.entry.audio.parent == path
        hints = run.hints()
        assert all(isinstance(fired.tick, int) and fired.tick_rate_hz > 0 for fired in hints.fired or ())
        assert all(np.isfinite(step) for step in hints.spacing_s or ())
        assert len(run.source.read(0, 10)) == min(10, run.source.n_frames)
    opened.close()


JSON_BITS = st.sampled_from(
    [
        b"NaN",
        b"-Infinity",
        b"1e999",
        b"null",
        b"[]",
        b"{}",
        b'"',
        b"\xff",
        b"\r\n",
        b"9" * 30,
        b"../",
        b"true",
        b"-1",
        b"[" * 3000,
    ]
)
JSON_EDITS = st.lists(
    st.tuples(
        st.sampled_from(["overwrite", "insert", "delete", "cut"]),
        st.floats(0.0, 1.0),
        st.one_of(st.binary(max_size=12), JSON_BITS),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("name", ["manifest.json", "events.jsonl", "truth.json"])
def test_a_session_with_a_broken_file(session: Path, folder: Path, name: str) -> None:
    copy = folder / f"with-{name}"
    shutil.copytree(session, copy)
    good = (session / name).read_bytes()

    @settings(max_examples=400)
    @given(edits=JSON_EDITS)
    def broken(edits: list[Edit]) -> None:
        (copy / name).write_bytes(edited(good, edits))
        open_somehow(copy)

    broken()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def test_a_manifest_with_any_value_of_another_kind(session: Path, folder: Path) -> None:
    import json

    copy = folder / "swapped"
    shutil.copytree(session, copy)
    text = (session / "manifest.json").read_text()

    def places(value: object, at: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
        items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        return [place for key, item in items for place in [(*at, key), *places(item, (*at, key))]]

    every = places(json.loads(text))
    assert len(every) > 60, "the manifest was walked"

    @settings(max_examples=600)
    @given(place=st.sampled_from(every), value=JSON)
    def swapped(place: tuple[object, ...], value: object) -> None:
        manifest = json.loads(text)
        holder = manifest
        for key in place[:-1]:
            holder = holder[key]
        holder[place[-1]] = value
        (copy / "manifest.json").write_text(json.dumps(manifest))
        open_somehow(copy)

    swapped()
