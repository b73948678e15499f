"""Files of marks: what a row may be, what is left out and said, what refuses the file."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rig.domain.marks import INSTANTS, MarkRow, Marks
from rig.errors import BadInput
from rig.session.marks import read_marks

HEADER = {"marks": 1, "session_id": "a", "clock": "performance.now", "unit": "ms"}
Read = Callable[..., Marks]


def row(seq: int, *times: float | None, **more: Any) -> dict[str, Any]:
    """A line of seq with its instants in ms, in their order; None leaves one out."""
    return {"seq": seq, **{name: t for name, t in zip(INSTANTS, times, strict=False) if t is not None}, **more}


def good(seq: int, at: float | None = None) -> dict[str, Any]:
    start = 1000.0 + 20.0 * seq if at is None else at
    return row(seq, start, start + 1, start + 2, start + 30, start + 90.5, frame_ms=20)


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Reads lines (objects, text or bytes) as a file of marks."""

    def run(*lines: Any, header: Any = HEADER, **options: Any) -> Marks:
        path = tmp_path / "marks.jsonl"
        every = [header, *lines] if header is not None else lines
        path.write_bytes(
            b"".join(
                line
                if isinstance(line, bytes)
                else (line if isinstance(line, str) else json.dumps(line)).encode() + b"\n"
                for line in every
            )
        )
        return read_marks(path, **options)

    return run


def only(marks: Marks) -> MarkRow:
    (part,) = marks.parts
    (found,) = part.rows
    return found


def noted(marks: Marks, *words: str) -> bool:
    return any(all(word in note for word in words) for note in marks.notes)


def test_a_row_in_seconds_whatever_the_unit(read: Read) -> None:
    for unit, factor in (("ms", 1.0), ("s", 1e-3), ("us", 1e3), ("ns", 1e6)):
        times = [t * factor for t in (1000.0, 1001.0, 1002.0, 1030.0, 1090.5)]
        found = only(read(row(4, *times, frame_ms=20, peak=-0.5, peak_at=131), header={**HEADER, "unit": unit}))
        assert found.instants_s == pytest.approx((1.0, 1.001, 1.002, 1.03, 1.0905))
        assert (found.seq, found.frame_s, found.peak, found.peak_at, found.problem) == (4, 0.02, 0.5, 131, None)


def test_a_row_may_come_in_pieces_and_in_any_order(read: Read) -> None:
    marks = read(row(2, None, None, None, 1040.0, 1100.0), good(1), row(2, 1010.0, 1011.0, 1012.0))
    assert [r.instants_s[0] for r in marks.parts[0].rows] == [1.02, 1.01]
    assert marks.parts[0].rows[1].instants_s[4] == 1.1


def test_no_unit_is_refused(read: Read) -> None:
    with pytest.raises(BadInput, match="without a header"):
        read(good(1), header=None)
    with pytest.raises(BadInput, match="without a header"):
        read(good(1), header={"marks": 1, "clock": "performance.now"})


@pytest.mark.parametrize("nothing", [0, 0.0, None])
def test_zero_is_not_a_time(read: Read, nothing: Any) -> None:
    marks = read({**good(1), "t_capture": nothing})
    assert only(marks).instants_s[0] is None
    assert noted(marks, "t_capture is 0 or null in 1 lines")


def test_seconds_among_milliseconds_are_refused(read: Read) -> None:
    with pytest.raises(BadInput, match=r"t_capture in line 2 is 0\.712.*mixed s and ms|t_capture.*mixed s and ms"):
        read(row(1, 712.345, None, 712360.0))


def test_a_wall_clock_among_others_is_refused(read: Read) -> None:
    with pytest.raises(BadInput, match=r"t_capture.*t_first_play.*one counts from 1970"):
        read(row(1, 12000.0, None, None, None, 1.7e12))


@pytest.mark.parametrize("clock", ["Date.now", "time.time", "CLOCK_REALTIME"])
def test_a_clock_that_is_set_is_refused(read: Read, clock: str) -> None:
    with pytest.raises(BadInput, match="a clock that is set"):
        read(good(1), header={**HEADER, "clock": clock})
    with pytest.raises(BadInput, match="both count from 1970"):
        read(row(1, 1.7e12, None, 1.7e12 + 5.0))


def test_a_negative_stage_keeps_its_sign_and_is_left_out(read: Read) -> None:
    marks = read(row(1, 204000.0, None, 766.0 + 1e-9), good(2, 205000.0))
    assert marks.parts[0].rows[0].problem is not None
    assert "-203234.000 ms" in marks.parts[0].rows[0].problem
    assert marks.parts[0].rows[1].problem is None
    assert noted(marks, "1 rows are left out", "seq 1, line 2", "t_send_done", "t_capture")


