"""Faults seen in the field, one test each: levels, polarity, wiring, what is not the response.

Each docstring says what happened to somebody; the test holds the right answer.
"""

from __future__ import annotations

import numpy as np
import pytest
from harness import ROLES, analyse, judge, reasons, refusal
from worlds import RATE_HZ, faults, interferers
from worlds.recording import Recording, Scene, build
from worlds.source import ArraySource

from rig.domain.records import AnalysisHints, Reason, RunAnalysis

TENTH_MS = 0.1e-3
SAMPLE_S = 1.0 / RATE_HZ


def recorded(seed: int, **scene: object) -> Recording:
    """A recording; keywords go to the scene."""
    fields: dict[str, object] = {"kind": "chirp", "n": 8, "snr_db": 30.0} | scene
    return build(Scene(**fields), np.random.default_rng(seed))  # type: ignore[arg-type]


def figures_of(run: RunAnalysis) -> list[float]:
    """All latencies of a run, s."""
    return [t.latency_s for t in run.trials if t.latency_s is not None]


def all_right(recording: Recording, run: RunAnalysis, within_s: float = TENTH_MS, least: int | None = None) -> None:
    """Every stimulus (or at least `least`) is measured, and to `within_s`."""
    judged = judge(recording, run)
    accepted = [j for j in judged if j.accepted]
    assert len(accepted) >= (len(judged) if least is None else least), (reasons(judged), refusal(run))
    assert refusal(run) is None, run.refusal_detail
    worst = max(accepted, key=lambda j: abs(j.error_s))
    assert abs(worst.error_s) <= within_s, worst


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "mls", "click", "speech"])
@pytest.mark.parametrize("snr_db", [None, -30.0, -40.0])
def test_too_little_gain_gives_no_figure(kind: str, snr_db: float | None, seed: int) -> None:
    """With the gain too low an app kept printing the same believable latency; people quoted it."""
    recording = recorded(seed, kind=kind, snr_db=snr_db)
    run = analyse(recording)
    judged = judge(recording, run)
    assert not any(j.gross for j in judged)
    if snr_db is None:
        assert figures_of(run) == []
    assert len(figures_of(run)) >= 3 or refusal(run) is not None


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "mls", "click", "speech"])
def test_inverted_loop(kind: str, seed: int) -> None:
    """A loop wired upside down was refused by one tool and misread by periods of the tone in another."""
    from worlds import paths

    upright = recorded(seed, kind=kind)
    inverted = recorded(seed, kind=kind, path=paths.clean(-1.0))
    run = analyse(inverted)
    all_right(inverted, run)
    assert {t.polarity for t in run.trials if t.valid} == {-1}
    assert figures_of(run) == pytest.approx(figures_of(analyse(upright)), abs=0.5 * SAMPLE_S)


@pytest.mark.parametrize("mains_hz", [50.0, 60.0])
def test_hum_and_offset_far_above_the_click(mains_hz: float, seed: int) -> None:
    """Low-frequency energy dragged the confidence down and hid the spike: click -20 dBFS, hum -6 dBFS, DC 0.1."""
    r = recorded(seed, kind="click", n=12, ear_gain=0.2, snr_db=40.0)
    t = np.arange(r.frames.shape[0]) / RATE_HZ
    frames = r.frames.copy()
    frames[:, 1] *= 0.1 / (r.ear_scale * np.max(np.abs(r.stimulus.wave)))
    frames[:, 1] += 0.5 * np.sin(2 * np.pi * mains_hz * t + 0.7) + 0.1
    run = analyse(r.with_frames(frames))
    all_right(r, run, SAMPLE_S, least=11)
    assert run.levels is not None
    assert run.levels[1].hum_dbfs == pytest.approx(20 * np.log10(0.5 / np.sqrt(2)), abs=4.0)
    assert run.levels[1].dc == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("pedestal", [4.0, -0.3])
def test_both_channels_on_a_pedestal(pedestal: float, seed: int) -> None:
    """A mean that is not removed skews the correlation; a recorder may well sit at an offset, floats even beyond 1."""
    r = recorded(seed)
    from rig.analyse.run import analyse_run

    run = analyse_run(ArraySource(r.frames + pedestal, RATE_HZ, None), ROLES, AnalysisHints(stimulus="chirp"))
    all_right(r, run, SAMPLE_S)


