"""Sound in air and in transducers: how long it takes over a distance, and what a loudspeaker adds. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rig.analyse.known import Found

REFLECTIONS_S = 1e-6
"""Standard uncertainty of an arrival in a room: reflections that come within 2 / bandwidth of the direct sound are part
of it. In 200 rooms at 1 m 95 % of the arrivals are within twice this of the direct sound (docs/truth.md)."""

VAPOUR = 0.16
"""How much faster sound is, as a share, for each share of the air that is water, as of an ideal mixture: water is
lighter (0.189), and its molecules take up more heat (-0.029)."""


def sound_m_s(temperature_c: float, humidity: float = 0.5) -> float:
    """Speed of sound in m/s: an ideal gas's, 331.3 sqrt(1 + t / 273.15), and what its vapour adds at a relative
    humidity of 0 to 1, its pressure after Magnus. From 0 to 40 degrees within 0.05 % of an ideal mixture."""
    return 331.3 * math.sqrt(1.0 + temperature_c / 273.15) * (1.0 + humidity * _saturated(temperature_c))


def air_s(distance_m: float, u_distance_m: float, temperature_c: float, u_temperature_c: float) -> Found:
    """Time that sound takes over a distance, with the uncertainty of ruler and thermometer; nothing is known of the
    humidity, so its whole range is in the uncertainty."""
    value = distance_m / sound_m_s(temperature_c)
    a_degree = sound_m_s(temperature_c + 0.5) / sound_m_s(temperature_c - 0.5) - 1.0
    warmth = a_degree * u_temperature_c
    vapour = _saturated(temperature_c) / math.sqrt(12.0)  # from dry to saturated all is as likely
    return Found(
        value,
        math.hypot(u_distance_m / sound_m_s(temperature_c), value * math.hypot(warmth, vapour)),
        1,
    )


def transducer_s(arrival: Found, air: Found) -> Found:
    """What loudspeaker and microphone add to the air between them."""
    return Found(arrival.value - air.value, math.hypot(arrival.u, air.u, REFLECTIONS_S), arrival.n)


@dataclass(frozen=True, slots=True)
class TwoDistances:
    """What arrivals at two distances say: the `air` of the nearer one, and what the `transducer` adds, in s."""

    air: Found
    transducer: Found


def two_distances(near: Found, near_m: float, far: Found, far_m: float, u_distance_m: float) -> TwoDistances:
    """Air and transducer without a thermometer: what grows with the distance is air, what stays is the transducer.

    `near`, `far`: arrivals in s; `u_distance_m` of each distance, independent. Raises ValueError unless far_m is over
    near_m and near_m over 0.
    """
    if not 0.0 < near_m < far_m:
        raise ValueError(f"distances of {near_m:g} and {far_m:g} m: the first is the smaller, and above 0")
    apart_m, later_s = far_m - near_m, far.value - near.value
    slow = later_s / apart_m  # s per m
    u_near, u_far = math.hypot(near.u, REFLECTIONS_S), math.hypot(far.u, REFLECTIONS_S)
    share = near_m / apart_m
    # air = near_m (far - near) / (far_m - near_m), and its partial derivatives.
    by_ruler = slow * u_distance_m * math.hypot(far_m / apart_m, share)
    air = Found(near_m * slow, math.hypot(share * math.hypot(u_near, u_far), by_ruler), near.n)
    by_sound = math.hypot((1.0 + share) * u_near, share * u_far)
    return TwoDistances(air, Found(near.value - air.value, math.hypot(by_sound, by_ruler), near.n))


def _saturated(temperature_c: float) -> float:
    """By which share saturated air is faster than dry air."""
    return VAPOUR * 611.2 * math.exp(17.62 * temperature_c / (243.12 + temperature_c)) / 101_325.0
