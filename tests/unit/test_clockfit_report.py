"""The clocks in the report, on the simulated bench, where the truth of every clock is known."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.analyse.clockfacts import clock_facts
from rig.analyse.run import analyse_run
from rig.analyse.runclocks import run_clocks
from rig.cli.main import main
from rig.domain.records import ClockEvidence, ClockFacts, RunAnalysis
from rig.session import Session, SessionRun, open_session

Capture = pytest.CaptureFixture[str]


def measure(folder: Path, scenario: str, seed: int, *options: str) -> Session:
    """A simulated session of one run without a blank run; `options` of rig measure."""
    usual = ["--runs", "1", "--stimuli", "12", "--no-blank", "--quiet", "--json"]
    main(["measure", "--device", f"sim:{scenario}", "--seed", str(seed), "--out", str(folder), *usual, *options])
    return open_session(folder)


def clock_facts_of(
    analysis: RunAnalysis, run: SessionRun, session: Session, evidence: ClockEvidence
) -> ClockFacts | None:
    channel = session.roles.ref
    return clock_facts(analysis, run.source, channel, evidence, run_clocks(analysis, run.source, channel, evidence))


def facts_of(session: Session) -> tuple[ClockFacts, RunAnalysis, SessionRun]:
    run = session.runs[0]
    analysis = analyse_run(run.source, session.roles, run.hints(None))
    facts = clock_facts_of(analysis, run, session, run.clocks(session.tick_rate_hz))
    assert facts is not None
    return facts, analysis, run


def true_drifts(session: Session, run: SessionRun) -> dict[str, float]:
    """What each clock did between the first and the last stimulus, ppm."""
    assert session.truth is not None
    stimuli = next(r for r in session.truth["runs"] if r["run"] == run.number)["stimuli"]
    fired = run.clocks().fired
    host_s = stimuli[-1]["start_s"] - stimuli[0]["start_s"]
    board_s = (fired[len(stimuli) - 1].tick - fired[0].tick) / fired[0].tick_rate_hz
    board = board_s / host_s
    audio = 1.0 + 1e-6 * session.truth["clocks"]["audio_ppm"]
    return {
        "audio_host": 1e6 * (audio - 1.0),
        "mcu_host": 1e6 * (board - 1.0),
        "audio_mcu": 1e6 * (audio / board - 1.0),
    }


def check_drifts(facts: ClockFacts, true_ppm: dict[str, float], where: str) -> None:
    for name, ppm in true_ppm.items():
        drift = getattr(facts, name)
        assert drift is not None, f"{where}: no {name}"
        assert drift.low_ppm <= ppm <= drift.high_ppm, f"{where}: {name} was {ppm:.3f}, said {drift}"


@pytest.mark.parametrize(
    ("scenario", "world"),
    [("default", 1), ("default", 2), ("opus", 1), ("noisy", 2), ("dead-ear", 1), ("long-delay", 2)],
)
def test_every_drift_lies_in_its_interval(scenario: str, world: int, tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", scenario, world)
    facts, _, run = facts_of(session)
    check_drifts(facts, true_drifts(session, run), f"{scenario}, seed {world}")
    assert facts.refusal is None
    assert facts.audio_host is not None
    assert facts.audio_mcu is not None
    assert facts.audio_host.high_ppm - facts.audio_host.low_ppm < 120.0  # 20 s, some 40 exchanges
    assert facts.audio_mcu.high_ppm - facts.audio_mcu.low_ppm < 4.0
    session.close()


@pytest.mark.parametrize("stimulus", ["chirp", "chirp-nb", "click", "mls"])
def test_a_lying_driver_stands_beside_what_the_clocks_say(stimulus: str, tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "lying-driver", 3, "--stimulus", stimulus)
    assert session.truth is not None
    device = session.truth["device"]
    facts, _, run = facts_of(session)
    check_drifts(facts, true_drifts(session, run), stimulus)
    assert facts.n_blocks > 20
    off, last, first = facts.adc_claim_error_s, facts.after_last_s, facts.after_first_s
    assert off is not None
    assert last is not None
    assert first is not None
    assert off.low_s <= device["adc_claim_error_s"] <= off.high_s
    woken_s = 40e-6  # the median of how late the host wakes for a block
    assert last.low_s <= device["input_delay_s"] + woken_s <= last.high_s
    assert first.value_s - last.value_s == pytest.approx(480 / 48000, abs=2e-5)
    assert last.low_s > 2.0 * device["input_claimed_s"], "the claim is far from what the clocks say"
    assert facts.adc_claim_age_s == pytest.approx(first.value_s - off.value_s, abs=1e-4)
    # Both stand in the report, in text and in JSON.
    capsys.readouterr()
    main(["analyze", str(tmp_path / "s"), "--quiet"])
    text = capsys.readouterr().out
    row = text.split("the driver's claims beside the clocks, ms\n")[1].splitlines()[1].split()
    assert row[0] == "1"
    assert float(row[1]) == pytest.approx(1e3 * last.value_s, abs=0.006)
    assert row[4] == "5.30"
    assert float(row[8]) == pytest.approx(1e3 * facts.adc_claim_age_s, abs=0.006)
    assert float(row[-3]) == pytest.approx(21.7, abs=0.5)
    main(["analyze", str(tmp_path / "s"), "--quiet", "--json"])
    clocks = json.loads(capsys.readouterr().out)["runs"][0]["clocks"]
    assert clocks["adc_claim_error_s"]["low"] <= 0.0217 <= clocks["adc_claim_error_s"]["high"]
    assert clocks["audio_host_ppm"]["low"] <= session.truth["clocks"]["audio_ppm"] <= clocks["audio_host_ppm"]["high"]
    session.close()


def test_an_honest_driver_is_found_honest(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "default", 4)
    facts, _, _ = facts_of(session)
    assert facts.adc_claim_error_s is not None
    assert facts.adc_claim_error_s.low_s <= 0.0 <= facts.adc_claim_error_s.high_s
    assert facts.adc_claim_error_s.high_s - facts.adc_claim_error_s.low_s < 1.2e-3
    session.close()


def test_the_output_delay_is_seen_where_the_interface_plays(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "lying-driver", 3, "--port", "none")
    facts, _, _ = facts_of(session)
    assert facts.output_s is not None
    assert facts.output_s.low_s <= 0.0478 <= facts.output_s.high_s
    assert facts.output_s.high_s - facts.output_s.low_s < 2e-4
    assert facts.refusal == "no board answered: nothing compares the clocks"
    assert facts.audio_host is facts.mcu_host is facts.audio_mcu is None
    capsys.readouterr()
    main(["analyze", str(tmp_path / "s"), "--quiet"])
    text = " ".join(capsys.readouterr().out.split())
    assert "on the reference 47.80 +/- 0.0" in text
    assert "output claimed 10.70 ms" in text
    assert "nothing compares the clocks" in text
    session.close()


def test_with_the_interface_playing_a_board_still_tells_its_own_drift(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "default", 2, "--lead-in", "speech")
    facts, _, _ = facts_of(session)
    assert session.truth is not None
    assert facts.mcu_host is not None
    swing = session.truth["clocks"]["board_swing_ppm"]
    nominal = session.truth["clocks"]["board_ppm"]
    assert facts.mcu_host.low_ppm - swing <= nominal <= facts.mcu_host.high_ppm + swing
    assert facts.audio_mcu is None
    assert facts.refusal is not None
    session.close()


@pytest.mark.parametrize("scenario", ["dropped-frames", "dropped-frames-unflagged"])
def test_losses_cut_the_stretch_that_is_compared(scenario: str, tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", scenario, 2)
    facts, analysis, _ = facts_of(session)
    assert session.truth is not None
    assert session.truth["lost_frames"]
    assert 3 <= facts.n_pulses < len(analysis.trials)
    assert facts.audio_host is not None
    ppm = session.truth["clocks"]["audio_ppm"]
    assert facts.audio_host.low_ppm <= ppm <= facts.audio_host.high_ppm
    session.close()


def test_swapped_channels_do_not_pass_for_pulses(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "swapped", 1)
    facts, _, _ = facts_of(session)
    assert facts.audio_host is None
    assert facts.after_last_s is None
    assert facts.mcu_host is not None
    session.close()


def test_measure_and_analyze_say_the_same_of_the_clocks(tmp_path: Path, capsys: Capture) -> None:
    capsys.readouterr()
    options = ["--runs", "2", "--stimuli", "5", "--quiet", "--no-blank"]
    main(["measure", "--device", "sim:quiet", "--out", str(tmp_path / "s"), *options])
    printed = capsys.readouterr().out
    main(["analyze", str(tmp_path / "s"), "--quiet"])
    assert capsys.readouterr().out == printed
    assert printed.count(" +/- ") >= 10
    assert all(len(line) <= 80 for line in printed.splitlines())


def test_a_run_with_nothing_to_compare_has_no_clock_facts(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "quiet", 1)
    _, analysis, run = facts_of(session)
    assert clock_facts_of(analysis, run, session, ClockEvidence()) is None
    session.close()


def test_a_driver_that_states_no_times_is_shown_without_them(tmp_path: Path, capsys: Capture) -> None:
    session = measure(tmp_path / "s", "quiet", 1)
    _, analysis, run = facts_of(session)
    evidence = run.clocks(session.tick_rate_hz)
    blocks = tuple(replace(b, adc_time_claimed_s=None) for b in evidence.blocks)
    facts = clock_facts_of(analysis, run, session, replace(evidence, blocks=blocks))
    assert facts is not None
    assert facts.adc_claim_error_s is None
    assert facts.adc_claim_age_s is None
    assert facts.after_last_s is not None
    values: dict[str, Any] = asdict(facts)
    assert not any(isinstance(v, float) and np.isnan(v) for v in values.values())
    session.close()


def test_a_board_whose_sound_comes_late_is_compared_by_rate_alone(tmp_path: Path) -> None:
    session = measure(tmp_path / "s", "quiet", 1)
    analysis, run = facts_of(session)[1:]
    tied = clock_facts_of(analysis, run, session, run.clocks(session.tick_rate_hz))
    evidence = replace(run.clocks(session.tick_rate_hz), untied="nobody knows how late")
    facts = clock_facts_of(analysis, run, session, evidence)
    assert tied is not None
    assert facts is not None
    assert facts.audio_mcu == tied.audio_mcu
    assert facts.audio_host == tied.audio_host
    assert facts.refusal == "nobody knows how late"
    assert [facts.after_last_s, facts.after_first_s, facts.adc_claim_error_s, facts.half_width_s] == [None] * 4
    clocks = run_clocks(analysis, run.source, session.roles.ref, evidence)
    assert clocks is not None
    assert clocks.host_of(np.array([100.0])) is None
    session.close()