def test_mono_mix_on_both_inputs(seed: int) -> None:
    """A stereo input that is fed the same mono mix gives "0.0 ms", which is no measurement."""
    r = recorded(seed)
    mix = r.frames.sum(axis=1)
    run = analyse(r.with_frames(np.stack([mix, mix], axis=1)))
    assert figures_of(run) == []
    assert refusal(run) is Reason.SAME_SIGNAL, (refusal(run), run.refusal_detail)


def test_bleed_before_the_answer_with_a_limit(seed: int) -> None:
    """The microphone hears the stimulus at once and again through the system; with a lower limit the system counts."""
    r = recorded(seed, latency_s=0.18)
    leaky = faults.with_leak(r, 0.002, 20 * np.log10(r.scene.ear_gain))
    run = analyse(leaky, AnalysisHints(stimulus="chirp", min_latency_s=0.02))
    all_right(leaky, run)


def test_bleed_before_the_answer_without_a_limit(seed: int) -> None:
    """The same without a limit: two arrivals of one strength. Both are told; neither is passed off as certain."""
    r = recorded(seed, latency_s=0.18)
    run = analyse(faults.with_leak(r, 0.002, 20 * np.log10(r.scene.ear_gain)))
    for t in run.trials:
        if t.valid and t.latency_s is not None:
            assert t.latency_s == pytest.approx(0.002, abs=TENTH_MS), t
    told = any(t.dominant_s is not None and abs(t.dominant_s - 0.18) < TENTH_MS for t in run.trials)
    assert told or run.caveats or not figures_of(run)
    if figures_of(run):
        assert run.caveats, "two comparable arrivals, and not a word about it"


def test_suppressed_after_the_second_click(seed: int) -> None:
    """A call app removed the clicks it had learnt: 2 of 20 came through. No average from the survivors."""
    r = recorded(seed, n=20, kind="chirp")
    ear = r.frames[:, 1].copy()
    noise = r.sigma_ear * np.random.default_rng([seed, 1]).standard_normal(ear.size)
    for k in range(2, 20):
        start, stop = faults.clip_span(r, k)
        ear[start - 300 : stop + 300] = noise[start - 300 : stop + 300]
    run = analyse(r.with_frames(np.stack([r.frames[:, 0], ear], axis=1)))
    assert len(run.trials) == 20
    assert [t.valid for t in run.trials[2:]] == [False] * 18
    assert refusal(run) is Reason.TOO_FEW, (refusal(run), run.refusal_detail)


@pytest.mark.parametrize("kind", ["chirp", "click", "mls"])
def test_channels_swapped(kind: str, seed: int) -> None:
    """The test signal was on the other input; some converters swap at random. Never a negative figure."""
    r = recorded(seed, kind=kind, snr_db=45.0)  # as a reference it must be a good one, or it is refused as weak
    run = analyse(r.with_frames(r.frames[:, ::-1]))
    assert figures_of(run) == []
    assert refusal(run) is Reason.SWAPPED_CHANNELS, (refusal(run), run.refusal_detail)


def test_swapping_the_inputs_never_gives_the_same_figure(seed: int) -> None:
    """One tool gave the same offset whichever input came first."""
    r = recorded(seed, kind="chirp")
    forward, backward = figures_of(analyse(r)), figures_of(analyse(r.with_frames(r.frames[:, ::-1])))
    assert len(forward) == 8
    assert not backward


@pytest.mark.parametrize("channel", [0, 1])
@pytest.mark.parametrize("kind", ["chirp", "click"])
def test_a_pop_at_the_start_of_the_take(channel: int, kind: str, seed: int) -> None:
    """A pop, louder than the stimulus, stands in the first 250 ms of each take."""
    r = recorded(seed, kind=kind, n=10)
    rng = np.random.default_rng([seed, 2])
    frames = r.frames.copy()
    length = 900
    pop = rng.standard_normal(length) * np.exp(-np.arange(length) / 150.0)
    at = int(rng.uniform(0.03, 0.2) * RATE_HZ)
    frames[at : at + length, channel] += 0.9 * pop / np.max(np.abs(pop))
    frames = np.clip(frames, -0.99, 0.99)
    run = analyse(r.with_frames(frames))
    played = [t for t in run.trials if t.reference_frame > 0.5 * RATE_HZ]
    assert len(played) == 10
    assert all(t.valid for t in played), [t.reason for t in played]
    assert [t.latency_s for t in played] == pytest.approx(list(r.truth_s), abs=TENTH_MS)
    assert not any(t.valid for t in run.trials if t.reference_frame <= 0.5 * RATE_HZ)


