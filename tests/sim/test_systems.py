"""Systems that process a stream: the real coder, the telephone, the denoiser; and the plain line's suppressor."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np
import pytest

from rig.domain.waveforms import ideal_waveform, speech_like
from rig.errors import MissingLibrary, UsageError
from rig.sim.bench import SimBench, build_bench
from rig.sim.denoiser import DenoiserProcessor, is_voiced
from rig.sim.narrowband import NarrowbandProcessor, mu_law
from rig.sim.opus import LOOKAHEAD_SAMPLES, OpusProcessor
from sim.recorder import cut, db, fire, lag_frames, open_stream, read_frames, record

RATE = 48_000
DRY: dict[str, Any] = {
    "rt60_s": None,
    "mouth_band_hz": None,
    "speaker_band_hz": None,
    "snr_db": 60.0,
    "noise_colour": "white",
    "slope_ppm": 0.0,
}


def through(processor: Any, samples: np.ndarray) -> np.ndarray:
    frames = np.pad(samples, (0, -len(samples) % 960)).reshape(-1, 960)
    return np.concatenate([processor.process(frame) for frame in frames])


def in_silence(wave: np.ndarray, before_s: float, after_s: float, rng: np.random.Generator) -> np.ndarray:
    padded = np.concatenate((np.zeros(int(before_s * RATE)), wave, np.zeros(int(after_s * RATE))))
    return padded + rng.normal(0.0, 1e-3, len(padded))


def passed_db(processor: Any, wave: np.ndarray, part: slice, rng: np.random.Generator) -> float:
    """Energy of `part` of `wave` after the processor, against before, with a second of background around it."""
    heard = in_silence(wave, 1.0, 0.5, rng)
    played = through(processor, heard)
    late = int(processor.delay_samples)
    first = RATE + part.start
    length = part.stop - part.start
    return db(np.sum(played[first + late : first + late + length] ** 2) / np.sum(heard[first : first + length] ** 2))


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb", "click", "mls"])
def test_the_denoiser_eats_what_comes_bare(kind: str, rng: np.random.Generator) -> None:
    wave = ideal_waveform(kind, RATE, 0.5).astype(np.float64)
    assert passed_db(DenoiserProcessor(), wave, slice(0, len(wave)), rng) < -20.0


@pytest.mark.parametrize("hz", [300.0, 700.0, 1000.0, 3000.0])
def test_the_denoiser_eats_a_long_tone(hz: float, rng: np.random.Generator) -> None:
    wave = 0.5 * np.sin(2 * np.pi * hz * np.arange(RATE) / RATE) * np.hanning(RATE)
    assert passed_db(DenoiserProcessor(), wave, slice(0, RATE), rng) < -20.0


@pytest.mark.parametrize("voice", range(8))
@pytest.mark.parametrize("kind", ["chirp", "chirp-nb"])
def test_the_denoiser_passes_a_chirp_right_after_speech(kind: str, voice: int, rng: np.random.Generator) -> None:
    lead_in = 0.5 * speech_like(voice, 1.0, RATE).astype(np.float64)
    chirp = ideal_waveform(kind, RATE, 0.5).astype(np.float64)
    both = np.concatenate((lead_in, np.zeros(int(0.08 * RATE)), chirp))
    assert passed_db(DenoiserProcessor(), both, slice(len(both) - len(chirp), len(both)), rng) > -3.0


@pytest.mark.parametrize("voice", range(8))
def test_the_denoiser_passes_speech_once_it_has_met_it(voice: int, rng: np.random.Generator) -> None:
    speech = 0.5 * speech_like(voice, 2.0, RATE).astype(np.float64)
    assert passed_db(DenoiserProcessor(), speech, slice(int(0.5 * RATE), len(speech)), rng) > -3.0


def test_the_denoiser_closes_again_after_its_hangover(rng: np.random.Generator) -> None:
    lead_in = 0.5 * speech_like(3, 1.0, RATE).astype(np.float64)
    chirp = ideal_waveform("chirp", RATE, 0.5).astype(np.float64)
    late = np.concatenate((lead_in, np.zeros(int(1.5 * RATE)), chirp))
    assert passed_db(DenoiserProcessor(), late, slice(len(late) - len(chirp), len(late)), rng) < -20.0


def test_noise_and_silence_are_no_voice(rng: np.random.Generator) -> None:
    assert not is_voiced(rng.standard_normal(1920))
    assert not is_voiced(np.zeros(1920))
    t = np.arange(1920) / RATE
    voice = sum(np.sin(2 * np.pi * 140.0 * k * t) / k for k in range(1, 12))
    assert is_voiced(np.asarray(voice))


def _lead_in_run(bench: SimBench, with_speech: bool) -> tuple[np.ndarray, list[dict[str, Any]], int]:
    lead = 0.5 * speech_like(5, 1.0, RATE) if with_speech else np.zeros(RATE, dtype=np.float32)
    wave = np.concatenate((lead, np.zeros(2400, dtype=np.float32), ideal_waveform("chirp", RATE, 0.5)))
    bench.system.start(1)
    stream = open_stream(bench)
    stream.play(wave.astype(np.float32), RATE)
    frames = read_frames(bench, stream, 3.0)
    return frames, bench.truth()["runs"][0]["stimuli"], len(lead) + 2400


def test_in_the_denoiser_scenario_only_the_lead_in_brings_the_chirp_through(seed: int) -> None:
    levels, errors = [], []
    for with_speech in (True, False):
        bench = build_bench("denoiser", seed % 1000, **DRY)
        frames, (stimulus,), lead = _lead_in_run(bench, with_speech)
        first = int(stimulus["reference_frame"]) + lead
        reference = frames[first - 200 : first + 5000, 0]
        ear = frames[first - 200 : first + 20_000, 1]
        at = int(stimulus["latency_audio_s"] * RATE) + 200
        levels.append(db(np.mean(ear[at : at + 4800] ** 2)))
        errors.append(lag_frames(reference, ear) - stimulus["latency_audio_s"] * RATE)
    assert levels[0] - levels[1] > 10.0
    assert abs(errors[0]) < 0.5


def test_opus_really_codes_and_is_late_by_its_lookahead() -> None:
    coder = OpusProcessor()
    chirp = ideal_waveform("chirp", RATE, 0.5).astype(np.float64)
    wave = np.concatenate((np.zeros(RATE), chirp, np.zeros(RATE // 2)))
    played = through(coder, wave)
    assert coder.n_bytes < 24_000 / 8 * (len(played) / RATE) * 2.0
    found = lag_frames(wave[RATE - 200 : RATE + 5000], played[RATE - 200 : RATE + 10_000])
    assert found == pytest.approx(LOOKAHEAD_SAMPLES, abs=4.0)
    aligned = played[LOOKAHEAD_SAMPLES:][: len(wave)]
    difference = db(np.sum((aligned - wave[: len(aligned)]) ** 2) / np.sum(wave**2))
    assert -40.0 < difference < 3.0, "a coder changes the waveform, and keeps its likeness"


def test_opus_at_more_bits_is_more_like_its_input() -> None:
    speech = 0.5 * speech_like(1, 1.0, RATE).astype(np.float64)
    errors = []
    for bit_rate in (12_000, 96_000):
        played = through(OpusProcessor(bit_rate), speech)
        n = len(speech) - LOOKAHEAD_SAMPLES
        errors.append(float(np.sum((played[LOOKAHEAD_SAMPLES:][:n] - speech[:n]) ** 2)))
    assert errors[1] < 0.5 * errors[0]


def test_without_the_coders_library_the_scenario_says_which_one(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def no_av(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "av":
            raise ImportError("No module named 'av'")
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", no_av)
    with pytest.raises(MissingLibrary, match="package av is not installed") as caught:
        build_bench("opus", 1)
    assert "pip install" in caught.value.remedy
    build_bench("default", 1)


def test_the_telephone_stops_above_its_band_and_has_coarse_steps(rng: np.random.Generator) -> None:
    noise = rng.normal(0.0, 0.1, 2 * RATE)
    played = through(NarrowbandProcessor(), noise)[RATE // 2 :]
    power = np.abs(np.fft.rfft(played * np.hanning(len(played)))) ** 2
    hz = np.fft.rfftfreq(len(played), 1 / RATE)
    inside, above = power[(hz > 500) & (hz < 3000)].mean(), power[hz > 4500].mean()
    assert db(above / inside) < -50.0
    t = np.arange(RATE) / RATE
    tone = through(NarrowbandProcessor(), 0.3 * np.sin(2 * np.pi * 1003.0 * t))[RATE // 4 :]
    fitted = np.stack([np.sin(2 * np.pi * 1003.0 * t), np.cos(2 * np.pi * 1003.0 * t)], axis=1)[RATE // 4 :]
    left = tone - fitted @ np.linalg.lstsq(fitted, tone, rcond=None)[0]
    assert -45.0 < db(np.var(left) / np.var(tone)) < -30.0, "eight bits of mu-law are 38 dB"
    ramp = np.linspace(-1.2, 1.2, 20_001)
    levels = np.unique(mu_law(ramp))
    assert len(levels) == 255
    assert levels.max() == pytest.approx(1.0)
    assert np.max(np.abs(mu_law(ramp[np.abs(ramp) < 0.01]) - ramp[np.abs(ramp) < 0.01])) < 3e-4


@pytest.mark.parametrize(("name", "tolerance"), [("narrowband", 0.05), ("opus", 4.0)])
def test_a_stream_is_as_late_as_the_truth_says(name: str, tolerance: float, seed: int) -> None:
    """Its own clock 30 ppm off the interface's; for the coder, within what a coder is known to shift."""
    bench = build_bench(name, seed % 1000, **DRY, telephone_band_hz=None, system_ppm=30.0, audio_ppm=0.0)
    frames = record(bench, [0.7, 1.513, 2.2], 3.0, "chirp-nb", amplitude=0.25)
    for stimulus in bench.truth()["runs"][0]["stimuli"]:
        reference, ear = cut(frames, stimulus)
        assert lag_frames(reference, ear) == pytest.approx(stimulus["latency_audio_s"] * RATE, abs=tolerance)
        assert sum(stimulus["stage_s"].values()) == pytest.approx(stimulus["latency_s"], abs=1e-12)
    assert bench.path_response(1, 0).nominal


