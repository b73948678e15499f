"""Writing a session: every block and every event reaches the operating system as it comes."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.domain.records import ArmedStimulus, BenchKind, StimulusPlan, StreamGrant, StreamSpec
from rig.domain.seams import Frames, HostTime
from rig.errors import UsageError
from rig.rawfile import RawFile, replace_text
from rig.session.manifest import SCHEMA
from rig.session.read import EVENTS, MANIFEST, MARKS, TRUTH, hash_file
from rig.wavwriter import WavWriter

MOST_MARKS_BYTES = 256 << 20
"""As much as a reader of marks takes."""

_STATUSES = ("complete", "interrupted", "lost")


class SessionWriter:
    """Writes one session. Make it with `create`, end it with `finish`; without `finish` the session is cut short.

    Everything written has reached the operating system when the call returns, so that a kill loses at most the block or
    the line that was being written. Failing writes raise AcquisitionLost.
    """

    def __init__(self, directory: Path, manifest: dict[str, Any], time: HostTime | None) -> None:
        self.directory = directory
        self._manifest = manifest
        self._time = time
        self._open_run: RunWriter | None = None
        self._finished = False
        self._mark_lines = 0
        self._events = RawFile(directory / EVENTS)
        self._store_manifest()

    @classmethod
    def create(cls, directory: str | Path, manifest: dict[str, Any], time: HostTime | None = None) -> SessionWriter:
        """Makes the folder (its parents too) and the first manifest.

        `manifest` needs `bench` (a BenchKind) and `roles` ({"ref": …, "ear": …}, zero-based); the other keys are in
        docs/session-format.md. Dataclasses in it are written as objects. `time` stamps the events.
        Raises UsageError when the folder cannot be made or already holds something.
        """
        directory = Path(directory)
        facts = _plain(manifest)
        BenchKind(facts["bench"])
        if not {"ref", "ear"} <= set(facts["roles"]):
            raise ValueError("a session's manifest names the roles of its channels, ref and ear")
        try:
            directory.mkdir(parents=True, exist_ok=True)
            occupied = any(directory.iterdir())
        except OSError as error:
            raise UsageError(
                f"the folder {directory} cannot be made: {error.strerror or error}",
                "a folder for the session that this user may write",
                "choose another one with --out",
            ) from error
        if occupied:
            raise UsageError(
                f"the folder {directory} is not empty",
                "a new or an empty folder: a session is never overwritten",
                "choose another one with --out",
            )
        identity = hashlib.sha256(strictjson.dump(facts).encode()).hexdigest()[:12]
        owned = {"schema": SCHEMA, "id": identity, "status": "recording", "runs": [], "files": {}}
        return cls(directory, {**owned, **{k: v for k, v in facts.items() if k not in owned}}, time)

    def start_run(
        self,
        number: int,
        kind: str = "run",
        *,
        grant: StreamGrant,
        plan: StimulusPlan,
        asked: StreamSpec | None = None,
    ) -> RunWriter:
        """Opens the recording of run `number` (from 1; 0 for the blank run). One run is open at a time."""
        if self._open_run is not None:
            raise RuntimeError("the run before is still open")
        if kind not in ("run", "blank"):
            raise ValueError(f"a run is of kind run or blank, not {kind}")
        name = "blank.wav" if kind == "blank" else f"run-{number:03d}.wav"
        entry: dict[str, Any] = {
            "number": number,
            "kind": kind,
            "audio": name,
            "asked": _plain(asked),
            "grant": _plain(grant),
            "plan": _plain(plan),
            "armed": None,
            "ok": None,
            "n_frames": None,
            "elapsed_s": None,
            "xruns": None,
        }
        wav = WavWriter(self.directory / name, grant.rate_hz, grant.channels)
        run = RunWriter(self, entry, wav)
        self._manifest["runs"].append(entry)
        self._open_run = run
        self._store_manifest()
        self.event("run_started", run_kind=kind)
        return run

    def event(self, kind: str, *, at_s: float | None = None, **facts: Any) -> None:
        """Appends a line to events.jsonl: host time, run, kind, facts. After `finish` it does nothing."""
        if self._finished:
            return
        run = None if self._open_run is None else self._open_run.number
        if at_s is None and self._time is not None:
            at_s = self._time.now().seconds
        line = strictjson.dump({"t_s": at_s, "run": run, "event": kind, **_plain(facts)})
        self._events.write(line.encode("utf-8", "backslashreplace") + b"\n")

    def serial_frame(self, direction: str, at_s: float, message: object) -> None:
        """Logs one serial frame: a `FrameSink` for the link. Raw bytes are written in hexadecimal."""
        if isinstance(message, bytes | bytearray):
            self.event("frame", at_s=at_s, direction=direction, raw=bytes(message).hex())
        else:
            fields = _plain(message) if is_dataclass(message) else str(message)
            self.event("frame", at_s=at_s, direction=direction, message=type(message).__name__, fields=fields)

    def note(self, **facts: Any) -> None:
        """Adds facts to the manifest while recording, for example the board's identity."""
        self._manifest.update({k: v for k, v in _plain(facts).items() if k not in ("schema", "id", "runs", "files")})
        self._store_manifest()

    def marks(self, run: int, data: bytes) -> None:
        """Appends what the system under test wrote during `run`, as it came, and notes which lines of the file it is.

        Beyond `MOST_MARKS_BYTES` nothing is kept, and an event says so. Raises OSError."""
        path = self.directory / MARKS
        kept = path.stat().st_size if path.is_file() else 0
        if kept + len(data) > MOST_MARKS_BYTES:
            self.event("marks_failed", of_run=run, why=f"more than {MOST_MARKS_BYTES >> 20} MiB of marks")
            return
        if data and not data.endswith(b"\n"):
            data += b"\n"
        n_lines = data.count(b"\n")
        if data:
            with open(path, "ab") as handle:
                handle.write(data)
        self.event("marks", of_run=run, first_line=self._mark_lines + 1, n_lines=n_lines)
        self._mark_lines += n_lines

    def write_truth(self, truth: dict[str, Any]) -> None:
        """Stores what the simulated world really did. Only a simulated bench has a truth."""
        if self._manifest["bench"] != BenchKind.SIMULATED:
            raise ValueError("only a simulated session has a truth")
        replace_text(self.directory / TRUTH, strictjson.dump(_plain(truth), indent=1) + "\n")

    def finish(self, status: str = "complete") -> None:
        """Closes an open run, hashes every file and writes the last manifest. A second call does nothing."""
        if status not in _STATUSES:
            raise ValueError(f"a session ends {', '.join(_STATUSES)}, not {status}")
        if self._finished:
            return
        if self._open_run is not None:
            self._open_run.close(ok=False)
        self.event("finished", status=status)
        self._finished = True
        self._events.close()
        names = [entry["audio"] for entry in self._manifest["runs"]] + [EVENTS, MARKS, TRUTH]
        files: dict[str, Any] = {}
        for name in names:
            path = self.directory / name
            if path.is_file():
                files[name] = {"sha256": hash_file(path), "bytes": path.stat().st_size}
        self._manifest["files"] = files
        self._manifest["status"] = status
        self._store_manifest()

    def _store_manifest(self) -> None:
        replace_text(self.directory / MANIFEST, strictjson.dump(self._manifest, indent=1) + "\n")

    def _run_closed(self) -> None:
        self._open_run = None
        self._store_manifest()


