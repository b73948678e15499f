"""Records: text and back, a closed schema that names file, key and line, files never overwritten, the choice."""

from __future__ import annotations

import contextlib
import datetime
import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.calibration.choose import Circumstances, choose, from_manifest, require, same_device
from rig.calibration.schema import read_record, write_record
from rig.calibration.store import load, load_file, save
from rig.domain.calibration import QUANTITIES, CalibrationRecord, DeviceIdentity, Used
from rig.errors import CalibrationError, RigError

DAY = datetime.date(2026, 3, 2)
BOX = DeviceIdentity("hardware", "Box (hw:1,0)", "ALSA", "1234:5678", "A1")
SKEW = CalibrationRecord(
    quantity=QUANTITIES["channel_skew"],
    value=3.4,
    u=0.002,
    method="docs/calibration.md: one signal into both inputs",
    made_on=DAY,
    good_for_days=365,
    device=BOX,
    evidence="ab" * 32,
    conditions=(("rate_hz", 48000.0), ("reference_channel", 1.0), ("ear_channel", 2.0)),
)
HERE = Circumstances(BOX, DAY, 48_000, 480, 1, 2)


def used(record: CalibrationRecord, name: str | None = None) -> Used:
    text = write_record(record)
    name = name or f"box/{record.quantity.name}.{record.made_on}"
    return Used(name, hashlib.sha256(text.encode()).hexdigest(), record, text)


@given(
    st.sampled_from(sorted(QUANTITIES)),
    st.floats(0.0, 90.0),
    st.floats(1e-12, 1e3),
    st.text(st.characters(blacklist_categories=["C", "Z"]), min_size=1, max_size=60),
)
def test_what_is_written_is_read_again(name: str, value: float, u: float, words: str) -> None:
    quantity = QUANTITIES[name]
    if quantity.unit == "sign":
        value, u = -1.0, 0.0
    record = replace(
        SKEW,
        quantity=quantity,
        value=value,
        u=u,
        method=words,
        channel=3 if quantity.per_channel else None,
        evidence=None,
        wander=((1.0, 2e-8), (30.0, 1e-9)),
    )
    assert read_record(write_record(record).encode(), "x.toml") == record


BREAKS = [
    ("u_frames = 0.002\n", "", r"line 1: u_frames is missing"),
    ("u_frames = 0.002", "u_ms = 0.002", r"line \d+: u_ms is no key"),
    ("u_frames = 0.002", 'u_frames = "0.002"', r"line 5: u_frames is '0.002'"),
    ("u_frames = 0.002", "u_frames = 0.0", r"line 5: u_frames is 0"),
    ("u_frames = 0.002", "u_frames = nan", r"line 5: u_frames is nan"),
    ("value_frames = 3.4", "value_frames = true", r"line 4: value_frames is True"),
    ("value_frames = 3.4", "value_frames = 1e99", r"line 4: value_frames is 1e\+99"),
    ("value_frames", "value_s", r"line 4: value_s is no key"),
    ("made_on = 2026-03-02", 'made_on = "2026-03-02"', r"line 8: made_on"),
    ("made_on = 2026-03-02", "made_on = 2026-03-02T01:02:03", r"line 8: made_on"),
    ("good_for_days = 365", "good_for_days = 0", r"line 9: good_for_days"),
    ("subtracted from", "added to", r"line 6: sign states another convention"),
    ('"channel_skew"', '"chanel_skew"', r"line 3: quantity"),
    ("schema = 1", "schema = 2", r"line 2: schema is 2"),
    ('serial = "A1"', 'serial = "A1"\ncolour = "red"', r"line 17: device.colour is no key"),
    ("rate_hz = 48000.0", 'rate_hz = "48000"', r"line 19: conditions.rate_hz"),
    ("rate_hz = 48000.0", "weather = 1", r"line 19: conditions.weather is no key"),
    ("ab" * 32, "AB" * 32, r"line 24: evidence.manifest_sha256"),
    ('bench = "hardware"', 'bench = "file"', r"line 12: device.bench"),
    ("schema = 1", "schema = = 1", r"is not TOML"),
    ("[conditions]", "[conditions]\n[conditions]", r"is not TOML"),
]


@pytest.mark.parametrize(("old", "new", "said"), BREAKS, ids=[b[1] or "missing" for b in BREAKS])
def test_a_broken_record_is_named_with_file_key_and_line(old: str, new: str, said: str) -> None:
    text = write_record(SKEW)
    assert old in text
    with pytest.raises(CalibrationError) as error:
        read_record(text.replace(old, new, 1).encode(), "box.toml")
    assert error.value.what.startswith("box.toml")
    assert re.search(said, error.value.what), error.value.what


