"""A record to TOML text and back. The schema is closed: what is unknown, missing or of another type is an error that
names file, key and line."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from rig.calibration import tomltext
from rig.domain.calibration import QUANTITIES, CalibrationRecord, DeviceIdentity, Quantity
from rig.domain.records import BenchKind
from rig.errors import CalibrationError

SCHEMA = 1
COMMENT = "A calibration record of rig: never edited, a newer one supersedes it. calibration/README.md has the format."
MAX_DAYS = 3660

CONDITIONS: dict[str, type] = {
    "rate_hz": float,
    "block_frames": float,
    "reference_channel": float,
    "ear_channel": float,
    "output_channel": float,
    "stimuli": float,
    "duration_s": float,
    "amplitude": float,
    "temperature_c": float,
    "distance_m": float,
    "u_distance_m": float,
    "near_distance_m": float,
    "u_near_distance_m": float,
    "u_temperature_c": float,
    "claimed_frames": float,
    "host_clock_u_ppm": float,
    "stimulus": str,
    "note": str,
}
"""What a record may say of the circumstances, and of which type each is."""

_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class _Table:
    """One table of the file, read key by key; what is left over at the end is an error."""

    name: str
    prefix: str
    values: Mapping[str, Any]
    lines: Mapping[str, int]

    def refuse(self, key: str, what: str, expected: str) -> NoReturn:
        line = self.lines.get(self.prefix + key, self.lines.get(self.prefix.rstrip("."), 1))
        raise CalibrationError(
            f"{self.name}, line {line}: {self.prefix}{key} {what}",
            expected,
            "a record that was in use is superseded by a new file, not edited; calibration/README.md has the format",
        )

    def only(self, *keys: str) -> None:
        for key in self.values:
            if key not in keys:
                self.refuse(key, "is no key of a record", f"one of {', '.join(keys)}")

    def text(self, key: str, most: int = 400) -> str:
        value = self._get(key, str, "text")
        if not value.strip() or len(value) > most or not value.isprintable():
            self.refuse(key, f"is {value[:30]!r}", f"1 to {most} printable characters")
        return str(value)

    def maybe_text(self, key: str, most: int = 400) -> str | None:
        return self.text(key, most) if key in self.values else None

    def number(self, key: str) -> float:
        value = self._get(key, (int, float), "a number")
        if isinstance(value, bool) or not math.isfinite(value):
            self.refuse(key, f"is {value!r}", "a finite number")
        return float(value)

    def whole(self, key: str, low: int, high: int) -> int:
        value = self._get(key, int, "a whole number")
        if isinstance(value, bool) or not low <= value <= high:
            self.refuse(key, f"is {value!r}", f"a whole number from {low} to {high}")
        return int(value)

    def date(self, key: str) -> datetime.date:
        value = self._get(key, datetime.date, "a date without quotes: 2026-01-31")
        if isinstance(value, datetime.datetime) or not 2000 <= value.year <= 9000:
            self.refuse(key, f"is {value}", "a date: 2026-01-31")
        return datetime.date(value.year, value.month, value.day)

    def table(self, key: str) -> _Table:
        value = self._get(key, dict, "a table")
        return _Table(self.name, f"{self.prefix}{key}.", value, self.lines)

    def _get(self, key: str, kind: type | tuple[type, ...], word: str) -> Any:
        if key not in self.values:
            self.refuse(key, "is missing", word)
        value = self.values[key]
        if not isinstance(value, kind):
            self.refuse(key, f"is {str(value)[:40]!r}", word)
        return value


def read_record(raw: bytes, name: str) -> CalibrationRecord:
    """The record in the bytes of a file called `name`. Raises CalibrationError naming file, key and line."""
    document, lines = tomltext.parse(raw, name)
    top = _Table(name, "", document, lines)
    schema = top.whole("schema", 0, 1 << 30)
    if schema != SCHEMA:
        top.refuse("schema", f"is {schema}", f"{SCHEMA}, the only one so far")
    quantity = QUANTITIES.get(top.text("quantity"))
    if quantity is None:
        top.refuse("quantity", f"is {document['quantity'][:40]!r}", f"one of {', '.join(QUANTITIES)}")
    value_key, u_key = keys_of(quantity)
    own = ["schema", "quantity", value_key, u_key, "sign", "method", "made_on", "good_for_days"]
    top.only(*own, *(["channel"] if quantity.per_channel else []), "device", "conditions", "evidence", "wander")
    if top.text("sign") != quantity.sign:
        top.refuse("sign", "states another convention than this quantity has", quantity.sign)
    value, u = top.number(value_key), top.number(u_key)
    if u < 0.0 or (u == 0.0 and quantity.unit != "sign"):
        top.refuse(u_key, f"is {u:g}", "a standard uncertainty above 0")
    if quantity.unit == "sign" and (value not in (1.0, -1.0) or u != 0.0):
        top.refuse(value_key, f"is {value:g} with {u_key} {u:g}", "1 or -1, with an uncertainty of 0")
    _check_size(top, quantity, value_key, value)
    return CalibrationRecord(
        quantity=quantity,
        value=value,
        u=u,
        method=top.text("method"),
        made_on=top.date("made_on"),
        good_for_days=top.whole("good_for_days", 1, MAX_DAYS),
        device=_device(top.table("device")),
        channel=top.whole("channel", 1, 64) if quantity.per_channel else None,
        evidence=_evidence(top.table("evidence")),
        conditions=_conditions(top.table("conditions")),
        wander=_wander(top.table("wander")) if "wander" in document else (),
    )


def write_record(record: CalibrationRecord) -> str:
    """The TOML text of a record; `read_record` gives the same record again."""
    value_key, u_key = keys_of(record.quantity)
    device = record.device
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "quantity": record.quantity.name,
        "channel": record.channel,
        value_key: record.value,
        u_key: record.u,
        "sign": record.quantity.sign,
        "method": record.method,
        "made_on": record.made_on,
        "good_for_days": record.good_for_days,
        "device": {
            "bench": device.bench,
            "name": device.name,
            "host_api": device.host_api,
            "usb": device.usb,
            "serial": device.serial,
        },
        "conditions": dict(record.conditions),
        "evidence": {"entered_by_hand": True} if record.evidence is None else {"manifest_sha256": record.evidence},
    }
    if record.wander:
        document["wander"] = {
            "span_s": [span_s for span_s, _ in record.wander],
            "allan_deviation": [deviation for _, deviation in record.wander],
        }
    return tomltext.render(document, COMMENT)


def keys_of(quantity: Quantity) -> tuple[str, str]:
    """The keys of value and standard uncertainty: the unit is in the name."""
    return f"value_{quantity.unit}", f"u_{quantity.unit}"


_LARGEST = {"frames": 1e7, "s": 100.0, "ppm": 10_000.0, "dbfs": 400.0, "db": 400.0, "sign": 1.0}


def _check_size(top: _Table, quantity: Quantity, key: str, value: float) -> None:
    most = _LARGEST[quantity.unit]
    if abs(value) > most:
        top.refuse(key, f"is {value:g}", f"at most {most:g} in size: nothing of the kind is larger")
    if quantity.unit == "s" and value < 0.0:
        top.refuse(key, f"is {value:g}", "0 or more: sound does not arrive before it leaves")


def _device(at: _Table) -> DeviceIdentity:
    at.only("bench", "name", "host_api", "usb", "serial")
    bench = at.text("bench")
    kinds = [kind.value for kind in BenchKind if kind is not BenchKind.FILE]
    if bench not in kinds:
        at.refuse("bench", f"is {bench[:30]!r}", f"one of {', '.join(kinds)}")
    return DeviceIdentity(
        bench, at.text("name"), at.maybe_text("host_api"), at.maybe_text("usb"), at.maybe_text("serial")
    )


def _evidence(at: _Table) -> str | None:
    at.only("manifest_sha256", "entered_by_hand")
    if "entered_by_hand" in at.values:
        if at.values["entered_by_hand"] is not True or "manifest_sha256" in at.values:
            at.refuse("entered_by_hand", "is not true, or stands beside a hash", "one of the two: true, or a hash")
        return None
    digest = at.text("manifest_sha256")
    if not _SHA256.fullmatch(digest):
        at.refuse("manifest_sha256", f"is {digest[:20]!r}", "64 hexadecimal digits in lower case")
    return digest


def _conditions(at: _Table) -> tuple[tuple[str, float | str], ...]:
    at.only(*CONDITIONS)
    return tuple((key, at.text(key) if CONDITIONS[key] is str else at.number(key)) for key in at.values)


def _wander(at: _Table) -> tuple[tuple[float, float], ...]:
    at.only("span_s", "allan_deviation")
    columns = []
    for key in ("span_s", "allan_deviation"):
        values = at.values.get(key)
        good = isinstance(values, list) and len(values) <= 100
        if not good or not all(
            isinstance(v, int | float) and not isinstance(v, bool) and v > 0.0 for v in values or ()
        ):
            at.refuse(key, "is not a list of numbers above 0", "up to 100 numbers above 0")
        columns.append([float(v) for v in values or ()])
    if len(columns[0]) != len(columns[1]):
        at.refuse("span_s", "has another length than allan_deviation", "one deviation for each span")
    return tuple(zip(*columns, strict=True))
