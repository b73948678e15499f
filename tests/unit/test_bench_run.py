"""run_plan on a scripted bench: the order of things, what is recorded, and every way out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scripted_bench import BLOCK, RATE_HZ, TICK_RATE_HZ, AudioScript, LinkScript, ScriptedBench, a_plan, numbered

from rig.bench.plan import LEAD_IN_GAP_S, LEAD_IN_S
from rig.domain.records import StimulusPlan
from rig.errors import AudioLost, BenchNotReady, LinkTimeout, UsageError
from rig.session import Session, open_session


def recorded(bench: ScriptedBench) -> Session:
    session = open_session(bench.folder)
    session.close()
    return session


def test_a_plan_is_recorded_whole(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s")
    bench.run(a_plan(runs=2, count=3))
    assert bench.system.calls == ["stop", "start 1", "stop", "start 2", "stop"], "blank first, with the system stopped"
    session = open_session(tmp_path / "s")
    assert session.status == "complete"
    assert not session.cut_short
    assert session.caveats == ()
    assert session.verify() == []
    assert session.blank is not None
    assert session.blank.plan.count == 3
    assert [run.number for run in session.runs] == [1, 2]
    for run in session.runs:
        frames = run.source.read(0, run.source.n_frames)
        np.testing.assert_array_equal(frames, numbered(1000, len(frames)), err_msg="each block once, in order")
        hints = run.hints()
        assert hints.fired is not None
        assert [f.index for f in hints.fired] == [0, 1, 2], "a firing reported twice counts once"
        spacing = np.diff([f.tick for f in hints.fired]) / TICK_RATE_HZ
        np.testing.assert_allclose(spacing, run.plan.spacing_s, atol=2e-6)
        assert hints.spacing_s == pytest.approx(run.plan.spacing_s, abs=1e-6)
        assert hints.elapsed_s == pytest.approx(run.source.n_frames / RATE_HZ, abs=1e-6)
        assert hints.gaps == ()
        assert run.xruns == 0
        # Settled, all stimuli, the last one's 100 ms and the tail, and not much more.
        least_s = 0.2 + sum(run.plan.spacing_s) + 0.1 + 0.6
        assert least_s <= run.source.n_frames / RATE_HZ <= least_s + 0.15
        assert len(run.pings) == pytest.approx(least_s / 0.25, abs=1.5)
    session.close()
    assert [stream.closed for stream in bench.audio.streams] == [1, 1, 1]
    assert bench.link.safe_calls == 1


def test_each_stimulus_is_told_once_its_response_has_passed(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s")
    bench.run(a_plan(runs=1, count=3, blank=False))
    told = bench.heard("stimulus")
    assert [(facts["run"], facts["index"]) for facts in told] == [(1, 0), (1, 1), (1, 2)]
    blocks_before = 0
    for event, facts in bench.told:
        if event == "block":
            blocks_before = facts["n_frames"]
        if event == "stimulus" and facts["index"] < 2:
            late = blocks_before - facts["near_frame"] - round(0.5 * RATE_HZ)
            assert 0 <= late <= 2 * BLOCK, f"stimulus {facts['index']} told {late} frames after its response passed"
    fired_s = bench.link.plan.spacing_s[0] if bench.link.plan else 0.0
    assert told[1]["near_frame"] - told[0]["near_frame"] == pytest.approx(fired_s * RATE_HZ, abs=2 * BLOCK)


def test_the_blank_run_is_skipped_where_the_system_cannot_be_stopped(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", can_stop=False)
    bench.run(a_plan(runs=1))
    session = recorded(bench)
    assert session.blank is None
    assert session.no_blank_because == "the system runs by itself and cannot be muted"
    assert len(bench.heard("blank_skipped")) == 1


def test_a_jump_of_the_frame_count_is_a_gap_of_that_length(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(lost_before={60: 512}))
    bench.run(a_plan(runs=1, blank=False))
    (run,) = recorded(bench).runs
    assert [(g.frame, g.lost_frames, g.flagged_by) for g in run.hints().gaps] == [(60 * BLOCK, 512, "backend")]
    assert run.xruns == 0


def test_an_overflow_flag_alone_is_a_gap_of_unknown_length(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(overflow_at=frozenset({60, 90}), lost_before={90: 33}))
    bench.run(a_plan(runs=1, blank=False))
    (run,) = recorded(bench).runs
    assert [(g.frame, g.lost_frames) for g in run.hints().gaps] == [(60 * BLOCK, None), (90 * BLOCK, 33)]
    assert run.xruns == 2


def test_xruns_are_unknown_where_the_backend_cannot_tell(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(tells_overflow=False))
    bench.run(a_plan(runs=1, blank=False))
    assert recorded(bench).runs[0].xruns is None


def test_a_stream_that_dies_keeps_the_runs_before(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(dies_at={1: 100}))
    with pytest.raises(AudioLost, match=r"scripted delivered nothing for 1\.\d s after 1\.00 s of run 2"):
        bench.run(a_plan(runs=3, blank=False))
    session = recorded(bench)
    assert session.status == "lost"
    assert [(run.number, run.ok) for run in session.runs] == [(1, True), (2, False)]
    assert session.runs[1].source.n_frames == 100 * BLOCK
    assert session.verify() == []
    assert bench.link.safe_calls == 1
    assert bench.system.calls[-1] == "stop"
    assert all(stream.closed == 1 for stream in bench.audio.streams)


def test_a_stream_that_never_starts_is_lost_too(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(dies_at={0: 0}))
    with pytest.raises(AudioLost, match=r"after 0\.00 s of run 1"):
        bench.run(a_plan(blank=False))
    session = recorded(bench)
    assert session.runs == ()
    assert any("run 1 is left out" in caveat for caveat in session.caveats)


def test_ctrl_c_makes_safe_and_keeps_what_was_recorded(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(raises_at={150: KeyboardInterrupt()}))
    with pytest.raises(KeyboardInterrupt):
        bench.run(a_plan(runs=2, blank=False))
    session = recorded(bench)
    assert session.status == "interrupted"
    assert session.runs[0].source.n_frames == 150 * BLOCK
    assert bench.link.safe_calls == 1
    assert bench.audio.streams[0].closed == 1


def test_a_board_that_will_not_be_made_safe_hides_nothing(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(dies_at={0: 100}), LinkScript(safe_fails=True))
    with pytest.raises(AudioLost):
        bench.run(a_plan(blank=False))
    assert recorded(bench).status == "lost"
    well = ScriptedBench(tmp_path / "t", link=LinkScript(safe_fails=True))
    well.run(a_plan(runs=1, blank=False))
    assert recorded(well).status == "complete"
    assert "safe_failed" in (tmp_path / "t" / "events.jsonl").read_text()


def test_a_lost_report_of_a_firing_does_not_end_the_run(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", link=LinkScript(loses_firings=frozenset({2})))
    plan = a_plan(runs=1, blank=False)
    bench.run(plan)
    (run,) = recorded(bench).runs
    hints = run.hints()
    assert hints.fired is not None
    assert [f.index for f in hints.fired] == [0, 1]
    assert run.source.n_frames / RATE_HZ > 0.2 + sum(run.plan.spacing_s) + 0.1 + 0.6, "the third is still recorded"


def test_a_board_that_reports_no_firing_is_an_error(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", link=LinkScript(loses_firings=frozenset({0, 1, 2})))
    with pytest.raises(LinkTimeout, match="none of 3 firings"):
        bench.run(a_plan(runs=1, blank=False))
    assert recorded(bench).status == "lost"


def test_failing_pings_are_logged_and_become_rare(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", link=LinkScript(ping_fails=True))
    bench.run(a_plan(runs=1, blank=False))
    (run,) = recorded(bench).runs
    assert run.pings == ()
    assert bench.link.pings == 3, "at 0, 0.5 and 1.5 s, the next would be at 3.5 s"


def test_a_system_that_will_not_start_ends_the_measurement(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s")
    bench.system.fails_at[2] = BenchNotReady("no", "yes", "do")
    with pytest.raises(BenchNotReady):
        bench.run(a_plan(runs=2, blank=False))
    session = recorded(bench)
    assert [run.number for run in session.runs] == [1]
    assert session.status == "lost"


def test_too_few_channels_are_refused_before_recording(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(channels=1))
    with pytest.raises(BenchNotReady, match="gives 1 input channels"):
        bench.run(a_plan(blank=False))
    assert bench.audio.streams[0].closed == 1


def test_the_interface_plays_at_the_spacing_planned(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(lost_before={50: 100}))
    bench.run(a_plan(runs=1, source="interface", blank=False), with_link=False)
    (stream,) = bench.audio.streams
    (run,) = recorded(bench).runs
    played = [frame for frame, _ in stream.played]
    assert len(played) == 3
    np.testing.assert_allclose(np.diff(played) / RATE_HZ, run.plan.spacing_s, atol=8 / RATE_HZ)
    assert run.hints().spacing_s == pytest.approx(tuple(np.diff(played) / RATE_HZ))
    assert run.hints().fired is None, "there is no board to stamp them"
    # Frames of the recording: the stream began at 1000, and lost 100 before the second.
    assert run.events.scheduled[0].frame == played[0] - 1000
    assert run.events.scheduled[2].frame == played[2] - 1100
    end_s = (run.source.n_frames + 1100 - played[-1]) / RATE_HZ
    assert 0.1 + 0.6 <= end_s <= 0.1 + 0.6 + 0.05


def test_a_lead_in_comes_before_each_stimulus(tmp_path: Path) -> None:
    plan = a_plan(runs=1, source="interface", blank=False)
    stimuli = StimulusPlan("chirp", 2, (2.5,), 0.5, "interface", lead_in="speech")
    bench = ScriptedBench(tmp_path / "s")
    bench.run(replace(plan, stimuli=(stimuli,)), with_link=False)
    (run,) = recorded(bench).runs
    (stream,) = bench.audio.streams
    lead = round(LEAD_IN_S * RATE_HZ) + round(LEAD_IN_GAP_S * RATE_HZ)
    assert stream.played[0][1] == lead + round(0.1 * RATE_HZ)
    assert run.events.scheduled[0].frame == stream.played[0][0] + lead - 1000
    assert run.hints().lead_in


@pytest.mark.parametrize(
    ("what", "stimuli", "with_link"),
    [
        ("no spacing between", StimulusPlan("chirp", 3, (1.0,), 0.5, "mcu"), True),
        ("the board is to play", StimulusPlan("chirp", 1, (), 0.5, "mcu"), False),
        ("the board cannot play wav", StimulusPlan("wav", 1, (), 0.5, "mcu", wav="x.wav"), True),
        ("the board cannot play speech before chirp", StimulusPlan("chirp", 1, (), 0.5, "mcu", "speech"), True),
        ("no stimulus is called 'whistle'", StimulusPlan("whistle", 1, (), 0.5, "interface"), True),
        ("each sounds for 1.33 s", StimulusPlan("chirp", 2, (1.2,), 0.5, "interface", "speech"), True),
    ],
)
def test_plans_that_cannot_be(tmp_path: Path, what: str, stimuli: StimulusPlan, with_link: bool) -> None:
    bench = ScriptedBench(tmp_path / "s")
    with pytest.raises(UsageError) as caught:
        bench.run(replace(a_plan(runs=1, blank=False), stimuli=(stimuli,)), with_link=with_link)
    if what != "no spacing between":
        assert what in caught.value.what
    assert recorded(bench).status == "lost"


def test_an_unflagged_loss_is_found_by_the_clock(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(late_from={120: 0.05}))
    bench.run(a_plan(runs=1, blank=False))
    (run,) = recorded(bench).runs
    assert [(g.frame, g.lost_frames, g.flagged_by) for g in run.hints().gaps] == [(120 * BLOCK, 2400, "clock")]
    assert run.xruns == 1


def test_a_flagged_loss_is_counted_once(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s", AudioScript(late_from={120: 0.05}, overflow_at=frozenset({120})))
    bench.run(a_plan(runs=1, blank=False))
    (run,) = recorded(bench).runs
    assert [(g.lost_frames, g.flagged_by) for g in run.hints().gaps] == [(None, "backend"), (2400, "clock")]
    assert run.xruns == 1


def test_a_system_that_ended_by_itself_is_told(tmp_path: Path) -> None:
    bench = ScriptedBench(tmp_path / "s")
    bench.system.ended_early = "the system under test ended with exit code 1 during run 1"
    bench.run(a_plan(runs=1, blank=False))
    assert bench.system.ended_early in recorded(bench).caveats
