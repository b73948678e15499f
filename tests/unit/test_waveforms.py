"""The stimuli: the board's bit for bit as C makes them, the ideal ones at every rate, and speech-like sound."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.acquire.wire import KINDS
from rig.acquire.wire_export import generate_stimulus_h
from rig.domain.waveforms import (
    BOARD_FULL_SCALE,
    BOARD_TONE_RATE_HZ,
    MLS_CHIPS,
    STIMULI,
    amplitude_steps,
    board_samples,
    ideal_waveform,
    mls_chips,
    speech_like,
)

RATES_HZ = (8000, 11025, 16000, 22050, 44100, 48000, 96000, 192000)
SWEEPS = ("chirp", "chirp-nb", "click")

# The board's arithmetic, in the integer widths of an 8-bit machine.
REFERENCE_C = r"""
#include <stdio.h>
#include <stdlib.h>
#include "stimulus.h"

static void sweep(const struct rig_sweep *s, uint16_t steps)
{
    uint32_t phase = 0, increment = s->first_increment;
    for (uint16_t i = 0; i < s->n_samples; i++) {
        uint16_t mirrored = (uint16_t)(s->n_samples - 1u - i), from_end = i < mirrored ? i : mirrored;
        uint8_t edge = from_end < s->edge_samples ? rig_edge[(from_end * s->edge_step) >> 16] : 255;
        uint16_t gain = (uint16_t)(((uint32_t)(edge + (edge >> 7)) * steps) >> 8);
        int16_t product = (int16_t)(rig_sine[phase >> 24] * (int16_t)gain + 128);
        putchar((uint8_t)(int8_t)(product >> 8));
        phase += increment;
        increment += s->increment_step;
    }
}

static void sequence(uint16_t steps)
{
    uint16_t state = RIG_MLS_SEED;
    int8_t level = (int8_t)((RIG_FULL_SCALE * (uint32_t)steps + 128) >> 8);
    for (uint16_t chip = 0; chip < RIG_MLS_CHIPS; chip++) {
        uint8_t low = state & 1;
        for (uint8_t i = 0; i < RIG_MLS_CHIP_SAMPLES; i++)
            putchar((uint8_t)(low ? level : (int8_t)-level));
        state = (uint16_t)((state >> 1) ^ (low ? RIG_MLS_TAPS : 0));
    }
}

