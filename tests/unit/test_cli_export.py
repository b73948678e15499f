"""`rig export`: where the files go, from what, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from rig.cli.main import main

GOLDEN = Path(__file__).parents[1] / "golden" / "chromium-direct-click.flac"
SMALL = ["--device", "sim:quiet", "--runs", "2", "--stimuli", "4", "--quiet"]

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export") / "a.session"
    assert main(["measure", *SMALL, "--build", "1.4.2", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def export(capsys: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main(["export", "--quiet", *[str(a) for a in arguments]])
    out, err = capsys.readouterr()
    return code, out, err


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_session_is_exported_and_not_touched(session: Path, capsys: Capture) -> None:
    before = content(session)
    code, out, err = export(capsys, session, "--to", "csv", "--to", "perfetto", "--to", "otlp", "--to", "csv")
    assert (code, err) == (0, "")
    names = ["trials.csv", "trace.perfetto.json", "spans.otlp.json"]
    assert out.splitlines() == [f"exports/a.session/{name}" for name in names]
    with open("exports/a.session/trials.csv", newline="", encoding="utf-8") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["valid"] for row in rows] == ["true"] * 8
    assert {row["build"] for row in rows} == {"1.4.2"}
    assert content(session) == before


def test_runs_follow_each_other_in_time(session: Path, capsys: Capture) -> None:
    export(capsys, session, "--to", "perfetto", "--out", "x")
    events = json.loads(Path("x/trace.perfetto.json").read_text())["traceEvents"]
    heard = [(e["pid"], e["ts"]) for e in events if e["ph"] == "X"]
    assert len(heard) == 8
    assert heard == sorted(heard)
    truth = json.loads((session / "truth.json").read_text())
    between_s = [run["stimuli"][0]["start_s"] for run in truth["runs"]]
    first_us = [next(ts for pid, ts in heard if pid == run) for run in (1, 2)]
    assert (first_us[1] - first_us[0]) * 1e-6 == pytest.approx(between_s[1] - between_s[0], abs=0.02)


def test_the_document_gives_what_the_session_gives(session: Path, capsys: Capture) -> None:
    main(["analyze", str(session), "--json", "--quiet"])
    Path("report.json").write_text(capsys.readouterr().out)
    formats = ["--to", "csv", "--to", "perfetto", "--to", "otlp"]
    assert export(capsys, session, *formats, "--out", "one")[0] == 0
    assert export(capsys, "report.json", *formats, "--out", "two")[0] == 0
    assert content(Path("one")) == content(Path("two"))


def test_several_sources_get_a_folder_each(session: Path, capsys: Capture) -> None:
    code, out, _ = export(capsys, session / "manifest.json", GOLDEN, "--to", "csv", "--out", "all")
    assert code == 0
    assert out.split() == ["all/a.session/trials.csv", "all/chromium-direct-click/trials.csv"]


def test_parquet_names_its_library_where_it_is_missing(
    session: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "duckdb", None)
    code, out, err = export(capsys, session, "--to", "parquet")
    assert (code, out) == (4, "")
    assert "needs the library duckdb" in err
    assert "--to csv" in err
    assert not list(Path().rglob("*.parquet"))


def test_parquet_is_written(session: Path, capsys: Capture) -> None:
    pytest.importorskip("duckdb")
    code, out, _ = export(capsys, session, "--to", "parquet")
    assert (code, out) == (0, "exports/a.session/trials.parquet\n")
    assert Path("exports/a.session/trials.parquet").read_bytes()[:4] == b"PAR1"


def test_nothing_is_written_into_a_session(session: Path, capsys: Capture) -> None:
    for inside in (session, session / "deeper"):
        code, out, err = export(capsys, session, "--to", "csv", "--out", inside)
        assert (code, out) == (2, "")
        assert "is inside the session" in err
    assert not (session / "deeper").exists()


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["SESSION", "--to", "xlsx"], "--to xlsx"),
        (["SESSION"], "missing option '--to'"),
        (["absent", "--to", "csv"], "absent does not exist"),
        (["other.json", "--to", "csv"], "its schema is 'rig.session/1'"),
        (["half.json", "--to", "csv"], "half.json is not a whole document"),
        (["null.json", "--to", "otlp"], "null.json is not a whole document"),
        (["list.json", "--to", "csv"], "holds no JSON object"),
        (["SESSION", "SESSION", "--to", "csv"], "two of the sources are called a.session"),
        (["SESSION", "--to", "csv", "--out", "half.json/x"], "half.json/x cannot be made"),
    ],
)
def test_what_cannot_be_exported_is_said(session: Path, capsys: Capture, arguments: list[str], what: str) -> None:
    Path("other.json").write_text('{"schema": "rig.session/1"}')
    Path("half.json").write_text('{"schema": "rig.measurement/1", "runs": []}')
    main(["analyze", str(session), "--json", "--quiet"])
    whole = json.loads(capsys.readouterr().out)
    Path("null.json").write_text(json.dumps({**whole, "runs": [None]}))
    Path("list.json").write_text("[]")
    code, out, err = export(capsys, *[str(session) if a == "SESSION" else a for a in arguments])
    assert (code, out) == (2, "")
    assert what in err
    assert len(err.splitlines()) == 3
