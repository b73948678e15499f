"""`rig measure --marks`: what the system writes during a run reaches the session, and nothing else does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from scripted_bench import ScriptedBench, ScriptedSystem, a_plan

from rig.acquire.marksfile import MarksFile
from rig.bench import run_plan
from rig.errors import UsageError
from rig.session import Session, open_session
from rig.session.marks import read_marks

HEADER = b'{"marks":1,"session_id":"%s","clock":"c","unit":"ms"}\n'
ROW = b'{"seq":%d,"t_capture":%d.5}\n'


class MarkingSystem(ScriptedSystem):
    """Writes marks when it is stopped, as a program does that flushes at its end."""

    def __init__(self, path: Path, anew: bool = False, can_stop: bool = True) -> None:
        super().__init__(can_stop)
        self._path, self._anew, self._run = path, anew, 0

    def start(self, run: int) -> None:
        super().start(run)
        self._run = run

    def stop(self) -> None:
        super().stop()
        if self._run:
            with open(self._path, "wb" if self._anew else "ab") as handle:
                handle.write(HEADER % str(self._run).encode() + b"".join(ROW % (k, k + 1) for k in range(self._run)))
            self._run = 0


def measured(folder: Path, source: MarksFile, system: ScriptedSystem) -> Session:
    bench = ScriptedBench(folder)
    run_plan(a_plan(), bench.audio, bench.link, system, bench.time, bench.writer, bench.progress, source)
    return open_session(folder)


@pytest.mark.parametrize("anew", [False, True])
def test_each_run_brings_its_own_lines(tmp_path: Path, anew: bool) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(HEADER % b"old" + ROW % (9, 9))
    session = measured(tmp_path / "s", MarksFile(path), MarkingSystem(path, anew))
    assert session.marks_path is not None
    kept = read_marks(session.marks_path)
    # Written anew with fewer bytes than before is seen as such; the old file's rows stay out either way.
    assert [(p.session_id, len(p.rows)) for p in kept.parts] == [("1", 1), ("2", 2)]
    assert {run: (m.first, m.count) for run, m in session.mark_lines.items()} == {1: (1, 2), 2: (3, 3)}
    events = [json.loads(line) for line in (tmp_path / "s" / "events.jsonl").read_text().splitlines()]
    told = [set(event) for event in events if event["event"] == "marks"]
    assert told == 2 * [{"t_s", "run", "event", "of_run", "first_line", "n_lines"}]
    assert session.verify() == []
    assert "marks.jsonl" in session.checked.files
    session.close()


def test_a_header_from_before_speaks_for_a_system_that_runs_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_bytes(HEADER % b"long ago" + ROW % (1, 1))
    source = MarksFile(path)
    with open(path, "ab") as handle:
        handle.write(ROW % (2, 2) + b'{"seq":3,"t_cap')
    assert source.collect(whole=False) == HEADER % b"long ago" + ROW % (2, 2), "a line that is being written waits"
    with open(path, "ab") as handle:
        handle.write(b'ture":3.5}\n')
    assert source.collect(whole=False) == ROW % (3, 3)


def test_marks_that_never_come_cost_nothing(tmp_path: Path) -> None:
    session = measured(tmp_path / "s", MarksFile(tmp_path / "absent"), ScriptedSystem())
    assert session.status == "complete"
    assert session.marks_path is None
    assert len(session.runs) == 2
    assert session.mark_lines[1].count == 0
    session.close()


def test_a_source_that_fails_is_told_and_the_recording_stands(tmp_path: Path) -> None:
    class Broken(MarksFile):
        def collect(self, whole: bool) -> bytes:
            raise OSError(5, "Input/output error")

    session = measured(tmp_path / "s", Broken(tmp_path / "m"), ScriptedSystem())
    assert session.status == "complete"
    assert any("marks of run 2 were not kept: Input/output error" in caveat for caveat in session.caveats)
    session.close()


def test_a_folder_is_no_file_of_marks(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        MarksFile(tmp_path)
