"""From the recording of a step to figures: which mistake was made, and what the quantities are. Reads sessions only."""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rig.analyse.air import air_s, transducer_s
from rig.analyse.clockrate import ClockRate
from rig.analyse.crosstalk import Crosstalk, crosstalk_db
from rig.analyse.heard import Channel, hear
from rig.analyse.hostrate import host_rate
from rig.analyse.known import Found, arrival_s, clip_dbfs, loop_frames, noise_dbfs, polarity, skew_frames
from rig.analyse.spectrum import Real
from rig.analyse.wander import allan_deviation
from rig.analyse.wired import Miswired, check_air, check_limit, check_loop, check_open, check_split
from rig.cli.guide_bench import Sized
from rig.domain.calibration import QUANTITIES
from rig.domain.records import StreamGrant
from rig.domain.waveforms import ideal_waveform
from rig.errors import MissingLibrary
from rig.session import SessionRun, open_session
from rig.session.read import MANIFEST, hash_file

SETTLE_S = 0.3
"""The first of a stream is left out of its noise: converters settle."""

MOST_QUIET_S = 60.0
CLEAR_S = 0.1  # between the silence that is read and the first stimulus


@dataclass(frozen=True, slots=True)
class Reading:
    """One recorded session of a step. `levels`: (reference, ear) of each run, from soft to loud; `quiet` the silence
    before the first stimulus, shape (n, 2); `crosstalk` where one channel alone was played into."""

    evidence: str  # SHA-256 of the manifest
    grant: StreamGrant
    stimulus: str
    amplitude: float  # of the loudest
    n_stimuli: int
    duration_s: float
    levels: tuple[tuple[Channel, Channel], ...]
    quiet: Real
    rate: ClockRate | None
    crosstalk: Crosstalk | None
    lost: bool  # samples were lost

    @property
    def reference(self) -> Channel:
        return _joined([reference for reference, _ in self.levels])

    @property
    def ear(self) -> Channel:
        return _joined([ear for _, ear in self.levels])


def read(folder: Path, wiring: str) -> Reading:
    """What the session in `folder` has. Raises BadInput where it cannot be read."""
    with closing(open_session(folder)) as session:
        roles, runs = session.roles, session.runs
        levels, crosstalk = [], None
        for run in runs:
            wave = ideal_waveform(run.plan.kind, run.grant.rate_hz, run.plan.amplitude).astype(np.float64)
            asked = tuple(item.frame for item in run.events.scheduled)
            reference = hear(run.source, roles.ref, asked, wave)
            levels.append((reference, hear(run.source, roles.ear, asked, wave)))
            if wiring == "loop":
                crosstalk = crosstalk_db(run.source, roles.ear, asked, wave, reference)
        first = runs[0]
        return Reading(
            evidence=hash_file(folder / MANIFEST),
            grant=first.grant,
            stimulus=first.plan.kind,
            amplitude=max(run.plan.amplitude for run in runs),
            n_stimuli=sum(run.plan.count for run in runs),
            duration_s=sum(run.source.n_frames / run.grant.rate_hz for run in runs),
            levels=tuple(levels),
            quiet=_quiet(first, (roles.ref, roles.ear)),
            rate=host_rate(first.events.blocks, first.grant.rate_hz, first.events.gaps),
            crosstalk=crosstalk,
            lost=any(run.events.gaps for run in runs),
        )


@dataclass(frozen=True, slots=True)
class Given:
    """What is known beside the recording: the channels (one-based), figures found before, and what was read off."""

    ref: int
    ear: int
    host_clock_u_ppm: float
    skew: Sized | None = None
    crosstalk_db: float | None = None
    distance: Sized | None = None
    temperature: Sized | None = None

    @property
    def air(self) -> Found | None:
        """The time that sound takes over the distance, in s."""
        if self.distance is None or self.temperature is None:
            return None
        return air_s(self.distance.value, self.distance.u, self.temperature.value, self.temperature.u)


def mistake(reading: Reading, wiring: str, given: Given) -> Miswired | None:
    """Which mistake the recording shows; None where the bench is connected as asked."""
    reference, ear = reading.reference, reading.ear
    if wiring == "open":
        return check_open(reference, ear)
    if wiring == "loop":
        return check_loop(reference, ear)
    if wiring == "split":
        return check_split(reference, ear)
    if wiring == "limit":
        return check_limit(list(reading.levels))
    assert given.air is not None, "the distance is asked for before anything is recorded"
    return check_air(reference, ear, given.air.value * reading.grant.rate_hz)


@dataclass(frozen=True, slots=True)
class Figure:
    """A value that a reading gives for a quantity (of one channel, one-based, where it is of one), or why none.

    `floor_u`: the part of its uncertainty that more recording cannot lessen; `because` says where that is from."""

    quantity: str
    channel: int | None
    found: Found | None
    why: str = ""
    remedy: str = ""
    floor_u: float = 0.0
    because: str = ""
    note: str = ""
    wander: tuple[tuple[float, float], ...] = ()


def figures(reading: Reading, quantity: str, given: Given) -> list[Figure]:
    """Every figure of a quantity that the reading gives: one, or one for each channel."""
    if QUANTITIES[quantity].per_channel:
        return [_of_channel(reading, quantity, (given.ref, given.ear)[side], side) for side in (0, 1)]
    return [_OF_DEVICE[quantity](reading, given)]