def test_repeated_lines_count_once_and_contradictions_name_both_lines(read: Read) -> None:
    marks = read(good(1), good(1), good(2), {**good(3)}, row(3, None, 999.0))
    assert noted(marks, "1 lines repeat")
    assert [r.problem is None for r in marks.parts[0].rows] == [True, True, False]
    assert "line 5" in str(marks.parts[0].rows[2].problem)
    assert "line 6" in str(marks.parts[0].rows[2].problem)


def test_the_first_play_counts(read: Read) -> None:
    marks = read(good(1), row(1, None, None, None, None, 1900.0))
    assert only(marks).instants_s[4] == pytest.approx(1.1105)
    assert noted(marks, "1 later times of a first event")


def test_play_before_packet_breaks_the_order(read: Read) -> None:
    assert "out of order" in str(only(read(row(1, 1000.0, None, None, 1050.0, 1040.0))).problem)


def test_what_was_never_played_was_interrupted(read: Read) -> None:
    marks = read(good(1), row(2, 1020.0, None, 1021.0, 1050.0), {**good(3), "interrupted": True})
    assert [r.interrupted for r in marks.parts[0].rows] == [False, True, True]
    assert noted(marks, "2 rows are left out", "interrupted")


def test_a_time_of_the_row_before_is_stale(read: Read) -> None:
    marks = read(good(1), row(2, 90_000.0, None, None, 1050.0, 1110.5))
    assert "that of seq 1" in str(marks.parts[0].rows[1].problem)


def test_a_count_that_starts_again_is_another_part(read: Read) -> None:
    marks = read(good(0), good(1), good(2), good(0, 60_000.0), good(1, 60_020.0))
    assert [[r.seq for r in part.rows] for part in marks.parts] == [[0, 1, 2], [0, 1]]
    assert noted(marks, "starts again at 0 in line 5")
    marks = read(good(100), good(101), good(0, 60_000.0))
    assert len(marks.parts) == 2


def test_sessions_are_kept_apart(read: Read) -> None:
    marks = read(good(0), {**HEADER, "session_id": "b"}, good(0, 5000.0))
    assert [part.session_id for part in marks.parts] == ["a", "b"]
    assert not marks.notes


def test_two_contexts_are_mixed_only_over_a_known_origin(read: Read) -> None:
    page, worker = {**HEADER, "context": "page"}, {**HEADER, "context": "worker"}
    marks = read(row(1, 1000.0, 1001.0), worker, row(1, None, None, None, 30.0, 90.0), header=page)
    assert len(marks.parts) == 2
    assert noted(marks, "they are not mixed")
    marks = read(
        row(1, 1000.0, 1001.0),
        {**worker, "origin": 6000.0},
        row(1, None, None, None, 30.0, 90.0),
        header={**page, "origin": 5000.0},
    )
    assert only(marks).instants_s == pytest.approx((1.0, 1.001, None, 1.03, 1.09))


def test_one_bad_line_costs_itself_alone(read: Read) -> None:
    lines = [good(k) for k in range(200)]
    marks = read(*lines[:3], "{broken", *lines[3:], "", b"\r\n", b'{"seq":900,"t_cap')
    assert len(marks.parts[0].rows) == 200
    assert marks.rejected_lines == 1
    assert noted(marks, "1 lines of marks.jsonl", "line 5")
    assert noted(marks, "cut off")
    with pytest.raises(BadInput, match="line 5"):
        read(*lines[:3], "{broken", *lines[3:], strict=True)


def test_byte_order_mark_and_carriage_returns(read: Read) -> None:
    text = b"\xef\xbb\xbf" + b"\r\n".join(json.dumps(line).encode() for line in (HEADER, good(1), good(2))) + b"\r\n"
    assert len(read(text, header=None).parts[0].rows) == 2


@pytest.mark.parametrize("bad", ["NaN", "Infinity", "1e999", '"12"', "true"])
def test_what_is_no_number_is_a_bad_line(read: Read, bad: str) -> None:
    marks = read(good(1), f'{{"seq":2,"t_send_done":{bad}}}')
    assert marks.rejected_lines == 1
    assert [r.seq for r in marks.parts[0].rows] == [1]


@pytest.mark.parametrize(("unit_ms", "grid_ms"), [(15.625, 15.625), (1.0, 1.0), (0.1, 0.1)])
def test_a_coarse_clock_is_seen(read: Read, unit_ms: float, grid_ms: float, rng: Any) -> None:
    lines = []
    for k in range(100):
        start = 1000.0 + 20.0 * k + rng.uniform(0, 5)
        times = start + rng.uniform(0, [1, 2, 3, 30, 60]).cumsum()
        lines.append(row(k, *(round(float(t) / unit_ms) * unit_ms for t in times)))
    marks = read(*lines)
    assert marks.parts[0].resolution_s == pytest.approx(grid_ms * 1e-3, rel=1e-3)


