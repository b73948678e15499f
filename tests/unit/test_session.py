"""The session on disk: what is written comes back, what was changed is found, nothing leads out of the folder."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.domain.records import (
    ArmedStimulus,
    BenchKind,
    BlankFloor,
    ChannelRoles,
    ClockExchange,
    Gap,
    StimulusFired,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
)
from rig.errors import AcquisitionLost, BadInput, UsageError
from rig.session import SessionWriter, open_session
from rig.sim.clock import VirtualTime

RATE_HZ = 48_000
ASKED = StreamSpec("desk", RATE_HZ, 2, 480, None)
GRANT = StreamGrant("desk 2", "ALSA", RATE_HZ, 2, 512, 0.0107, None)
PLAN = StimulusPlan("chirp", 3, (1.0, 1.25), 0.5, "mcu")
MANIFEST = {"bench": BenchKind.SIMULATED, "mode": "call", "seed": 11, "roles": ChannelRoles(1, 0)}


def frames(rng: np.random.Generator, count: int = RATE_HZ) -> np.ndarray:
    return (rng.integers(-(2**23), 2**23, (count, 2)) / 2**23).astype(np.float32)


def quieter(rng: np.random.Generator, count: int = RATE_HZ) -> np.ndarray:
    """Frames that stay off full scale, so that they come back as they are."""
    return (rng.integers(-(2**22), 2**22, (count, 2)) / 2**23).astype(np.float32)


def write(folder: Path, rng: np.random.Generator, *, finish: bool = True, runs: int = 2) -> list[np.ndarray]:
    """A session of a blank run and `runs` runs; returns the frames of each."""
    writer = SessionWriter.create(folder, MANIFEST, VirtualTime())
    written = []
    for number in range(runs + 1):
        kind = "run" if number else "blank"
        run = writer.start_run(number, kind, grant=GRANT, plan=PLAN, asked=ASKED)
        written.append(frames(rng))
        run.write(written[-1][:20_000])
        run.event("fired", index=0, tick=2**40 + number, tick_rate_hz=2e6)
        run.event("gap", frame=20_000, lost_frames=None, flagged_by="backend")
        run.event("ping", host_sent_s=1.5, mcu_received_tick=7, mcu_sent_tick=9, host_received_s=1.502)
        run.write(written[-1][20_000:])
        run.armed(ArmedStimulus("chirp", 3, 0.498, (2_000_000, 2_500_000)))
        run.close(ok=True, elapsed_s=1.0001, xruns=1)
    if finish:
        writer.write_truth({"latency_s": 0.15})
        writer.finish()
    return written


def test_what_is_written_comes_back(tmp_path: Path, rng: np.random.Generator) -> None:
    written = write(tmp_path / "deep" / "er", rng)
    session = open_session(tmp_path / "deep" / "er")
    assert session.status == "complete"
    assert not session.cut_short
    assert session.caveats == ()
    assert session.verify() == []
    assert (session.bench, session.mode, session.seed) == (BenchKind.SIMULATED, "call", 11)
    assert session.roles == ChannelRoles(1, 0)
    assert session.truth == {"latency_s": 0.15}
    assert session.marks_path is None
    assert session.manifest["schema"] == "rig.session/1"
    assert len(session.identity) == 12
    assert session.blank is not None
    for run, samples in zip((session.blank, *session.runs), written, strict=True):
        assert run.asked == ASKED
        assert run.grant == GRANT
        assert run.plan == PLAN
        assert run.armed == ArmedStimulus("chirp", 3, 0.498, (2_000_000, 2_500_000))
        assert run.roles == ChannelRoles(1, 0)
        assert run.pings == (ClockExchange(1.5, 7, 9, 1.502),)
        assert run.xruns == 1
        assert run.ok
        limited = np.minimum(samples, np.float32(1 - 2.0**-23))
        np.testing.assert_array_equal(run.source.read(0, RATE_HZ + 1), limited)
        hints = run.hints(BlankFloor(None, None, 3), min_latency_s=0.02)
        assert hints.fired == (StimulusFired(0, 2**40 + run.number, 2e6),)
        assert hints.gaps == (Gap(20_000, None, "backend"),)
        assert hints.spacing_s == (1.0, 1.25), "as armed, by the board's nominal clock"
        assert hints.elapsed_s == 1.0001
        assert (hints.stimulus, hints.lead_in, hints.min_latency_s, hints.max_latency_s) == ("chirp", False, 0.02, None)
        assert hints.blank == BlankFloor(None, None, 3)
    assert [run.number for run in session.runs] == [1, 2]
    session.close()


def test_reading_leaves_the_folder_as_it_was(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    tmp_path.chmod(0o500)
    session = open_session(tmp_path / "manifest.json")
    session.verify()
    session.runs[0].source.read(0, 100)
    session.close()
    tmp_path.chmod(0o700)
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()} == before
    assert set(before) == {"manifest.json", "events.jsonl", "truth.json", "blank.wav", "run-001.wav", "run-002.wav"}


def test_a_changed_file_is_found(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    with open(tmp_path / "run-001.wav", "r+b") as handle:
        handle.seek(-1, os.SEEK_END)
        byte = handle.read(1)[0]
        handle.seek(-1, os.SEEK_END)
        handle.write(bytes([byte ^ 1]))
    (tmp_path / "events.jsonl").write_bytes((tmp_path / "events.jsonl").read_bytes() + b"\n")
    (tmp_path / "truth.json").unlink()
    problems = open_session(tmp_path).verify()
    assert [problem.split(" (")[0] for problem in problems] == [
        "events.jsonl was changed after it was recorded",
        "run-001.wav was changed after it was recorded",
        "truth.json is missing",
    ]


def test_a_file_without_a_hash_is_found(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    edit(tmp_path, lambda manifest: manifest["files"].pop("run-002.wav"))
    assert open_session(tmp_path).verify() == ["run-002.wav has no hash in the manifest"]


def test_the_audio_cut_after_recording_is_a_caveat(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    os.truncate(tmp_path / "run-001.wav", 80 + 6 * 30_000)
    session = open_session(tmp_path)
    assert session.caveats == ("run 1: run-001.wav holds 30000 frames where 48000 were recorded",)
    assert session.runs[0].source.truncated
    assert len(session.verify()) == 1
    session.close()


def test_a_session_never_finished_is_cut_short(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng, finish=False)
    session = open_session(tmp_path)
    assert session.cut_short
    assert session.status == "recording"
    assert session.verify() == []
    assert session.caveats == ("the session was cut short: its recorder was killed before it finished",)
    assert len(session.runs) == 2


def test_an_open_run_counts_up_to_its_last_block(tmp_path: Path, rng: np.random.Generator) -> None:
    writer = SessionWriter.create(tmp_path, MANIFEST, VirtualTime())
    run = writer.start_run(1, grant=GRANT, plan=PLAN)
    run.event("first_block", first_frame=0, overflow_known=True)
    run.event("overflow", frame=0)
    samples = quieter(rng)
    run.write(samples)
    with open(tmp_path / "events.jsonl", "ab") as events:
        events.write(b'{"t_s":1.0,"run":1,"event":"fi')
    session = open_session(tmp_path)
    assert session.caveats[1:] == ("run 1: its recording was cut after 1.00 s",), "a last line cut is normal"
    (read,) = session.runs
    assert read.cut_short
    assert not read.ok
    assert read.xruns == 1
    assert read.hints().elapsed_s is None
    np.testing.assert_array_equal(read.source.read(0, RATE_HZ + 1), samples)
    session.close()
    writer.finish("interrupted")
    ended = open_session(tmp_path)
    assert ended.status == "interrupted"
    assert ended.verify() == []
    assert (ended.runs[0].ok, ended.runs[0].cut_short, ended.runs[0].entry.n_frames) == (False, False, RATE_HZ)


def test_bad_lines_are_counted_and_the_first_is_named(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    lines = (tmp_path / "events.jsonl").read_bytes().splitlines(keepends=True)
    bad = [
        b'{"t_s":NaN,"run":1,"event":"fired","index":0,"tick":1,"tick_rate_hz":1.0}\n',
        b'{"run":1,"event":"fired","index":0,"tick":1e999,"tick_rate_hz":1.0}\n',
        b'{"run":1,"event":"fired","index":0.5,"tick":1,"tick_rate_hz":1.0}\n',
        b'{"run":1,"event":"fired","index":0,"tick":1}\n',
        b'{"run":1,"event":"gap","frame":0,"lost_frames":"many","flagged_by":"backend"}\n',
        b'{"run":1,"event":"fired","index":0,"tick":99999999999999999999,"tick_rate_hz":1.0}\n',
        b"[1,2]\n",
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"x":"' + b"y" * 3_000_000 + b'"}\n',
        b'{"run":1,"event":\n',
        b'{"run":1,"run":1,"event":"x"}\n',
    ]
    good = [b"\r\n", b"\n", b'{"run":1,"event":"fired","index":1,"tick":8,"tick_rate_hz":2000000}\r\n']
    # In front, so that what follows a bad line is shown to be read.
    (tmp_path / "events.jsonl").write_bytes(b"".join([*bad, *good, *lines]))
    session = open_session(tmp_path)
    assert session.caveats == (
        "events.jsonl: 12 lines cannot be read and are left out (first, line 1: NaN is not a number)",
    )
    fired = session.runs[0].hints().fired
    assert fired is not None
    assert [item.index for item in fired] == [0, 1]
    assert len(session.runs[1].hints().fired or ()) == 1


def test_a_session_without_events_says_so(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path, rng)
    (tmp_path / "events.jsonl").unlink()
    session = open_session(tmp_path)
    assert session.caveats == ("events.jsonl is missing: firings, clock exchanges and losses are not known",)
    assert session.runs[0].hints().fired is None
    assert session.runs[0].hints().spacing_s == PLAN.spacing_s


def edit(folder: Path, change: Any) -> None:
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def put(*keys: Any, value: Any) -> Any:
    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        manifest[keys[-1]] = value

    return change


def drop(*keys: Any) -> Any:
    def change(manifest: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        del manifest[keys[-1]]

    return change


MALFORMED = [
    (put("schema", value="rig.session/9"), "schema is 'rig.session/9'"),
    (drop("schema"), "schema is missing"),
    (put("status", value="fine"), "status is 'fine'"),
    (put("bench", value="imagined"), "bench is 'imagined'"),
    (put("seed", value=True), "seed is of type bool"),
    (put("seed", value=1.5), "seed is of type float"),
    (put("roles", value=[0, 1]), "roles is of type list"),
    (put("roles", "ref", value=-1), "roles.ref is -1"),
    (drop("roles", "ear"), "roles.ear is missing"),
    (put("runs", value={}), "runs is of type dict"),
    (put("runs", 1, value=None), "runs[1] is not an object"),
    (put("runs", 1, "number", value=2), "runs has a run number twice"),
    (put("runs", 1, "kind", value="walk"), "runs[1].kind is 'walk'"),
    (put("runs", 1, "grant", value=None), "runs[1].grant is of type NoneType"),
    (put("runs", 1, "grant", "rate_hz", value=0), "runs[1].grant.rate_hz is 0"),
    (put("runs", 1, "plan", "spacing_s", value=[1, "2"]), "runs[1].plan.spacing_s holds something else"),
    (put("runs", 1, "plan", "source", value="tape"), "runs[1].plan.source is 'tape'"),
    (put("runs", 1, "armed", "spacing_ticks", value=[-1]), "runs[1].armed.spacing_ticks holds something else"),
    (put("runs", 1, "elapsed_s", value="1"), "runs[1].elapsed_s is of type str"),
    (put("files", "run-001.wav", value="abc"), "files.run-001.wav is of type str"),
    (put("runs", 1, "audio", value="../run-001.wav"), "runs[1].audio names '../run-001.wav'"),
    (put("runs", 1, "audio", value="/etc/passwd"), "runs[1].audio names '/etc/passwd'"),
    (put("runs", 1, "audio", value=".."), "runs[1].audio names '..'"),
    (put("runs", 1, "audio", value=""), "runs[1].audio names ''"),
    (put("runs", 1, "audio", value="a\0b"), "runs[1].audio names"),
    (put("runs", 1, "audio", value="C:x"), "runs[1].audio names 'C:x'"),
    (put("files", "a\nb", value={}), "files.a?b.sha256 is missing"),
    (put("files", "../../secret", value={"sha256": "0"}), "files.../../secret names '../../secret'"),
]


@pytest.mark.parametrize(("change", "what"), MALFORMED, ids=[row[1] for row in MALFORMED])
def test_a_malformed_manifest_is_refused_by_its_key(
    tmp_path: Path, rng: np.random.Generator, change: Any, what: str
) -> None:
    write(tmp_path, rng)
    edit(tmp_path, change)
    with pytest.raises(BadInput) as caught:
        open_session(tmp_path)
    assert f"manifest.json: {what}" in caught.value.what
    assert caught.value.expected
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("raw", "what"),
    [
        (b"", "is not valid JSON: expecting value at line 1, column 1"),
        (b'{"schema":\n "rig', "is not valid JSON: unterminated string starting at at line 2, column 2"),
        (b'{"seed":NaN}', "is not valid JSON: NaN is not a number"),
        (b"\xff\xfe", "is not valid JSON: not UTF-8 at byte 0"),
        (b"[]", "holds no JSON object"),
        (b"[" * 200_000, "is not valid JSON: nested too deeply"),
        (b'{"seed":' + b"9" * 5000 + b"}", "is too large for an integer"),
        (b'{"a":1,"a":2}', "is not valid JSON: the key 'a' stands there twice"),
        (b" " * (16 << 20) + b"{}", "is larger than 16 MiB"),
    ],
)
def test_a_manifest_that_is_not_json_is_refused_by_its_place(tmp_path: Path, raw: bytes, what: str) -> None:
    (tmp_path / "manifest.json").write_bytes(raw)
    with pytest.raises(BadInput) as caught:
        open_session(tmp_path)
    assert what in caught.value.what


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path / "s", rng)
    outside = tmp_path / "outside.wav"
    (tmp_path / "s" / "run-001.wav").rename(outside)
    (tmp_path / "s" / "run-001.wav").symlink_to(outside)
    with pytest.raises(BadInput, match=r"runs\[1\]\.audio leads out of the session"):
        open_session(tmp_path / "s")


def test_a_manifest_with_windows_line_ends_and_a_byte_order_mark_opens(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    write(tmp_path, rng)
    path = tmp_path / "manifest.json"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert len(open_session(tmp_path).runs) == 2


def test_what_is_no_session_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for path, what in [(tmp_path / "absent", "does not exist"), (tmp_path / "file", "is not a folder")]:
        with pytest.raises(BadInput, match=what):
            open_session(path)
    with pytest.raises(BadInput, match=r"has no manifest\.json"):
        open_session(tmp_path)


def test_a_session_is_never_overwritten(tmp_path: Path, rng: np.random.Generator) -> None:
    write(tmp_path / "s", rng)
    with pytest.raises(UsageError, match="is not empty"):
        SessionWriter.create(tmp_path / "s", MANIFEST)
    with pytest.raises(UsageError, match="cannot be made"):
        SessionWriter.create(tmp_path / "s" / "run-001.wav" / "t", MANIFEST)


def test_a_full_disk_is_said_to_be_full(tmp_path: Path, rng: np.random.Generator) -> None:
    writer = SessionWriter.create(tmp_path, MANIFEST)
    run = writer.start_run(1, grant=GRANT, plan=PLAN)
    run.write(frames(rng, 100))
    full = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full, run._wav._file._open())
    os.close(full)
    with pytest.raises(AcquisitionLost, match=r"run-001\.wav cannot be written: No space left on device"):
        run.write(frames(rng, 100))


def test_samples_that_are_no_numbers_are_written_as_zero_and_told(tmp_path: Path, rng: np.random.Generator) -> None:
    writer = SessionWriter.create(tmp_path, MANIFEST)
    run = writer.start_run(1, grant=GRANT, plan=PLAN)
    samples = quieter(rng, 100)
    run.write(samples)
    spoiled = samples.copy()
    spoiled[3, 1], spoiled[4, 0], spoiled[5, 0] = np.nan, np.inf, -np.inf
    run.write(spoiled)
    run.close(ok=True)
    writer.finish()
    assert '"event":"non_finite","frame":100,"samples":3' in (tmp_path / "events.jsonl").read_text()
    (read,) = open_session(tmp_path).runs
    expected = np.where(np.isfinite(spoiled), spoiled, 0.0)
    np.testing.assert_array_equal(read.source.read(100, 100), expected)


def test_serial_frames_are_logged_whole(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, MANIFEST, VirtualTime())
    writer.serial_frame("rx", 1.25, b"\x00\xff")
    writer.serial_frame("tx", 1.5, ArmedStimulus("chirp", 1, float("nan"), ()))
    writer.finish()
    first, second = (json.loads(line) for line in (tmp_path / "events.jsonl").read_text().splitlines()[:2])
    assert first == {"t_s": 1.25, "run": None, "event": "frame", "direction": "rx", "raw": "00ff"}
    assert second["message"] == "ArmedStimulus"
    assert second["fields"] == {"kind": "chirp", "count": 1, "amplitude": None, "spacing_ticks": []}


def test_truth_is_for_simulated_benches_alone(tmp_path: Path) -> None:
    writer = SessionWriter.create(tmp_path, {**MANIFEST, "bench": "hardware"})
    with pytest.raises(ValueError, match="only a simulated session has a truth"):
        writer.write_truth({})


def test_the_same_plan_is_the_same_session_wherever_it_lies(tmp_path: Path, seed: int) -> None:
    for name in ("a", "b"):
        write(tmp_path / name, np.random.default_rng(seed))
    for name in sorted(path.name for path in (tmp_path / "a").iterdir()):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
