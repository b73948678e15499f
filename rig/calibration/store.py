"""The folder of calibrations: DIR/<device>/<quantity>.<date>.toml. Files are added, never changed."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from rig.calibration.schema import read_record, write_record
from rig.calibration.tomltext import MAX_BYTES
from rig.domain.calibration import CalibrationRecord, DeviceIdentity, Used
from rig.errors import CalibrationError, UsageError

MAX_FILES = 5000
_NAME = re.compile(r"([a-z_]+?)(?:-ch(\d{1,2}))?\.(\d{4}-\d\d-\d\d)(?:\.(\d{1,4}))?\.toml")


def load(folder: Path) -> list[Used]:
    """Every record at most one folder below `folder`, in the order of their names. Raises CalibrationError for a folder
    that is not there, and for a file that is no record: nothing is passed over in silence."""
    if not folder.is_dir():
        raise CalibrationError(
            f"the folder of calibrations {folder} does not exist",
            "a folder with one folder of records for each device",
            "name it with --calibration; calibration/README.md has the format of a record",
        )
    try:
        paths = sorted({*folder.glob("*.toml"), *folder.glob("*/*.toml")})
    except OSError as error:
        raise CalibrationError(
            f"the folder of calibrations {folder} cannot be read: {error.strerror or error}",
            "a readable folder",
            "check its permissions",
        ) from error
    if len(paths) > MAX_FILES:
        raise CalibrationError(
            f"{folder} holds {len(paths)} records", f"at most {MAX_FILES}", "move those of old devices elsewhere"
        )
    return [load_file(path) for path in paths]


def load_file(path: Path) -> Used:
    """One record. Raises CalibrationError naming file, key and line; its name must say what it holds."""
    try:
        with open(path, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise CalibrationError(
            f"{path.name} cannot be read: {error.strerror or error}", "a readable record", "check the path"
        ) from error
    record = read_record(raw, path.name)
    named = _NAME.fullmatch(path.name)
    channel = None if named is None or named[2] is None else int(named[2])
    said = None if named is None else (named[1], channel, named[3])
    holds = (record.quantity.name, record.channel, record.made_on.isoformat())
    if said != holds:
        raise CalibrationError(
            f"{path.name} holds {record.quantity.name} made on {record.made_on}",
            f"the name {file_stem(record)}.toml",
            "give the file its own name back",
        )
    identity = f"{path.resolve().parent.name}/{path.name.removesuffix('.toml')}"
    return Used(identity, hashlib.sha256(raw).hexdigest(), record, raw.decode("utf-8"))


def save(folder: Path, record: CalibrationRecord) -> Path:
    """Writes a record below `folder` under a name that is not taken. Raises UsageError where that cannot be."""
    own = folder / device_folder(record.device)
    text = write_record(record)
    read_record(text.encode(), "the new record")  # what is written can be read
    try:
        own.mkdir(parents=True, exist_ok=True)
        stem, number = file_stem(record), 1
        while True:
            path = own / (f"{stem}.toml" if number == 1 else f"{stem}.{number}.toml")
            try:
                handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            except FileExistsError:
                number += 1
                continue
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            return path
    except OSError as error:
        raise UsageError(
            f"the record cannot be written to {own}: {error.strerror or error}",
            "a folder that this user may write",
            "choose another folder",
        ) from error


def file_stem(record: CalibrationRecord) -> str:
    """`quantity.date`, with the channel where the quantity is of one."""
    channel = "" if record.channel is None else f"-ch{record.channel}"
    return f"{record.quantity.name}{channel}.{record.made_on.isoformat()}"


def device_folder(device: DeviceIdentity) -> str:
    """The folder's name: readable, and different for two serial numbers. What counts is what the records say."""
    parts = [device.name, *([device.serial] if device.serial else [])]
    return re.sub(r"[^\w.]+", "-", "-".join(parts), flags=re.ASCII).strip("-.").lower()[:80] or "device"


def sequence(used: Used) -> tuple[str, int]:
    """Sorts records of one quantity by age: date, then the number of the file on that date."""
    named = _NAME.fullmatch(used.id.rsplit("/", 1)[-1] + ".toml")
    number = 1 if named is None or named[4] is None else int(named[4])
    return used.record.made_on.isoformat(), number
