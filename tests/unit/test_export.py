"""Exports: tables, trace and spans say what the report says, no more, and hold to their formats."""

from __future__ import annotations

import base64
import csv
import io
import json
import re
from dataclasses import fields, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from report_cases import FACTS, FILE_FACTS, jittering_runs, refused, run_of
from stage_cases import CALL, document_with_stages

from rig.domain.records import BenchKind, Reason, RunAnalysis, Trial
from rig.domain.report import MeasurementFacts
from rig.export.columns import MEASUREMENT, STAGE_TRIALS, STAGES, TRIALS, Table
from rig.export.otlp import UNDATED_NS, otlp_spans
from rig.export.parquet import write_parquet
from rig.export.perfetto import HIDDEN, LANES, SOFTWARE, perfetto_trace
from rig.export.tables import stage_rows, stage_trial_rows, tables_of, to_csv, trial_rows
from rig.report.render_json import render_json
from rig.report.summary import summarise

DOCS = Path(__file__).parents[2] / "docs"
DATED = replace(
    FACTS,
    bench=BenchKind.HARDWARE,
    device="USB, “Audio” 2",
    build="1.4.2",
    started="2026-03-29T01:59:58.250+00:00",
    run_starts_s=((1, 0.5), (2, 61.25)),
)


def document(runs: list[RunAnalysis], facts: MeasurementFacts) -> dict[str, Any]:
    """The document of a report, as `rig analyze --json` prints it."""
    parsed: dict[str, Any] = json.loads(render_json(summarise(runs, facts)))
    return parsed


def mixed() -> dict[str, Any]:
    """Two dated runs: accepted, refused, refused with an unconfirmed figure, and a run that is refused as a whole."""
    first = run_of([0.15, 0.151, Reason.NO_ARRIVAL, 0.149])
    first = replace(first, trials=(*first.trials, refused(4, Reason.AMBIGUOUS, unconfirmed_s=0.2)))
    second = run_of([0.16, Reason.LEAK, Reason.LEAK], run=2)
    return document([first, second], DATED)


def all_documents() -> dict[str, dict[str, Any]]:
    return {
        "clean": document(jittering_runs(3), FACTS),
        "mixed": mixed(),
        "file": document([run_of([0.15] * 5)], FILE_FACTS),
        "nothing": document([run_of([Reason.NO_ARRIVAL] * 4, levels=None, stimulus=None)], FILE_FACTS),
        "no runs": document([], FACTS),
        "slow": document([run_of([5.5, 5.4, 0.3, 5.6, 5.5, 5.6])], FACTS),
        "staged": staged(),
        "slow stages": staged({**CALL, "network": (5.0, 0.3), "output": (-0.002, 2e-5)}),
        "not apart": not_apart(),
    }


def staged(stages: dict[str, tuple[float, float]] = CALL) -> dict[str, Any]:
    """Three runs whose frames all wait 7 ms to be complete."""
    found: dict[str, Any] = document_with_stages(np.random.default_rng(5), stages, facts=DATED)
    return found


def not_apart() -> dict[str, Any]:
    """The same without a place in time for the frames, and one trial without a frame."""
    found = staged()
    told = found["reconciliation"]["carriers"]
    del told[0]["frames"][3]
    for frame in (frame for run in told for frame in run["frames"]):
        frame["filled_s"] = None
    return found


# --- tables ---------------------------------------------------------------------------------------------------------


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_a_row_for_every_trial_and_null_for_what_is_missing() -> None:
    rows = read_csv(to_csv(TRIALS, trial_rows(mixed())))
    assert [(r["run"], r["trial"]) for r in rows] == [("1", str(i)) for i in range(5)] + [
        ("2", str(i)) for i in range(3)
    ]
    assert [r["valid"] for r in rows[:5]] == ["true", "true", "false", "true", "false"]
    assert [r["latency_s"] for r in rows[:5]] == ["0.15", "0.151", "", "0.149", ""]
    assert (rows[4]["reason"], rows[4]["unconfirmed_s"]) == ("ambiguous", "0.2")
    assert {r["run_refusal"] for r in rows[:5]} == {""}
    assert {r["run_refusal"] for r in rows[5:]} == {"too_few"}
    assert {r["device"] for r in rows} == {"USB, “Audio” 2"}
    assert {r["build"] for r in rows} == {"1.4.2"}
    assert rows[1]["stimulus_s"] == "3.0"