def test_a_fine_clock_has_no_grid(read: Read, rng: Any) -> None:
    lines = [good(k, 1000.0 + 20.0 * k + float(rng.uniform(0, 5))) for k in range(100)]
    assert read(*lines).parts[0].resolution_s is None


@pytest.mark.parametrize(
    ("value", "kept", "word"),
    [
        (34.0, 0.034, None),
        (0, 0.0, None),
        (None, None, "not reported"),
        (-300.0, None, "cannot"),
        (40e3, None, "cannot"),
    ],
)
def test_claims(read: Read, value: Any, kept: float | None, word: str | None) -> None:
    marks = read(good(1), {"claim": "output_latency", "value": value, "source": "AudioContext.outputLatency"})
    (claim,) = marks.parts[0].claims
    assert claim.value_s == kept
    assert word is None or word in str(claim.problem)


def test_a_file_may_hold_claims_alone(read: Read) -> None:
    (part,) = read({"claim": "output_latency", "value": 34.0, "source": "AudioContext.outputLatency"}).parts
    assert part.rows == ()
    assert part.claims[0].value_s == 0.034


def test_settings_in_the_wrong_unit_are_named(read: Read) -> None:
    marks = read(good(1), {"config": {"jitterBufferTarget": 0.05}}, {"config": {"playoutDelayHint": 50}})
    assert noted(marks, "jitterBufferTarget 0.05 looks like seconds")
    assert noted(marks, "playoutDelayHint 50 looks like milliseconds")
    assert marks.parts[0].config == {"jitterBufferTarget": 0.05, "playoutDelayHint": 50}


def test_exchanges_events_and_stats(read: Read) -> None:
    marks = read(
        {"sync": [1000.0, 7000.5, 7000.6, 1001.0]},
        {"event": "cold_start", "t": 900.0},
        {"event": "marks_lost", "n": 7},
        {"stats": {"jitterBufferDelay": 4800.0, "jitterBufferEmittedCount": 96000}},
        good(1),
    )
    (part,) = marks.parts
    assert part.exchanges[0].sut_sent_s == 1.0
    assert part.exchanges[0].host_sent_s == 7.0006
    assert part.events == (("cold_start", 0.9),)
    assert part.stats[0].delay_s == 4800.0
    assert noted(marks, "dropped 7 marks")


def test_the_log_form(read: Read) -> None:
    marks = read(
        "[rt] marks=1 session_id=x clock=performance.now unit=ms",
        "12:00:01.113 INFO  something else",
        "12:00:01.113 INFO [rt] seq=42 t_first_packet=1234.5 t_first_play=1298.1 packet_to_play_ms=63.6",
        "[rt] seq=43 t_first_packet=1254.5 t_first_play=1318.1 packet_to_play_ms=70",
        "[rt] buf_jitterBufferTarget=200 out_latency=34.5",
        header=None,
    )
    (part,) = marks.parts
    assert [r.seq for r in part.rows] == [42, 43]
    assert part.rows[0].instants_s[3:] == (1.2345, 1.2981)
    assert part.config == {"jitterBufferTarget": 200}
    assert part.claims[0].value_s == 0.0345
    assert marks.rejected_lines == 0
    assert noted(marks, "packet_to_play_ms of seq 43", "says 70", "63.6")


def test_an_empty_or_missing_file_is_refused(read: Read, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no marks"):
        read()
    with pytest.raises(BadInput, match="cannot be read"):
        read_marks(tmp_path / "absent.jsonl")


def test_an_endless_line_is_bounded(read: Read) -> None:
    marks = read(good(1), '{"seq":2,"x":"' + "y" * 200_000 + '"}', good(3))
    assert [r.seq for r in marks.parts[0].rows] == [1, 3]
    assert marks.rejected_lines == 1


def test_the_last_frames_of_a_stream_were_not_interrupted(read: Read) -> None:
    """They were on their way when the system stopped; they enter no figure, and are no fault either."""
    frames = {**HEADER, "frame_ms": 20.0}
    marks = read(good(1), row(2, 1020.0, 1020.5, 1021.0, 1050.0), header=frames)
    assert [r.problem is None for r in marks.parts[0].rows] == [True, False]
    assert not marks.parts[0].rows[1].interrupted
    assert not marks.notes
    turns = read(good(1), row(2, 1020.0, 1020.5, 1021.0, 1050.0))
    assert turns.parts[0].rows[1].interrupted, "a turn that was never played was cut off"
