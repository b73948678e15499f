"""`rig import` of spans: our own come back as they went out, foreign ones are read by rule, and broken ones named."""

from __future__ import annotations

import contextlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stage_cases import document_with_stages

from rig.cli.main import main
from rig.domain.marks import INSTANTS, MarkRow
from rig.errors import BadInput
from rig.export.otlp import otlp_spans
from rig.imports.found import MARK_NAMES
from rig.imports.otlp import CLOCK, read_otlp
from rig.session.marks import read_marks

Capture = pytest.CaptureFixture[str]

T_NS = 1_780_000_000_000_000_000
"""Some day's Unix time."""


def attributes(facts: dict[str, Any]) -> list[dict[str, Any]]:
    kinds = {bool: "boolValue", int: "intValue", float: "doubleValue", str: "stringValue"}
    return [
        {"key": k, "value": {kinds[type(v)]: str(v) if isinstance(v, int) and not isinstance(v, bool) else v}}
        for k, v in facts.items()
    ]


def span(name: str, begun_ms: float, ended_ms: float, events: tuple[Any, ...] = (), **facts: Any) -> dict[str, Any]:
    """A span at these milliseconds of the day; events are (name, ms, facts)."""
    return {
        "name": name,
        "startTimeUnixNano": at(begun_ms),
        "endTimeUnixNano": at(ended_ms),
        "attributes": attributes({k.replace("__", "."): v for k, v in facts.items()}),
        "events": [{"name": n, "timeUnixNano": at(ms), "attributes": attributes(more)} for n, ms, more in events],
    }


def at(ms: float) -> str:
    return str(T_NS + round(1e6 * ms))


def request(*spans: dict[str, Any], service: str = "agent") -> dict[str, Any]:
    resource = {"attributes": attributes({"service.name": service})}
    return {"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": list(spans)}]}]}


def rows_of(tmp_path: Path, *requests: dict[str, Any], parts: int = 1) -> list[MarkRow]:
    """The rows that rig marks reads from what rig import writes."""
    path, out = tmp_path / "spans.json", tmp_path / "m.jsonl"
    out.unlink(missing_ok=True)
    path.write_text("".join(json.dumps(r) + "\n" for r in requests), encoding="utf-8")
    assert main(["import", str(path), "--out", str(out)]) == 0
    found = read_marks(out, strict=True)
    assert len(found.parts) == parts
    assert {part.clock for part in found.parts} == {CLOCK}
    assert any("the calendar's" in note for note in found.notes)
    return [row for part in found.parts for row in part.rows]


def lengths_ms(row: MarkRow) -> list[float | None]:
    """Of the four stages of a row."""
    t = row.instants_s
    return [None if a is None or b is None else round(1e3 * (b - a), 5) for a, b in pairwise(t)]


def test_names_of_marks_are_one_contract() -> None:
    assert MARK_NAMES == INSTANTS


def test_our_own_spans_come_back_as_they_went_out(tmp_path: Path) -> None:
    stages = {
        "capture": (0.012, 2e-5),
        "frame_fill": (0.02, 0.0),
        "encode + send": (0.002, 1e-4),
        "network": (0.018, 5e-4),
        "play": (0.07, 5e-4),
        "output": (0.03, 2e-5),
    }
    document = document_with_stages(np.random.default_rng(3), stages)
    rows = rows_of(tmp_path, json.loads(otlp_spans(document)), parts=3)
    frames = [frame for run in document["reconciliation"]["carriers"] for frame in run["frames"]]
    assert [row.seq for row in rows] == [frame["seq"] for frame in frames]
    for row, frame in zip(rows, frames, strict=True):
        t = row.instants_s
        assert t[0] is not None
        assert t[1] is None, "encode and send were not told apart, and are not now"
        assert t[2] is not None
        assert t[2] - t[0] == pytest.approx(frame["stages_s"][2], abs=2e-9)
        assert lengths_ms(row)[2:] == pytest.approx([1e3 * v for v in frame["stages_s"][3:5]], abs=2e-5)
        assert row.frame_s == pytest.approx(0.02)
        assert row.problem is None


def test_reconcile_says_of_them_what_the_report_said(tmp_path: Path, capsys: Capture) -> None:
    session, spans, marks = tmp_path / "s", tmp_path / "x", tmp_path / "m.jsonl"
    options = ["--runs", "1", "--stimuli", "4", "--no-blank", "--quiet", "--json"]
    assert main(["measure", "--device", "sim:marks", "--out", str(session), *options]) == 0
    before = {row["stage"]: row for row in json.loads(capsys.readouterr().out)["stages"]}
    assert main(["export", str(session), "--to", "otlp", "--out", str(spans), "--quiet"]) == 0
    assert main(["import", str(spans / "spans.otlp.json"), "--out", str(marks)]) == 0
    capsys.readouterr()
    assert main(["reconcile", str(session), "--marks", str(marks), "--json", "--quiet"]) == 0
    document = json.loads(capsys.readouterr().out)
    after = {row["stage"]: row for row in document["stages"]}
    for name in ("frame_fill", "encode", "send", "network", "play"):
        assert after[name]["median_s"] == pytest.approx(before[name]["median_s"], abs=2e-9), name
    hidden_s = before["capture"]["median_s"] + before["output"]["median_s"]
    assert after["capture + output"]["median_s"] == pytest.approx(hidden_s, abs=1e-3)
    assert "clock exchanges" in document["reconciliation"]["not_split_because"]
    assert any("the calendar's" in caveat for caveat in document["caveats"])


