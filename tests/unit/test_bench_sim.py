"""The bench runner on the simulated bench: the real link and real bytes, and a truth to compare the session with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.acquire.board import Link
from rig.bench import BenchPlan, plan_runs, run_plan
from rig.domain.records import BenchKind, ChannelRoles, StreamSpec
from rig.session import Session, SessionWriter, open_session
from rig.sim.bench import build_bench

RATE_HZ = 48_000


def measure(folder: Path, seed: int, source: str, scenario: str = "quiet", **settings: Any) -> tuple[Session, dict]:
    """Two runs of six stimuli on a simulated bench; returns the session and what was true."""
    bench = build_bench(scenario, seed, **settings)
    manifest = {"bench": BenchKind.SIMULATED, "mode": "call", "seed": seed, "roles": ChannelRoles(0, 1)}
    writer = SessionWriter.create(folder, manifest, bench.time)
    link = Link(bench.pipe, bench.time, on_frame=writer.serial_frame) if source == "mcu" else None
    stimuli = plan_runs(
        seed, 2, 6, "chirp", min_spacing_s=0.8, max_spacing_s=1.1, amplitude=0.5, source=source, lead_in=None
    )
    plan = BenchPlan(StreamSpec("sim", RATE_HZ, 2), ChannelRoles(0, 1), stimuli, tail_s=0.6, response_s=0.4)

    def progress(event: str, facts: dict[str, Any]) -> None:
        if event == "run_done":
            writer.write_truth(bench.truth())

    run_plan(plan, bench.audio, link, bench.system, bench.time, writer, progress)
    return open_session(folder), bench.truth()


@pytest.mark.parametrize("source", ["mcu", "interface"])
def test_the_session_holds_what_the_world_did(tmp_path: Path, seed: int, source: str) -> None:
    session, truth = measure(tmp_path / "s", seed, source)
    assert session.status == "complete"
    assert session.verify() == []
    assert session.caveats == ()
    assert session.truth is not None
    assert session.blank is not None
    assert len(truth["runs"]) == 2, "the system ran twice"
    assert len(truth["unanswered"]) == 5, "and was muted for the blank run"
    for run, true in zip(session.runs, truth["runs"], strict=True):
        stimuli = true["stimuli"]
        assert len(stimuli) == 6
        frames = run.source.read(0, run.source.n_frames)
        for stimulus in stimuli:
            first = round(stimulus["reference_frame"])
            arrival = round(first + stimulus["latency_audio_s"] * RATE_HZ)
            assert arrival + RATE_HZ // 4 < len(frames), "its response was recorded whole"
            for channel, at in ((0, first), (1, arrival)):
                during = np.std(frames[at : at + 4800, channel])
                before = np.std(frames[at - 2400 : at - 480, channel])
                assert during > 10 * before, f"stimulus {stimulus['index']} on channel {channel}"
        hints = run.hints()
        true_spacing_s = np.diff([stimulus["reference_frame"] for stimulus in stimuli]) / RATE_HZ
        np.testing.assert_allclose(hints.spacing_s, true_spacing_s, rtol=0.006)
        if source == "mcu":
            assert hints.fired is not None
            assert [fired.index for fired in hints.fired] == list(range(6))
            ticks_s = np.diff([fired.tick for fired in hints.fired]) / hints.fired[0].tick_rate_hz
            np.testing.assert_allclose(ticks_s, hints.spacing_s, atol=1e-5)
            assert len(run.pings) > 8
        else:
            assert hints.fired is None
            np.testing.assert_allclose(hints.spacing_s, true_spacing_s, atol=1.5 / RATE_HZ)
        assert hints.elapsed_s == pytest.approx(len(frames) / RATE_HZ, rel=1e-3)
        assert hints.gaps == ()
    session.close()


def test_flagged_losses_are_where_the_world_lost_them(tmp_path: Path, seed: int) -> None:
    session, truth = measure(tmp_path / "s", seed, "mcu", "dropped-frames")
    lost = [item for item in truth["lost_frames"] if item["flagged"]]
    assert len(lost) > 2
    for stream, run in enumerate((session.blank, *session.runs)):
        assert run is not None
        expected = [item["stream_frame"] for item in lost if item["stream"] == stream]
        gaps = run.hints().gaps
        assert [gap.frame for gap in gaps if gap.flagged_by == "backend"] == expected
        assert run.xruns >= len(expected)
        here = [item for item in truth["lost_frames"] if item["stream"] == stream]
        for gap in gaps:  # the clock counts what the flag does not
            near = sum(item["count"] for item in here if abs(item["stream_frame"] - gap.frame) < RATE_HZ)
            assert gap.lost_frames in (None, pytest.approx(near, abs=0.005 * RATE_HZ))
    session.close()


def test_the_same_seed_is_the_same_session(tmp_path: Path, seed: int) -> None:
    for name in ("a", "b"):
        measure(tmp_path / name, seed, "mcu")[0].close()
    names = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert len(names) == 6
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes(), name
