"""Reading a session, whole or cut short. Nothing here writes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.domain.records import (
    AnalysisHints,
    ArmedStimulus,
    BenchKind,
    BlankFloor,
    ChannelRoles,
    ClockEvidence,
    ClockExchange,
    StimulusFired,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
)
from rig.errors import BadInput
from rig.recording import SoundFileSource, open_recording
from rig.session.events import MarkLines, RunEvents, read_events
from rig.session.manifest import Manifest, RunEntry, read_manifest

MANIFEST = "manifest.json"
EVENTS = "events.jsonl"
MARKS = "marks.jsonl"
TRUTH = "truth.json"

PLAYED_LATE = (
    "the emulated board is heard some time after its pins, and nobody measures how long: rates are compared,"
    " times are not"
)


@dataclass(frozen=True)
class SessionRun:
    """One run (or the blank run) of a session. The audio is opened when `source` is first asked for."""

    entry: RunEntry
    events: RunEvents
    roles: ChannelRoles
    cut_short: bool  # the run was never closed: it ends where the recording was killed
    bench: BenchKind = BenchKind.HARDWARE

    @property
    def number(self) -> int:
        """From 1; 0 for the blank run."""
        return self.entry.number

    @property
    def kind(self) -> str:
        """run or blank."""
        return self.entry.kind

    @property
    def ok(self) -> bool:
        """The run came to its planned end."""
        return self.entry.ok is True

    @property
    def asked(self) -> StreamSpec | None:
        return self.entry.asked

    @property
    def grant(self) -> StreamGrant:
        return self.entry.grant

    @property
    def plan(self) -> StimulusPlan:
        return self.entry.plan

    @property
    def armed(self) -> ArmedStimulus | None:
        """What the board said that it would do; None without a board, or before it answered."""
        return self.entry.armed

    @property
    def pings(self) -> tuple[ClockExchange, ...]:
        return tuple(self.events.pings)

    @property
    def xruns(self) -> int | None:
        """Losses of input that the backend flagged; None when it cannot tell."""
        if self.entry.xruns is not None:
            return self.entry.xruns
        return self.events.overflows if self.events.overflow_known else None

    @cached_property
    def source(self) -> SoundFileSource:
        """The recording. Raises BadInput where the audio cannot be used."""
        return open_recording(self.entry.audio, min_duration_s=0.0)

    def hints(
        self,
        blank: BlankFloor | None = None,
        min_latency_s: float | None = None,
        max_latency_s: float | None = None,
    ) -> AnalysisHints:
        """What the analysis may know of this run beside its samples."""
        return AnalysisHints(
            min_latency_s=min_latency_s,
            max_latency_s=max_latency_s,
            stimulus=self.plan.kind,
            lead_in=self.plan.lead_in is not None,
            spacing_s=self._spacing_s(),
            fired=self._fired(),
            gaps=tuple(self.events.gaps),
            blank=blank,
            elapsed_s=self.entry.elapsed_s,
        )

    def clocks(self, tick_rate_hz: float | None = None) -> ClockEvidence:
        """What this run recorded about its clocks. `tick_rate_hz` of the board, for a run in which it fired nothing."""
        fired = self._fired() or ()
        return ClockEvidence(
            exchanges=self.pings,
            fired=fired,
            tick_rate_hz=fired[0].tick_rate_hz if fired else tick_rate_hz,
            gaps=tuple(self.events.gaps),
            blocks=tuple(self.events.blocks),
            scheduled=tuple((item.index, item.frame) for item in self.events.scheduled),
            kind=self.plan.kind,
            untied=PLAYED_LATE if fired and self.bench is BenchKind.VIRTUAL else None,
        )

    def _fired(self) -> tuple[StimulusFired, ...] | None:
        """Each firing once, by index; None where no board reported any."""
        first: dict[int, StimulusFired] = {}
        for fired in self.events.fired:
            first.setdefault(fired.index, fired)
        return tuple(first[index] for index in sorted(first)) or None

    def _spacing_s(self) -> tuple[float, ...]:
        """As commanded: what the board armed, or the frames the interface was given, else the plan."""
        frames = [item.stream_frame for item in self.events.scheduled]
        if len(frames) == self.plan.count:
            return tuple((b - a) / self.grant.rate_hz for a, b in pairwise(frames))
        if self.armed is not None and self.events.fired:
            rate_hz = self.events.fired[0].tick_rate_hz
            return tuple(ticks / rate_hz for ticks in self.armed.spacing_ticks)
        return self.plan.spacing_s


@dataclass(frozen=True)
class Session:
    """A session on disk. `caveats` says in words what is missing or odd about it."""

    path: Path
    checked: Manifest
    runs: tuple[SessionRun, ...]  # those with samples, in order, without the blank run
    blank: SessionRun | None
    no_blank_because: str | None
    truth: dict[str, Any] | None  # None: not simulated
    caveats: tuple[str, ...]
    mark_lines: dict[int, MarkLines]  # by run: which lines of marks.jsonl came during it

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as written, validated."""
        return self.checked.raw

    @property
    def identity(self) -> str:
        """Twelve hexadecimal digits that name the session, wherever its folder lies."""
        return self.checked.identity

    @property
    def bench(self) -> BenchKind:
        return self.checked.bench

    @property
    def mode(self) -> str | None:
        return self.checked.mode

    @property
    def seed(self) -> int | None:
        return self.checked.seed

    @property
    def roles(self) -> ChannelRoles:
        return self.checked.roles

    @property
    def status(self) -> str:
        """recording (never finished), complete, interrupted or lost."""
        return self.checked.status

    @property
    def tick_rate_hz(self) -> float | None:
        """The nominal tick rate that the board stated; None without a board."""
        board = self.manifest.get("board")
        rate_hz = board.get("tick_rate_hz") if isinstance(board, dict) else None
        usable = isinstance(rate_hz, int | float) and not isinstance(rate_hz, bool) and 0.0 < rate_hz < 1e12
        return float(rate_hz) if rate_hz is not None and usable else None

    @property
    def host_clock(self) -> str | None:
        """Which host clock stamped the events: the boot of the machine, where it was told; None: not known."""
        clock = self.manifest.get("host_clock")
        return clock if isinstance(clock, str) and clock else None

    @property
    def run_starts_s(self) -> tuple[tuple[int, float], ...]:
        """(run, when its first frame was, in s after `started`) by the host's clock; without the runs it is unknown of.

        A block cannot arrive before its last frame was: the promptest one bounds the start from above, within the
        delay of the input. It places runs beside each other; no latency uses it."""
        begun_s = self.manifest.get("started_host_s")
        if isinstance(begun_s, bool) or not isinstance(begun_s, int | float):
            return ()
        return tuple(
            (
                run.number,
                min(b.arrived_s - (b.frame + b.n_frames) / run.grant.rate_hz for b in run.events.blocks) - begun_s,
            )
            for run in self.runs
            if run.events.blocks
        )

    @property
    def cut_short(self) -> bool:
        """True when the session was never finished: its recorder was killed, or is still recording."""
        return self.checked.status == "recording"

    @property
    def marks_path(self) -> Path | None:
        path = self.path / MARKS
        return path if path.is_file() else None

    def verify(self) -> list[str]:
        """Compares every file with its hash; returns the problems in words, empty when all is as it was written.

        A session cut short has no hashes, so there is nothing to compare and nothing to report.
        """
        problems = []
        for name, expected in sorted(self.checked.files.items()):
            path = self.path / name
            try:
                found = hash_file(path)
            except FileNotFoundError:
                problems.append(f"{name} is missing")
                continue
            except OSError as error:
                problems.append(f"{name} cannot be read: {error.strerror or error}")
                continue
            if found != expected:
                problems.append(
                    f"{name} was changed after it was recorded (SHA-256 {found[:12]}…, not {expected[:12]}…)"
                )
        if not self.cut_short:
            for entry in self.checked.runs:
                if entry.audio.name not in self.checked.files:
                    problems.append(f"{entry.audio.name} has no hash in the manifest")
        return problems

    def close(self) -> None:
        """Closes the recordings that were opened."""
        for run in (*self.runs, *(() if self.blank is None else (self.blank,))):
            if "source" in run.__dict__:
                run.source.close()


