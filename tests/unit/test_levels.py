"""Meters, and listening: what is shown of levels, and which losses are told."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scripted_bench import BLOCK, RATE_HZ, AudioScript, ScriptedBench

from rig.bench.listen import Heard, listen
from rig.bench.meter import LATELY_S, SILENT_S, Meter
from rig.cli.main import main
from rig.domain.records import StreamSpec
from rig.errors import AudioLost


def fed(frames: np.ndarray, blocks: int = 97) -> Meter:
    """A meter that was given `frames` in blocks."""
    meter = Meter(frames.shape[1], RATE_HZ)
    for first in range(0, len(frames), blocks):
        meter.feed(frames[first : first + blocks].astype(np.float32))
    return meter


def sine(amplitude: float, seconds: float, offset: float = 0.0) -> np.ndarray:
    return offset + amplitude * np.sin(2.0 * np.pi * 997.0 * np.arange(round(seconds * RATE_HZ)) / RATE_HZ)


def test_peak_rms_and_offset() -> None:
    frames = np.stack([sine(0.5, 2.0), sine(0.1, 2.0, offset=0.2)], axis=1)
    first, second = fed(frames).overall()
    assert first.peak_dbfs == pytest.approx(20 * math.log10(0.5), abs=0.01)
    assert first.rms_dbfs == pytest.approx(20 * math.log10(0.5 / math.sqrt(2)), abs=0.01)
    assert first.dc == pytest.approx(0.0, abs=1e-4)
    assert second.peak_dbfs == pytest.approx(20 * math.log10(0.3), abs=0.01)
    assert second.rms_dbfs == pytest.approx(20 * math.log10(0.1 / math.sqrt(2)), abs=0.01), "the offset is no sound"
    assert second.dc == pytest.approx(0.2, abs=1e-4)
    assert not first.digital_silence


def test_lately_forgets_and_overall_does_not() -> None:
    quiet = sine(0.01, LATELY_S + 0.1)
    meter = fed(np.concatenate([sine(0.5, 1.0), quiet])[:, None])
    (now,), (ever,) = meter.lately(), meter.overall()
    assert now.peak_dbfs == pytest.approx(-40.0, abs=0.1)
    assert ever.peak_dbfs == pytest.approx(-6.0, abs=0.1)


@pytest.mark.parametrize("blocks", [1, 97, 4096])
def test_digital_silence_is_one_value_for_a_while(blocks: int) -> None:
    still = np.full(round(1.1 * SILENT_S * RATE_HZ), 0.25)
    noise = np.random.default_rng(1).normal(0.0, 1e-5, len(still))
    meter = fed(np.stack([still, noise], axis=1), blocks)
    assert [reading.digital_silence for reading in meter.overall()] == [True, False]
    meter.feed(np.full((10, 2), 0.26, np.float32))
    assert [reading.digital_silence for reading in meter.lately()] == [False, False], "it has moved"


def test_a_channel_of_zeros_has_no_level() -> None:
    (reading,) = fed(np.zeros((RATE_HZ, 1))).overall()
    assert (reading.peak_dbfs, reading.rms_dbfs, reading.clipped_samples) == (None, None, 0)


def test_flat_tops_are_clipped_and_one_high_sample_is_not() -> None:
    hot = np.clip(sine(2.0, 0.5), -1.0, 1.0)
    single = sine(0.5, 0.5)
    single[1000] = 1.0
    meter = fed(np.stack([hot, single], axis=1), 4096)
    first, second = meter.overall()
    assert first.clipped_samples > 0.5 * len(hot)
    assert second.clipped_samples == 0


def heard(script: AudioScript, tmp_path: Path, seconds: float = 3.0) -> Heard:
    bench = ScriptedBench(tmp_path / "s", script)
    return listen(bench.audio.open(StreamSpec("scripted", RATE_HZ, 2)), bench.time, seconds)


def test_an_undisturbed_stream_has_lost_nothing(tmp_path: Path) -> None:
    found = heard(AudioScript(), tmp_path)
    assert (found.flagged, found.unflagged, found.lost_frames) == (0, 0, 0)
    assert found.n_frames == pytest.approx(3 * RATE_HZ, abs=BLOCK)


def test_losses_are_counted_once(tmp_path: Path) -> None:
    found = heard(AudioScript(overflow_at=frozenset({60}), lost_before={60: 33, 150: 4800}), tmp_path, 5.0)
    assert (found.flagged, found.unflagged, found.lost_frames) == (2, 0, 4833)


def test_unknown_is_not_zero(tmp_path: Path) -> None:
    assert heard(AudioScript(tells_overflow=False), tmp_path).flagged is None


def test_a_stream_that_stops_is_lost(tmp_path: Path) -> None:
    with pytest.raises(AudioLost, match=r"scripted.* delivered nothing for 1\.\d s after 1\.\d\d s"):
        heard(AudioScript(dies_at={0: 100}), tmp_path)


# --- the command ----------------------------------------------------------------------------------------------------


def document(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, object]:
    assert main(["levels", "--json", "--quiet", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert isinstance(found, dict)
    return found


def test_levels_of_the_simulated_bench(capsys: pytest.CaptureFixture[str]) -> None:
    silent = document(capsys, "--device", "sim", "--seconds", "2")
    played = document(capsys, "--device", "sim", "--seconds", "4", "--play")
    for found in (silent, played):
        assert (found["schema"], found["bench"], found["flagged"]) == ("rig.levels/1", "simulated", 0)
    (before, _), (after, ear) = silent["channels"], played["channels"]  # type: ignore[misc]
    assert before["peak_dbfs"] < -50.0 < -13.0 < after["peak_dbfs"] < -11.0
    assert after["role"] == "reference"
    assert ear["peak_dbfs"] > -30.0, "the simulated system is running"


def test_a_dead_channel_is_flagged(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levels", "--device", "sim:dead-ear", "--seconds", "2", "--play"]) == 0
    said = capsys.readouterr()
    assert "channel 2: digital silence" in said.out
    assert "2: digital silence" in said.err, "and while it runs, in one line where nothing can be redrawn"
    assert max(len(line) for line in (said.out + said.err).splitlines()) <= 80


def test_a_clipped_channel_is_flagged(capsys: pytest.CaptureFixture[str]) -> None:
    ear = document(capsys, "--device", "sim:clipped", "--seconds", "4", "--play")["channels"][1]  # type: ignore[index]
    assert ear["clipped_samples"] > 0
    assert "it clips" in ear["advice"]


def test_simulated_time_does_not_wait_for_a_key(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["levels", "--device", "sim", "--seconds", "0"]) == 2
    assert "never ends" in capsys.readouterr().err
