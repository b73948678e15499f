"""`rig sessions`: lists, filters, baselines and trends of folders of sessions, and what is kept of an analysis."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from shelf_cases import put, result

from rig.cli.main import main
from rig.cli.results import code_state
from rig.shelf import cache as cache_module
from rig.shelf.cache import ResultCache

SMALL = ["--device", "sim:quiet", "--runs", "1", "--stimuli", "4", "--quiet"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own folder, its own results, and a zone that is not UTC."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RIG_CACHE", str(tmp_path / "results"))
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    """Two builds on one device, one more on another, one refused, one that still records, one that is broken."""
    folder = tmp_path / "sessions"
    put(folder, "first", result(0.150), build="1.0", started="2026-01-05T09:15:00+00:00")
    put(folder, "second", result(0.160, outcome="over_limit"), build="1.1", started="2026-01-06T09:15:00+00:00")
    put(folder, "third", result(0.161), build="1.1", started="2026-01-07T23:30:00+00:00", note="café network")
    other = result(0.120, device="Other Card")
    put(folder, "other", other, build="1.1", device="Other Card", started="2026-01-08T09:15:00+00:00")
    put(folder, "silent", result(None), build="1.2", started="2026-01-09T09:15:00+00:00")
    put(folder, "growing", None, status="recording", started="2026-01-10T09:15:00+00:00")
    put(folder, "broken", None, started="2026-01-11T09:15:00+00:00")
    (folder / "torn").mkdir()
    (folder / "torn" / "manifest.json").write_text('{"schema": "rig.session/1"')
    (folder / "no session").mkdir()
    (folder / "somebody's page").mkdir()
    (folder / "somebody's page" / "manifest.json").write_text('{"name": "a web page"}')
    os.utime(folder / "torn" / "manifest.json", (0, 0))
    return folder


def rig(capsys: Capture, *arguments: str | Path) -> tuple[int, str, str]:
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return code, out, err


def listed(capsys: Capture, *arguments: str | Path) -> list[dict[str, Any]]:
    code, out, _ = rig(capsys, "sessions", *arguments, "--json", "--quiet")
    assert code == 0
    document = json.loads(out, parse_constant=pytest.fail)
    assert document["schema"] == "rig.sessions/1"
    entries: list[dict[str, Any]] = document["sessions"]
    return entries


def names(entries: list[dict[str, Any]]) -> list[str]:
    return [entry["folder"] for entry in entries]


# --- the list -------------------------------------------------------------------------------------------------------


def test_the_newest_comes_first_and_each_says_how_it_ended(shelf: Path, capsys: Capture) -> None:
    entries = listed(capsys)
    assert [(entry["folder"], entry["outcome"]) for entry in entries] == [
        ("broken", "unreadable"),
        ("growing", "not finished"),
        ("silent", "refused"),
        ("other", "measured"),
        ("third", "measured"),
        ("second", "over_limit"),
        ("first", "measured"),
        ("torn", "unreadable"),
    ]
    first = entries[6]
    assert (first["median_s"], first["n"], first["trials"], first["build"]) == (0.15, 5, 5, "1.0")
    assert first["low_s"] < 0.15 < first["high_s"]
    assert (entries[2]["median_s"], entries[2]["n"], entries[2]["trials"]) == (None, None, 6)
    assert "missing" in entries[0]["problem"]
    assert "not valid JSON" in entries[7]["problem"]
    assert [entry["dated"] for entry in entries] == [True] * 7 + [False]


def test_the_list_fits_80_columns_and_shows_local_time(shelf: Path, capsys: Capture) -> None:
    put(shelf, "long " + "x" * 90, result(0.1500123, 1e-7), device="Ünïcode Card " * 8, build="b" * 40)
    code, out, _ = rig(capsys, "sessions", "--quiet")
    assert code == 0
    lines = out.splitlines()
    assert max(len(line) for line in lines) == 80
    at = lines.index(next(line for line in lines if "2026-01-08 00:30" in line))  # 23:30 UTC the day before
    assert " 161.00 " in lines[at]
    assert "5 of 5" in lines[at]
    assert lines[at + 1] == "    third, USB Audio, build 1.1, call, chirp"
    assert "rig analyze" in out.split("growing")[1]
    assert "~1970-01-01" in out
    assert "~ has no date of its own" in out


def test_nothing_from_a_manifest_moves_the_cursor(shelf: Path, capsys: Capture) -> None:
    put(shelf, "evil", result(0.1, device="\x1b[2J"), device="\x1b[2J", build="1\r\n2", started="2026-02-01T00:00:00Z")
    _, out, _ = rig(capsys, "sessions", "--search", "evil", "--quiet")
    assert "\x1b" not in out
    assert "?[2J, build 1??2" in out
    assert "\x1b" not in rig(capsys, "sessions", "trend", "--quiet")[1]


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        (["--device", "usb"], ["broken", "growing", "silent", "third", "second", "first"]),
        (["--build", "1.1"], ["other", "third", "second"]),
        (["--build", "1"], []),
        (["--since", "2026-01-08"], ["broken", "growing", "silent", "other", "third"]),  # 00:30 local time
        (["--since", "2026-01-08T00:31"], ["broken", "growing", "silent", "other"]),
        (["--since", "2026-01-07T23:31+00:00"], ["broken", "growing", "silent", "other"]),
        (["--search", "CAFÉ"], ["third"]),
        (["--search", "refused"], ["silent"]),
        (["--search", "over limit"], ["second"]),
        (["--search", "unreadable"], ["broken", "torn"]),
        (["--search", "debian", "--search", "other card"], ["other"]),
        (["--device", "usb", "--build", "1.1", "--since", "2026-01-07"], ["third"]),
    ],
)
def test_filters(shelf: Path, capsys: Capture, filters: list[str], wanted: list[str]) -> None:
    assert names(listed(capsys, *filters)) == wanted
    assert names(listed(capsys, shelf, *filters)) == wanted
    code, out, _ = rig(capsys, "sessions", *filters, "--quiet")
    assert code == 0
    some = "1 session" if len(wanted) == 1 else f"{len(wanted)} sessions"
    assert out.startswith(f"{some} in sessions, {8 - len(wanted)} more do not fit" if wanted else "none of the 8")


def test_an_empty_folder_and_one_session(shelf: Path, tmp_path: Path, capsys: Capture) -> None:
    assert names(listed(capsys, shelf / "third")) == ["third"]
    (tmp_path / "empty").mkdir()
    assert rig(capsys, "sessions", "empty") == (0, "no sessions in empty\n", "")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["absent"], "the folder absent cannot be read"),
        (["list", "absent"], "the folder absent cannot be read"),
        (["--since", "yesterday"], "--since yesterday: that is no date"),
        (["--no-such"], "no such option: --no-such"),
        (["baseline", "sessions"], "sessions is no session"),
        (["baseline", "sessions/silent"], "silent has no figure to compare with (refused)"),
        (["baseline", "sessions/growing"], "growing has no figure to compare with (not finished)"),
        (["baseline", "sessions/first", "--remove"], "first is no baseline"),
    ],
)
def test_what_cannot_be_done_is_said(shelf: Path, capsys: Capture, arguments: list[str], what: str) -> None:
    code, out, err = rig(capsys, "sessions", *arguments)
    assert (code, out) == (2, "")
    assert what in err
    assert len(err.splitlines()) == 3


# --- baselines ------------------------------------------------------------------------------------------------------


def test_a_baseline_is_marked_beside_the_sessions_and_compared_with_its_own_kind(shelf: Path, capsys: Capture) -> None:
    before = {path: path.read_bytes() for path in (shelf / "first").iterdir()}
    assert rig(capsys, "sessions", "baseline", shelf / "first") == (0, "", "")
    assert {path: path.read_bytes() for path in (shelf / "first").iterdir()} == before
    entries = {entry["folder"]: entry for entry in listed(capsys)}
    assert [name for name, entry in entries.items() if entry["baseline"]] == ["first"]
    assert entries["second"]["change_s"] == pytest.approx(0.010)
    assert entries["second"]["change_u95_s"] > entries["second"]["high_s"] - 0.160
    assert entries["first"]["change_s"] is None
    assert entries["other"]["change_s"] is None, "another device"
    assert entries["silent"]["change_s"] is None, "no figure"
    _, out, _ = rig(capsys, "sessions", "--build", "1.1", "--quiet")
    assert "+10.00 +/- " in out, "the baseline counts though it is not shown"
    assert out.count("against the baseline") == 2


def test_marking_another_replaces_that_of_the_same_kind_only(shelf: Path, capsys: Capture) -> None:
    for name in ("first", "other", "second"):
        assert rig(capsys, "sessions", "baseline", shelf / name)[0] == 0
    assert sorted(e["folder"] for e in listed(capsys) if e["baseline"]) == ["other", "second"]
    assert rig(capsys, "sessions", "baseline", shelf / "other", "--remove")[0] == 0
    assert [e["folder"] for e in listed(capsys) if e["baseline"]] == ["second"]
    _, out, _ = rig(capsys, "sessions", "--quiet")
    assert "* baseline of its kind" in out
    assert [line[0] for line in out.splitlines() if "160.00" in line] == ["*"]


@pytest.mark.parametrize("text", ["[]", "{}", '{"schema": "rig.baselines/1", "baselines": [{}]}', "{"])
def test_a_damaged_file_of_baselines_is_said(shelf: Path, capsys: Capture, text: str) -> None:
    (shelf / "baselines.json").write_text(text)
    code, out, err = rig(capsys, "sessions", "--quiet")
    assert (code, out) == (2, "")
    assert "baselines.json" in err


# --- the trend ------------------------------------------------------------------------------------------------------


def test_the_trend_goes_by_time_and_compares_builds(shelf: Path, capsys: Capture) -> None:
    rig(capsys, "sessions", "baseline", shelf / "first")
    code, out, _ = rig(capsys, "sessions", "trend", "--json", "--quiet")
    assert code == 0
    found = json.loads(out)
    assert found["schema"] == "rig.trend/1"
    assert [trend["device"] for trend in found["trends"]] == ["Other Card", "USB Audio"]
    usb = found["trends"][1]
    assert names(usb["sessions"]) == ["first", "second", "third"]
    first, second = usb["builds"]
    assert (first["build"], first["sessions"], first["change_s"]) == ("1.0", 1, None)
    assert (second["build"], second["sessions"]) == ("1.1", 2)
    assert second["change_s"] == pytest.approx(0.0105)
    assert second["low_s"] == usb["sessions"][1]["low_s"]
    assert second["high_s"] == usb["sessions"][2]["high_s"]
    assert second["change_u95_s"] == pytest.approx(
        (((second["high_s"] - second["low_s"]) / 2) ** 2 + ((first["high_s"] - first["low_s"]) / 2) ** 2) ** 0.5
    )


def test_the_plot_shows_each_session_where_it_lies(shelf: Path, capsys: Capture) -> None:
    rig(capsys, "sessions", "baseline", shelf / "first")
    code, out, _ = rig(capsys, "sessions", "trend", "--device", "usb", "--quiet")
    assert code == 0
    lines = out.splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert lines[0] == "USB Audio, call, chirp, hardware"
    plots = lines[2:5]
    assert [line[:18].split() for line in plots] == [
        ["*", "2026-01-05", "1.0"],
        ["2026-01-06", "1.1"],
        ["2026-01-08", "1.1"],
    ]
    medians = [line.rindex("o") for line in plots]
    assert medians[0] < medians[1] < medians[2]
    assert all(line[medians[0]] == ":" for line in plots[1:])
    assert "+10.5" in out
    assert "3 without a figure left out" in out


def test_a_trend_of_nothing_says_so(shelf: Path, capsys: Capture) -> None:
    expected = (0, "no session in sessions with a figure fits\n", "")
    assert rig(capsys, "sessions", "trend", "--build", "1.2", "--quiet") == expected


# --- what is kept ---------------------------------------------------------------------------------------------------


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "results").glob("*.jsonl"))


def test_a_measured_session_is_not_analysed_again_until_it_changes(tmp_path: Path, capsys: Capture) -> None:
    assert rig(capsys, "measure", *SMALL, "--out", tmp_path / "sessions" / "one")[0] == 0
    (entry,) = kept(tmp_path)
    (row,) = listed(capsys)
    assert kept(tmp_path) == [entry]
    # That the list reads what was kept is seen by changing it.
    head, whole, _ = entry.read_text().split("\n")
    changed = {**json.loads(head), "latency_s": {**json.loads(head)["latency_s"], "median": 0.999}}
    entry.write_text("\n".join([json.dumps(changed), whole, ""]))
    assert listed(capsys)[0]["median_s"] == 0.999
    (tmp_path / "sessions" / "one" / "marks.jsonl").write_text("")
    assert listed(capsys) == [row]
    assert len(kept(tmp_path)) == 2


def test_analyze_keeps_what_the_session_itself_asks_for_and_nothing_else(tmp_path: Path, capsys: Capture) -> None:
    rig(capsys, "measure", *SMALL, "--out", tmp_path / "one")
    (entry,) = kept(tmp_path)
    entry.unlink()
    assert rig(capsys, "analyze", tmp_path / "one", "--max-latency", "1s", "--quiet")[0] == 0
    assert kept(tmp_path) == []
    code, out, _ = rig(capsys, "analyze", tmp_path / "one", "--json", "--quiet")
    assert code == 0
    assert kept(tmp_path) == [entry]
    assert json.loads(entry.read_text().splitlines()[1]) == json.loads(out)


def test_export_uses_what_was_kept(tmp_path: Path, capsys: Capture) -> None:
    rig(capsys, "measure", *SMALL, "--out", tmp_path / "one")
    rig(capsys, "export", tmp_path / "one", "--to", "csv", "--out", tmp_path / "a", "--quiet")
    for entry in kept(tmp_path):
        entry.write_text("torn")
    rig(capsys, "export", tmp_path / "one", "--to", "csv", "--out", tmp_path / "b", "--quiet")
    assert (tmp_path / "a" / "trials.csv").read_bytes() == (tmp_path / "b" / "trials.csv").read_bytes()


def test_nothing_is_kept_where_it_is_switched_off(
    shelf: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RIG_CACHE", "off")
    before = kept(tmp_path)
    rig(capsys, "measure", *SMALL, "--out", shelf / "one")
    assert [entry["outcome"] for entry in listed(capsys, shelf / "one")] == ["measured"]
    assert kept(tmp_path) == before


def test_a_cache_that_cannot_be_written_or_read_fails_nothing(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("RIG_CACHE", str(tmp_path / "file" / "below"))
    assert rig(capsys, "measure", *SMALL, "--out", tmp_path / "one")[0] == 0
    assert [entry["outcome"] for entry in listed(capsys, tmp_path / "one")] == ["measured"]


def test_another_version_of_the_code_finds_nothing(shelf: Path, tmp_path: Path) -> None:
    key = ResultCache(tmp_path / "results", code_state()).key(shelf / "first")
    assert key is not None
    other = ResultCache(tmp_path / "results", "other code").key(shelf / "first")
    assert other is not None
    assert ResultCache(tmp_path / "results", "").summary(key) is not None
    assert ResultCache(tmp_path / "results", "").summary(other) is None


def test_the_oldest_results_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = result(0.15)
    cache = ResultCache(tmp_path / "results", "")
    cache.store("k0", document)
    (entry,) = kept(tmp_path)
    monkeypatch.setattr(cache_module, "MOST_BYTES", 8 * entry.stat().st_size)
    for number in range(1, 8):
        cache.store(f"k{number}", document)
    for number in range(8):
        os.utime(tmp_path / "results" / f"k{number}.jsonl", (1000.0 + number, 1000.0 + number))
    assert cache.summary("k0") is not None  # used just now
    cache.store("k8", document)
    assert [entry.stem for entry in kept(tmp_path)] == ["k0", "k4", "k5", "k6", "k7", "k8"]