def test_accepted_trials_of_runs_that_count_are_those_of_the_headline() -> None:
    found = mixed()
    rows = read_csv(to_csv(TRIALS, trial_rows(found)))
    counted = sorted(float(r["latency_s"]) for r in rows if r["valid"] == "true" and not r["run_refusal"])
    assert len(counted) == found["latency_s"]["n"]
    assert counted[len(counted) // 2] == found["latency_s"]["median"]


def test_every_field_of_a_trial_has_a_column() -> None:
    names = {column.name for column in TRIALS.columns}
    assert {field.name for field in fields(Trial)} - names == {"index"}, "index is the column trial"


def test_names_say_their_units() -> None:
    units = r"_(s|db|hz)$|^(run|trial|seq|n_values|reference_frame|polarity|z|coherence)$"
    for column in (*TRIALS.columns, *STAGES.columns, *STAGE_TRIALS.columns):
        assert (column.type in ("integer", "number")) == bool(re.search(units, column.name)), column.name


@pytest.mark.parametrize("name", all_documents())
def test_values_have_the_types_of_their_columns(name: str) -> None:
    types = {"text": str, "integer": int, "number": float | int, "flag": bool}
    for row in trial_rows(all_documents()[name]):
        for column, value in zip(TRIALS.columns, row, strict=True):
            assert value is not None or not column.always, column.name
            if value is not None:
                assert isinstance(value, types[column.type]), column.name
                assert isinstance(value, bool) == (column.type == "flag"), column.name


STAGED = [
    {"stage": "capture", "median_s": 0.031, "range_s": 0.004, "u95_s": 3e-4, "claimed_s": 0.01, "undeclared_s": 0.021},
    {"stage": "encode", "median_s": 0.002, "range_s": 0.001, "u95_s": None, "claimed_s": None, "undeclared_s": None},
]


def test_stages_have_a_row_each_and_no_table_where_there_are_none() -> None:
    found = mixed()
    assert [table.name for table, _ in tables_of(found)] == ["trials"]
    found["stages"] = [{**stage, "by": "rig", "more": [1, 2]} for stage in STAGED]
    assert [table.name for table, _ in tables_of(found)] == ["trials", "stages"]
    rows = read_csv(to_csv(STAGES, stage_rows(found)))
    assert [(r["stage"], r["by"], r["claimed_s"], r["undeclared_s"]) for r in rows] == [
        ("capture", "rig", "0.01", "0.021"),
        ("encode", "rig", "", ""),
    ]
    assert [r["session"] for r in rows] == ["0123456789ab"] * 2


def test_stages_of_each_trial_add_up_to_its_latency() -> None:
    found = staged()
    rows = read_csv(to_csv(STAGE_TRIALS, stage_trial_rows(found)))
    latency = {(r["run"], t["index"]): t["latency_s"] for r in found["runs"] for t in r["trials"]}
    for (run, trial), latency_s in latency.items():
        own = [r for r in rows if (r["run"], r["trial"]) == (str(run), str(trial))]
        assert [r["stage"] for r in own] == list(CALL)
        assert sum(float(r["value_s"]) for r in own) == pytest.approx(latency_s, abs=1e-9)
        assert {r["seq"] for r in own} == {str(10 * trial)}
        filled = own[0]["value_s"], own[2]["begun_s"]
        assert float(filled[1]) - float(filled[0]) == pytest.approx(0.007, abs=1e-9)
    bare = read_csv(to_csv(STAGE_TRIALS, stage_trial_rows(not_apart())))
    assert len(bare) == len(rows) - len(CALL)
    assert {r["begun_s"] for r in bare} == {""}


@pytest.mark.parametrize("table", [TRIALS, STAGES, STAGE_TRIALS], ids=lambda table: table.name)
def test_the_page_has_the_columns(table: Table) -> None:
    page = (DOCS / "exports.md").read_text(encoding="utf-8")
    common = "".join(f"| `{c.name}` | {c.type} | {c.meaning} |\n" for c in MEASUREMENT)
    own = "".join(f"| `{c.name}` | {c.type} | {c.meaning} |\n" for c in table.columns[len(MEASUREMENT) :])
    assert common in page, f"docs/exports.md lacks\n{common}"
    assert own in page, f"docs/exports.md lacks\n{own}"


def test_parquet_says_what_csv_says(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    found = mixed()
    found["runs"][0]["trials"][0]["note"] = 'a "quoted",\nbroken note'
    path = tmp_path / "it's.parquet"
    write_parquet(TRIALS, trial_rows(found), path)
    with duckdb.connect() as connection:
        answer = connection.execute(f"SELECT * FROM read_parquet('{str(path).replace(chr(39), chr(39) * 2)}')")
        names = [column[0] for column in answer.description]
        rows = answer.fetchall()
    assert names == [column.name for column in TRIALS.columns]
    assert [list(row) for row in rows] == trial_rows(found)


# --- the trace ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", all_documents())
def test_the_trace_holds_to_its_format(name: str) -> None:
    schema = json.loads((DOCS / "trace.schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    trace = json.loads(perfetto_trace(all_documents()[name]), parse_constant=pytest.fail)
    jsonschema.validate(trace, schema)
    events = trace["traceEvents"]
    named = [(e["pid"], e["tid"]) for e in events if e["name"] == "thread_name"]
    assert len(set(named)) == len(named)
    assert {(e["pid"], e["tid"]) for e in events if e["ph"] in "Xi"} == set(named)


@pytest.mark.parametrize("name", all_documents())
def test_slices_of_a_track_do_not_overlap(name: str) -> None:
    # Overlapping slices on one track are what the Perfetto UI complains about.
    events = json.loads(perfetto_trace(all_documents()[name]))["traceEvents"]
    until: dict[tuple[int, int], float] = {}
    for event in (e for e in events if e["ph"] == "X"):
        track = event["pid"], event["tid"]
        assert event["ts"] >= until.get(track, float("-inf"))
        until[track] = event["ts"] + event["dur"]


def test_slow_latencies_get_lanes() -> None:
    events = json.loads(perfetto_trace(all_documents()["slow"]))["traceEvents"]
    assert {e["tid"] for e in events if e["ph"] == "X"} == {2, LANES + 2, 2 * LANES + 2}


def test_the_trace_shows_each_trial_where_it_was_heard() -> None:
    events = json.loads(perfetto_trace(mixed()))["traceEvents"]
    slices = [(e["pid"], e["ts"], e["dur"]) for e in events if e["ph"] == "X"]
    assert slices[:2] == [(1, 1.5e6, 150e3), (1, 3.5e6, 151e3)]
    assert slices[3] == (2, 62.25e6, 160e3)
    refusals = [(e["pid"], e["name"], e["args"]["trial"]) for e in events if e["ph"] == "i" and "reason" in e["args"]]
    assert refusals == [(1, "no_arrival", 2), (1, "ambiguous", 4), (2, "leak", 1), (2, "leak", 2)]
    assert sum(e["name"] == "stimulus" for e in events) == 8
    assert sum(e["name"] == "first arrival" for e in events) == 4


def test_stages_of_a_trial_follow_each_other_from_mouth_to_ear() -> None:
    events = [e for e in json.loads(perfetto_trace(staged()))["traceEvents"] if e["ph"] == "X" and e["pid"] == 1]
    names = {2: "heard", SOFTWARE: "software", HIDDEN: "hidden"}
    assert all(e["cat"] == names[e["tid"]] for e in events)
    assert {e["name"] for e in events if e["tid"] == HIDDEN} == {"capture", "output"}
    for whole in (e for e in events if e["name"] == "mouth to ear"):
        seq = whole["args"]["seq"]
        own = [e for e in events if e["tid"] != 2 and e["args"]["trial"] == whole["args"]["trial"]]
        assert [e["name"] for e in own] == ["capture", "frame_fill", "network", "play", "frame_fill", "output"]
        assert [e["args"]["part"] for e in own if "part" in e["args"]] == ["before t_capture", "after t_first_play"]
        assert {e["args"]["seq"] for e in own} == {seq}
        assert own[0]["ts"] == whole["ts"]
        assert own[1]["dur"] == pytest.approx(7e3, abs=0.2)
        for one, other in pairwise(own):
            assert one["ts"] + one["dur"] == other["ts"], "to the bit: neither overlap nor gap"
        assert own[-1]["ts"] + own[-1]["dur"] == pytest.approx(whole["ts"] + whole["dur"], abs=0.2)
        assert own[0]["args"]["claimed_s"] == 0.005


def test_a_negative_stage_is_a_moment_that_says_so() -> None:
    found = all_documents()["slow stages"]
    events = json.loads(perfetto_trace(found))["traceEvents"]
    negative = [e for e in events if e["name"] == "output, negative"]
    assert len(negative) == 36
    assert all(e["ph"] == "i" and e["args"]["length_s"] < 0 for e in negative)
    told = [e for span in spans_of(found) for e in span.get("events", ()) if e["name"] == "negative stage"]
    assert len(told) == 36


def test_stages_without_a_place_in_time_are_not_drawn() -> None:
    found = all_documents()["not apart"]
    events = json.loads(perfetto_trace(found))["traceEvents"]
    whole = [e["args"] for e in events if e["ph"] == "X"]
    assert {e["name"] for e in events if e["ph"] == "X"} == {"mouth to ear"}
    assert ["play_s" in args for args in whole[:5]] == [True, True, True, False, True]
    spans = spans_of(found)
    assert {span["name"] for span in spans} == {"measurement", "run 1", "run 2", "run 3", "mouth to ear"}
    facts = [{a["key"]: a["value"] for a in span["attributes"]} for span in spans]
    assert facts[2]["rig.play_s"]["doubleValue"] == found["reconciliation"]["carriers"][0]["frames"][0]["stages_s"][3]


def test_a_run_without_a_known_start_says_so() -> None:
    events = json.loads(perfetto_trace(all_documents()["file"]))["traceEvents"]
    assert events[0]["args"]["name"] == "run 1 (from its own first frame)"
    assert json.loads(perfetto_trace(mixed()))["traceEvents"][0]["args"]["name"] == "run 1"


# --- the spans ------------------------------------------------------------------------------------------------------


def spans_of(found: dict[str, Any]) -> list[dict[str, Any]]:
    (resource,) = json.loads(otlp_spans(found), parse_constant=pytest.fail)["resourceSpans"]
    (scope,) = resource["scopeSpans"]
    spans: list[dict[str, Any]] = scope["spans"]
    return spans


@pytest.mark.parametrize("name", all_documents())
def test_the_spans_are_an_export_request(name: str) -> None:
    json_format = pytest.importorskip("google.protobuf.json_format")
    service = pytest.importorskip("opentelemetry.proto.collector.trace.v1.trace_service_pb2")
    request = json.loads(otlp_spans(all_documents()[name]))
    for span in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        # OTLP/JSON writes identities in hexadecimal, where the protocol's own JSON mapping has base64.
        for key in ("traceId", "spanId", "parentSpanId"):
            if key in span:
                span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
    parsed = json_format.ParseDict(request, service.ExportTraceServiceRequest())
    spans = parsed.resource_spans[0].scope_spans[0].spans
    assert all(len(span.trace_id) == 16 and len(span.span_id) == 8 for span in spans)
    assert all(0 < span.start_time_unix_nano <= span.end_time_unix_nano for span in spans)


def test_spans_form_one_tree() -> None:
    spans = spans_of(mixed())
    assert [span["name"] for span in spans] == ["measurement", "run 1", *["mouth to ear"] * 3, "run 2", "mouth to ear"]
    assert len({span["traceId"] for span in spans}) == 1
    own = {span["spanId"]: span for span in spans}
    assert len(own) == len(spans)
    assert "parentSpanId" not in spans[0]
    for span in spans[1:]:
        parent = own[span["parentSpanId"]]
        assert parent["name"] == (
            "measurement" if span["name"].startswith("run") else spans[1 if span in spans[:5] else 5]["name"]
        )
        assert int(parent["startTimeUnixNano"]) <= int(span["startTimeUnixNano"])


def test_spans_stand_at_their_time_of_day_and_last_as_long_as_measured() -> None:
    first = spans_of(mixed())[2]
    begun_ns = 1_774_749_598_250_000_000 + 1_500_000_000  # 2026-03-29T01:59:58.25Z, run at 0.5 s, stimulus at 1 s
    assert first["startTimeUnixNano"] == str(begun_ns)
    assert first["endTimeUnixNano"] == str(begun_ns + 150_000_000)
    facts = {a["key"]: a["value"] for a in first["attributes"]}
    assert facts["rig.latency_s"] == {"doubleValue": 0.15}
    assert facts["rig.trial"] == {"intValue": "0"}
    assert "rig.note" not in facts


def test_a_refused_trial_is_an_event_and_no_span() -> None:
    run = spans_of(mixed())[1]
    assert [event["name"] for event in run["events"]] == ["trial refused"] * 2
    facts = {a["key"]: a["value"] for a in run["events"][0]["attributes"]}
    assert facts == {"rig.trial": {"intValue": "2"}, "rig.reason": {"stringValue": "no_arrival"}}


def test_a_measurement_without_a_date_says_so() -> None:
    (resource,) = json.loads(otlp_spans(all_documents()["clean"]))["resourceSpans"]
    facts = {a["key"]: a["value"]["stringValue"] for a in resource["resource"]["attributes"]}
    assert facts["rig.time_origin"] == "none: the measurement has no date"
    assert spans_of(all_documents()["clean"])[0]["startTimeUnixNano"] == str(UNDATED_NS)


def test_the_same_measurement_is_the_same_trace() -> None:
    assert otlp_spans(mixed()) == otlp_spans(mixed())
    assert spans_of(mixed())[0]["traceId"] != spans_of(all_documents()["file"])[0]["traceId"]
    other = document([run_of([0.151] * 5)], FILE_FACTS)
    assert spans_of(other)[0]["traceId"] != spans_of(all_documents()["file"])[0]["traceId"]