def open_session(path: str | Path) -> Session:
    """Opens a session folder (or its manifest.json). Raises BadInput when it is none, or its manifest is damaged.

    A session cut short opens with what is there; runs without samples are left out, with a caveat.
    """
    folder = Path(path)
    if folder.name == MANIFEST and not folder.is_dir():
        folder = folder.parent
    try:
        is_folder = folder.is_dir()
        has_manifest = (folder / MANIFEST).is_file()
    except (OSError, ValueError) as error:
        raise BadInput(f"{path} cannot be read: {error}", "a session folder", "check the path") from error
    if not is_folder:
        what = "is not a folder" if folder.exists() else "does not exist"
        raise BadInput(f"{path} {what}", "a session folder", "check the path")
    if not has_manifest:
        raise BadInput(
            f"{path} has no {MANIFEST}", "a folder that `rig measure` wrote", "name the session's own folder"
        )
    manifest = read_manifest(strictjson.read_object(folder / MANIFEST), folder, MANIFEST)
    log = read_events(folder / EVENTS)
    caveats = [
        *_ending(manifest),
        *_event_caveats(folder, log.bad_lines, log.first_bad),
        *log.system_ended,
        *log.marks_failed,
    ]
    runs, blank = [], None
    for entry in sorted(manifest.runs, key=lambda entry: entry.number):
        events = log.runs.get(entry.number, RunEvents())
        run = SessionRun(entry, events, manifest.roles, cut_short=entry.ok is None, bench=manifest.bench)
        name = "the blank run" if run.kind == "blank" else f"run {run.number}"
        unusable, odd = _look_at_audio(run)
        if unusable is not None:
            caveats.append(f"{name} is left out: {unusable}")
            continue
        if odd is not None:
            caveats.append(f"{name}: {odd}")
        if run.kind == "blank":
            blank = run
        else:
            runs.append(run)
    truth = strictjson.read_object(folder / TRUTH) if (folder / TRUTH).is_file() else None
    return Session(folder, manifest, tuple(runs), blank, log.blank_skipped, truth, tuple(caveats), log.marks)


