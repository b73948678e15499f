"""The simulated worlds by name, as data: one line of description and the settings that differ from a plain world."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from rig.errors import DeviceNotFound
from rig.sim.world import WorldSpec, with_overrides

_CALL: dict[str, Any] = {
    "rt60_s": 0.25,
    "mouth_distance_m": 0.10,
    "ear_distance_m": 0.20,
    "mouth_band_hz": (120.0, 16_000.0),
    "speaker_band_hz": (250.0, 10_000.0),
    "noise_colour": "room",
    "start_spread_s": 0.004,
    "slope_ppm": 2.0,
    "crosstalk_db": -70.0,
}
"""A WebRTC-like call in a furnished room, small transducers, sender and receiver clocks 2 ppm apart."""


_CROOKED: dict[str, Any] = {
    "audio_ppm": 17.0,
    "channel_skew_s": 3.4 / 48_000,
    "mouth_distance_m": 0.13,
    "ear_distance_m": 0.30,
    "snr_db": 45.0,
    "crosstalk_db": -60.0,
}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A named world. `settings` override `WorldSpec`'s defaults."""

    name: str
    description: str
    settings: dict[str, Any] = field(default_factory=dict)

    def world(self, overrides: dict[str, Any] | None = None) -> WorldSpec:
        """The world's settings; raises UsageError for an override that does not exist or cannot be."""
        return with_overrides(WorldSpec(), {**self.settings, **(overrides or {})})


def _call(name: str, description: str, **settings: Any) -> Scenario:
    return Scenario(name, description, {**_CALL, **settings})


SCENARIOS: dict[str, Scenario] = {
    scenario.name: scenario
    for scenario in (
        _call("default", "a WebRTC-like call of about 150 ms, modest room, noise 30 dB down, drifting clocks"),
        Scenario("quiet", "a clean electrical path of 150 ms, noise 60 dB down", {"snr_db": 60.0}),
        _call("noisy", "the default call with as much noise as stimulus at the ear", snr_db=0.0),
        _call("echo", "an echo 6 dB above the direct sound, 40 ms later", echo_db=6.0, echo_s=0.040),
        _call("inverted", "the ear channel wired with inverted polarity", polarity=-1),
        _call("dead-ear", "the ear channel is digital silence: every sample is 0", dead_ear=True),
        _call("no-answer", "the system never answers: the ear hears noise alone", system="none"),
        _call("suppressed", "a noise suppressor removes some stimuli and cuts others short", eaten_share=0.3),
        _call(
            "jitter-buffer-step",
            "a jitter buffer grows by 20 ms in the middle of each run",
            step_at_s=10.0,
            step_s=0.020,
            slope_ppm=0.0,
        ),
        _call(
            "restart-spread",
            "each start of the system lands somewhere else, in steps of 10 ms",
            start_spread_s=0.060,
            start_step_s=0.010,
        ),
        _call(
            "dropped-frames",
            "the driver loses 10 ms in every fourth trial and says so",
            drop_every=4,
            drop_flagged=True,
        ),
        _call(
            "dropped-frames-unflagged",
            "the driver loses 10 ms in every fourth trial and does not say so",
            drop_every=4,
            drop_flagged=False,
        ),
        _call("leak", "the ear hears the mouth through the air, 6 dB below the system", leak_db=-6.0),
        _call(
            "denoiser",
            "neural-style noise suppression: bare chirps are eaten, speech and lead-in pass",
            system="denoiser",
            latency_s=0.180,
        ),
        _call("opus", "a call through a real Opus coder at 24 kbit/s", system="opus", latency_s=0.160),
        _call(
            "lying-driver",
            "the driver claims delays that are not true",
            input_delay_s=0.0312,
            output_delay_s=0.0478,
            input_claimed_s=0.0053,
            output_claimed_s=0.0107,
            adc_claim_error_s=0.0217,
        ),
        _call(
            "narrowband",
            "an 8 kHz telephone path: 300 to 3400 Hz, mu-law",
            system="narrowband",
            latency_s=0.190,
            telephone_band_hz=(300.0, 3400.0),
        ),
        _call("clipped", "the ear channel is driven into its limits", ear_db=18.0),
        _call("swapped", "reference and ear are on each other's channel", swapped=True),
        _call("same-signal", "both channels carry the same mono mix", same_signal=True),
        _call(
            "hum", "mains hum 20 dB above the stimulus and a DC offset at the ear", ear_db=-26.0, hum_db=20.0, dc=0.05
        ),
        Scenario(
            "crooked",
            "a device worth calibrating: 17 ppm fast, channels 3.4 frames apart, 0.43 m of air",
            _CROOKED,
        ),
        Scenario("wrong-input", "crooked, and every cable is in the other input", {**_CROOKED, "swapped": True}),
        Scenario("wrong-cable", "crooked, and Y-cable and plain cable are mixed up", {**_CROOKED, "wrong_cable": True}),
        Scenario("no-cable", "crooked, and nobody has plugged the cable", {**_CROOKED, "cable_missing": True}),
        Scenario(
            "too-loud", "crooked, and the gain drives the inputs into clipping", {**_CROOKED, "reference_level": 2.5}
        ),
        Scenario(
            "moving-mic",
            "crooked, and the ear's microphone is moved by 2 mm a second",
            {**_CROOKED, "mic_speed_m_s": 2e-3},
        ),
        _call("long-delay", "a system of about 1.4 s", latency_s=1.4),
        _call("marks", "the default call by a program that writes marks on the host's clock", marks=True),
        _call(
            "marks-page",
            "the default call by a page: marks on its own clock, in ms with 0.1 ms steps, and clock exchanges",
            marks=True,
            marks_clock="own",
            marks_unit="ms",
            marks_resolution_s=1e-4,
        ),
        _call(
            "marks-bare",
            "marks that do not say which frame carried a sound, on a clock that nothing ties to the host's",
            marks=True,
            marks_clock="own",
            marks_sync_hz=0.0,
            marks_peak="none",
        ),
    )
}


def find_scenario(name: str) -> Scenario:
    """The scenario of that name. Raises DeviceNotFound, naming those that there are."""
    if name not in SCENARIOS:
        raise DeviceNotFound(
            f"no simulated scenario is called {name!r}",
            f"one of {', '.join(SCENARIOS)}",
            "choose one of these, or list them with `rig sim list`",
        )
    return SCENARIOS[name]
