"""The latency as defined, from responses whose first arrival is known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import signal

from rig.sim.bandlimited import place_impulses
from rig.sim.truth import PathResponse, band_taper, first_arrival_frames


def response(*arrivals: tuple[float, float]) -> np.ndarray:
    at, gain = np.array([a for a, _ in arrivals]), np.array([g for _, g in arrivals])
    return place_impulses(at, gain, 12_000)


@pytest.mark.parametrize("at", [100.0, 100.3, 177.123, 4000.5])
@pytest.mark.parametrize("taper", ["hann", "sine-1.5", "cosine"])
@pytest.mark.parametrize("gain", [1.0, -0.02])
def test_a_pure_delay_is_itself(at: float, taper: str, gain: float) -> None:
    found = first_arrival_frames(response((at, gain)), 48_000, taper=taper)  # type: ignore[arg-type]
    assert found == pytest.approx(at, abs=2e-4)


@pytest.mark.parametrize("echo_s", [0.003, 0.015, 0.150])
@pytest.mark.parametrize(("taper", "within"), [("hann", 0.1), ("sine-1.5", 0.1), ("cosine", 0.2)])
def test_a_stronger_echo_is_not_the_first_arrival(echo_s: float, taper: str, within: float) -> None:
    path = response((500.25, 1.0), (500.25 + echo_s * 48_000, 2.0))
    found = first_arrival_frames(path, 48_000, taper=taper)  # type: ignore[arg-type]
    assert found == pytest.approx(500.25, abs=within)  # side lobes of the echo: the wider taper has larger ones


def test_an_arrival_over_10_db_down_is_not_significant() -> None:
    assert first_arrival_frames(response((500.0, 0.25), (2000.0, 1.0)), 48_000) == pytest.approx(2000.0, abs=0.1)
    assert first_arrival_frames(response((500.0, 0.40), (2000.0, 1.0)), 48_000) == pytest.approx(500.0, abs=0.1)


def test_a_dispersive_path_against_a_hilbert_envelope_made_another_way() -> None:
    sos = np.concatenate(
        [
            signal.butter(2, 500.0, "high", fs=48_000, output="sos"),
            signal.butter(4, 7000.0, "low", fs=48_000, output="sos"),
        ]
    )
    path = signal.sosfilt(sos, response((300.0, 1.0)))
    spectrum = np.fft.rfft(path)
    spectrum *= band_taper(np.fft.rfftfreq(len(path), 1 / 48_000), (300.0, 3400.0), "hann")
    fine = signal.resample(np.fft.irfft(spectrum, len(path)), len(path) * 50)
    expected = int(np.argmax(np.abs(signal.hilbert(fine)))) / 50
    found = first_arrival_frames(path, 48_000, taper="hann")
    assert found == pytest.approx(expected, abs=0.011)
    assert 302.0 < found < 308.0  # this loudspeaker is some five frames late, and never early


def test_an_arrival_at_the_very_start_of_the_response_may_ring_before_it() -> None:
    at_once = PathResponse(np.concatenate(([1.0], np.zeros(4000))), 7200.5, 48_000)
    assert at_once.defined_latency_s() * 48_000 == pytest.approx(7200.5, abs=1e-6)
    # A differentiator's group delay is negative at low frequencies: 1 - 0.5 z^-1 at 1850 Hz is -0.88 frame.
    early = PathResponse(np.concatenate(([1.0, -0.5], np.zeros(4000))), 7200.5, 48_000)
    assert early.defined_latency_s() * 48_000 == pytest.approx(7199.62, abs=0.1)


def test_silence_has_no_arrival() -> None:
    with pytest.raises(ValueError, match="silent between 300 and 3400 Hz"):
        first_arrival_frames(np.zeros(4800), 48_000)


def test_the_tapers_are_one_at_the_centre_and_zero_at_the_edges() -> None:
    hz = np.array([0.0, 300.0, 1075.0, 1850.0, 3400.0, 9000.0])
    np.testing.assert_allclose(band_taper(hz, (300.0, 3400.0), "hann"), [0, 0, 0.5, 1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(band_taper(hz, (300.0, 3400.0), "cosine"), [0, 0, 0.5**0.5, 1, 0, 0], atol=1e-12)
