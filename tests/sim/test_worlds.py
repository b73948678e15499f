"""Truth against the samples, by a plain, finely interpolated correlation that shares nothing with the estimators."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy.signal import fftconvolve

from rig.sim.bench import build_bench
from sim.recorder import cut, db, fire, lag_frames, open_stream, read_frames, record

CLEAN: dict[str, Any] = {"snr_db": 60.0, "reference_snr_db": 70.0}


@pytest.mark.parametrize(
    "world",
    [
        {},
        {"latency_s": 0.0003, "mouth_distance_m": 0.05, "ear_distance_m": 0.05},
        {"latency_s": 1.43217},
        {"board_ppm": 5000.0, "audio_ppm": -80.0},
        {"board_ppm": -5000.0, "board_swing_ppm": 500.0},
        {"slope_ppm": 10.0},
        {"jitter_s": 0.004},
        {"start_spread_s": 0.060, "start_step_s": 0.010},
        {"polarity": -1, "ear_db": 0.0, "bits": 16},
        {"channel_skew_s": 3.21e-5},
        {"ear_distance_m": 1.7},
    ],
    ids=lambda world: ",".join(world) or "plain",
)
def test_the_samples_agree_with_the_truth(world: dict[str, Any], seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, **CLEAN, **world)
    frames = record(bench, [0.5, 2.3, 4.0123], 6.0)
    stimuli = bench.truth()["runs"][0]["stimuli"]
    assert len(stimuli) == 3
    for stimulus in stimuli:
        reference, ear = cut(frames, stimulus, after=78_000)
        found = lag_frames(reference, ear)
        assert found == pytest.approx(stimulus["latency_audio_s"] * 48_000, abs=0.05)
        # A clean path adds nothing: the definition is the pure delay.
        assert stimulus["defined_latency_s"] == pytest.approx(stimulus["latency_audio_s"], abs=1e-8)


def test_a_narrower_check_on_the_default_figure(seed: int) -> None:
    """Without noise the plain correlation is right to a few thousandths of a frame."""
    bench = build_bench("quiet", seed % 1000, snr_db=None, reference_snr_db=None)
    frames = record(bench, [0.31, 1.01], 2.0)
    for stimulus in bench.truth()["runs"][0]["stimuli"]:
        reference, ear = cut(frames, stimulus)
        assert lag_frames(reference, ear) == pytest.approx(stimulus["latency_audio_s"] * 48_000, abs=0.002)


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "click", "mls"])
def test_the_reference_frame_is_where_the_tone_starts(kind: str, seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, snr_db=None, reference_snr_db=None)
    frames = record(bench, [0.7], 1.2, kind)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    at = stimulus["reference_frame"]
    energy = frames[:, 0] ** 2
    assert energy[: int(at) - 200].max() < 1e-12  # nothing but the converters' own ringing comes before
    assert energy[int(at) : int(at + stimulus["length_s"] * 48_000) + 2].sum() > 0.999 * energy.sum()


def test_true_latency_and_stages_add_up(seed: int) -> None:
    bench = build_bench("default", seed % 1000)
    record(bench, [0.5 + 0.307 * k for k in range(12)], 5.0)
    (run,) = bench.truth()["runs"]
    fills = []
    for stimulus in run["stimuli"]:
        assert sum(stimulus["stage_s"].values()) == pytest.approx(stimulus["latency_s"], abs=1e-12)
        assert min(stimulus["stage_s"].values()) >= 0.0
        fills.append(stimulus["frame_fill_s"])
        # What a sample waits for its frame to fill, it need not wait when the frame is played.
        assert stimulus["stage_s"]["capture"] - stimulus["frame_fill_s"] == pytest.approx(0.012)
        assert stimulus["stage_s"]["output"] + stimulus["frame_fill_s"] == pytest.approx(0.048)
    assert max(fills) - min(fills) > 0.005, "the frame phase must move from stimulus to stimulus"
    assert max(fills) <= 0.020


def test_a_sloping_delay_grows_by_its_slope(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, slope_ppm=50.0)
    record(bench, [0.5, 3.5], 4.5)
    first, second = bench.truth()["runs"][0]["stimuli"]
    assert second["latency_s"] - first["latency_s"] == pytest.approx(3.0 * 50e-6, abs=1e-12)
    assert first["latency_s"] == pytest.approx(0.150 + 0.5 * 50e-6, abs=1e-12)


def test_the_interfaces_clock_counts_true_seconds_at_its_own_rate(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, audio_ppm=200.0, latency_s=1.0)
    record(bench, [0.5], 2.0)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    assert stimulus["latency_s"] == 1.0
    assert stimulus["latency_audio_s"] == pytest.approx(1.0002, abs=1e-9)


def test_path_response_is_the_path(seed: int) -> None:
    """Reference convolved with the response gives the ear channel: room, loudspeaker, polarity, latency and all."""
    bench = build_bench(
        "default", seed % 1000, snr_db=None, reference_snr_db=None, polarity=-1, slope_ppm=0.0, leak_db=-6.0
    )
    frames = record(bench, [0.5], 2.0, "mls")
    response = bench.path_response(1, 0, with_leak=True)
    assert response.first_lag_frames == round(response.first_lag_frames)
    heard = fftconvolve(frames[:, 0], response.samples)[-int(response.first_lag_frames) :][: len(frames)]
    error = frames[:, 1] - heard
    assert db(np.sum(error**2) / np.sum(frames[:, 1] ** 2)) < -50.0
    alone = bench.path_response(1, 0)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    assert alone.defined_latency_s() == pytest.approx(stimulus["defined_latency_s"], abs=1e-9)
    assert stimulus["defined_latency_s"] > stimulus["latency_audio_s"] + 2 / 48_000, "this loudspeaker disperses"
    with pytest.raises(KeyError, match="no stimulus 1 passed"):
        bench.path_response(1, 1)


def test_the_echo_is_where_it_is_put_and_the_definition_is_not_moved_by_it(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, echo_db=6.0, echo_s=0.040, snr_db=None)
    frames = record(bench, [0.5], 1.5)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    reference, ear = cut(frames, stimulus)
    expected = (stimulus["latency_audio_s"] + 0.040) * 48_000
    assert lag_frames(reference, ear) == pytest.approx(expected, abs=0.05)  # the strongest arrival is the echo
    assert stimulus["defined_latency_s"] == pytest.approx(stimulus["latency_audio_s"], abs=0.1 / 48_000)


def test_the_leak_comes_first_and_stays_when_the_system_is_muted(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, leak_db=-6.0, leak_distance_m=0.5)
    frames = record(bench, [0.5], 1.5)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    reference, ear = cut(frames, stimulus)
    assert lag_frames(reference, ear[:6000]) == pytest.approx(0.5 / 343.0 * 48_000, abs=0.1)
    begin_s = bench.time.now_s
    stream = open_stream(bench)
    fire(bench, [begin_s + 0.5])
    muted = read_frames(bench, stream, begin_s + 1.5)
    blank = bench.truth()["unanswered"][0]
    assert blank["stream"] == 1
    reference, ear = cut(muted, blank)
    assert lag_frames(reference, ear) == pytest.approx(0.5 / 343.0 * 48_000, abs=0.1)
    assert db(np.mean(ear[7000:12_000] ** 2) / np.mean(ear[:6000] ** 2)) < -35.0, "only noise where the answer was"


def test_a_room_has_its_direct_path_first_and_decays_as_asked(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, rt60_s=0.3, ear_distance_m=1.0, snr_db=None)
    record(bench, [0.5], 1.0)
    (stimulus,) = bench.truth()["runs"][0]["stimuli"]
    response = bench.path_response(1, 0)
    direct = round(stimulus["latency_audio_s"] * 48_000 - response.first_lag_frames)
    energy = response.samples**2
    assert energy[: direct - 150].max() < 1e-9 * energy.max()
    remaining = 10 * np.log10(np.cumsum(energy[::-1])[::-1] + 1e-30)
    from_5 = direct + int(np.argmax(remaining[direct:] < remaining[direct] - 5.0))
    from_20 = direct + int(np.argmax(remaining[direct:] < remaining[direct] - 20.0))
    # Two rooms in a row (mouth to microphone is close and dry) and a truncated tail: the slope is a rough figure.
    assert 0.15 < 4.0 * (from_20 - from_5) / 48_000 < 0.5
    assert energy[direct + 100 :].sum() > 0.2 * energy.sum(), "at 1 m a room is heard"


@pytest.mark.parametrize(("snr_db", "colour"), [(20.0, "white"), (0.0, "white"), (10.0, "room")])
def test_the_noise_has_the_level_asked_for(snr_db: float, colour: str, seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, snr_db=snr_db, noise_colour=colour)
    quiet = build_bench("quiet", seed % 1000, snr_db=None)
    noisy_frames, clean = record(bench, [2.0], 4.0), record(quiet, [2.0], 4.0)
    (stimulus,) = quiet.truth()["runs"][0]["stimuli"]
    first = int(stimulus["reference_frame"] + stimulus["latency_audio_s"] * 48_000)
    signal_power = np.mean(clean[first : first + int(stimulus["length_s"] * 48_000), 1] ** 2)
    noise_power = np.mean((noisy_frames - clean)[:, 1] ** 2)
    assert db(signal_power / noise_power) == pytest.approx(snr_db, abs=0.4)


def test_the_step_splices_old_and_new_delay(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000, **CLEAN, step_at_s=2.0, step_s=0.010, board_ppm=0.0)
    # Played (150 ms later) before, across and after the step.
    frames = record(bench, [0.5, 1.80, 3.0], 4.5)
    before, across, after = bench.truth()["runs"][0]["stimuli"]
    assert [s["delay_changed"] for s in (before, across, after)] == [False, True, False]
    assert after["latency_s"] - before["latency_s"] == pytest.approx(0.010)
    for stimulus in (before, after):
        reference, ear = cut(frames, stimulus)
        assert lag_frames(reference, ear) == pytest.approx(stimulus["latency_audio_s"] * 48_000, abs=0.05)
    # First half of the stimulus with the old delay, second half with the new one.
    reference, ear = cut(frames, across)
    lags = [lag_frames(reference[part], ear[part.start :]) for part in (slice(240, 1800), slice(3300, 5000))]
    assert lags[0] == pytest.approx(before["latency_audio_s"] * 48_000, abs=2.0)
    assert lags[1] == pytest.approx(after["latency_audio_s"] * 48_000, abs=2.0)


def test_truth_is_plain_json_and_names_the_causes(seed: int) -> None:
    bench = build_bench("dropped-frames", seed % 1000)
    record(bench, [0.5 + 0.6 * k for k in range(8)], 6.0)
    truth = json.loads(json.dumps(bench.truth(), allow_nan=False))
    assert truth["scenario"] == "dropped-frames"
    assert truth["seed"] == seed % 1000
    assert len(truth["lost_frames"]) == 2
    assert 1000 <= abs(truth["clocks"]["board_ppm"]) <= 5000
