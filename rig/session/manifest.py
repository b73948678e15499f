"""manifest.json to typed records. Whatever is wrong with it is a BadInput that names the key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from rig.domain.records import ArmedStimulus, BenchKind, ChannelRoles, StimulusPlan, StreamGrant, StreamSpec
from rig.errors import BadInput

SCHEMA = "rig.session/1"
STATUSES = ("recording", "complete", "interrupted", "lost")
_MAX_RUNS = 100_000
_MAX_RATE_HZ = 10_000_000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RunEntry:
    """What the manifest says of one run. `ok`, `n_frames` and `elapsed_s` are None when the run was cut."""

    number: int
    kind: str  # run | blank
    audio: Path
    asked: StreamSpec | None
    grant: StreamGrant
    plan: StimulusPlan
    armed: ArmedStimulus | None
    ok: bool | None
    n_frames: int | None
    elapsed_s: float | None
    xruns: int | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A validated manifest; `raw` is the whole of it, for what is only shown."""

    raw: dict[str, Any]
    identity: str
    status: str
    bench: BenchKind
    mode: str | None
    seed: int | None
    roles: ChannelRoles
    runs: tuple[RunEntry, ...]
    files: dict[str, str]  # name to SHA-256, empty until the session is finished


def read_manifest(raw: dict[str, Any], folder: Path, name: str) -> Manifest:
    """Validates the parsed manifest of the session in `folder`. Raises BadInput."""
    top = Fields(raw, name, "")
    schema = top.text("schema")
    if schema != SCHEMA:
        top.refuse("schema", f"is {schema[:60]!r}", SCHEMA)
    roles = top.inner("roles")
    files = top.inner("files")
    listed = top.get("runs", list)
    if len(listed) > _MAX_RUNS:
        top.refuse("runs", f"lists {len(listed)} runs", f"at most {_MAX_RUNS}")
    runs = tuple(_run(Fields.of(item, name, f"runs[{i}]"), folder) for i, item in enumerate(listed))
    numbers = [run.number for run in runs]
    if len(set(numbers)) != len(numbers):
        top.refuse("runs", "has a run number twice", "each number once")
    hashes = {}
    for key in files.raw:
        inside(folder, key, files, key)
        hashes[key] = files.inner(key).text("sha256").lower()
    return Manifest(
        raw=raw,
        identity=top.text("id"),
        status=top.one_of("status", STATUSES),
        bench=BenchKind(top.one_of("bench", tuple(kind.value for kind in BenchKind))),
        mode=top.maybe("mode", top.text),
        seed=top.maybe("seed", top.whole),
        roles=ChannelRoles(ref=roles.count("ref"), ear=roles.count("ear")),
        runs=runs,
        files=hashes,
    )


def _run(run: Fields, folder: Path) -> RunEntry:
    return RunEntry(
        number=run.count("number"),
        kind=run.one_of("kind", ("run", "blank")),
        audio=inside(folder, run.text("audio"), run, "audio"),
        asked=run.maybe("asked", lambda key: _asked(run.inner(key))),
        grant=_grant(run.inner("grant")),
        plan=_plan(run.inner("plan")),
        armed=run.maybe("armed", lambda key: _armed(run.inner(key))),
        ok=run.maybe("ok", run.flag),
        n_frames=run.maybe("n_frames", run.count),
        elapsed_s=run.maybe("elapsed_s", run.number),
        xruns=run.maybe("xruns", run.count),
    )


def _asked(at: Fields) -> StreamSpec:
    return StreamSpec(
        device=at.text("device"),
        rate_hz=at.rate("rate_hz"),
        channels=at.count("channels"),
        block_frames=at.maybe("block_frames", at.count),
        latency_s=at.maybe("latency_s", at.number),
    )


def _grant(at: Fields) -> StreamGrant:
    return StreamGrant(
        device=at.text("device"),
        host_api=at.maybe("host_api", at.text),
        rate_hz=at.rate("rate_hz"),
        channels=at.count("channels"),
        block_frames=at.maybe("block_frames", at.count),
        input_latency_claimed_s=at.maybe("input_latency_claimed_s", at.number),
        output_latency_claimed_s=at.maybe("output_latency_claimed_s", at.number),
    )