def through_air(quantity: str, distance: Sized, temperature: Sized) -> Figure:
    """A way through air, from a ruler and a thermometer."""
    found = air_s(distance.value, distance.u, temperature.value, temperature.u)
    return Figure(
        quantity, None, found, floor_u=found.u, because="the distance is not known better", remedy=_RULER_REMEDY
    )


_RULER_REMEDY = "read the distance to some millimetres and give that with it: 80mm+-5mm"


def _of_channel(reading: Reading, quantity: str, number: int, side: int) -> Figure:
    channels = [pair[side] for pair in reading.levels]
    if quantity == "noise_floor":
        found = noise_dbfs(reading.quiet[:, side], float(reading.grant.rate_hz))
        why = f"input {number} is digitally silent: every sample is the same"
        return Figure(quantity, number, found, why, "an input that is switched on, not muted, has noise")
    if quantity == "clip_level":
        why = f"input {number} follows the loudest chirp"
        return Figure(quantity, number, clip_dbfs(channels), why, f"turn the gain of input {number} up")
    why = f"input {number} shows chirps of both polarities"
    return Figure(quantity, number, polarity(_joined(channels)), why, "record again, with nothing else that sounds")


def _loop(reading: Reading, _: Given) -> Figure:
    return Figure("interface_loop", None, loop_frames(reading.reference))


def _crosstalk(reading: Reading, _: Given) -> Figure:
    heard = reading.crosstalk
    if heard is None:
        return Figure("crosstalk", None, None, "the ear's input is digitally silent, or too few chirps were heard")
    why = f"nothing of the reference is in the ear's input: less than {heard.limit_db:.0f} dB"
    return Figure("crosstalk", None, heard.found, why)


def _skew(reading: Reading, given: Given) -> Figure:
    found = skew_frames(reading.reference, reading.ear, given.crosstalk_db)
    pull = 0.0 if given.crosstalk_db is None else abs(found.value) * 10.0 ** (given.crosstalk_db / 20.0)
    return Figure(
        "channel_skew",
        None,
        found,
        floor_u=pull,
        because=f"the inputs leak into each other, {given.crosstalk_db:.0f} dB" if given.crosstalk_db else "",
        remedy="turn both gains down, and away from each other's cables",
    )


def _clock(reading: Reading, given: Given) -> Figure:
    if reading.rate is None:
        why = "too few blocks came with a time"
        return Figure("sample_clock", None, None, why, "record again, with nothing else running")
    found = reading.rate.found
    both = Found(found.value, math.hypot(found.u, given.host_clock_u_ppm), found.n)
    wander: tuple[tuple[float, float], ...]
    try:
        wander, note = allan_deviation(reading.rate), ""
    except MissingLibrary as error:
        wander, note = (), f"no wander in the record: {error.what}"
    return Figure(
        "sample_clock",
        None,
        both,
        floor_u=given.host_clock_u_ppm,
        because="the rate of the computer's own clock is not known better",
        remedy="have chrony or systemd-timesyncd keep the computer's clock for an hour, then calibrate again",
        note=note,
        wander=wander,
    )


def _transducer(reading: Reading, given: Given) -> Figure:
    rate_hz, air = float(reading.grant.rate_hz), given.air
    if air is None or given.skew is None:
        why = "the skew between the inputs is not known"
        return Figure("transducer", None, None, why, "rig calibrate --device NAME --quantity channel_skew,transducer")
    whole = arrival_s(reading.reference, reading.ear, rate_hz, Found(given.skew.value, given.skew.u, 1))
    found = transducer_s(whole, air)
    note = "" if found.value >= 0.0 else f"{1e3 * found.value:+.4f} ms was found, and no delay is below 0"
    return Figure(
        "transducer",
        None,
        Found(max(0.0, found.value), found.u, found.n),
        floor_u=air.u,
        because="the distance between loudspeaker and microphone is not known better",
        remedy=_RULER_REMEDY,
        note=note,
    )


_OF_DEVICE = {
    "interface_loop": _loop,
    "crosstalk": _crosstalk,
    "channel_skew": _skew,
    "sample_clock": _clock,
    "transducer": _transducer,
}


def _joined(channels: list[Channel]) -> Channel:
    if len(channels) == 1:
        return channels[0]
    limits = [channel.limit_db for channel in channels if channel.limit_db is not None]
    return Channel(
        tuple(heard for channel in channels for heard in channel.stimuli),
        float(np.median([channel.noise for channel in channels])),
        max(limits, default=None),
    )


def _quiet(run: SessionRun, sides: tuple[int, int]) -> Real:
    """The samples before the first stimulus, shape (n, 2), without how the stream begins."""
    rate_hz = run.grant.rate_hz
    first = round(SETTLE_S * rate_hz)
    until = min((item.frame for item in run.events.scheduled), default=run.source.n_frames) - round(CLEAR_S * rate_hz)
    count = max(0, min(until - first, round(MOST_QUIET_S * rate_hz)))
    return np.asarray(run.source.read(first, count)[:, list(sides)], dtype=np.float64)
