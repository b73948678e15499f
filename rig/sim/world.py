"""What can be set about a simulated world. One flat record, so that a test overrides any figure by its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from rig.errors import UsageError

SPEED_OF_SOUND_M_S = 343.0

SYSTEM_KINDS = ("line", "narrowband", "denoiser", "opus", "none")

# One number per cause of randomness; see `noise.generator`.
CAUSE_CLOCKS, CAUSE_ROOM_IN, CAUSE_ROOM_OUT, CAUSE_ROOM_LEAK, CAUSE_START, CAUSE_STAGES, CAUSE_JITTER = range(1, 8)
CAUSE_EAR_NOISE, CAUSE_REF_NOISE, CAUSE_SYSTEM_NOISE, CAUSE_HUM, CAUSE_SUPPRESSOR, CAUSE_HOST, CAUSE_BOARD = range(
    8, 15
)
CAUSE_SPARE_NOISE = 15
CAUSE_SYSTEM_CLOCK = 16
CAUSE_HAND = 17


@dataclass(frozen=True, slots=True)
class WorldSpec:
    """The knobs of a world. Levels in dB; a level of None means that the thing is absent."""

    # Clocks. None: drawn from the seed (interface within 30 ppm, board 1000 to 5000 ppm off either way).
    rate_hz: int = 48_000
    audio_ppm: float | None = None
    board_ppm: float | None = None
    board_swing_ppm: float = 20.0  # a ceramic resonator wanders with temperature
    board_swing_period_s: float = 90.0
    system_ppm: float | None = None  # sample clock of a system that processes a stream (not of a plain line)

    # The path, mouth to ear, along its first arrival.
    system: str = "line"
    latency_s: float = 0.150  # true seconds mouth to ear at the start of a run, before the start's own offset
    start_spread_s: float = 0.0  # each start adds a uniform draw from 0 to this
    start_step_s: float = 0.0  # the draw is rounded to multiples of this (0: not)
    step_at_s: float | None = None  # the delay changes this long after the start of the system
    step_s: float = 0.0
    slope_ppm: float = 0.0  # positive: the delay grows, by this many microseconds a second
    jitter_s: float = 0.0  # standard deviation of the delay from stimulus to stimulus
    eaten_share: float = 0.0  # share of the stimuli that a suppressor removes (and half as many that it cuts short)
    eaten_db: float = -55.0

    system_noise_db: float | None = -45.0  # at the microphone of a system with a stream, against a chirp's RMS there
    opus_bit_rate: int = 24_000

    # Stages of a line, means in true seconds; the wait in the jitter buffer makes up the rest.
    frame_s: float = 0.020
    capture_buffer_s: float = 0.012
    encode_s: float = 0.0006
    send_s: float = 0.0002
    network_s: float = 0.018
    network_jitter_s: float = 0.003
    output_buffer_s: float = 0.028
    capture_jitter_s: float = 0.0  # mean (exponential) of how late the program takes a complete frame
    capture_start_spread_s: float = 0.0  # each start's capture buffer is longer by a uniform draw from 0 to this
    output_start_spread_s: float = 0.0  # the same of its playback; the wait in the jitter buffer makes up for both

    # What the system writes about itself.
    marks: bool = False
    marks_clock: str = "host"  # host: the host's CLOCK_MONOTONIC; own: another zero and rate, as performance.now
    marks_ppm: float | None = None  # of its own clock; None: drawn within 40 ppm
    marks_unit: str = "ns"
    marks_resolution_s: float = 0.0  # stamps are cut to multiples of this (0: not)
    marks_sync_hz: float = 4.0  # clock exchanges a second, where the clock is its own
    marks_sync_delay_s: float = 80e-6  # the shortest way of an exchange, either direction
    marks_peak: str = "at"  # at: each loud frame with the sample at which it gets loud; loud: which are; none
    marks_peak_u_s: float = 20e-6  # how well the system finds that sample, and says so
    capture_claimed_s: float | None = 0.005
    playback_claimed_s: float | None = 0.0125

    # Acoustics.
    mouth_distance_m: float = 0.05
    ear_distance_m: float = 0.05
    rt60_s: float | None = None
    mouth_band_hz: tuple[float, float] | None = None  # minimum phase, order 2: the mouth transducer
    speaker_band_hz: tuple[float, float] | None = None  # minimum phase, order 2 high pass, order 4 low pass
    telephone_band_hz: tuple[float, float] | None = None  # minimum phase, order 4 band pass inside the system
    echo_db: float | None = None  # a second arrival, relative to the first
    echo_s: float = 0.040
    leak_db: float | None = None  # mouth to ear through the air, relative to the system's first arrival
    leak_distance_m: float = 0.50
    polarity: int = 1

    # What the interface hears.
    reference_level: float = 0.5  # recorded amplitude of a full-scale stimulus
    ear_db: float = -14.0  # the system's first arrival relative to the recorded reference
    snr_db: float | None = 30.0  # ear: power of a chirp at amplitude 0.5 over its length / all the noise
    noise_colour: str = "white"
    reference_snr_db: float | None = 60.0
    crosstalk_db: float | None = None  # reference into the ear inside the interface, relative to the first arrival
    hum_db: float | None = None  # RMS relative to a chirp at amplitude 0.5
    hum_hz: float = 50.0
    dc: float = 0.0
    channel_skew_s: float = 0.0  # positive: the ear's converter is later
    reference_limit: float | None = None  # where the input's amplifier gives out, of full scale; None: not before 1
    ear_limit: float | None = None
    bits: int = 24
    dead_ear: bool = False
    swapped: bool = False
    same_signal: bool = False

    # What goes wrong when somebody wires a step of a calibration (`wiring.py`), and an input with nothing in it.
    reference_open: bool = False
    pulse_on_reference: bool = False  # the board's pulse by a divider, in the place of its tone
    tone_after_pulse_s: float = 0.0  # the board's, at its pins
    cable_missing: bool = False
    wrong_cable: bool = False  # a Y-cable for a plain one, and a plain one for a Y-cable
    mic_speed_m_s: float = 0.0  # positive: the ear's microphone moves away while it is measured

    # The driver.
    block_frames: int = 480
    ring_s: float = 10.0  # what the driver keeps for a reader that is late
    input_delay_s: float = 0.0047  # from the converter to the program, after a block is full
    output_delay_s: float = 0.0091  # from the frame asked for to the sound at the socket
    input_claimed_s: float | None = 0.0047
    output_claimed_s: float | None = 0.0091
    adc_claim_error_s: float = 0.0  # added to every ADC time that the driver states
    drop_every: int | None = None  # frames vanish between every n-th stimulus and its arrival
    drop_frames: int = 480
    drop_flagged: bool = True


TIMES_THAT_PASS = (
    *("start_spread_s", "start_step_s", "jitter_s", "capture_buffer_s", "encode_s", "send_s", "network_s"),
    *("network_jitter_s", "output_buffer_s", "capture_jitter_s", "capture_start_spread_s", "output_start_spread_s"),
    *("marks_resolution_s", "marks_sync_delay_s", "marks_peak_u_s", "input_delay_s", "output_delay_s"),
)


def worldly(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by name, from text or from a file, as values of the kind that `WorldSpec` has them in; "none" is None.

    Raises UsageError for a name that is not there, and for a value of another kind."""
    return {name: _worldly(name, value) for name, value in settings.items()}


