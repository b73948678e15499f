"""The hand at the simulated bench: it reads ruler and thermometer, and puts right what it is told of.

What it plugs where is in `wiring.py`.
"""

from __future__ import annotations

import math
from typing import Any

from rig.sim.noise import generator
from rig.sim.world import CAUSE_HAND, SPEED_OF_SOUND_M_S, WorldSpec

RULER_U_M = 0.001
THERMOMETER_U_C = 0.5
VAPOUR = 0.16
"""How much faster sound is, as a share, for each share of the air that is water."""

PLACES = ("mouth", "ear", "air")


def read_ruler(spec: WorldSpec, seed: int, place: str, asked_m: float = 0.3) -> tuple[float, float]:
    """(what the ruler says, what is true) in m: of the mouth's or the ear's distance, or with `air` of a loudspeaker
    that is put `asked_m` from a microphone. The ruler is read to `RULER_U_M`."""
    true_m = {"mouth": spec.mouth_distance_m, "ear": spec.ear_distance_m}.get(place)
    error_m = float(generator(seed, CAUSE_HAND, PLACES.index(place)).normal(0.0, RULER_U_M))
    if true_m is None:
        return asked_m, asked_m - error_m
    return max(0.0, true_m + error_m), true_m


def read_thermometer(seed: int) -> float:
    """Degrees Celsius, to `THERMOMETER_U_C`. Sound is as fast in every world, and its air as moist as may be."""
    rng = generator(seed, CAUSE_HAND, len(PLACES))
    return temperature_c(float(rng.uniform())) + float(rng.normal(0.0, THERMOMETER_U_C))


def temperature_c(humidity: float) -> float:
    """At which air of a relative humidity (0 to 1) carries sound as fast as a world does: an ideal gas, 331.3 m/s
    at 0 degrees, its vapour by Buck's equation (1996)."""
    found = 20.0
    for _ in range(20):  # each step gains two digits
        saturated = 611.21 * math.exp((18.678 - found / 234.5) * found / (257.14 + found)) / 101_325.0
        dry_m_s = SPEED_OF_SOUND_M_S / (1.0 + VAPOUR * humidity * saturated)
        found = 273.15 * ((dry_m_s / 331.3) ** 2 - 1.0)
    return found


def put_right(spec: WorldSpec) -> dict[str, Any]:
    """The settings that change when a mistake of the wiring is put right; empty where there is none."""
    plain = WorldSpec()
    mended = {name: getattr(plain, name) for name in ("swapped", "cable_missing", "wrong_cable", "mic_speed_m_s")}
    if spec.reference_level > 1.0:
        mended["reference_level"] = plain.reference_level
    return {name: value for name, value in mended.items() if getattr(spec, name) != value}
