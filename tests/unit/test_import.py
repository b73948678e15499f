"""`rig import` of a dump: what the browser's page computed itself, what is missing, and other files."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rig.cli.import_marks import read_file
from rig.cli.main import main
from rig.errors import BadInput
from rig.imports import opened
from rig.imports.series import Report, course
from rig.imports.webrtc import read_dump
from rig.session.marks import read_marks

GOLDEN = Path(__file__).parents[1] / "golden" / "webrtc-internals-dump.json"

Capture = pytest.CaptureFixture[str]


def dump(**stats: tuple[str, list[Any]]) -> dict[str, Any]:
    """A dump of one connection; each entry is (type, values), its name `REPORT__MEMBER`."""
    entries = {
        name.replace("__", "-"): {
            "startTime": "2026-01-01T00:00:00.000Z",
            "endTime": "2026-01-01T00:00:09.000Z",
            "statsType": kind,
            "values": json.dumps(values),
        }
        for name, (kind, values) in stats.items()
    }
    return {"PeerConnections": {"7-1": {"url": "http://127.0.0.1/", "stats": entries, "updateLog": []}}}


def saved(tmp_path: Path, value: Any) -> Path:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


# --- a real dump ----------------------------------------------------------------------------------------------------


def test_figures_are_those_that_the_browser_page_computed_itself() -> None:
    stats = json.loads(GOLDEN.read_text(encoding="utf-8"))["PeerConnections"]["8-2"]["stats"]
    found = {figure.source: figure for figure in read_file(GOLDEN).parts[1].figures}
    of_ms = {
        "jitterBufferDelay/jitterBufferEmittedCount": "IT01A1414375141-[{}_in_ms]",
        "totalProcessingDelay/jitterBufferEmittedCount": "IT01A1414375141-[{}_in_ms]",
        "jitterBufferTargetDelay/jitterBufferEmittedCount": "IT01A1414375141-[{}_in_ms]",
    }
    for name, entry in of_ms.items():
        page = [1e-3 * v for v in json.loads(stats[entry.format(name)]["values"])]
        figure = found[f"inbound-rtp {name}"]
        assert (figure.low, figure.high, figure.n) == pytest.approx((min(page), max(page), len(page)))
        assert figure.mean == pytest.approx(sum(page) / len(page), rel=0.01)  # seconds are not of equal length
    playout = json.loads(stats["AP-[totalPlayoutDelay/totalSamplesCount]"]["values"])
    assert found["media-playout totalPlayoutDelay/totalSamplesCount"].mean == pytest.approx(playout[0], abs=1e-6)


def test_what_is_written_is_read_by_rig_marks(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "marks.jsonl"
    assert main(["import", str(GOLDEN), "--out", str(out)]) == 0
    text = capsys.readouterr().out
    *lines, last = text.splitlines()
    assert max(map(len, lines)) <= 80
    assert last == f"marks written to {out}; rig marks checks them"
    assert "never there: t_capture" in text
    sender, receiver = read_marks(out, strict=True).parts
    claims = {c.name: (c.value_s, c.source) for c in receiver.claims}
    assert claims["output_latency"] == (pytest.approx(0.03), "media-playout totalPlayoutDelay")
    assert claims["round_trip_time"][1] == "candidate-pair totalRoundTripTime"
    assert "input_latency" not in claims
    assert [c.name for c in sender.claims] == ["send_delay", "round_trip_time"]
    assert not sender.stats
    assert len(receiver.stats) == 11
    assert (receiver.stats[-1].delay_s, receiver.stats[-1].emitted) == (19094.4, 527040)
    assert main(["marks", str(out), "--strict"]) == 0
    shown = capsys.readouterr().out
    assert "claimed output_latency by media-playout totalPlayoutDelay: 30.00 ms" in shown
    assert "jitter buffer held 38.2 ms" in shown


def test_packed_as_the_browser_saves_it(tmp_path: Path) -> None:
    path = tmp_path / "webrtc_internals_dump.gz"
    path.write_bytes(gzip.compress(GOLDEN.read_bytes()))
    assert read_file(path) == read_file(GOLDEN)


def test_nothing_is_written_unasked_or_over_what_is_there(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "marks.jsonl"
    assert main(["import", str(GOLDEN)]) == 0
    assert "nothing is written" in capsys.readouterr().out
    out.write_text("mine\n")
    assert main(["import", str(GOLDEN), "--out", str(out)]) == 2
    assert out.read_text() == "mine\n"


# --- what may be odd in a dump --------------------------------------------------------------------------------------

AUDIO = ("inbound-rtp", ["audio"] * 3)


def test_totals_that_start_again_leave_their_second_out(tmp_path: Path) -> None:
    values = dump(
        I__kind=("inbound-rtp", ["audio"] * 4),
        I__jitterBufferDelay=("inbound-rtp", [10.0, 20.0, 1.0, 4.0]),
        I__jitterBufferEmittedCount=("inbound-rtp", [100, 200, 10, 110]),
    )
    (part,) = read_file(saved(tmp_path, values)).parts
    figure = part.figures[0]
    assert (figure.low, figure.high, figure.n) == pytest.approx((0.03, 0.1, 2))
    assert any("begins again 1 times" in note for note in part.notes)


def test_members_that_do_not_end_together_are_not_divided(tmp_path: Path) -> None:
    values = dump(
        I__kind=AUDIO,
        I__jitterBufferDelay=("inbound-rtp", [1.0, 2.0, 3.0]),
        I__jitterBufferEmittedCount=("inbound-rtp", [10, 20]),
    )
    values["PeerConnections"]["7-1"]["stats"]["I-jitterBufferEmittedCount"]["endTime"] = "2026-01-01T00:00:05.000Z"
    (part,) = read_file(saved(tmp_path, values)).parts
    assert not any("jitterBufferDelay" in f.source for f in part.figures)
    assert "inbound-rtp jitterBufferDelay, or its jitterBufferEmittedCount" in part.missing


def test_a_single_snapshot_is_the_average_of_its_life() -> None:
    report = Report("I", "inbound-rtp", {"d": [3.0], "n": [100]}, {"d": "x", "n": "x"})
    found = course(report, "d", report, "n")
    assert found is not None
    assert found.mean == pytest.approx(0.03)


@pytest.mark.parametrize("values", [{"d": [0.0, 0.0], "n": [0, 0]}, {"d": [None, None], "n": [1, 2]}, {"d": [1.0]}])
def test_without_growth_there_is_no_delay(values: dict[str, list[Any]]) -> None:
    report = Report("I", "inbound-rtp", values, dict.fromkeys(values, "x"))
    assert course(report, "d", report, "n") is None


def test_a_claim_of_zero_is_shown_as_zero_and_video_is_no_audio(tmp_path: Path, capsys: Capture) -> None:
    values = dump(
        V__kind=("inbound-rtp", ["video"] * 2),
        V__jitterBufferDelay=("inbound-rtp", [1.0, 2.0]),
        V__jitterBufferEmittedCount=("inbound-rtp", [10, 20]),
        A__kind=("media-playout", ["audio"] * 2),
        A__totalPlayoutDelay=("media-playout", [0.0, 0.0]),
        A__totalSamplesCount=("media-playout", [480, 960]),
    )
    out = tmp_path / "m.jsonl"
    assert main(["import", str(saved(tmp_path, values)), "--out", str(out)]) == 0
    (part,) = read_marks(out, strict=True).parts
    assert [(c.name, c.value_s) for c in part.claims] == [("output_latency", 0.0)]
    assert part.stats == ()
    assert "not there: inbound-rtp of audio" in capsys.readouterr().out


def test_an_entry_that_cannot_be_read_costs_itself_alone(tmp_path: Path) -> None:
    values = dump(
        A__kind=("media-playout", ["audio"] * 2),
        A__totalPlayoutDelay=("media-playout", [10.0, 20.0]),
        A__totalSamplesCount=("media-playout", [480, 960]),
    )
    values["PeerConnections"]["7-1"]["stats"]["B-x"] = {"statsType": "inbound-rtp", "values": "[1,NaN]"}
    (part,) = read_file(saved(tmp_path, values)).parts
    assert len(part.figures) == 1
    assert part.notes == ("1 entries of PeerConnections 7-1 cannot be read and are left out (B-x)",)


def test_a_dump_of_nothing_is_refused(tmp_path: Path, capsys: Capture) -> None:
    assert main(["import", str(saved(tmp_path, {"PeerConnections": {}})), "--out", str(tmp_path / "m")]) == 7
    assert "no connection is in it" in capsys.readouterr().out
    assert not (tmp_path / "m").exists()


# --- files that are something else ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\x00\x01", "is no JSON"),
        (b'{"PeerConnections":{', "is no JSON"),
        (b'{"PeerConnections":[]}', "PeerConnections is a list"),
        (b'{"PeerConnections":{"1":7}}', "PeerConnections 1 is a number"),
        (b'{"PeerConnections":{"1":{"stats":"x"}}}', "PeerConnections 1: stats is text"),
        (b'{"a":1}', "neither of webrtc-internals nor of OTLP"),
        (b"[1]", "neither of webrtc-internals nor of OTLP"),
        (b'{"a":1}\n{"b"\n', "line 2"),
        (b"RTCStatsDump\n{}\n", "an rtcstats dump"),
        (gzip.compress(b'{"a":1}')[:-9], "ends before its gzip does"),
        (b"\x1f\x8bnot gzip", "cannot be unpacked"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_other_files_are_refused_with_their_place(tmp_path: Path, content: bytes, said: str, capsys: Capture) -> None:
    path = tmp_path / "odd.file"
    path.write_bytes(content)
    assert main(["import", str(path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert "odd.file" in err


def test_a_file_that_is_not_there(tmp_path: Path, capsys: Capture) -> None:
    assert main(["import", str(tmp_path / "no")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_a_bomb_is_given_up_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opened, "MAX_BYTES", 4 << 20)
    machine = zlib.compressobj(9, zlib.DEFLATED, 31)
    path = tmp_path / "bomb.gz"
    packed = b"".join([*(machine.compress(bytes(1 << 20)) for _ in range(64)), machine.flush()])
    assert len(packed) < 1 << 20
    path.write_bytes(packed)
    with pytest.raises(BadInput, match="holds more than 4 MiB"):
        read_file(path)


RECEIVED = json.loads(GOLDEN.read_text(encoding="utf-8"))["PeerConnections"]["8-2"]["stats"]
READ = [key for key in RECEIVED if key.startswith(("IT", "AP")) and not key.endswith("]")]
ODD = st.sampled_from([None, 1, "x", [], {}, "[1,", "[]", '["a"]', "[null]", "[1e999]", '{"a":1}', "[[1]]", True])


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(changes=st.dictionaries(st.sampled_from(READ), st.tuples(st.sampled_from(["values", "endTime", ""]), ODD)))
def test_whatever_is_changed_is_read_or_left_out(tmp_path: Path, changes: dict[str, tuple[str, Any]]) -> None:
    stats = {key: dict(RECEIVED[key]) for key in READ}
    for key, (field, value) in changes.items():
        stats[key] = {**stats[key], field: value} if field else value
    (part,) = read_dump({"PeerConnections": {"1": {"stats": stats}}}, "dump").parts
    if part.lines:
        out = tmp_path / "m.jsonl"
        out.write_text("".join(json.dumps(line, allow_nan=False) + "\n" for line in part.lines), encoding="utf-8")
        assert read_marks(out, strict=True).parts[0].session_id == "connection 1"