def _worldly(name: str, value: Any) -> Any:
    kinds = {f.name: str(f.type) for f in fields(WorldSpec)}
    if name not in kinds:
        return value  # `with_overrides` says so
    kind, optional = kinds[name].removesuffix(" | None"), kinds[name].endswith(" | None")
    if isinstance(value, str) and value.lower() == "none" and optional:
        return None
    made = _of_kind(kind, value)
    if made is None:
        raise UsageError(
            f"the world's setting {name} cannot be {value!r}",
            _EXPECTED[kind] + (", or none" if optional else ""),
            "rig sim show SCENARIO shows its value there",
        )
    return made


_EXPECTED = {
    "float": "a finite number",
    "int": "a whole number",
    "str": "a word",
    "bool": "true or false",
    "tuple[float, float]": "two numbers: [300, 3400]",
}


def _of_kind(kind: str, value: Any) -> Any:
    """The value as one of that kind; None where it is none."""
    if kind == "bool":
        words = {"true": True, "false": False}
        return value if isinstance(value, bool) else words.get(value.lower()) if isinstance(value, str) else None
    if kind == "str":
        return value if isinstance(value, str) else None
    if kind == "tuple[float, float]":
        parts = value.strip("[]()").split(",") if isinstance(value, str) else value
        pair = [_of_kind("float", part) for part in parts] if isinstance(parts, list) else []
        return tuple(pair) if len(pair) == 2 and None not in pair else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    if not math.isfinite(number):
        return None
    if kind == "int":
        return int(number) if number == int(number) else None
    return number