@given(st.binary(max_size=300), st.integers(0, 600), st.integers(0, 40))
def test_no_bytes_make_anything_but_a_record_or_a_calibration_error(noise: bytes, at: int, cut: int) -> None:
    raw = write_record(SKEW).encode()
    for text in (noise, raw[:at] + noise + raw[at + cut :], raw[:at]):
        with contextlib.suppress(CalibrationError):  # anything else that it raises fails here
            read_record(text, "x.toml")


def test_records_are_added_and_never_overwritten(tmp_path: Path) -> None:
    first = save(tmp_path, SKEW)
    before = first.read_bytes()
    second = save(tmp_path, replace(SKEW, value=3.5))
    assert first.name == "channel_skew.2026-03-02.toml"
    assert second.name == "channel_skew.2026-03-02.2.toml"
    assert first.read_bytes() == before
    chosen = choose(load(tmp_path), HERE).of("channel_skew")
    assert chosen is not None
    assert chosen.record.value == 3.5
    renamed = first.with_name("channel_skew.2026-03-03.toml")
    first.rename(renamed)
    with pytest.raises(CalibrationError, match="made on 2026-03-02"):
        load_file(renamed)


def test_the_tenth_record_of_a_day_supersedes_the_second() -> None:
    many = [used(replace(SKEW, value=float(k)), f"box/channel_skew.2026-03-02.{k}") for k in (2, 9, 10)]
    chosen = choose(many, HERE).of("channel_skew")
    assert chosen is not None
    assert chosen.record.value == 10.0


def test_the_device_decides() -> None:
    assert same_device(BOX, replace(BOX, name="Box (hw:3,0)"))
    assert not same_device(BOX, replace(BOX, serial="A2"))
    assert not same_device(BOX, replace(BOX, bench="simulated"))
    assert not same_device(BOX, replace(BOX, usb=None, serial=None))
    plain = replace(BOX, usb=None, serial=None)
    assert same_device(plain, replace(plain, name="BOX (hw:2,1)"))
    assert not same_device(plain, replace(plain, host_api="JACK"))
    other = choose([used(SKEW)], replace(HERE, device=replace(BOX, serial="A2")))
    assert not other.used
    assert "serial A1" in other.notes[0]
    with pytest.raises(CalibrationError, match="serial A1"):
        require(other, ["channel_skew"])


@pytest.mark.parametrize(
    ("where", "said"),
    [
        (replace(HERE, on=DAY + datetime.timedelta(days=366)), "stale: good until 2027-03-02"),
        (replace(HERE, on=DAY - datetime.timedelta(days=366)), "more than 365 days after"),
        (replace(HERE, rate_hz=44_100), "found at 48000 Hz"),
        (replace(HERE, reference_channel=2, ear_channel=1), "of channels 1 and 2, not of 2 and 1"),
    ],
)
def test_what_does_not_hold_is_not_applied_and_says_why(where: Circumstances, said: str) -> None:
    calibration = choose([used(SKEW)], where)
    assert not calibration.used
    assert said in dict(calibration.unmet)["channel_skew"]
    require(calibration, [])
    with pytest.raises(CalibrationError, match=re.escape(said)):
        require(calibration, ["channel_skew"])


def test_of_several_the_newest_from_before_the_measurement_counts() -> None:
    days = [DAY + datetime.timedelta(days=k) for k in (0, 10, 20)]
    records = [used(replace(SKEW, made_on=day, value=float(k))) for k, day in enumerate(days)]
    for on, value in ((DAY + datetime.timedelta(days=15), 1.0), (DAY - datetime.timedelta(days=5), 0.0), (None, 2.0)):
        chosen = choose(records, replace(HERE, on=on)).of("channel_skew")
        assert chosen is not None
        assert chosen.record.value == value
    # One at another rate supersedes nothing.
    slow = replace(SKEW, made_on=days[2], conditions=(("rate_hz", 44_100.0), *SKEW.conditions[1:]))
    chosen = choose([records[0], used(slow)], replace(HERE, on=days[2])).of("channel_skew")
    assert chosen is not None
    assert chosen.record.value == 0.0


def test_a_record_in_a_manifest_is_held_against_its_hash() -> None:
    one = used(SKEW)
    entry = {"id": one.id, "sha256": one.sha256, "toml": one.text}
    assert from_manifest([entry]) == [one]
    for broken in ({**entry, "toml": one.text.replace("3.4", "3.5")}, {"id": "x"}, 7):
        with pytest.raises(RigError):
            from_manifest([broken])
