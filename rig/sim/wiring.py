"""The hand that plugs the cables of the simulated bench, one wiring for each step of a calibration.

What is the device's own (clocks, skew, delays, crosstalk, limits, faults) stays as the scenario has it; what hangs on
its sockets is replaced.
"""

from __future__ import annotations

from typing import Any

from rig.errors import UsageError
from rig.sim.world import SPEED_OF_SOUND_M_S, WorldSpec

CABLE_NOISE_DB = 70.0
WIRINGS = ("open", "loop", "split", "limit", "air", "board")
_WITH_THE_WRONG_CABLE = {"loop": "split", "split": "loop", "limit": "loop", "board": "split"}


def rewired(spec: WorldSpec, wiring: str, distance_m: float | None = None) -> dict[str, Any]:
    """The settings that change when the bench is wired for a step: nothing in the inputs (`open`), output to the
    reference input (`loop`), to both (`split`), the same with the gain turned up (`limit`), reference by cable and a
    loudspeaker `distance_m` from the ear's microphone (`air`), or the board's pulse to the reference input and its
    tone to the ear's (`board`). Raises UsageError for another name.

    A world with `cable_missing`, `wrong_cable`, `swapped` or `mic_speed_m_s` has a hand that does not do as it is told.
    """
    still: dict[str, Any] = {
        "system_ppm": 0.0,
        "start_spread_s": 0.0,
        "start_step_s": 0.0,
        "step_at_s": None,
        "jitter_s": 0.0,
        "eaten_share": 0.0,
        "slope_ppm": 0.0,
        "marks": False,
        "leak_db": None,
        "echo_db": None,
    }
    if wiring not in WIRINGS or (wiring == "air") != (distance_m is not None):
        raise UsageError(
            f"no wiring is called {wiring!r} {'without' if distance_m is None else 'with'} a distance",
            f"one of {', '.join(WIRINGS)}; a distance for air alone",
            "choose one of these",
        )
    if spec.wrong_cable:
        wiring = _WITH_THE_WRONG_CABLE.get(wiring, wiring)
    if spec.cable_missing and wiring != "air":
        wiring = "open"
    plugged = {
        **still,
        "system": "none",
        "latency_s": 0.0,
        "mouth_distance_m": 0.0,
        "ear_distance_m": 0.0,
        "ear_db": 0.0,
        "rt60_s": None,
        "mouth_band_hz": None,
        "speaker_band_hz": None,
        "telephone_band_hz": None,
        "snr_db": CABLE_NOISE_DB,  # no microphone: the ear's input by itself
        "noise_colour": "white",
        # Relative to the reference it is the interface's own, and stays; the setting is relative to the ear.
        "crosstalk_db": None if spec.crosstalk_db is None else spec.crosstalk_db + spec.ear_db,
    }
    if wiring in ("open", "loop"):
        return {**plugged, "reference_open": wiring == "open"}
    if wiring in ("split", "limit"):
        gain = 3.2 if wiring == "limit" else 1.0
        return {**plugged, "system": "line", "reference_level": gain * spec.reference_level}
    if wiring == "board":
        return {**plugged, "system": "line", "pulse_on_reference": True}
    assert distance_m is not None, "checked above"
    return {
        **still,
        "system": "line",
        "latency_s": distance_m / SPEED_OF_SOUND_M_S,
        "mouth_distance_m": 0.0,
        "ear_distance_m": distance_m,
        "telephone_band_hz": None,
        "snr_db": max(spec.snr_db or 60.0, 30.0),
        "slope_ppm": 1e6 * spec.mic_speed_m_s / SPEED_OF_SOUND_M_S,
        "reference_open": spec.cable_missing,
    }
