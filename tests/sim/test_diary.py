"""The simulated system's marks: what they say is what happened, as far as software can know it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rig.domain.marks import MarkPart, Marks
from rig.session.marks import read_marks
from rig.sim.bench import SimBench, build_bench
from sim.recorder import record


def marked(tmp_path: Path, seed: int, scenario: str = "marks", **settings: object) -> tuple[SimBench, Marks]:
    bench = build_bench(scenario, seed, **settings)
    bench.keep_diary(tmp_path / "marks.jsonl")
    record(bench, [0.5, 1.4, 2.33], 3.4)
    bench.system.stop()
    return bench, read_marks(tmp_path / "marks.jsonl")


def only(marks: Marks) -> MarkPart:
    (part,) = marks.parts
    return part


@pytest.mark.parametrize("scenario", ["marks", "marks-page"])
def test_the_row_of_each_stimulus_has_its_true_stages(tmp_path: Path, seed: int, scenario: str) -> None:
    bench, marks = marked(tmp_path, seed % 1000, scenario)
    part, truth = only(marks), bench.truth()["runs"][0]
    by_seq = {row.seq: row for row in part.rows}
    clock = truth["marks_clock"]
    grid_s = part.resolution_s or 1e-9
    assert len(truth["stimuli"]) == 3
    for stimulus in truth["stimuli"]:
        row, stage_s = by_seq[stimulus["seq"]], stimulus["stage_s"]
        at_s = [t for t in row.instants_s if t is not None]
        assert len(at_s) == 5
        found = np.diff(at_s)
        expected = [stage_s[name] for name in ("encode", "send", "network", "play")]
        assert found == pytest.approx(expected, abs=1.01 * grid_s)
        captured_s = (
            stimulus["start_s"] + stage_s["acoustic_in"] + stimulus["hidden_capture_s"] + stimulus["frame_fill_s"]
        )
        shown_s = clock["offset_s"] + truth["on_s"] + (captured_s - truth["on_s"]) * (1.0 + clock["ppm"] * 1e-6)
        assert at_s[0] == pytest.approx(shown_s, abs=1.01 * grid_s)
        assert row.peak_at is not None
        assert row.frame_s is not None
        place_s = row.frame_s - stimulus["frame_fill_s"]
        assert row.peak_at / 48_000 == pytest.approx(place_s, abs=6 * bench.spec.marks_peak_u_s + 2e-5)
        assert sum(stage_s.values()) == pytest.approx(stimulus["latency_s"], abs=1e-9)


def test_frames_are_as_many_as_fit_and_only_loud_ones_have_a_beginning(tmp_path: Path, seed: int) -> None:
    bench, marks = marked(tmp_path, seed % 1000)
    part, start = only(marks), bench.truth()["runs"][0]
    assert len(part.rows) == pytest.approx((start["off_s"] - start["on_s"]) / 0.020, abs=6)
    loud = [row.seq for row in part.rows if row.peak_at is not None]
    assert len(loud) == pytest.approx(3 * 6, abs=3), "three stimuli of 100 ms in frames of 20"
    assert {s["seq"] for s in start["stimuli"]} <= set(loud)
    assert not marks.notes


def test_the_exchanges_bound_the_true_line(tmp_path: Path, seed: int) -> None:
    bench, marks = marked(tmp_path, seed % 1000, "marks-page")
    part, truth = only(marks), bench.truth()["runs"][0]
    clock, on_s = truth["marks_clock"], truth["on_s"]

    def true_s(shown_s: float) -> float:
        return float(on_s + (shown_s - clock["offset_s"] - on_s) / (1.0 + clock["ppm"] * 1e-6))

    assert len(part.exchanges) > 5
    for e in part.exchanges:
        # A stamp is cut to its grid: the clock showed up to a step more.
        assert true_s(e.sut_sent_s) <= e.host_received_s <= e.host_sent_s <= true_s(e.sut_received_s) + 1.1e-4


def test_stages_that_do_not_fit_give_no_marked_frame(tmp_path: Path, seed: int) -> None:
    bench, _ = marked(tmp_path, seed % 1000, latency_s=0.06)
    assert [s["seq"] for s in bench.truth()["runs"][0]["stimuli"]] == [None, None, None]


def test_claims_and_marks_are_left_out_where_the_world_says_so(tmp_path: Path, seed: int) -> None:
    _, marks = marked(tmp_path, seed % 1000, "marks-bare", capture_claimed_s=None)
    part = only(marks)
    assert [c.name for c in part.claims] == ["output_latency"]
    assert part.boot is None
    assert not part.exchanges
    assert all(row.peak is None and row.peak_at is None for row in part.rows)
