"""Which calibration a measurement or an analysis uses: chosen before it is recorded, kept with the session."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig.calibration.choose import Circumstances, check_names, choose, from_manifest, require
from rig.calibration.store import load
from rig.domain.calibration import QUANTITIES, Calibration, DeviceIdentity
from rig.domain.records import BenchKind, StreamGrant
from rig.errors import CalibrationError, UsageError

if TYPE_CHECKING:
    from rig.cli.bench_choice import ChosenBench
    from rig.cli.record import MeasureOptions

NONE = "none"


@dataclass(frozen=True, slots=True)
class CalibrationChoice:
    """`--calibration DIR|none` and `--needs`. `folder` None: none was named; `off`: none is wanted."""

    folder: Path | None = None
    off: bool = False
    needs: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: str | None, needs: str | None) -> CalibrationChoice:
        """From the options as typed. Raises UsageError for an unknown quantity, or one that enters no latency."""
        names = check_names([n.strip() for n in (needs or "").split(",") if n.strip()])
        idle = [name for name in names if not QUANTITIES[name].enters]
        if idle:
            raise UsageError(
                f"--needs {idle[0]}: {QUANTITIES[idle[0]].title} enters no latency",
                f"one of {', '.join(q.name for q in QUANTITIES.values() if q.enters)}",
                "leave it out",
            )
        if given == NONE and names:
            raise UsageError(
                f"--needs {names[0]} with --calibration none", "a folder of calibrations", "leave one of the two out"
            )
        return cls(None if given in (None, NONE) else Path(given), given == NONE, names)

    @property
    def given(self) -> bool:
        """Whether anything was said about calibration."""
        return self.folder is not None or self.off or bool(self.needs)


def calibration_for(choice: CalibrationChoice, where: Circumstances) -> Calibration | None:
    """The calibration for a measurement. None where none was asked for. Raises CalibrationError where one is needed."""
    if choice.off:
        return None
    if choice.folder is None:
        require(Calibration(), choice.needs)
        return None
    found = choose(load(choice.folder), where)
    one_device = choice.folder.is_dir() and any(choice.folder.glob("*.toml"))
    if one_device and found.notes:  # the folder of one device was named, and it is another one's
        raise CalibrationError(
            found.notes[0], "the folder of this device, or the one above it", "name another folder with --calibration"
        )
    require(found, choice.needs)
    return found


def planned(options: MeasureOptions, bench: ChosenBench) -> Circumstances:
    """What a measurement that is about to begin will be made under. A simulated device does not age."""
    return Circumstances(
        device=bench.identity,
        on=None if bench.kind is BenchKind.SIMULATED else datetime.datetime.now(datetime.UTC).date(),
        rate_hz=options.rate_hz,
        block_frames=None,
        reference_channel=options.ref,
        ear_channel=options.ear,
    )


def to_manifest(calibration: Calibration | None) -> dict[str, Any] | None:
    """What a session keeps: ids and hashes of the records, and their text, so that it can be analysed anywhere."""
    if calibration is None:
        return None
    return {
        "records": [{"id": u.id, "sha256": u.sha256, "toml": u.text} for u in calibration.used],
        "unmet": [list(pair) for pair in calibration.unmet],
        "notes": list(calibration.notes),
    }


def of_session(manifest: dict[str, Any]) -> Calibration | None:
    """The calibration that a session was made with. Raises CalibrationError where its records do not hold."""
    kept = manifest.get("calibration")
    if not isinstance(kept, dict):
        return None
    unmet = [p for p in _list(kept.get("unmet")) if isinstance(p, list) and len(p) == 2 and p[0] in QUANTITIES]
    return Calibration(
        used=tuple(from_manifest(kept.get("records"))),
        unmet=tuple((str(name), str(why)) for name, why in unmet),
        notes=tuple(str(note) for note in _list(kept.get("notes"))),
    )


def circumstances(
    manifest: dict[str, Any], bench: BenchKind, grant: StreamGrant, channels: tuple[int, int]
) -> Circumstances:
    """What a recorded session was made under; `channels` reference and ear, one-based."""
    started = manifest.get("started")
    try:
        on = datetime.datetime.fromisoformat(started).date() if isinstance(started, str) else None
    except ValueError:
        on = None
    return Circumstances(
        device=identity_of(manifest, bench, grant),
        on=on,
        rate_hz=grant.rate_hz,
        block_frames=grant.block_frames,
        reference_channel=channels[0],
        ear_channel=channels[1],
    )


def identity_of(manifest: dict[str, Any], bench: BenchKind, grant: StreamGrant) -> DeviceIdentity:
    """The device of a session; of one that was made before identities were kept, as far as its stream says."""
    kept = manifest.get("identity")
    fields = kept if isinstance(kept, dict) else {}

    def text(key: str) -> str | None:
        value = fields.get(key)
        return value if isinstance(value, str) and value else None

    name, api = text("name") or grant.device, text("host_api") or grant.host_api
    return DeviceIdentity(bench.value, name, api, text("usb"), text("serial"))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
