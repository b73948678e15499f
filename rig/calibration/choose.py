"""Which records fit a measurement: of the same device, of its day, of its rate and channels. Pure."""

from __future__ import annotations

import datetime
import hashlib
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from rig.calibration.schema import read_record
from rig.calibration.store import sequence
from rig.domain.calibration import QUANTITIES, Calibration, CalibrationRecord, DeviceIdentity, Used
from rig.errors import CalibrationError, UsageError

_CARD = re.compile(r"\s*\((?:plug)?hw:[^()]*\)\s*$")


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a measurement was made under. `on` None: no day counts (a simulated device does not age). Channels
    one-based. `block_frames` None: the driver chose freely."""

    device: DeviceIdentity
    on: datetime.date | None
    rate_hz: int
    block_frames: int | None
    reference_channel: int
    ear_channel: int


def choose(records: Sequence[Used], where: Circumstances) -> Calibration:
    """The newest usable record of each quantity, and of every other why there is none.

    A record replaces the older ones of its kind even where it is stale: what superseded them has made them wrong.
    """
    own = [r for r in records if same_device(r.record.device, where.device)]
    others = sorted({r.record.device.words() for r in records} - {r.record.device.words() for r in own})
    current: dict[tuple[object, ...], Used] = {}
    for used in sorted(own, key=lambda used: _age(used, where.on)):
        current[_sort_of(used.record)] = used
    kept = [used for used in current.values() if unusable(used.record, where) is None]
    held = {used.record.quantity.name for used in kept}
    unmet = [
        (used.record.quantity.name, f"{used.id} {unusable(used.record, where)}")
        for used in current.values()
        if used.record.quantity.name not in held
    ]
    known = {u.record.quantity.name for u in kept} | {name for name, _ in unmet}
    foreign = f"the records there are of {others[0]}{' and others' if len(others) > 1 else ''}" if others else ""
    absent = foreign if foreign and not own else "no record"
    unmet += [(name, absent) for name in QUANTITIES if name not in known]
    notes = []
    if others and not own:
        notes.append(f"no calibration is of this device ({where.device.words()}): {foreign}, and none was applied")
    return Calibration(tuple(sorted(kept, key=lambda u: u.id)), tuple(unmet), tuple(notes))


def _age(used: Used, on: datetime.date | None) -> tuple[bool, tuple[str, int], bool]:
    """Sorts records, the one to use last: the newest from before the measurement, else the oldest after it."""
    day, number = sequence(used)
    if on is None or used.record.made_on <= on:
        return True, (day, number), False
    days = (used.record.made_on - on).days
    return False, (f"{10**6 - days:07d}", number), True


def _sort_of(record: CalibrationRecord) -> tuple[object, ...]:
    """What a record supersedes: the same quantity of the same channels, at one rate and block length if they count."""
    names = ["rate_hz"] * record.quantity.at_rate + ["block_frames"] * record.quantity.at_blocks
    names += ["reference_channel", "ear_channel"] * (record.quantity.name == "channel_skew")
    return (record.quantity.name, record.channel, *(record.condition(name) for name in names))


def same_device(record: DeviceIdentity, device: DeviceIdentity) -> bool:
    """Whether both are one device: USB ids and serial number where both have them, else name and host API.

    A serial number that one side alone has decides nothing for it: it is no match."""
    if record.bench != device.bench:
        return False
    if record.usb is not None or device.usb is not None:
        return record.usb == device.usb and record.serial == device.serial and _same_port(record, device)
    return record.serial == device.serial and _same_name(record, device)


def _same_port(record: DeviceIdentity, device: DeviceIdentity) -> bool:
    """Without a serial number two interfaces of one make cannot be told apart: then the name must agree too."""
    return record.serial is not None or _same_name(record, device)


def _same_name(record: DeviceIdentity, device: DeviceIdentity) -> bool:
    return _folded(record.name) == _folded(device.name) and record.host_api == device.host_api


def _folded(name: str) -> str:
    """A name without ALSA's card number, which changes with every cable, and without case."""
    return unicodedata.normalize("NFC", _CARD.sub("", name)).casefold().strip()


def unusable(record: CalibrationRecord, where: Circumstances) -> str | None:
    """Why a record of the right device does not hold for this measurement; None where it does."""
    if where.on is not None and abs((where.on - record.made_on).days) > record.good_for_days:
        if where.on > record.made_on:
            return f"is stale: good until {record.good_until}, measured on {where.on}"
        return f"was made on {record.made_on}, more than {record.good_for_days} days after the measurement"
    rate_hz = record.condition("rate_hz")
    if record.quantity.at_rate and rate_hz != float(where.rate_hz):
        return f"was found at {_number(rate_hz)} Hz and holds at no other rate than that; this is {where.rate_hz} Hz"
    blocks = record.condition("block_frames")
    if record.quantity.at_blocks and blocks != where.block_frames:
        return f"was found with blocks of {_number(blocks)} frames, and these are {_number(where.block_frames)}"
    if record.quantity.name == "channel_skew":
        pair = record.condition("reference_channel"), record.condition("ear_channel")
        if pair != (where.reference_channel, where.ear_channel):
            return (
                f"is of channels {_number(pair[0])} and {_number(pair[1])}, not of {where.reference_channel} and"
                f" {where.ear_channel}"
            )
    return None


def require(calibration: Calibration, needs: Sequence[str]) -> None:
    """Raises CalibrationError where a quantity that the figure needs has no usable record."""
    reasons = dict(reversed(calibration.unmet))
    for name in needs:
        if not any(u.record.quantity.name == name for u in calibration.used):
            raise CalibrationError(
                f"the figure needs {name}, and there is none to use: {reasons.get(name, 'no record')}",
                "a record of this device that holds on the day of the measurement",
                "add a record (calibration/README.md has the format), or leave --needs out",
            )


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """The names of quantities as given with --needs or --steps, each once. Raises UsageError for another name."""
    for name in names:
        if name not in QUANTITIES:
            raise UsageError(
                f"no quantity is called {name!r}",
                f"one of {', '.join(QUANTITIES)}",
                "calibration/README.md lists them",
            )
    return tuple(dict.fromkeys(names))


def from_manifest(stored: object) -> list[Used]:
    """The records that a session carries, checked against their hashes. Raises CalibrationError if they do not hold."""
    found = []
    for entry in stored if isinstance(stored, list) else []:
        fields = entry if isinstance(entry, dict) else {}
        identity, digest, text = (fields.get(key) for key in ("id", "sha256", "toml"))
        if not (isinstance(identity, str) and isinstance(digest, str) and isinstance(text, str)):
            raise _altered("a calibration record in the session's manifest is incomplete")
        raw = text.encode("utf-8", "surrogatepass")
        if hashlib.sha256(raw).hexdigest() != digest:
            raise _altered(f"the record {identity[:80]} in the session's manifest is not what its hash says")
        found.append(Used(identity, digest, read_record(raw, f"{identity}.toml of the session"), text))
    return found


def _altered(what: str) -> CalibrationError:
    return CalibrationError(
        what, "the record as it was applied when the session was made", "analyse with --calibration DIR, or with none"
    )


def _number(value: float | str | None) -> str:
    return "unknown" if value is None else f"{value:g}" if isinstance(value, float | int) else value