def hash_file(path: Path) -> str:
    """SHA-256 of a file in hexadecimal, read in flat memory."""
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def _ending(manifest: Manifest) -> list[str]:
    said = {
        "recording": "the session was cut short: its recorder was killed before it finished",
        "interrupted": "the session was stopped by hand before its plan was done",
        "lost": "the session ended early: the recording or the link was lost",
    }
    return [said[manifest.status]] if manifest.status in said else []


def _event_caveats(folder: Path, bad_lines: int, first_bad: str | None) -> list[str]:
    if not (folder / EVENTS).exists():
        return [f"{EVENTS} is missing: firings, clock exchanges and losses are not known"]
    if bad_lines:
        return [f"{EVENTS}: {bad_lines} lines cannot be read and are left out (first, {first_bad})"]
    return []


def _look_at_audio(run: SessionRun) -> tuple[str | None, str | None]:
    """Why a run's audio cannot be used, or what is odd about it. The file is closed again: there may be many runs."""
    audio = run.entry.audio.name
    try:
        with open_recording(run.entry.audio, min_duration_s=0.0) as source:
            if max(run.roles.ref, run.roles.ear) >= source.n_channels:
                return f"{audio} has only {source.n_channels} channels", None
            if run.cut_short:
                return None, f"its recording was cut after {source.n_frames / source.rate_hz:.2f} s"
            stated = run.entry.n_frames
            if stated is not None and source.n_frames != stated:
                return None, f"{audio} holds {source.n_frames} frames where {stated} were recorded"
    except BadInput as error:
        return error.what, None
    return None, None
