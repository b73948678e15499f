"""Devices worth calibrating, drawn at random: each quantity as the estimators have it beside what is true of the world.

What a person reads off a ruler and a thermometer is drawn too, with the uncertainty that it is given with.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from cabled import AMPLITUDE, ROLES, channels, recorded, wired

from rig.analyse.air import air_s, sound_m_s, transducer_s, two_distances
from rig.analyse.boardpulse import board_offset_s, board_rate, find_pulses
from rig.analyse.crosstalk import crosstalk_db
from rig.analyse.hostrate import host_rate
from rig.analyse.known import Found, arrival_s, clip_dbfs, loop_frames, noise_dbfs, polarity, skew_frames
from rig.domain.waveforms import BOARD_FULL_SCALE, BOARD_TONE_RATE_HZ, board_samples, ideal_waveform
from rig.session.read import SessionRun
from rig.sim.paths import RC_CORNER_HZ
from rig.sim.world import SPEED_OF_SOUND_M_S

RATE_HZ = 48_000
RULER_U_M = 1e-3
THERMOMETER_U_C = 0.5
QUIET_BEFORE_S = 61.0


@dataclass(frozen=True)
class Reading:
    """One quantity of one world: its value, stated standard uncertainty, and the truth."""

    quantity: str
    value: float
    u: float
    truth: float

    @property
    def ratio(self) -> float:
        """Error over stated uncertainty. A sign has none: it is right or wrong."""
        if self.u == 0.0:
            return 0.0 if self.value == self.truth else math.inf
        return (self.value - self.truth) / self.u


def reading(quantity: str, found: Found | None, truth: float) -> list[Reading]:
    return [] if found is None else [Reading(quantity, found.value, found.u, truth)]


def device(rng: np.random.Generator) -> dict[str, float]:
    """What is the interface's own."""
    return {
        "audio_ppm": float(rng.uniform(-40.0, 40.0)),
        "channel_skew_s": float(rng.uniform(-4.0, 4.0)) / RATE_HZ,
        "output_delay_s": float(rng.uniform(2e-3, 60e-3)),
        "reference_snr_db": float(rng.uniform(30.0, 65.0)),
        "polarity": int(rng.choice([-1, 1])),
        "reference_level": float(rng.uniform(0.2, 0.9)),
    }


def true_skew(own: dict[str, float]) -> float:
    return own["channel_skew_s"] * RATE_HZ * (1.0 + own["audio_ppm"] * 1e-6)


def cable_world(seed: tuple[int, ...]) -> list[Reading]:
    """Loop and crosstalk by one cable, skew and polarity by a Y-cable."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1 << 31))
    own, crosstalk = device(rng), float(rng.uniform(-95.0, -65.0))
    snr_db = float(rng.uniform(40.0, 75.0))
    settings = {**own, "ear_db": 0.0, "crosstalk_db": crosstalk}
    with recorded(wired("quiet", number, "loop", None, snr_db, **settings), "loop", count=8) as session:
        run = session.runs[0]
        reference, _ = channels(run)
        found = reading(
            "round trip", loop_frames(reference), own["output_delay_s"] * RATE_HZ * (1 + 1e-6 * own["audio_ppm"])
        )
        leak = crosstalk_db(run.source, ROLES.ear, asked(run), ideal_waveform("chirp", RATE_HZ, AMPLITUDE), reference)
    assert leak is not None
    found += reading("crosstalk", leak.found, crosstalk)
    with recorded(wired("quiet", number, "split", None, snr_db, **settings), "split", count=8) as session:
        reference, ear = channels(session.runs[0])
    at_most = leak.limit_db if leak.found is None else leak.found.value
    found += reading("skew", skew_frames(reference, ear, at_most), true_skew(own))
    found += reading("polarity, reference", polarity(reference), 1.0)
    return found + reading("polarity, ear", polarity(ear), float(own["polarity"]))


def limit_world(seed: tuple[int, ...]) -> list[Reading]:
    """Where each input stops following."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1 << 31))
    own = device(rng)
    limits = {"reference_limit": float(rng.uniform(0.3, 0.95)), "ear_limit": float(rng.uniform(0.3, 0.95))}
    settings = {**own, **limits, "reference_level": float(rng.uniform(0.4, 0.6)), "ear_db": 0.0}
    bench = wired("quiet", number, "limit", None, float(rng.uniform(30.0, 70.0)), **settings)
    with recorded(bench, "limit") as session:
        levels = [channels(run) for run in session.runs]
    found: list[Reading] = []
    for side, name in enumerate(("reference", "ear")):
        level = clip_dbfs([level[side] for level in levels])
        found += reading(f"clip level, {name}", level, 20.0 * math.log10(limits[f"{name}_limit"]))
    return found