def test_a_stream_cannot_be_faster_than_its_frame(seed: int) -> None:
    bench = build_bench("opus", seed % 1000, latency_s=0.020)
    bench.system.start(1)
    stream = open_stream(bench)
    with pytest.raises(UsageError, match=r"cannot be as fast as 0\.02 s"):
        read_frames(bench, stream, 0.1)


def test_muting_a_stream_leaves_noise_alone(seed: int) -> None:
    bench = build_bench("opus", seed % 1000, **DRY)
    bench.system.start(1)
    bench.system.stop()
    stream = open_stream(bench)
    fire(bench, [0.4])
    frames = read_frames(bench, stream, 1.2)
    assert np.std(frames[:, 1]) == pytest.approx(bench.truth()["ear_noise_rms"], rel=0.02)


def test_a_suppressor_takes_the_stimuli_that_the_truth_names(seed: int) -> None:
    bench = build_bench("suppressed", seed % 1000, **DRY)
    frames = record(bench, [0.4 + 0.5 * k for k in range(24)], 13.0)
    stimuli = bench.truth()["runs"][0]["stimuli"]
    taken = [s["eaten"] for s in stimuli]
    assert taken.count("whole") >= 2, taken
    assert taken.count(None) >= 8, taken
    for stimulus in stimuli:
        first = int(stimulus["reference_frame"] + stimulus["latency_audio_s"] * RATE)
        half = int(stimulus["length_s"] * RATE / 2)
        levels = [db(np.mean(frames[k : k + half - 400, 1] ** 2)) for k in (first + 400, first + half)]
        expected = {None: (True, True), "tail": (True, False), "whole": (False, False)}[stimulus["eaten"]]
        assert tuple(level > -50.0 for level in levels) == expected, (stimulus["index"], levels)