@pytest.mark.parametrize("zeros", [255, 512, 48_000])
def test_the_take_begins_with_exact_zeros(zeros: int, seed: int) -> None:
    """Some drivers begin with a few hundred exact zeros: neither silence nor a shift of anything."""
    r = recorded(seed)
    frames = np.concatenate([np.zeros((zeros, 2)), r.frames])
    run = analyse(r.with_frames(frames))
    base = analyse(r)
    assert figures_of(run) == pytest.approx(figures_of(base), abs=0.05 * SAMPLE_S)
    shift = [t.reference_frame - u.reference_frame for t, u in zip(run.trials, base.trials, strict=True)]
    # Where a fading-in sound starts is a matter of a millisecond; that all start alike is not.
    assert shift == pytest.approx([np.median(shift)] * 8, abs=0.1)
    assert np.median(shift) == pytest.approx(zeros, abs=1e-3 * RATE_HZ)
    assert run.levels is not None
    assert not any(level.digital_silence for level in run.levels)


def test_clipping_is_judged_by_its_flat_tops(seed: int) -> None:
    """A warning built on RMS fired on loud clean speech and missed short flat tops."""
    from rig.analyse.run import analyse_run

    r = recorded(seed, n=6)
    loud = r.frames.copy()
    talk = interferers.make("speech", np.random.default_rng([seed, 1]), loud.shape[0])
    loud[:, 1] = loud[:, 1] * 0.2 + 0.35 * talk / np.max(np.abs(talk))
    loud[:, 1] *= 0.98 / np.max(np.abs(loud[:, 1]))  # loud as can be, nothing clipped
    top = 1.0 - 2.0**-15
    sixteen = np.round(loud * 2.0**15) / 2.0**15
    clean = analyse_run(ArraySource(sixteen, RATE_HZ, top), ROLES, AnalysisHints(stimulus="chirp"))
    assert clean.levels is not None
    assert clean.levels[1].clipped_samples == 0
    assert not any(t.reason is Reason.CLIPPED for t in clean.trials)
    flat = sixteen.copy()
    start, _ = faults.clip_span(r, 2)
    flat[start + 1000 : start + 1012, 1] = top
    tops = analyse_run(ArraySource(flat, RATE_HZ, top), ROLES, AnalysisHints(stimulus="chirp"))
    assert tops.levels is not None
    assert tops.levels[1].clipped_samples == 12


def test_a_float_recording_over_one_is_not_clipped(seed: int) -> None:
    """Float capture may pass 1.0 without anything being cut: peak 1.3, no flat tops, no alarm."""
    from rig.analyse.run import analyse_run

    r = recorded(seed)
    frames = r.frames * (1.3 / np.max(np.abs(r.frames), axis=0))
    run = analyse_run(ArraySource(frames, RATE_HZ, None), ROLES, AnalysisHints(stimulus="chirp"))
    all_right(r, run)
    assert run.levels is not None
    assert [level.clipped_samples for level in run.levels] == [0, 0]
    assert run.levels[0].peak_dbfs == pytest.approx(20 * np.log10(1.3), abs=0.1)


def test_a_door_slams_at_the_reference(seed: int) -> None:
    """A click that nobody played was taken for a stimulus: what does not match the others is not measured."""
    r = recorded(seed, n=10)
    frames = r.frames.copy()
    at = int((r.onsets[3] + r.onsets[4]) / 2)
    rng = np.random.default_rng([seed, 3])
    slam = rng.standard_normal(2000) * np.exp(-np.arange(2000) / 400.0)
    frames[at : at + 2000, 0] += 0.4 * slam / np.max(np.abs(slam))
    run = analyse(r.with_frames(frames))
    extra = [t for t in run.trials if abs(t.reference_frame - at) < 0.05 * RATE_HZ]
    assert not any(t.valid for t in extra)
    others = [t for t in run.trials if t not in extra]
    assert sum(t.valid for t in others) >= 9
