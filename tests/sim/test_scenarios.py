"""Every named world: it builds, renders, and is what its name says."""

from __future__ import annotations

import numpy as np
import pytest

from rig.errors import DeviceNotFound, UsageError
from rig.sim.bench import build_bench
from rig.sim.scenarios import SCENARIOS
from sim.recorder import db, record

EXPECTED = [
    "default",
    "quiet",
    "noisy",
    "echo",
    "inverted",
    "dead-ear",
    "no-answer",
    "suppressed",
    "jitter-buffer-step",
    "restart-spread",
    "dropped-frames",
    "dropped-frames-unflagged",
    "leak",
    "denoiser",
    "opus",
    "lying-driver",
    "narrowband",
    "clipped",
    "swapped",
    "same-signal",
    "hum",
    "crooked",
    "wrong-input",
    "wrong-cable",
    "no-cable",
    "too-loud",
    "moving-mic",
    "long-delay",
    "marks",
    "marks-page",
    "marks-bare",
]


def test_the_names_are_these() -> None:
    assert list(SCENARIOS) == EXPECTED
    assert all(len(s.description) < 100 and not s.description.endswith(".") for s in SCENARIOS.values())


@pytest.mark.parametrize("name", EXPECTED)
def test_each_scenario_is_what_it_says(name: str, seed: int) -> None:
    bench = build_bench(name, seed % 1000)
    frames = record(bench, [0.5, 2.3], 4.2)
    assert np.all(np.isfinite(frames))
    assert np.max(np.abs(frames)) <= 1.0
    reference, ear = frames[:, 0], frames[:, 1]
    if name in ("swapped", "wrong-input"):
        reference, ear = ear, reference
    truth = bench.truth()
    heard = truth["runs"][0]["stimuli"]
    assert len(heard) == (0 if name == "no-answer" else 2)
    assert db(np.mean(reference[24_200:28_000] ** 2)) > -25.0, "the stimulus is on the reference"
    if name == "dead-ear":
        assert not np.any(ear)
        return
    if name == "same-signal":
        assert np.array_equal(reference, ear)
        return
    if name == "too-loud":
        assert np.sum(np.abs(reference) >= 1.0 - 2.0**-20) > 100
        return
    if name == "clipped":
        assert np.sum(np.abs(ear) >= 1.0 - 2.0**-20) > 100
        return
    background = np.mean((ear[:20_000] - ear[:20_000].mean()) ** 2)
    if name == "hum":
        spectrum = np.abs(np.fft.rfft(ear[:19_200] * np.hanning(19_200)))
        assert int(np.argmax(spectrum[5:])) + 5 == 20, "50 Hz"
        assert np.mean(ear[:19_200]) == pytest.approx(0.05, abs=0.01)
        # 30 dB under the stimulus is the noise, 20 dB above it the hum.
        assert db(np.var(ear[:19_200]) / truth["ear_noise_rms"] ** 2) == pytest.approx(50.0, abs=0.5)
        return
    eaten = {s["index"] for s in heard if s["eaten"]}
    for stimulus in heard:
        first = int(stimulus["reference_frame"] + stimulus["latency_audio_s"] * 48_000)
        louder = db(np.mean(ear[first : first + 4800] ** 2) / background)
        if name == "noisy":
            assert 1.0 < louder < 6.0
        elif name == "denoiser":
            assert louder < 18.0
        elif stimulus["index"] not in eaten:
            assert louder > 18.0, (name, louder)


def test_latencies_are_in_the_range_of_the_name(seed: int) -> None:
    for name, low_s, high_s in (("default", 0.150, 0.154), ("long-delay", 1.4, 1.41), ("quiet", 0.150, 0.150)):
        bench = build_bench(name, seed % 1000)
        record(bench, [0.3], 0.6)
        (stimulus,) = bench.truth()["runs"][0]["stimuli"]
        assert low_s <= stimulus["latency_s"] <= high_s + 1e-4, name


def test_unknown_names_and_impossible_settings_are_refused() -> None:
    with pytest.raises(DeviceNotFound, match="no simulated scenario is called 'defualt'") as caught:
        build_bench("defualt", 1)
    assert "jitter-buffer-step" in caught.value.expected
    with pytest.raises(UsageError, match="no setting named snr_dB"):
        build_bench("default", 1, snr_dB=3.0)
    for wrong in (
        {"polarity": 0},
        {"bits": 20},
        {"block_frames": 0},
        {"system": "magic"},
        {"rate_hz": 44_100, "system": "opus"},
        {"latency_s": 0.0001},
        {"system": "opus", "step_s": 0.01},
        {"noise_colour": "brown"},
    ):
        with pytest.raises(UsageError, match="the simulated world cannot have"):
            build_bench("quiet", 1, **wrong)