def test_stages_by_their_names_and_the_end_counts(tmp_path: Path, capsys: Capture) -> None:
    found = request(
        span("encode", 100.0, 102.0, seq=7),
        span("send", 103.0, 104.0, seq=7),
        span("a turn", 104.0, 170.0, seq=7, rig__stage="network"),
        span("play", 171.0, 190.0, seq=7),
        span("play", 171.0, 191.0, seq=7),
        span("HTTP GET", 171.0, 191.0, seq=7),
        span("play", 171.0, 191.0),
    )
    (row,) = rows_of(tmp_path, found)
    assert (row.seq, lengths_ms(row)) == (7, [2.0, 2.0, 66.0, 20.0])
    out = capsys.readouterr().out
    assert "5 of 7 spans are stages of a frame" in out
    assert "in 1 frames one stage ends and the next begins apart" in out
    assert "not there: rig.peak" in out


def test_moments_are_events_of_a_span_and_come_first(tmp_path: Path) -> None:
    turn = span(
        "turn",
        0.0,
        500.0,
        (("t_capture", 100.0, {}), ("t_first_play", 180.0, {"rig.peak": 0.5, "rig.peak_at": 12}), ("other", 1.0, {})),
        seq=3,
    )
    other = span("turn", 0.0, 500.0, (("t_first_play", 480.0, {"seq": "4"}), ("t_first_play", 1.0, {})))
    rows = rows_of(tmp_path, request(turn, other, span("play", 150.0, 185.0, seq=3)))
    assert [row.seq for row in rows] == [3, 4]
    t = rows[0].instants_s
    assert t[0] is not None
    assert t[4] is not None
    assert t[4] - t[0] == pytest.approx(0.08)
    assert (rows[0].peak, rows[0].peak_at) == (0.5, 12)


def test_what_runs_elsewhere_is_not_mixed_and_requests_may_come_a_line(tmp_path: Path) -> None:
    here = request(span("encode", 0.0, 2.0, seq=1))
    there = request(span("play", 90.0, 99.0, seq=1), service="server")
    rows = rows_of(tmp_path, here, there, parts=2)
    assert [lengths_ms(row) for row in rows] == [[2.0, None, None, None], [None, None, None, 9.0]]


def test_spans_without_frames_are_refused(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(request(span("play", 0.0, 1.0))))
    assert main(["import", str(path), "--out", str(tmp_path / "m")]) == 7
    assert "0 of 1 spans" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("broken", "place"),
    [
        ({"resourceSpans": {}}, "the request resourceSpans is an object"),
        ({"resourceSpans": [7]}, "resourceSpans 0 resource is a number"),
        ({"resourceSpans": [{"scopeSpans": [{"spans": ["x"]}]}]}, "resourceSpans 0 scopeSpans 0 spans 0 is text"),
        (request({"startTimeUnixNano": "yesterday"}), "spans 0 startTimeUnixNano is text"),
        (request({"startTimeUnixNano": -1}), "spans 0 startTimeUnixNano is a number"),
        (request({"attributes": [{"key": 1}]}), "spans 0 attributes 0 is an object"),
        (request({"events": [None]}), "spans 0 events 0 is null"),
    ],
)
def test_broken_ones_are_refused_with_their_place(broken: dict[str, Any], place: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_otlp([broken], "spans.json")
    assert caught.value.what.startswith("spans.json: ")
    assert place in caught.value.what


ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**63) | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["value", "key", "name"]), inner),
    max_leaves=6,
)


@given(
    field=st.sampled_from(
        ["name", "startTimeUnixNano", "endTimeUnixNano", "attributes", "events", "resource", "spans"]
    ),
    value=ANY,
)
def test_whatever_stands_there_is_read_or_refused(field: str, value: Any) -> None:
    found = request(span("play", 0.0, 1.0, (("t_capture", 0.5, {}),), seq=1))
    (resource,) = found["resourceSpans"]
    owner = {"resource": resource, "spans": resource["scopeSpans"][0]}.get(field, resource["scopeSpans"][0]["spans"][0])
    owner[field] = value
    with contextlib.suppress(BadInput):
        assert all(line["seq"] >= 0 for part in read_otlp([found], "x").parts for line in part.lines[1:])