def quiet_world(seed: tuple[int, ...]) -> list[Reading]:
    """A minute of nothing: the noise of the inputs, and the sample clock against the host's."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1 << 31))
    own = device(rng)
    bench = wired("quiet", number, "open", None, float(rng.uniform(30.0, 70.0)), **own)
    sigmas = (
        0.5 * own["reference_level"] / math.sqrt(2.0) * 10.0 ** (-own["reference_snr_db"] / 20.0),
        bench.truth()["ear_noise_rms"],
    )
    with recorded(bench, "open") as session:
        run = session.runs[0]
        quiet = run.source.read(0, round(QUIET_BEFORE_S * RATE_HZ))
        rate = host_rate(run.events.blocks, RATE_HZ, run.events.gaps)
    found = reading("sample clock, host", None if rate is None else rate.found, own["audio_ppm"])
    for side, name in enumerate(("reference", "ear")):
        # The converter's steps add their own: a twelfth of a step's square.
        true = math.hypot(sigmas[side], 2.0**-23 / math.sqrt(12.0))
        found += reading(f"noise, {name}", noise_dbfs(quiet[:, side], RATE_HZ), 20.0 * math.log10(true))
    return found


def temperature_of(humidity: float) -> float:
    """At which temperature air of this humidity carries sound as fast as that of the simulated world."""
    low, high = -10.0, 40.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if sound_m_s(middle, humidity) < SPEED_OF_SOUND_M_S else (low, middle)
    return 0.5 * (low + high)


def air_world(seed: tuple[int, ...]) -> list[Reading]:
    """A loudspeaker in front of a microphone, near and far; its distance by ruler, and the warmth of the room."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1 << 31))
    own = device(rng)
    speaker = {"speaker_band_hz": (float(rng.uniform(120.0, 320.0)), float(rng.uniform(7000.0, 15_000.0)))}
    room = {"rt60_s": float(rng.uniform(0.15, 0.4))} if rng.random() < 0.5 else {}
    distances = (float(rng.uniform(0.15, 0.35)), float(rng.uniform(0.6, 0.9)))
    snr_db = float(rng.uniform(30.0, 55.0))
    skew = Found(true_skew(own) + float(rng.normal(0.0, 0.01)), 0.01, 8)
    arrivals = []
    for distance_m in distances:
        bench = wired("quiet", number, "air", distance_m, snr_db, **own, **speaker, **room)
        with recorded(bench, "air", count=8) as session:
            arrivals.append(arrival_s(*channels(session.runs[0]), RATE_HZ, skew))
    excess_s = wired("quiet", number, "air", distances[0], **own, **speaker).truth()["definition"]["excess_s"]
    read_m = [d + float(rng.normal(0.0, RULER_U_M)) for d in distances]
    warm_c = temperature_of(float(rng.uniform(0.0, 1.0))) + float(rng.normal(0.0, THERMOMETER_U_C))
    near = air_s(read_m[0], RULER_U_M, warm_c, THERMOMETER_U_C)
    both = two_distances(arrivals[0], read_m[0], arrivals[1], read_m[1], RULER_U_M)
    air_true_s = distances[0] / SPEED_OF_SOUND_M_S
    return [
        *reading("air, thermometer", near, air_true_s),
        *reading("air, two distances", both.air, air_true_s),
        *reading("transducer, thermometer", transducer_s(arrivals[0], near), excess_s),
        *reading("transducer, two distances", both.transducer, excess_s),
    ]


def board_world(seed: tuple[int, ...]) -> list[Reading]:
    """A minute of the board's pulses on one input and its tones on the other."""
    rng = np.random.default_rng(seed)
    number = int(rng.integers(1 << 31))
    own = {**device(rng), "polarity": 1, "tone_after_pulse_s": float(rng.uniform(0.0, 20e-6))}
    bench = wired("quiet", number, "board", None, float(rng.uniform(30.0, 60.0)), **own)
    skew = Found(true_skew(own) + float(rng.normal(0.0, 0.002)), 0.002, 8)
    with recorded(bench, "board", count=63) as session:
        run = session.runs[0]
        pulses = find_pulses(run.source, ROLES.ref)
        stamps_s = [f.tick / f.tick_rate_hz for f in run.events.fired]
        assert len(pulses.frames) == len(stamps_s) == 63, (pulses.strangers, len(pulses.frames), len(stamps_s))
        rate = board_rate(pulses.frames, stamps_s, RATE_HZ)
        offset = board_offset_s(run.source, ROLES.ear, pulses.frames, stamps_s, "chirp", AMPLITUDE, skew)
    at = [s["reference_frame"] for s in bench.truth()["runs"][0]["stimuli"]]  # of the tones, each as late as the others
    true = 1e6 * ((at[-1] - at[0]) / RATE_HZ / (stamps_s[-1] - stamps_s[0]) - 1.0)
    return [
        *reading("sample clock, board", None if rate is None else rate.found, true),
        *reading("board's offset", offset, own["tone_after_pulse_s"] + filter_delay_s()),
    ]


def asked(run: SessionRun) -> tuple[int, ...]:
    return tuple(s.frame for s in run.events.scheduled)


@lru_cache(maxsize=1)
def filter_delay_s() -> float:
    """By how much the board's filter, and its integers, delay the peak of the correlation with the shape as asked: from
    the Fourier transform of its samples, summed term by term."""
    f_hz = np.arange(100.0, 9000.0, 4.0)
    samples = board_samples("chirp", AMPLITUDE) / BOARD_FULL_SCALE
    wave = ideal_waveform("chirp", RATE_HZ, AMPLITUDE).astype(np.float64)
    turn = -2j * np.pi * f_hz[:, None]
    played = np.exp(turn * (np.arange(len(samples)) / BOARD_TONE_RATE_HZ)) @ samples
    played = played * np.sinc(f_hz / BOARD_TONE_RATE_HZ) / (1.0 + 1j * f_hz / RC_CORNER_HZ)
    shape = np.exp(turn * (np.arange(len(wave)) / RATE_HZ)) @ wave
    late_s = np.linspace(0.0, 20e-6, 4001)
    correlation = (np.exp(2j * np.pi * f_hz * late_s[:, None]) @ (played * np.conj(shape))).real
    return float(late_s[int(np.argmax(correlation))])
