"""The same seed is the same world, whatever the block size and the order in which its parts are used."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from rig.domain.records import StreamSpec
from rig.domain.timebase import Duration, Instant
from rig.sim.bench import SimBench, build_bench
from sim.recorder import fire, open_stream, record

KINDS = ["default", "opus", "denoiser", "narrowband", "suppressed", "leak"]


@pytest.mark.parametrize("scenario", KINDS)
def test_the_same_seed_twice_is_the_same_to_the_byte(scenario: str, seed: int) -> None:
    first, second = (build_bench(scenario, seed % 1000) for _ in range(2))
    a, b = record(first, [0.4, 1.1], 2.0), record(second, [0.4, 1.1], 2.0)
    assert a.tobytes() == b.tobytes()
    assert json.dumps(first.truth()) == json.dumps(second.truth())


def test_another_seed_is_another_world(seed: int) -> None:
    a, b = (record(build_bench("default", s), [0.4], 1.0) for s in (seed % 1000, seed % 1000 + 1))
    assert not np.array_equal(a[:40_000], b[:40_000])


def _mixed(bench: SimBench, block: int, nap_s: float) -> np.ndarray:
    """Reads for 2 s while somebody else (a serial port) lets time pass between the reads, and now and then writes."""
    bench.system.start(1)
    stream = bench.audio.open(StreamSpec("sim", 48_000, 2, block))
    fire(bench, [0.4, 1.1])
    blocks, k = [], 0
    while True:
        k += 1
        if k % 3 == 0 and bench.time.now_s < 1.5:
            bench.time.sleep_until(bench.time.now().plus(Duration(nap_s)))
        block_read = stream.read(Instant(bench.time.timebase, max(min(bench.time.now_s + 0.02, 2.0), bench.time.now_s)))
        if block_read is not None:
            assert block_read.first_frame == sum(len(b) for b in blocks), "blocks in order, nothing between"
            assert block_read.overflow is False
            blocks.append(block_read.frames)
        elif bench.time.now_s >= 2.0:
            return np.concatenate(blocks)


@pytest.mark.parametrize("scenario", KINDS)
def test_block_size_and_interleaving_change_no_sample(scenario: str, seed: int) -> None:
    plain = _mixed(build_bench(scenario, seed % 1000), 960, 0.0)
    for block, nap_s in ((64, 0.0), (1023, 0.4), (480, 0.0171)):
        other = _mixed(build_bench(scenario, seed % 1000), block, nap_s)
        n = min(len(plain), len(other))
        assert n > 90_000
        assert np.array_equal(plain[:n], other[:n]), (block, nap_s)


@pytest.mark.parametrize("added", [{"hum_db": 10.0}, {"leak_db": -6.0}, {"crosstalk_db": -14.0}, {"dc": 0.01}])
def test_a_cause_that_is_added_does_not_reshuffle_the_others(added: dict[str, float], seed: int) -> None:
    """What an added cause changes is the same with and without noise: the noise itself stayed as it was."""
    base = {"crosstalk_db": None}
    with_noise = [record(build_bench("default", seed % 1000, **{**base, **more}), [0.4], 1.0) for more in ({}, added)]
    without = [
        record(build_bench("default", seed % 1000, **{**base, **more}, snr_db=None), [0.4], 1.0) for more in ({}, added)
    ]
    change, expected = with_noise[1] - with_noise[0], without[1] - without[0]
    assert np.max(np.abs(expected)) > 1e-4
    np.testing.assert_allclose(change, expected, atol=3 * 2.0**-23)


def test_a_run_keeps_its_offset_however_many_blanks_came_before(seed: int) -> None:
    offsets = []
    for n_before in (0, 3):
        bench = build_bench("restart-spread", seed % 1000)
        for _ in range(n_before):
            bench.system.start(1)
            bench.system.stop()
        bench.system.start(2)
        offsets.append(bench.truth()["runs"][-1]["offset_s"])
    assert offsets[0] == offsets[1]
    spread = {round(build_bench_offset(seed % 1000, run), 6) for run in range(1, 13)}
    assert len(spread) > 2, "restarts land in several places"
    assert all(math.isclose(o * 100, round(o * 100), abs_tol=1e-6) for o in spread), "in steps of 10 ms"


def build_bench_offset(seed: int, run: int) -> float:
    bench = build_bench("restart-spread", seed)
    bench.system.start(run)
    return float(bench.truth()["runs"][0]["offset_s"])


def test_a_tone_cut_off_leaves_the_past_alone_and_the_future_silent(seed: int) -> None:
    def run(cut: bool, block: int) -> np.ndarray:
        bench = build_bench("default", seed % 1000, snr_db=None, reference_snr_db=None)
        bench.system.start(1)
        stream = open_stream(bench, block)
        fire(bench, [2.0])  # never cut: proves that the rest of the world goes on
        samples = np.full(31_250 // 2, 60, dtype=np.int8)
        cancel = bench.scene.tone(0.5, samples, 31_250.0)
        never = bench.scene.tone(1.0, samples, 31_250.0)
        bench.time.sleep_until(Instant(bench.time.timebase, 0.7))
        if cut:
            cancel(0.7)
            never(0.7)
        blocks = []
        while (got := stream.read(Instant(bench.time.timebase, 2.5))) is not None:
            blocks.append(got.frames)
        stimuli = bench.truth()["runs"][0]["stimuli"]
        assert len(stimuli) == (2 if cut else 3)
        return np.concatenate(blocks)

    whole, cut = run(False, 480), run(True, 480)
    edge = int(0.7 * 48_000)
    assert np.array_equal(whole[: edge - 480], cut[: edge - 480])
    assert np.max(np.abs(cut[edge + 480 : edge + 40_000, 0])) < 1e-5, "the reference is silent after the cut"
    assert np.max(np.abs(whole[edge + 480 : edge + 3000, 0])) > 0.1
    assert np.max(np.abs(cut[96_000:, 0])) > 0.1, "the other tone still sounds"
    assert np.array_equal(cut[:96_000], run(True, 333)[:96_000])
