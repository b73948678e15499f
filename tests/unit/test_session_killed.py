"""A recorder killed with SIGKILL: what it had recorded is there, and the session says that it was cut short."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scripted_bench import BLOCK, numbered

from rig.recording import open_recording
from rig.session import open_session

CHILD = """
import sys
sys.path.insert(0, sys.argv[2])
from scripted_bench import ScriptedBench, a_plan

class Slow(ScriptedBench):
    def progress(self, event, facts):
        if event in ("block", "stimulus", "run_done"):
            print(event, facts["run"], facts.get("n_frames", facts.get("index")), flush=True)
            sys.stdin.readline()  # one line lets one event pass

Slow(__import__("pathlib").Path(sys.argv[1])).run(a_plan(runs=3, blank=False))
"""


@pytest.mark.parametrize(
    ("stop_at", "ok"),
    [
        ("block 1 48000", []),  # settled, in the middle of the first run
        ("stimulus 1 1", []),
        ("block 2 480", [True]),  # the first block of the second run
        ("block 3 96000", [True, True]),
    ],
)
def test_a_killed_recording_is_there_up_to_the_kill(tmp_path: Path, stop_at: str, ok: list[bool]) -> None:
    folder = tmp_path / "s"
    command = [sys.executable, "-c", CHILD, str(folder), str(Path(__file__).parent)]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert child.stdin is not None
    assert child.stdout is not None
    n_frames = 0
    fired = 0
    for said in child.stdout:
        kind, _, value = said.split()
        if kind == "block":
            n_frames = int(value)
        fired = fired + 1 if kind == "stimulus" else 0 if kind == "run_done" else fired
        if said.strip() == stop_at:
            break
        child.stdin.write("\n")
        child.stdin.flush()
    else:
        pytest.fail(f"the recorder never came to {stop_at}")
    child.send_signal(signal.SIGKILL)
    child.stdout.close()
    child.stdin.close()
    assert child.wait(10) == -signal.SIGKILL

    session = open_session(folder)
    assert session.cut_short
    assert session.status == "recording"
    assert session.verify() == []
    assert any("cut short" in caveat for caveat in session.caveats)
    assert [run.ok for run in session.runs] == [*ok, False]
    last = session.runs[-1]
    assert last.cut_short
    assert last.source.n_frames == n_frames, "every block that was told of is there"
    np.testing.assert_array_equal(last.source.read(0, n_frames), numbered(1000, n_frames))
    hints = last.hints()
    assert len(hints.fired or ()) >= fired
    assert hints.elapsed_s is None
    assert not any("cannot be read" in caveat for caveat in session.caveats)
    assert soundfile.info(last.entry.audio).frames == n_frames, "other programs can read it too"
    session.close()
    # A kill in the middle of a write: part of a block, part of a line.
    audio = last.entry.audio
    audio.write_bytes(audio.read_bytes()[: -BLOCK * 3 - 1])
    events = folder / "events.jsonl"
    events.write_bytes(events.read_bytes()[:-7])
    again = open_session(folder)
    assert again.runs[-1].source.n_frames == n_frames - BLOCK // 2 - 1
    assert not any("cannot be read" in caveat for caveat in again.caveats)
    again.close()
    with open_recording(audio, min_duration_s=0.0) as alone:
        assert alone.n_frames == n_frames - BLOCK // 2 - 1
