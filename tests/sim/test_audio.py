"""The driver of the simulated interface: blocks in time, lost frames, claims, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from rig.domain.records import StreamSpec
from rig.domain.timebase import Instant
from rig.errors import AudioLost, BenchNotReady
from rig.sim.bench import build_bench
from sim.recorder import fire, open_stream, read_blocks, record


def test_blocks_come_when_they_are_due_and_not_before(seed: int) -> None:
    bench = build_bench("default", seed % 1000)
    stream = open_stream(bench, 480)
    assert stream.read(Instant(bench.time.timebase, 0.005)) is None
    assert bench.time.now_s == pytest.approx(0.005, abs=1e-9), "a deadline is waited for, and not overslept"
    blocks = read_blocks(bench, stream, 1.0)
    times = np.array([b.arrived.seconds for b in blocks])
    assert np.all(np.diff(times) >= 0.0)
    ready = (np.arange(len(blocks)) + 1) * 0.01 + bench.spec.input_delay_s
    assert np.all(times - ready > -1e-4)
    assert np.median(times - ready) < 1e-3
    assert [b.first_frame for b in blocks] == [480 * k for k in range(len(blocks))]
    assert all(b.frames.dtype == np.float32 and b.frames.shape == (480, 2) for b in blocks)


@pytest.mark.parametrize("flagged", [True, False])
def test_dropped_frames_are_really_gone(flagged: bool, seed: int) -> None:
    starts = [0.5 + 0.7 * k for k in range(8)]
    name = "dropped-frames" if flagged else "dropped-frames-unflagged"
    quiet = {"snr_db": 60.0, "slope_ppm": 0.0}
    bench, whole = build_bench(name, seed % 1000, **quiet), build_bench(name, seed % 1000, **quiet, drop_every=None)
    bench.system.start(1)
    stream = open_stream(bench, 441)
    fire(bench, starts)
    blocks = read_blocks(bench, stream, 7.0)
    frames = np.concatenate([b.frames for b in blocks])
    complete = record(whole, starts, 7.0)
    lost = bench.truth()["lost_frames"]
    assert [gone["count"] for gone in lost] == [480, 480]
    first, second = (gone["stream_frame"] for gone in lost)
    assert np.array_equal(frames[:first], complete[:first])
    assert np.array_equal(frames[first:second], complete[first + 480 : second + 480])
    assert np.array_equal(frames[second : second + 9000], complete[second + 960 : second + 9960])
    for gone, trial in zip(lost, (3, 7), strict=True):
        stimulus = bench.truth()["runs"][0]["stimuli"][trial]
        position = gone["world_frame"] / 48_000
        assert stimulus["start_s"] < position < stimulus["start_s"] + stimulus["latency_s"]
        assert stimulus["reference_frame"] < gone["stream_frame"]
    for stimulus in bench.truth()["runs"][0]["stimuli"]:  # also after a loss: where it is in the recording
        at = int(stimulus["reference_frame"])
        before, after = frames[at - 300 : at - 20, 0], frames[at + 2 : at + 302, 0]
        assert np.mean(after**2) > 1000.0 * np.mean(before**2)
    marked = [b.first_frame for b in blocks if b.overflow]
    assert marked == ([first, second] if flagged else [])


def test_a_reader_that_sleeps_too_long_loses_frames_and_is_told(seed: int) -> None:
    bench = build_bench("default", seed % 1000, ring_s=0.5)
    stream = open_stream(bench, 480)
    bench.time.sleep_until(Instant(bench.time.timebase, 2.0))
    blocks = read_blocks(bench, stream, 3.0)
    (late,) = [k for k, b in enumerate(blocks) if b.overflow]
    assert late == 50, "what fitted into half a second was kept"
    assert blocks[late].first_frame == late * 480
    lost = bench.truth()["lost_frames"]
    assert {gone["cause"] for gone in lost} == {"overflow"}
    total = sum(gone["count"] for gone in lost)
    assert sum(len(b.frames) for b in blocks) + total == pytest.approx(3.0 * 48_000, abs=1500)


def test_the_driver_claims_what_it_is_told_to_claim(seed: int) -> None:
    for name, error_s in (("default", 0.0), ("lying-driver", 0.0217)):
        bench = build_bench(name, seed % 1000)
        stream = open_stream(bench)
        block = read_blocks(bench, stream, 0.1)[0]
        truth = bench.truth()
        first_s = truth["streams"][0]["first_frame_s"]
        assert block.adc_time_claimed_s == pytest.approx(first_s + error_s, abs=1e-9)
        device = truth["device"]
        assert stream.granted.input_latency_claimed_s == device["input_claimed_s"]
        assert stream.granted.output_latency_claimed_s == device["output_claimed_s"]
        assert (device["input_claimed_s"] == device["input_delay_s"]) is (name == "default")
        assert (device["output_claimed_s"] == device["output_delay_s"]) is (name == "default")


def test_playing_goes_out_at_the_frame_asked_for_plus_the_true_output_delay(seed: int) -> None:
    bench = build_bench("lying-driver", seed % 1000, snr_db=None, reference_snr_db=None, audio_ppm=0.0)
    stream = open_stream(bench)
    read_blocks(bench, stream, 0.2)
    wave = np.zeros(101, dtype=np.float32)
    wave[50] = 1.0
    assert stream.play(wave, 20_000) == 20_000
    at_once = stream.play(wave, 0)
    assert 0.2 * 48_000 <= at_once <= 0.25 * 48_000, "too late is as soon as possible"
    blocks = read_blocks(bench, stream, 0.6)
    heard = np.abs(np.concatenate([b.frames for b in blocks])[:, 0])
    first_frame, delay = blocks[0].first_frame, bench.spec.output_delay_s * 48_000
    for asked in (at_once, 20_000):
        near = round(asked + 50 + delay) - first_frame
        loudest = int(np.argmax(heard[near - 400 : near + 400])) + near - 400 + first_frame
        assert loudest == pytest.approx(asked + 50 + delay, abs=1.0)
    assert [s["source"] for s in bench.truth()["unanswered"]] == ["interface", "interface"]


def test_more_channels_are_there_and_carry_noise_alone(seed: int) -> None:
    bench = build_bench("quiet", seed % 1000)
    stream = open_stream(bench, channels=4)
    fire(bench, [0.3])
    frames = np.concatenate([b.frames for b in read_blocks(bench, stream, 0.6)])
    assert frames.shape[1] == 4
    assert 0 < np.max(np.abs(frames[:, 2:])) < 1e-3
    assert not np.array_equal(frames[:, 2], frames[:, 3])


def test_sixteen_bits_are_sixteen_bits(seed: int) -> None:
    frames = record(build_bench("default", seed % 1000, bits=16), [0.3], 0.6)
    steps = frames * 2**15
    assert np.array_equal(steps, np.rint(steps))
    finer = record(build_bench("default", seed % 1000, bits=24), [0.3], 0.6) * 2**15
    assert not np.array_equal(finer, np.rint(finer))


def test_what_the_interface_does_not_offer_is_refused(seed: int) -> None:
    bench = build_bench("default", seed % 1000)
    with pytest.raises(BenchNotReady, match="does not run at 44100 Hz"):
        bench.audio.open(StreamSpec("sim", 44_100, 2))
    with pytest.raises(BenchNotReady, match="cannot record 1 channels"):
        bench.audio.open(StreamSpec("sim", 48_000, 1))
    stream = open_stream(bench)
    stream.close()
    stream.close()
    with pytest.raises(AudioLost, match="the audio stream is closed"):
        stream.read(Instant(bench.time.timebase, 1.0))


@pytest.mark.parametrize("rate_hz", [16_000, 44_100, 96_000])
def test_other_rates_of_the_interface(rate_hz: int, seed: int) -> None:
    bench = build_bench("default", seed % 1000, rate_hz=rate_hz)
    frames = record(bench, [0.3], 1.0)
    assert len(frames) == pytest.approx(rate_hz, abs=0.03 * rate_hz)
    assert bench.audio.devices()[0]["rates_hz"] == [rate_hz]