def with_overrides(spec: WorldSpec, overrides: dict[str, Any]) -> WorldSpec:
    """`spec` with some fields replaced. Raises UsageError for an unknown name or an impossible value."""
    known = {f.name for f in fields(WorldSpec)}
    unknown = sorted(set(overrides) - known)
    if unknown:
        raise UsageError(
            f"the simulated world has no setting named {', '.join(unknown)}",
            f"names among {', '.join(sorted(known))}",
            "correct the name",
        )
    changed = replace(spec, **overrides)
    _check(changed)
    return changed


def _check(spec: WorldSpec) -> None:
    checks = [
        (spec.system in SYSTEM_KINDS, f"system {spec.system!r}", f"one of {', '.join(SYSTEM_KINDS)}"),
        (spec.polarity in (1, -1), f"polarity {spec.polarity}", "1 or -1"),
        (spec.bits in (16, 24), f"{spec.bits} bits", "16 or 24"),
        (spec.block_frames > 0, f"blocks of {spec.block_frames} frames", "at least 1"),
        (
            all(getattr(spec, name) >= 0.0 for name in TIMES_THAT_PASS),
            "a stage that takes less than no time",
            f"0 or more for {', '.join(TIMES_THAT_PASS)}",
        ),
        (0.0 < spec.frame_s <= 1.0, f"frames of {spec.frame_s:g} s", "above 0, up to 1 s"),
        (8000 <= spec.rate_hz <= 192_000, f"{spec.rate_hz} frames a second", "8000 to 192000"),
        (spec.marks_clock in ("host", "own"), f"marks on the clock {spec.marks_clock!r}", "host or own"),
        (spec.marks_peak in ("at", "loud", "none"), f"marks_peak {spec.marks_peak!r}", "at, loud or none"),
        (spec.marks_unit in ("ns", "ms", "s"), f"marks in {spec.marks_unit!r}", "ns, ms or s"),
        (spec.noise_colour in ("white", "room"), f"noise {spec.noise_colour!r}", "white or room"),
        (
            spec.system in ("line", "none") or spec.rate_hz == 48_000,
            f"a {spec.system} system at {spec.rate_hz} Hz",
            "48000 Hz, the rate of the stream that it processes",
        ),
    ]
    air_s = (spec.mouth_distance_m + spec.ear_distance_m) / SPEED_OF_SOUND_M_S
    checks.append((spec.latency_s >= air_s, f"a latency of {spec.latency_s:g} s", f"at least {air_s:.6f} s of air"))
    if spec.system not in ("line", "none"):
        law = spec.step_s or spec.jitter_s or spec.eaten_share
        checks.append(
            (not law, f"a {spec.system} system with a step, jitter or suppression", "system 'line' for these")
        )
    for right, what, expected in checks:
        if not right:
            raise UsageError(f"the simulated world cannot have {what}", expected, "change that setting")
