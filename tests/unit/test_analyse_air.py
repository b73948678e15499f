"""Sound in air: its speed against tables, and what ruler, thermometer and two distances are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rig.analyse.air import air_s, sound_m_s, transducer_s, two_distances
from rig.analyse.known import Found


def ideal_mixture_m_s(temperature_c: float, humidity: float) -> float:
    """Dry air and water vapour as ideal gases, with their heat capacities and molar masses."""
    t = 1.0 - 373.15 / (273.15 + temperature_c)
    water = humidity * math.exp(13.3185 * t - 1.976 * t**2 - 0.6445 * t**3 - 0.1299 * t**4)  # after Richards (1971)
    heat = (7.0 + water) / (5.0 + water)
    mass_kg = 0.0289645 * (1.0 - water) + 0.0180153 * water
    return math.sqrt(heat * 8.314463 * (273.15 + temperature_c) / mass_kg)


@pytest.mark.parametrize("humidity", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("temperature_c", [0.0, 10.0, 20.0, 30.0, 40.0])
def test_the_speed_of_sound_is_that_of_moist_air(temperature_c: float, humidity: float) -> None:
    assert sound_m_s(temperature_c, humidity) == pytest.approx(ideal_mixture_m_s(temperature_c, humidity), rel=5e-4)


def test_a_ruler_and_a_thermometer_are_in_the_uncertainty() -> None:
    good = air_s(0.3, 1e-9, 20.0, 1e-9)
    assert good.value == pytest.approx(0.3 / sound_m_s(20.0))
    spread = 0.5 * abs(0.3 / sound_m_s(20.0, 0.0) - 0.3 / sound_m_s(20.0, 1.0))
    assert good.u == pytest.approx(spread / math.sqrt(3.0), rel=0.01), "dry to saturated, all as likely"
    ruler = air_s(0.3, 2e-3, 20.0, 1e-9)
    assert math.sqrt(ruler.u**2 - good.u**2) == pytest.approx(2e-3 / sound_m_s(20.0), rel=1e-3)
    warm = air_s(0.3, 1e-9, 20.0, 3.0)
    moved = 0.5 * (air_s(0.3, 1e-9, 17.0, 1.0).value - air_s(0.3, 1e-9, 23.0, 1.0).value)
    assert math.sqrt(warm.u**2 - good.u**2) == pytest.approx(moved, rel=0.05)


def test_two_distances_part_air_and_transducer(rng: np.random.Generator) -> None:
    """Against draws of what the uncertainties say: the stated ones are the spread of the results."""
    near_m, far_m, u_m, delay_s, u_s = 0.2, 0.6, 1e-3, 120e-6, 2e-6
    true = [d / 344.0 for d in (near_m, far_m)]
    airs, delays = [], []
    for _ in range(4000):
        near, far = (Found(t + delay_s + rng.normal(0.0, u_s), u_s, 10) for t in true)
        read = [d + rng.normal(0.0, u_m) for d in (near_m, far_m)]
        found = two_distances(near, read[0], far, read[1], u_m)
        airs.append(found.air.value)
        delays.append(found.transducer.value)
    assert np.mean(airs) == pytest.approx(true[0], abs=4e-7)
    assert np.mean(delays) == pytest.approx(delay_s, abs=4e-7)
    stated = two_distances(Found(true[0] + delay_s, u_s, 10), near_m, Found(true[1] + delay_s, u_s, 10), far_m, u_m)
    # The air meant is that of the distance read, which is not the true one: its own error is not in the spread above.
    assert np.std(airs) <= stated.air.u
    assert np.std(delays) == pytest.approx(stated.transducer.u, rel=0.15)


def test_distances_in_the_wrong_order_are_refused() -> None:
    one = Found(1e-3, 1e-6, 10)
    for near_m, far_m in ((0.5, 0.2), (0.2, 0.2), (0.0, 0.2)):
        with pytest.raises(ValueError, match="the first is the smaller"):
            two_distances(one, near_m, one, far_m, 1e-3)


def test_a_transducer_is_what_the_air_leaves() -> None:
    found = transducer_s(Found(1e-3, 1e-6, 10), Found(8e-4, 3e-6, 1))
    assert found.value == pytest.approx(2e-4)
    assert found.u == pytest.approx(math.sqrt(1.0 + 9.0 + 1.0) * 1e-6)
