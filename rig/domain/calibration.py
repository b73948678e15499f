"""The words of calibration: what can be known of a device, in which unit, with which sign, and one record of it."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Quantity:
    """What can be calibrated. `unit` ends the key of its value; `sign` says what a positive value means.

    `enters`: a latency is corrected for it, with a line in the budget; else it is knowledge about the device.
    `per_channel`: one record for each channel. `at_rate`, `at_blocks`: it holds at the sample rate, or at the block
    length, that it was found with, and at no other.
    """

    name: str
    title: str
    unit: str
    sign: str
    enters: bool
    per_channel: bool = False
    at_rate: bool = False
    at_blocks: bool = False


QUANTITIES: dict[str, Quantity] = {
    q.name: q
    for q in (
        Quantity(
            "channel_skew",
            "skew between the channels",
            "frames",
            "positive: the ear channel shows one signal later than the reference channel; subtracted from a latency",
            enters=True,
            at_rate=True,
        ),
        Quantity(
            "sample_clock",
            "error of the sample clock",
            "ppm",
            "positive: the interface's clock is fast, and a latency counted by it too long",
            enters=True,
        ),
        Quantity(
            "mouth_path",
            "air from the mouth to the system's microphone",
            "s",
            "a delay, positive; subtracted from a latency",
            enters=True,
        ),
        Quantity(
            "ear_path",
            "air from the system's loudspeaker to the ear",
            "s",
            "a delay, positive; subtracted from a latency",
            enters=True,
        ),
        Quantity(
            "transducer",
            "the mouth's loudspeaker with its microphone",
            "s",
            "a delay, positive: signal in to signal out, without the air; subtracted from a latency",
            enters=True,
        ),
        Quantity(
            "interface_loop",
            "round trip of the interface, output to input",
            "frames",
            "positive: the sound is on the recording later than the frame that it was asked for; enters no latency",
            enters=False,
            at_rate=True,
            at_blocks=True,
        ),
        Quantity(
            "board_offset",
            "the board's tone behind its pulse",
            "s",
            "positive: the tone, after its filter, is later than the edge of its pulse; enters no latency",
            enters=False,
        ),
        Quantity(
            "noise_floor",
            "noise of an input",
            "dbfs",
            "RMS against full scale 1.0; enters no latency",
            enters=False,
            per_channel=True,
        ),
        Quantity(
            "clip_level",
            "level at which an input clips",
            "dbfs",
            "peak against full scale 1.0; enters no latency",
            enters=False,
            per_channel=True,
        ),
        Quantity(
            "polarity",
            "polarity of an input",
            "sign",
            "1: a positive voltage at the output is positive on the recording; -1: it is negative; enters no latency",
            enters=False,
            per_channel=True,
        ),
        Quantity(
            "crosstalk",
            "the reference in the ear channel",
            "db",
            "level in the ear channel against the reference channel, negative; enters no latency",
            enters=False,
        ),
    )
}
"""Every quantity that a record can be of. calibration/README.md lists them."""


@dataclass(frozen=True, slots=True)
class DeviceIdentity:
    """Which device a record is of. `usb` is vendor:product in hexadecimal; None where a bus or a driver tells nothing.

    `bench` as in `BenchKind`: what was found on a simulated device says nothing about a real one.
    """

    bench: str
    name: str
    host_api: str | None = None
    usb: str | None = None
    serial: str | None = None

    def words(self) -> str:
        """The device as a person would tell it from others."""
        more = [f"USB {self.usb}" if self.usb else None, f"serial {self.serial}" if self.serial else None]
        return ", ".join([f"{self.name} ({self.host_api or self.bench})", *(m for m in more if m)])


@dataclass(frozen=True, slots=True)
class CalibrationRecord:
    """One quantity of one device. `value` and `u`, the standard uncertainty, are in the quantity's unit.

    `evidence` is the SHA-256 of the manifest of the session that it came from, which holds the hashes of everything
    else there; None where it was entered by hand, from a ruler and a thermometer. `conditions` are what it was found
    under, by name: numbers, or words. `wander` holds (span in s, Allan deviation) where that was found.
    """

    quantity: Quantity
    value: float
    u: float
    method: str
    made_on: datetime.date
    good_for_days: int
    device: DeviceIdentity
    channel: int | None = None  # one-based; None where the quantity is of no single channel
    evidence: str | None = None
    conditions: tuple[tuple[str, float | str], ...] = ()
    wander: tuple[tuple[float, float], ...] = ()

    @property
    def good_until(self) -> datetime.date:
        """The last day on which it may be used."""
        return self.made_on + datetime.timedelta(days=self.good_for_days)

    def condition(self, name: str) -> float | str | None:
        return dict(self.conditions).get(name)


@dataclass(frozen=True, slots=True)
class Used:
    """A record as it was chosen: its id is its place below the folder of calibrations, without the ending."""

    id: str
    sha256: str
    record: CalibrationRecord
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known of one device for one measurement. `unmet` says of every quantity that enters a latency and has no
    usable record why not; `notes` are sentences for the report."""

    used: tuple[Used, ...] = ()
    unmet: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()

    def of(self, quantity: str) -> Used | None:
        """The record of a quantity that is of no single channel; None where there is none."""
        return next((u for u in self.used if u.record.quantity.name == quantity and u.record.channel is None), None)
