"""The libraries that write marks: what they write, the reader reads."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from rig import marks as writer
from rig.domain.marks import INSTANTS
from rig.marks import FIELDS, Marks, boot_id, onset
from rig.session.marks import read_marks

JS = Path(__file__).parents[2] / "js" / "rig-marks"


def test_the_fields_are_those_of_the_reader() -> None:
    assert FIELDS == INSTANTS


def test_python_marks_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    with Marks(path, session_id="s", frame_ms=20, rate_hz=48000, peak_at_u_ms=0.3) as marks:
        start = marks.now()
        for seq in range(50):
            marks.peak(seq, 0.25, 131)
            for k, name in enumerate(FIELDS):
                marks.mark(seq, name, start + 20_000_000 * seq + 1_000_000 * k)
        marks.interrupted(49)
        marks.claim("output_latency", 0.034, "PortAudio")
        marks.config(frame_ms=20)
        marks.event("cold_start", start)
    found = read_marks(path)
    (part,) = found.parts
    assert (part.session_id, part.clock, part.boot, part.rate_hz) == ("s", "CLOCK_MONOTONIC", boot_id(), 48000)
    assert part.peak_at_u_s == pytest.approx(0.0003)
    assert len(part.rows) == 50
    assert part.rows[7].instants_s[2] == pytest.approx(start * 1e-9 + 0.142, abs=1e-9)
    assert (part.rows[7].peak, part.rows[7].peak_at, part.rows[7].frame_s) == (0.25, 131, 0.02)
    assert part.rows[49].interrupted
    assert part.claims[0].value_s == 0.034
    assert part.config == {"frame_ms": 20}
    assert found.rejected_lines == 0


def test_marks_from_several_threads_are_all_there(tmp_path: Path) -> None:
    with Marks(tmp_path / "m.jsonl") as marks:
        threads = [
            threading.Thread(target=lambda k=k: [marks.mark(1000 * k + i, "t_capture") for i in range(500)])
            for k in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(read_marks(tmp_path / "m.jsonl").parts[0].rows) == 2000


def test_a_writer_that_is_not_heard_drops_the_oldest_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 10)
    monkeypatch.setattr(writer, "_FLUSH_S", 60.0)
    with Marks(tmp_path / "m.jsonl") as marks:
        for seq in range(25):
            marks.mark(seq, "t_capture")
    found = read_marks(tmp_path / "m.jsonl")
    assert [r.seq for r in found.parts[0].rows] == list(range(15, 25))
    assert any("dropped 15 marks" in note for note in found.notes)


def test_onset_is_where_half_of_the_peak_is_reached() -> None:
    assert onset([0.0, 0.1, -0.3, 0.5, 0.2]) == (0.5, 2)
    with pytest.raises(ValueError, match="samples"):
        onset([])


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_javascript_marks_are_read_back(tmp_path: Path) -> None:
    program = f"""
    import {{ Marks, onset }} from {json.dumps((JS / "rig-marks.js").as_uri())};
    const marks = new Marks({{ frameMs: 20, rateHz: 48000, peakAtUMs: 0.3, sessionId: "page" }});
    const stages = {json.dumps(list(FIELDS))};
    const found = onset([0, 0.1, -0.3, 0.5]);
    for (let seq = 0; seq < 50; seq += 1) {{
      marks.peak(seq, found.peak, found.peakAt);
      stages.forEach((stage, k) => marks.mark(seq, stage, 1000.125 + 20 * seq + k));
    }}
    marks.mark(99, "t_capture");
    marks.claimContext({{ baseLatency: 0.01, outputLatency: undefined }});
    marks.config({{ jitterBufferTarget: 200 }});
    marks.stats({{ jitterBufferDelay: 1.5, jitterBufferEmittedCount: 48000 }});
    marks.event("cold_start");
    process.stdout.write(marks.take());
    if (marks.take() !== "") throw new Error("taken twice");
    const small = new Marks({{ mostWaiting: 10 }});
    for (let k = 0; k < 25; k += 1) small.mark(k, "t_capture");
    process.stderr.write(small.take());
    """
    (tmp_path / "run.mjs").write_text(program, encoding="utf-8")
    done = subprocess.run(["node", tmp_path / "run.mjs"], capture_output=True, text=True, check=True, timeout=60)
    (tmp_path / "m.jsonl").write_text(done.stdout, encoding="utf-8")
    found = read_marks(tmp_path / "m.jsonl")
    (part,) = found.parts
    assert (part.session_id, part.clock, part.rate_hz) == ("page", "performance.now", 48000)
    assert part.rows[7].instants_s[2] == pytest.approx(1.142125)
    assert (part.rows[7].peak, part.rows[7].peak_at, part.rows[7].frame_s) == (0.5, 2, 0.02)
    assert [claim.name for claim in part.claims] == ["base_latency"]
    assert part.config == {"jitterBufferTarget": 200}
    assert part.stats[0].emitted == 48000
    assert found.rejected_lines == 0
    (tmp_path / "small.jsonl").write_text(done.stderr, encoding="utf-8")
    assert any("dropped 15 marks" in note for note in read_marks(tmp_path / "small.jsonl").notes)


def test_the_npm_folder_is_whole() -> None:
    package = json.loads((JS / "package.json").read_text(encoding="utf-8"))
    assert sorted(package["files"]) == sorted(p.name for p in JS.iterdir() if p.name != "package.json")
    types = (JS / "rig-marks.d.ts").read_text(encoding="utf-8")
    assert all(f'"{name}"' in types for name in FIELDS)
