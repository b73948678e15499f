"""`rig marks`: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rig.cli.main import main

HEADER = '{"marks":1,"session_id":"s","clock":"performance.now","unit":"ms"}\n'


def write(path: Path, rows: list[dict[str, object]]) -> str:
    path.write_text(HEADER + "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def test_stages_and_what_is_not_separated(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, object]] = [
        {"seq": k, "t_capture": 1000.0 + 20 * k, "t_send_done": 1003.5 + 20 * k, "t_first_packet": 1030.5 + 20 * k + k}
        for k in range(5)
    ]
    rows.append({"seq": 9, "t_capture": 2000.0, "t_send_done": 1990.0})
    rows.append({"claim": "output_latency", "value": -300, "source": "x"})
    code = main(["marks", write(tmp_path / "m.jsonl", rows)])
    out = capsys.readouterr().out
    assert code == 0
    assert "5 of 6 rows can be used" in out
    (line,) = [line for line in out.splitlines() if "encode + send" in line]
    assert line.split() == ["encode", "+", "send", "5", "3.500", "0.000", "not", "separated"]
    (line,) = [line for line in out.splitlines() if "network + server" in line]
    assert line.split()[3:] == ["5", "29.000", "4.000"]
    assert "-10.000 ms after t_capture" in out
    assert "cannot be a latency" in out
    assert max(map(len, out.splitlines())) <= 80


def test_nothing_usable_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["marks", write(tmp_path / "m.jsonl", [{"seq": 1, "t_capture": 20.0, "t_send_done": 10.0}])])
    assert code == 7
    assert "no row of m.jsonl can be used" in capsys.readouterr().err


def test_strict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.jsonl"
    write(path, [{"seq": 1, "t_capture": 20.0, "t_send_done": 30.0}])
    with open(path, "a", encoding="utf-8") as handle:
        handle.write("{broken\n")
    assert main(["marks", str(path)]) == 0
    assert "1 lines of m.jsonl cannot be read" in capsys.readouterr().out
    assert main(["marks", str(path), "--strict"]) == 2
