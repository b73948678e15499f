"""Spacing of stimuli and what the interface plays."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import soundfile
from hypothesis import given
from hypothesis import strategies as st

from rig.bench import draw_spacing, plan_runs
from rig.bench.plan import BLANK_COUNT, blank_plan, playback
from rig.domain.records import StimulusPlan
from rig.domain.waveforms import ideal_waveform
from rig.errors import BadInput, UsageError


@given(
    seed=st.integers(0, 2**32 - 1),
    count=st.integers(1, 60),
    least=st.floats(0.05, 3.0),
    extra=st.floats(0.0, 2.0),
)
def test_spacings_stay_in_their_range(seed: int, count: int, least: float, extra: float) -> None:
    spacing = draw_spacing(seed, count, least, least + extra)
    assert len(spacing) == count - 1
    assert all(least <= step <= least + extra for step in spacing)
    assert spacing == draw_spacing(seed, count, least, least + extra)


@pytest.mark.parametrize("frame_s", [0.020, 0.010])
def test_stimuli_fall_on_every_phase_of_a_frame(seed: int, frame_s: float) -> None:
    # Whatever phase the system's frames have, the mean wait of 20 stimuli for the end of a frame is close to half a
    # frame. Independent draws would scatter by 29 % / sqrt(20) = 6.5 % of a frame; one in each stratum by far less.
    errors = []
    for draw in range(100):
        at_s = np.concatenate(([0.0], np.cumsum(draw_spacing(seed + draw, 20, 1.0, 1.6))))
        for shift in np.linspace(0.0, frame_s, 7):
            errors.append(np.mean(((at_s + shift) % frame_s) / frame_s) - 0.5)
    assert np.sqrt(np.mean(np.square(errors))) < 0.035


def test_nothing_beats_with_frames(seed: int) -> None:
    # Successive steps modulo 20 ms are as spread as draws: no step repeats the last.
    spacing = np.array(draw_spacing(seed, 200, 1.0, 1.6)) % 0.02 / 0.02
    turns = np.exp(2j * np.pi * spacing)
    assert abs(np.mean(turns)) < 0.25, "steps prefer one phase"
    assert abs(np.mean(turns[1:] * np.conj(turns[:-1]))) < 0.25, "steps advance by a constant"


@pytest.mark.parametrize(("count", "least", "most"), [(0, 1.0, 2.0), (3, 0.0, 1.0), (3, 2.0, 1.0), (3, -1.0, 1.0)])
def test_an_empty_range_is_refused(count: int, least: float, most: float) -> None:
    with pytest.raises(UsageError, match="stimuli"):
        draw_spacing(1, count, least, most)


def test_each_run_has_its_own_spacing(seed: int) -> None:
    settings = {"min_spacing_s": 1.0, "max_spacing_s": 1.5, "amplitude": 0.5, "source": "mcu"}
    runs = plan_runs(seed, 3, 20, "chirp", **settings)
    assert len({run.spacing_s for run in runs}) == 3
    assert runs == plan_runs(seed, 3, 20, "chirp", **settings)
    assert runs[:2] == plan_runs(seed, 2, 20, "chirp", **settings), "more runs leave the first as they were"
    assert runs != plan_runs(seed + 1, 3, 20, "chirp", **settings)


def test_the_blank_run_is_short() -> None:
    plan = StimulusPlan("mls", 20, tuple(1.0 + k for k in range(19)), 0.25, "mcu")
    blank = blank_plan(plan)
    assert (blank.kind, blank.count, blank.amplitude) == ("mls", BLANK_COUNT, 0.25)
    assert blank.spacing_s == plan.spacing_s[: BLANK_COUNT - 1]
    single = StimulusPlan("mls", 1, (), 0.25, "mcu")
    assert blank_plan(single) == single


def test_a_lead_in_is_another_utterance_each_time() -> None:
    plan = StimulusPlan("chirp", 2, (3.0,), 0.25, "interface", lead_in="speech")
    first, second = playback(plan, 16_000, 0), playback(plan, 16_000, 1)
    chirp = ideal_waveform("chirp", 16_000, 0.25)
    for made in (first, second):
        np.testing.assert_array_equal(made.wave[made.stimulus_at :], chirp)
        assert made.wave.dtype == np.float32
        assert np.max(np.abs(made.wave[: made.stimulus_at])) == pytest.approx(0.25)
        assert not np.any(made.wave[made.stimulus_at - 480 : made.stimulus_at]), "a pause before the stimulus"
    assert not np.array_equal(first.wave, second.wave)


def test_a_wav_is_played_from_its_first_channel_at_the_plan_s_amplitude(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    path = tmp_path / "speech.wav"
    sound = (0.1 * rng.standard_normal((48_000, 2))).astype(np.float32)
    for channels in (1, 2):
        soundfile.write(path, sound[:, :channels], 48_000, subtype="FLOAT")
        made = playback(StimulusPlan("wav", 1, (), 0.5, "interface", wav=str(path)), 48_000, 0)
        expected = sound[:, 0] * (0.5 / np.max(np.abs(sound[:, 0])))
        np.testing.assert_allclose(made.wave, expected, rtol=1e-6)


def test_a_wav_that_cannot_be_played_is_refused(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "speech.wav"
    plan = StimulusPlan("wav", 1, (), 0.5, "interface", wav=str(path))
    with pytest.raises(BadInput, match="does not exist"):
        playback(plan, 48_000, 0)
    for seconds, rate_hz, gain, what in [
        (1.0, 44_100, 0.1, "has 44100 Hz, the interface 48000 Hz"),
        (11.0, 48_000, 0.1, r"is 11\.0 s long"),
        (0.2, 48_000, 0.1, r"is 0\.20 s long"),
        (1.0, 48_000, 0.0, "is silent"),
    ]:
        soundfile.write(path, gain * rng.uniform(-1, 1, round(seconds * rate_hz)), rate_hz, subtype="PCM_16")
        with pytest.raises(UsageError, match=what):
            playback(plan, 48_000, 0)


def test_steps_of_two_plans_are_not_shared(seed: int) -> None:
    # Neighbouring seeds are as different as far ones.
    drawn = [draw_spacing(seed + k, 30, 1.0, 1.6) for k in range(5)]
    for one, other in pairwise(drawn):
        assert abs(np.corrcoef(one, other)[0, 1]) < 0.6
