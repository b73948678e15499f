"""The tone pin as sound: exact against a closed form, the same however it is cut up, nothing of the pin's rest."""

from __future__ import annotations

import numpy as np
import pytest

from rig.sim.pinsound import HALF, Coupling, PinSound

RATE_HZ = 48000.0
BOARD_HZ = 31250.0 * 1.0007  # a board's samples, on a crystal that is 700 ppm fast


def held_sine(f_hz: float, seconds: float, first_frame: float) -> tuple[np.ndarray, np.ndarray]:
    """Steps of a sine that is held from one of the board's samples to the next: (frames, levels)."""
    n = np.arange(round(seconds * BOARD_HZ))
    return first_frame + n * RATE_HZ / BOARD_HZ, 0.5 * np.sin(2 * np.pi * f_hz * n / BOARD_HZ)


def played(at: np.ndarray, levels: np.ndarray, cuts: np.ndarray, end: int) -> np.ndarray:
    """All frames up to `end`, taken in parts that end at `cuts`."""
    sound, out, given = PinSound(), [], 0
    for cut in [*cuts, end]:
        until = int(np.searchsorted(at, cut + HALF))
        sound.add(at[given:until], levels[given:until])
        given = until
        out.append(sound.take(int(cut)))
    return np.concatenate(out)


@pytest.mark.parametrize("f_hz", [50.0, 1000.0, 7500.0])
def test_a_held_sine_is_the_sine_of_the_closed_form(f_hz: float) -> None:
    at, levels = held_sine(f_hz, 0.5, 100.3)
    out = played(at, levels, np.arange(300, 20000, 300), 20000)
    # A hold is a delay of half a sample and sin(x)/x; what it adds at other frequencies is beyond the filter.
    t_s = (np.arange(len(out)) - 100.3) / RATE_HZ - 0.5 / BOARD_HZ
    ideal = 0.5 * np.sinc(f_hz / BOARD_HZ) * np.sin(2 * np.pi * f_hz * t_s)
    inside = slice(1000, 19000)
    assert np.abs(out - ideal)[inside].max() < 2e-4 * 0.5


def test_it_is_the_same_however_it_is_cut_up(rng: np.random.Generator) -> None:
    at, levels = held_sine(440.0, 0.05, 50.0)
    whole = played(at, levels, np.arange(0), 3000)
    for _ in range(5):
        cuts = np.sort(rng.choice(np.arange(1, 3000), 40, replace=False))
        np.testing.assert_allclose(played(at, levels, cuts, 3000), whole, rtol=0.0, atol=1e-12)


def test_a_step_stays_up_and_is_half_up_at_its_place() -> None:
    sound = PinSound(0.1)
    sound.add(np.array([200.0]), np.array([0.5]))
    out = sound.take(1000)
    np.testing.assert_allclose(out[: 200 - HALF], 0.1, atol=1e-12)
    assert out[200] == pytest.approx(0.3, abs=1e-4)
    np.testing.assert_allclose(out[200 + HALF :], 0.5, atol=1e-9)
    np.testing.assert_allclose(sound.take(1500), 0.5, atol=1e-9)


def test_what_should_have_been_out_already_is_refused() -> None:
    sound = PinSound()
    sound.take(100)
    with pytest.raises(ValueError, match="frames up to 100 are out"):
        sound.add(np.array([100.0]), np.array([1.0]))


def test_a_capacitor_keeps_back_what_stands_still(rng: np.random.Generator) -> None:
    coupling = Coupling(RATE_HZ)
    np.testing.assert_allclose(coupling.through(np.full(100, -0.5)), 0.0, atol=1e-12)
    x = -0.5 + 0.2 * np.sin(2 * np.pi * 1000.0 / RATE_HZ * np.arange(9600))
    cut = int(rng.integers(1, 9000))
    out = np.concatenate([coupling.through(x[:cut]), coupling.through(x[cut:])])
    settled = out[4800:]
    assert abs(float(settled.mean())) < 1e-3
    assert float(np.abs(settled).max()) == pytest.approx(0.2, rel=1e-3)
    whole = Coupling(RATE_HZ)
    whole.through(np.full(100, -0.5))
    np.testing.assert_allclose(whole.through(x), out, atol=1e-12)