class RunWriter:
    """The recording of one run, made by `SessionWriter.start_run`."""

    def __init__(self, session: SessionWriter, entry: dict[str, Any], wav: WavWriter) -> None:
        self._session = session
        self._entry = entry
        self._wav = wav
        self._closed = False

    @property
    def number(self) -> int:
        return int(self._entry["number"])

    @property
    def path(self) -> Path:
        """The audio file; it can be opened and read while it grows."""
        return self._wav.path

    @property
    def n_frames(self) -> int:
        """Frames written so far."""
        return self._wav.n_frames

    def write(self, frames: Frames) -> None:
        """Appends frames of shape (n, n_channels), float32. Samples that are not numbers become 0, and an event."""
        before, at_frame = self._wav.non_finite, self._wav.n_frames
        self._wav.write(frames)
        if self._wav.non_finite > before:
            self._session.event("non_finite", frame=at_frame, samples=self._wav.non_finite - before)

    def event(self, kind: str, *, at_s: float | None = None, **facts: Any) -> None:
        """As `SessionWriter.event`; the event carries this run's number."""
        self._session.event(kind, at_s=at_s, **facts)

    def armed(self, armed: ArmedStimulus) -> None:
        """Stores what the board answered that it will do, beside what it was asked."""
        self._entry["armed"] = _plain(armed)
        self._session._store_manifest()

    def close(self, ok: bool, *, elapsed_s: float | None = None, xruns: int | None = None) -> None:
        """Ends the run. `elapsed_s` is host time over the recording, `xruns` the losses flagged (None: cannot tell)."""
        if self._closed:
            return
        self._closed = True
        try:
            self._wav.close()
        finally:
            self._entry.update(ok=ok, n_frames=self._wav.n_frames, elapsed_s=elapsed_s, xruns=xruns)
            self._session.event("run_closed", ok=ok, n_frames=self._wav.n_frames)
            self._session._run_closed()


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if hasattr(value, "item"):  # a NumPy scalar
        return value.item()
    return str(value) if isinstance(value, Path) else value
