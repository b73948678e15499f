"""What cannot be measured is refused for the right reason, and never becomes a number."""

from __future__ import annotations

import numpy as np
import pytest
from harness import ROLES, analyse, judge, reasons, refusal
from worlds import RATE_HZ, faults
from worlds.recording import Recording, Scene, build
from worlds.source import ArraySource

from rig.domain.records import AnalysisHints, BlankFloor, Gap, Reason, RunAnalysis, StimulusFired

TICK_RATE_HZ = 1e6


def accepted(run: RunAnalysis) -> list[float]:
    """All latencies of a run."""
    return [t.latency_s for t in run.trials if t.latency_s is not None]


def every_reason(run: RunAnalysis) -> set[Reason]:
    """The reasons of the run and of its trials."""
    return {t.reason for t in run.trials if t.reason is not None} | ({why} if (why := refusal(run)) else set())


def refused_as(run: RunAnalysis, *allowed: Reason) -> None:
    """Nothing is accepted, the run is refused, and the reasons include one of `allowed`."""
    assert accepted(run) == []
    assert refusal(run) is not None
    assert every_reason(run) & set(allowed), (refusal(run), run.refusal_detail, every_reason(run))


def recorded(seed: int, **scene: object) -> Recording:
    """A recording of a chirp run; keywords go to the scene."""
    fields: dict[str, object] = {"kind": "chirp", "n": 6, "snr_db": 30.0} | scene
    return build(Scene(**fields), np.random.default_rng(seed))  # type: ignore[arg-type]


def with_channels(recording: Recording, reference: np.ndarray, ear: np.ndarray) -> Recording:
    """The same recording with other channels."""
    return recording.with_frames(np.stack([reference, ear], axis=1))


def test_ear_digitally_silent(seed: int) -> None:
    r = recorded(seed)
    run = analyse(with_channels(r, r.frames[:, 0], np.zeros(r.frames.shape[0])))
    refused_as(run, Reason.DIGITAL_SILENCE)
    assert refusal(run) is Reason.DIGITAL_SILENCE
    assert run.levels is not None
    assert run.levels[1].digital_silence
    assert run.levels[1].noise_dbfs is None


def test_ear_stuck_at_a_constant(seed: int) -> None:
    r = recorded(seed)
    refused_as(analyse(with_channels(r, r.frames[:, 0], np.full(r.frames.shape[0], 0.25))), Reason.DIGITAL_SILENCE)


def test_ear_noise_only(seed: int) -> None:
    refused_as(analyse(recorded(seed, snr_db=None)), Reason.NO_ARRIVAL, Reason.LOW_SNR)


def test_ear_idle_converter_only(seed: int) -> None:
    """Dither of a 16-bit converter is quiet, and is not digital silence."""
    run = analyse(recorded(seed, snr_db=None, interferer="dither"))
    refused_as(run, Reason.NO_ARRIVAL, Reason.LOW_SNR)
    assert Reason.DIGITAL_SILENCE not in every_reason(run)


def test_reference_digitally_silent(seed: int) -> None:
    r = recorded(seed)
    run = analyse(with_channels(r, np.zeros(r.frames.shape[0]), r.frames[:, 1]))
    assert accepted(run) == []
    assert refusal(run) in (Reason.DIGITAL_SILENCE, Reason.NO_STIMULUS)
    assert run.levels is not None
    assert run.levels[0].digital_silence


def test_reference_noise_only(seed: int) -> None:
    r = recorded(seed)
    noise = 1e-3 * np.random.default_rng([seed, 1]).standard_normal(r.frames.shape[0])
    run = analyse(with_channels(r, noise, r.frames[:, 1]))
    assert accepted(run) == []
    # The sound is there, on the ear alone: "no stimulus", or the better guess that the channels are swapped.
    assert refusal(run) in (Reason.NO_STIMULUS, Reason.SWAPPED_CHANNELS), refusal(run)


def test_weak_reference(seed: int) -> None:
    """A reference 22 dB over its noise in the band of the stimulus would pass that noise on to the result."""
    run = analyse(recorded(seed, reference_snr_db=14.0))
    assert accepted(run) == []
    assert every_reason(run) <= {Reason.WEAK_REFERENCE, Reason.NO_STIMULUS, Reason.TOO_FEW}, every_reason(run)