int main(int argc, char **argv)
{
    int kind = argc > 2 ? atoi(argv[1]) : -1;
    for (uint8_t i = 0; i < RIG_N_SWEEPS; i++)
        if (rig_sweeps[i].kind == kind) {
            sweep(&rig_sweeps[i], (uint16_t)atoi(argv[2]));
            return 0;
        }
    if (kind >= 0)
        sequence((uint16_t)atoi(argv[2]));
    return 0;
}
"""


@pytest.fixture(scope="module")
def c_board(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that prints the samples of kind number argv[1] at argv[2] 256ths, as the board's C makes them."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc here")
    folder = tmp_path_factory.mktemp("stimulus")
    (folder / "stimulus.h").write_text(generate_stimulus_h(), encoding="ascii")
    (folder / "board.c").write_text(REFERENCE_C, encoding="ascii")
    subprocess.run(
        [
            "gcc",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-fsanitize=undefined",
            "-fno-sanitize-recover",
            "-o",
            "board",
            "board.c",
        ],
        cwd=folder,
        check=True,
    )
    return folder / "board"


@pytest.mark.parametrize("kind", STIMULI)
@pytest.mark.parametrize("steps", [1, 3, 100, 179, 255, 256])
def test_c_makes_the_same_bytes(c_board: Path, kind: str, steps: int) -> None:
    made = subprocess.run([c_board, str(KINDS.index(kind)), str(steps)], capture_output=True, check=True).stdout
    ours = board_samples(kind, steps / 256)
    theirs = np.frombuffer(made, dtype=np.int8)
    assert len(theirs) == len(ours)
    assert np.flatnonzero(theirs != ours).tolist() == []


@pytest.mark.parametrize("kind", STIMULI)
def test_the_board_plays_the_nominal_length_at_full_scale(kind: str) -> None:
    samples = board_samples(kind, 1.0)
    assert samples.dtype == np.int8
    assert 0.0 <= STIMULI[kind].duration_s - len(samples) / BOARD_TONE_RATE_HZ < 1.0 / BOARD_TONE_RATE_HZ
    assert BOARD_FULL_SCALE - 5 <= max(samples.max(), -int(samples.min())) <= BOARD_FULL_SCALE
    assert abs(float(samples.mean())) < 0.35  # a 0.3 % offset would be heard as a step


@pytest.mark.parametrize("kind", STIMULI)
def test_the_board_and_the_ideal_shape_are_one_stimulus(kind: str) -> None:
    samples = board_samples(kind, 1.0) / BOARD_FULL_SCALE
    ideal = ideal_waveform(kind, BOARD_TONE_RATE_HZ, 1.0)[: len(samples)].astype(np.float64)
    if kind == "mls":
        # The board's chips are rectangular: compare below the edge of the band. Four samples centre on 1.5, the ideal
        # chip on 2.
        cycles = np.fft.rfftfreq(len(samples))
        low = cycles * BOARD_TONE_RATE_HZ < 5000.0
        ideal = np.fft.irfft(np.fft.rfft(ideal) * low * np.exp(1j * np.pi * cycles), len(samples))
        samples = np.fft.irfft(np.fft.rfft(samples) * low, len(samples))
    match = samples @ ideal / np.sqrt((samples @ samples) * (ideal @ ideal))
    assert match > 0.9995


@pytest.mark.parametrize("kind", ["chirp", "chirp-nb"])
def test_the_frequency_rises_in_a_straight_line(kind: str) -> None:
    shape = STIMULI[kind]
    assert shape.first_hz is not None
    assert shape.last_hz is not None
    wave = ideal_waveform(kind, 192000, 1.0).astype(np.float64)
    spectrum = np.fft.fft(wave)
    spectrum[len(wave) // 2 :] = 0.0
    frequency_hz = np.diff(np.unwrap(np.angle(np.fft.ifft(spectrum)))) * 192000 / (2 * np.pi)
    t_s = (np.arange(len(frequency_hz)) + 0.5) / 192000
    straight_hz = shape.first_hz + (shape.last_hz - shape.first_hz) * t_s / shape.duration_s
    inside = slice(len(t_s) // 10, -len(t_s) // 10)
    assert np.median(np.abs(frequency_hz - straight_hz)[inside]) < 6.0  # ripple of the analytic signal
    assert np.polyfit(t_s[inside], frequency_hz[inside], 1)[0] == pytest.approx(
        (shape.last_hz - shape.first_hz) / shape.duration_s, rel=2e-3
    )


def test_the_amplitude_of_the_board_is_rounded_to_256ths() -> None:
    np.testing.assert_array_equal(board_samples("chirp", 0.7), board_samples("chirp", 179 / 256))
    assert board_samples("mls", 0.5).max() == 64
    assert amplitude_steps(1.0) == 256
    assert amplitude_steps(0.002) == 1


@pytest.mark.parametrize("amplitude", [0.0, -0.1, 1.01, 0.001, float("nan"), float("inf")])
def test_an_amplitude_that_cannot_be_is_refused(amplitude: float) -> None:
    with pytest.raises(ValueError, match="amplitude"):
        board_samples("chirp", amplitude)


def test_an_unknown_kind_or_a_rate_that_is_too_low_is_refused() -> None:
    with pytest.raises(KeyError):
        board_samples("warble", 0.5)
    with pytest.raises(KeyError):
        ideal_waveform("warble", 48000, 0.5)
    with pytest.raises(ValueError, match="at least 8000"):
        ideal_waveform("chirp", 4000, 0.5)
    with pytest.raises(ValueError, match="amplitude"):
        ideal_waveform("chirp", 48000, 2.0)


def test_the_sequence_is_of_maximum_length() -> None:
    # Golomb: one more of one sign than of the other, and an autocorrelation of -1 at every shift but 0.
    chips = mls_chips().astype(np.int64)
    assert abs(int(chips.sum())) == 1
    spectrum = np.fft.fft(chips)
    circular = np.rint(np.fft.ifft(spectrum * np.conj(spectrum)).real).astype(int)
    assert circular[0] == MLS_CHIPS
    assert set(circular[1:].tolist()) == {-1}


@pytest.mark.parametrize("kind", STIMULI)
@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_the_ideal_shape_keeps_to_its_length_level_and_band(kind: str, rate_hz: int) -> None:
    shape = STIMULI[kind]
    wave = ideal_waveform(kind, rate_hz, 0.7)
    assert wave.dtype == np.float32
    assert abs(len(wave) - shape.duration_s * rate_hz) <= 1.0
    assert 0.66 < float(np.max(np.abs(wave))) <= 0.7 + 1e-6
    power = np.abs(np.fft.rfft(wave, 1 << 17)) ** 2
    hz = np.fft.rfftfreq(1 << 17, 1.0 / rate_hz)
    low, high = shape.band_hz
    assert power[(hz > low * 0.8) & (hz < high * 1.05)].sum() / power.sum() > (0.93 if kind == "mls" else 0.985)
    assert power[hz > max(0.48 * rate_hz, 1.1 * high)].sum() / power.sum() < 1e-4


@pytest.mark.parametrize("kind", SWEEPS)
def test_the_ideal_shape_is_the_same_at_every_rate(kind: str) -> None:
    fine, coarse = ideal_waveform(kind, 192000, 1.0), ideal_waveform(kind, 48000, 1.0)
    np.testing.assert_allclose(fine[::4][: len(coarse)], coarse, atol=2e-4)


def test_a_rate_that_cannot_carry_the_whole_sweep_does_not_alias() -> None:
    # Above 0.45 of the rate the sweep fades; an alias would come back down at the end.
    wave = ideal_waveform("chirp", 8000, 1.0).astype(np.float64)
    at_s = np.arange(len(wave)) / 8000
    silent_from_s = (0.45 * 8000 - 200.0) / 73000.0
    assert np.max(np.abs(wave[at_s > silent_from_s])) < 1e-3
    assert np.max(np.abs(wave[at_s < 0.9 * silent_from_s])) > 0.95


def test_speech_is_replayed_by_its_seed() -> None:
    np.testing.assert_array_equal(speech_like(5, 1.0, 16000), speech_like(5, 1.0, 16000))
    other = np.corrcoef(speech_like(5, 1.0, 16000), speech_like(6, 1.0, 16000))[0, 1]
    assert abs(other) < 0.3


def test_speech_is_the_same_utterance_at_every_rate() -> None:
    fine, coarse = speech_like(7, 1.5, 48000), speech_like(7, 1.5, 16000)
    assert np.corrcoef(fine[::3], coarse)[0, 1] > 0.99


@pytest.mark.parametrize("number", range(6))
def test_speech_has_the_marks_of_speech(number: int) -> None:
    rate_hz = 16000
    wave = speech_like(number, 6.0, rate_hz).astype(np.float64)
    assert len(wave) == 6 * rate_hz
    assert np.max(np.abs(wave)) == pytest.approx(1.0)
    power = np.abs(np.fft.rfft(wave)) ** 2
    hz = np.fft.rfftfreq(len(wave), 1 / rate_hz)

    def share_db(low_hz: float, high_hz: float) -> float:
        return float(10 * np.log10(power[(hz >= low_hz) & (hz < high_hz)].sum() / power.sum()))

    assert share_db(80, 1000) > -3.0  # most of it in the first formant
    assert -25.0 < share_db(1000, 4000) < -2.0
    assert -30.0 < share_db(4000, 8000) < -8.0  # fricatives
    assert share_db(0, 40) < -60.0
    # Syllables: the envelope beats between 2 and 8 times a second more than anywhere from 8 to 20.
    envelope = np.sqrt(np.convolve(wave**2, np.hanning(320) / 160.0, "same"))[:: rate_hz // 100]
    beat = np.abs(np.fft.rfft(envelope - envelope.mean())) ** 2
    beat_hz = np.fft.rfftfreq(len(envelope), 0.01)
    slow, fast = (beat[(beat_hz >= a) & (beat_hz < b)].sum() for a, b in ((2.0, 8.0), (8.0, 20.0)))
    assert slow > 1.5 * fast


@given(seed=st.integers(0, 2**32 - 1), duration_s=st.floats(0.001, 0.6), rate_hz=st.sampled_from(RATES_HZ))
def test_speech_of_any_length_is_finite(seed: int, duration_s: float, rate_hz: int) -> None:
    wave = speech_like(seed, duration_s, rate_hz)
    assert len(wave) == round(duration_s * rate_hz)
    assert np.all(np.isfinite(wave))


@pytest.mark.parametrize(("duration_s", "rate_hz"), [(0.0, 48000), (-1.0, 48000), (float("nan"), 48000), (1.0, 7999)])
def test_speech_that_cannot_be_is_refused(duration_s: float, rate_hz: int) -> None:
    with pytest.raises(ValueError, match="speech"):
        speech_like(1, duration_s, rate_hz)