def _plan(at: Fields) -> StimulusPlan:
    return StimulusPlan(
        kind=at.text("kind"),
        count=at.count("count"),
        spacing_s=at.numbers("spacing_s"),
        amplitude=at.number("amplitude"),
        source=at.one_of("source", ("mcu", "interface")),
        lead_in=at.maybe("lead_in", at.text),
        wav=at.maybe("wav", at.text),
    )


def _armed(at: Fields) -> ArmedStimulus:
    ticks = at.get("spacing_ticks", list)
    if not all(isinstance(tick, int) and not isinstance(tick, bool) and tick >= 0 for tick in ticks):
        at.refuse("spacing_ticks", "holds something else than ticks", "integers from 0")
    return ArmedStimulus(
        kind=at.text("kind"), count=at.count("count"), amplitude=at.number("amplitude"), spacing_ticks=tuple(ticks)
    )


def inside(folder: Path, name: str, fields: Fields, key: str) -> Path:
    """The path of a file that the manifest names; refused when it is not plainly a file of this folder."""
    plain = name and name not in (".", "..") and not any(c in name for c in "/\\:\0") and len(name.encode()) < 256
    if not plain:
        fields.refuse(key, f"names {name[:60]!r}", "the plain name of a file inside the session")
    path = folder / name
    try:
        stays = path.resolve().parent == folder.resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links
        stays = False
    if not stays:
        fields.refuse(key, f"leads out of the session through {name[:60]!r}", "a file inside the session")
    return path


@dataclass(frozen=True, slots=True)
class Fields:
    """An object of the manifest and where it stands; the getters refuse what is missing or of another type."""

    raw: dict[str, Any]
    file: str
    where: str

    @classmethod
    def of(cls, value: Any, file: str, where: str) -> Fields:
        if not isinstance(value, dict):
            raise BadInput(f"{file}: {where} is not an object", "an object in braces", _REMEDY)
        return cls(value, file, where)

    def refuse(self, key: str, what: str, expected: str) -> NoReturn:
        raise BadInput(f"{self.file}: {self._path(key)} {what}", expected, _REMEDY)

    def _path(self, key: str) -> str:
        key = "".join(c if c.isprintable() else "?" for c in key[:60]) + ("…" if len(key) > 60 else "")
        return f"{self.where}.{key}" if self.where else key

    def get(self, key: str, kind: type[T]) -> T:
        if key not in self.raw:
            self.refuse(key, "is missing", f"a value of type {kind.__name__}")
        value = self.raw[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            self.refuse(key, f"is of type {type(value).__name__}", f"a value of type {kind.__name__}")
        return value

    def maybe(self, key: str, read: Callable[[str], T]) -> T | None:
        return None if self.raw.get(key) is None else read(key)

    def inner(self, key: str) -> Fields:
        return Fields(self.get(key, dict), self.file, self._path(key))

    def text(self, key: str) -> str:
        return self.get(key, str)

    def flag(self, key: str) -> bool:
        return self.get(key, bool)

    def whole(self, key: str) -> int:
        return self.get(key, int)

    def count(self, key: str) -> int:
        value = self.get(key, int)
        if value < 0:
            self.refuse(key, f"is {value}", "0 or more")
        return value

    def rate(self, key: str) -> int:
        value = self.get(key, int)
        if not 1 <= value <= _MAX_RATE_HZ:
            self.refuse(key, f"is {value}", f"a sample rate from 1 to {_MAX_RATE_HZ} Hz")
        return value

    def number(self, key: str) -> float:
        value = self.get(key, object)
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.refuse(key, f"is of type {type(value).__name__}", "a number")
        return float(value)

    def numbers(self, key: str) -> tuple[float, ...]:
        values = self.get(key, list)
        if not all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
            self.refuse(key, "holds something else than numbers", "a list of numbers")
        return tuple(float(value) for value in values)

    def one_of(self, key: str, allowed: tuple[str, ...]) -> str:
        value = self.text(key)
        if value not in allowed:
            self.refuse(key, f"is {value[:60]!r}", " or ".join(allowed))
        return value


_REMEDY = "restore the session's own manifest, or analyze its audio file directly"