def test_same_signal_twice(seed: int) -> None:
    r = recorded(seed)
    refused_as(analyse(with_channels(r, r.frames[:, 0], r.frames[:, 0])), Reason.SAME_SIGNAL)


@pytest.mark.parametrize("gain", [0.5, -1.0])
def test_same_signal_at_another_level(gain: float, seed: int) -> None:
    """One source on both inputs, one of them turned down or wired upside down.

    That is also how two channels are calibrated against each other: refused, or 0 with a caveat, and nothing else.
    """
    r = recorded(seed)
    run = analyse(with_channels(r, r.frames[:, 0], gain * r.frames[:, 0]))
    assert refusal(run) is not None or run.caveats
    assert accepted(run) == pytest.approx([0.0] * len(accepted(run)), abs=1e-6)


def test_same_signal_through_two_converters(seed: int) -> None:
    """A mono source on both inputs of a real interface differs by its own noise, and is still no measurement."""
    r = recorded(seed, reference_snr_db=60.0)
    sigma = 1e-4
    noise = sigma * np.random.default_rng([seed, 1]).standard_normal(r.frames.shape[0])
    refused_as(analyse(with_channels(r, r.frames[:, 0], r.frames[:, 0] + noise)), Reason.SAME_SIGNAL)


def test_response_later_than_the_window(seed: int) -> None:
    r = recorded(seed, latency_s=0.9, spacing_s=(2.0, 3.0))
    hints = AnalysisHints(stimulus="chirp", max_latency_s=0.5)
    refused_as(analyse(r, hints), Reason.OUTSIDE_WINDOW, Reason.NO_ARRIVAL)


def test_response_earlier_than_the_window(seed: int) -> None:
    r = recorded(seed, latency_s=0.05)
    hints = AnalysisHints(stimulus="chirp", min_latency_s=0.1, max_latency_s=0.5)
    refused_as(analyse(r, hints), Reason.OUTSIDE_WINDOW, Reason.NO_ARRIVAL)


def test_response_cut_off_by_the_end_of_the_file(seed: int) -> None:
    """The last response is half recorded: that trial alone is lost, for that reason."""
    r = recorded(seed, latency_s=0.3)
    end = int(r.onsets[-1] + (0.3 + 0.04) * RATE_HZ)
    cut = r.with_frames(r.frames[:end])
    judged = judge(cut, analyse(cut))
    assert all(j.accepted for j in judged[:-1]), reasons(judged)
    last = judged[-1].trial
    assert last is None or last.reason in (Reason.OUTSIDE_WINDOW, Reason.NO_ARRIVAL), last


def test_too_few_survivors(seed: int) -> None:
    """Four of twelve responses are there: no headline, whatever the four say."""
    r = recorded(seed, n=12)
    ear = r.frames[:, 1].copy()
    noise = np.random.default_rng([seed, 1]).standard_normal(ear.size) * r.sigma_ear
    for index in range(12):
        if index % 3:
            start, stop = faults.clip_span(r, index)
            ear[start - 400 : stop + 400] = noise[start - 400 : stop + 400]
    run = analyse(with_channels(r, r.frames[:, 0], ear))
    assert refusal(run) is Reason.TOO_FEW, (refusal(run), every_reason(run))
    judged = judge(r, run)
    assert [j.index for j in judged if j.accepted] in ([], [0, 3, 6, 9]), "a figure where there was no response"


def test_two_trials_are_too_few(seed: int) -> None:
    assert refusal(analyse(recorded(seed, n=2))) is Reason.TOO_FEW


def stamps(recording: Recording, ppm: float = 200.0, first_tick: int = 7_000_000) -> tuple[StimulusFired, ...]:
    """What a board with a clock of 1 MHz, `ppm` fast, would have reported of these stimuli."""
    seconds = recording.onsets / RATE_HZ * (1.0 + ppm * 1e-6)
    return tuple(StimulusFired(k, first_tick + round(s * TICK_RATE_HZ), TICK_RATE_HZ) for k, s in enumerate(seconds))


@pytest.mark.parametrize("lost", [64, 480, 4096])
def test_frames_lost_inside_a_window(lost: int, seed: int) -> None:
    """Samples vanish between stimulus 4 and its response, unflagged: the board's stamps betray it."""
    r = recorded(seed, n=10)
    at = int(r.onsets[4] + 0.13 * RATE_HZ)
    dropped = r.with_frames(faults.drop_frames(r.frames, at, lost))
    run = analyse(dropped, AnalysisHints(stimulus="chirp", fired=stamps(r)))
    touched = [t for t in run.trials if abs(t.reference_frame - r.onsets[4]) < 4800]
    assert len(touched) == 1
    assert touched[0].reason in (Reason.CLOCK_WITNESS, Reason.GAP_IN_WINDOW), touched[0]
    for t in run.trials:
        assert t.latency_s is None or abs(t.latency_s - r.truth_s[0]) < 0.1e-3, t
    assert sum(t.valid for t in run.trials) >= 5 or refusal(run) is not None


def test_a_loss_that_the_recorder_saw_is_a_gap(seed: int) -> None:
    """The stamps say how much is missing after a stimulus, the recorder where: that is no loss that went unnoticed.

    A gap that it saw elsewhere explains nothing.
    """
    r = recorded(seed, n=10)
    at = int(r.onsets[4] + 0.6 * RATE_HZ)  # long after the response, long before the next stimulus
    dropped = r.with_frames(faults.drop_frames(r.frames, at, 14_400))
    for frame, reason in (
        (at, Reason.GAP_IN_WINDOW),
        (int(r.onsets[4]) - 4800, Reason.CLOCK_WITNESS),
        (int(r.onsets[6]), Reason.CLOCK_WITNESS),
    ):
        hints = AnalysisHints(stimulus="chirp", fired=stamps(r), gaps=(Gap(frame, 14_400, "clock"),))
        trial = analyse(dropped, hints).trials[4]
        assert trial.reason is reason, (frame - at, trial)
        assert trial.note is not None
        assert "frames missing before the next stimulus" in trial.note


def test_no_frames_lost_no_alarm(seed: int) -> None:
    """The same stamps on an intact recording, board clock 5000 ppm off: everything is accepted, the drift is told."""
    r = recorded(seed, n=10)
    run = analyse(r, AnalysisHints(stimulus="chirp", fired=stamps(r, ppm=5000.0)))
    assert all(t.valid for t in run.trials), every_reason(run)
    assert run.drift_ppm == pytest.approx(-5000.0, abs=60.0)


def test_flagged_gap_inside_a_window(seed: int) -> None:
    r = recorded(seed, n=8)
    at = int(r.onsets[2] + 0.1 * RATE_HZ)
    dropped = r.with_frames(faults.drop_frames(r.frames, at, 512))
    run = analyse(dropped, AnalysisHints(stimulus="chirp", gaps=(Gap(at, None, "backend"),)))
    assert run.trials[2].reason is Reason.GAP_IN_WINDOW, run.trials[2]
    assert sum(t.valid for t in run.trials) >= 6
    for t in run.trials:
        assert t.latency_s is None or abs(t.latency_s - r.truth_s[0]) < 0.1e-3, t


def test_leak_that_a_blank_run_showed(seed: int) -> None:
    """The system is silent and the ear hears the mouth after 3 ms: with a blank run on record that is no latency."""
    r = recorded(seed, snr_db=None, interferer="white")
    quiet = with_channels(r, r.frames[:, 0], 1e-4 * np.random.default_rng(seed).standard_normal(r.frames.shape[0]))
    leaky = faults.with_leak(quiet, 0.003, -30.0)
    blank = BlankFloor(leak_lag_s=0.003, leak_db=-30.0, n_trials=10)
    run = analyse(leaky, AnalysisHints(stimulus="chirp", blank=blank))
    assert accepted(run) == []
    assert every_reason(run) & {Reason.LEAK, Reason.NO_ARRIVAL, Reason.OUTSIDE_WINDOW}
    assert Reason.LEAK in every_reason(run), every_reason(run)


def test_leak_beside_a_louder_system(seed: int) -> None:
    """The system's sound stands 20 dB over the leak: it is measured, floor or no floor."""
    r = recorded(seed, ear_gain=0.3)
    leaky = faults.with_leak(r, 0.003, 20 * np.log10(0.3) - 20.0)
    blank = BlankFloor(leak_lag_s=0.003, leak_db=20 * np.log10(0.3) - 20.0, n_trials=10)
    run = analyse(leaky, AnalysisHints(stimulus="chirp", blank=blank))
    assert len(accepted(run)) >= 5, every_reason(run)
    assert accepted(run) == pytest.approx([r.truth_s[0]] * len(accepted(run)), abs=0.1e-3)


def test_leak_without_a_blank_run_is_a_caveat(seed: int) -> None:
    """Nobody muted the system: a first arrival after 3 ms is reported as it is, with a caveat, not refused."""
    r = recorded(seed, snr_db=None)
    quiet = with_channels(r, r.frames[:, 0], 1e-4 * np.random.default_rng(seed).standard_normal(r.frames.shape[0]))
    run = analyse(faults.with_leak(quiet, 0.003, -30.0))
    assert refusal(run) is None, (refusal(run), run.refusal_detail)
    assert accepted(run) == pytest.approx([0.003] * len(accepted(run)), abs=0.1e-3)
    assert run.caveats


def test_swapped_channels(seed: int) -> None:
    r = recorded(seed)
    run = analyse(r.with_frames(r.frames[:, ::-1]))
    refused_as(run, Reason.SWAPPED_CHANNELS)
    assert refusal(run) is Reason.SWAPPED_CHANNELS


@pytest.mark.parametrize("channel", [0, 1])
def test_clipped(channel: int, seed: int) -> None:
    """Flat tops at full scale on either channel, 12 dB too hot."""
    r = recorded(seed, ear_gain=1.0)
    frames = r.frames.copy()
    hot = frames[:, channel] / np.max(np.abs(frames[:, channel])) * 4.0
    top = 1.0 - 2.0**-15
    frames[:, channel] = faults.clip(hot, top)
    from rig.analyse.run import analyse_run

    source = ArraySource(np.round(frames * 2.0**15) / 2.0**15, RATE_HZ, top)
    run = analyse_run(source, ROLES, AnalysisHints(stimulus="chirp"))
    refused_as(run, Reason.CLIPPED)
    assert run.levels is not None
    assert run.levels[channel].clipped_samples > 100
    assert run.levels[1 - channel].clipped_samples == 0


@pytest.mark.parametrize("gain_db", [0.0, 3.0, 6.0, 9.0, 12.0, 16.0])
@pytest.mark.parametrize("delay_s", [0.004, 0.05])
def test_an_echo_stronger_than_the_direct_sound(gain_db: float, delay_s: float, seed: int) -> None:
    """The first arrival, or a refusal; the echo is never given as if it were certain.

    Beyond 10 dB the definition itself no longer counts the direct sound as significant: the echo is then the answer by
    definition, and the only one that may be accepted besides the direct sound.
    """
    from worlds import oracle, paths

    path = paths.echo(delay_s, gain_db)
    r = recorded(seed, path=path, n=10)
    judged = judge(r, analyse(r))
    first = oracle.arrivals(path, (300.0, 3400.0)).first / RATE_HZ
    for j in judged:
        if j.accepted and j.trial is not None and j.trial.latency_s is not None:
            off_s = j.trial.latency_s - j.arrival_s
            assert min(abs(off_s), abs(off_s - first)) < 0.1e-3, (gain_db, off_s, j.trial)
            if gain_db <= 9.0:
                assert abs(off_s) < 0.1e-3, (gain_db, off_s, j.trial)
            if gain_db >= 3.0 and abs(off_s) < 0.1e-3 and j.trial.dominant_s is not None:
                assert j.trial.dominant_s - j.arrival_s == pytest.approx(delay_s, abs=0.1e-3)
    if gain_db <= 6.0:
        assert sum(j.accepted for j in judged) >= 5, reasons(judged)
