"""From what is on disk to a report. `measure` and `analyze` both end here, so that they say the same, byte for byte."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rig.analyse.blank import analyse_blank
from rig.analyse.clockfacts import clock_facts
from rig.analyse.corrections import correct, corrections, moved, uncalibrated
from rig.analyse.curves import CurveKeeper
from rig.analyse.reconcile import reconcile_run
from rig.analyse.run import analyse_run
from rig.analyse.runclocks import run_clocks
from rig.calibration.choose import require
from rig.cli.calibrated import CalibrationChoice, calibration_for, circumstances, of_session
from rig.cli.options import check_channels, check_window, duration_s
from rig.cli.progress import Display
from rig.domain.calibration import Calibration
from rig.domain.exhibits import Exhibits, RunExhibits
from rig.domain.records import AnalysisHints, BenchKind, BlankFloor, ChannelRoles, RunAnalysis
from rig.domain.report import MeasurementFacts, Report
from rig.domain.stages import RunMarks, RunStages
from rig.errors import BadInput, CalibrationError, UsageError
from rig.recording import open_recording
from rig.report.references import lines_of
from rig.report.stages import stage_table_of
from rig.report.summary import summarise
from rig.session import Session, open_session
from rig.session.markruns import marks_by_run, settings_said
from rig.session.marks import read_marks
from rig.session.read import hash_file

MANIFEST = "manifest.json"

CUT_SHORT = {"recording": "killed while recording", "interrupted": "stopped by hand", "lost": "recording or link lost"}


NO_IDENTITY = "a recording does not say which device made it, so no calibration was applied"


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user said about the analysis; channels one-based, times in s. None: as the session has it, or free."""

    ref: int | None = None
    ear: int | None = None
    min_latency_s: float | None = None
    max_latency_s: float | None = None
    limit_s: float | None = None
    against: tuple[str, ...] = ()  # as the user wrote them
    calibration: CalibrationChoice = field(default_factory=CalibrationChoice)
    marks: Path | None = None  # a file of marks that came later; None: what the session holds

    def over(self, stored: Any) -> Choices:
        """These choices, and where they leave something open those stored in a session's manifest."""
        known = stored if isinstance(stored, dict) else {}

        def number(mine: float | None, name: str) -> float | None:
            value = known.get(name)
            if mine is not None or isinstance(value, bool) or not isinstance(value, int | float):
                return mine
            return float(value)

        return Choices(
            self.ref,
            self.ear,
            number(self.min_latency_s, "min_latency_s"),
            number(self.max_latency_s, "max_latency_s"),
            number(self.limit_s, "limit_s"),
            self.against or _known_lines(known.get("against")),
            self.calibration,
            self.marks,
        )


def _known_lines(stored: Any) -> tuple[str, ...]:
    """Those reference lines of a manifest that this version knows: an old name, or a damaged one, costs no report."""
    known = []
    for text in stored if isinstance(stored, list) else ():
        with suppress(UsageError):
            if isinstance(text, str) and lines_of([text], duration_s):
                known.append(text)
    return tuple(known)


def report_on(path: Path, choices: Choices, display: Display) -> Report:
    """The report on a session folder (or its manifest) or on a recording. Raises BadInput and UsageError."""
    return _report_on(path, choices, display, None)


def report_with_exhibits(path: Path, choices: Choices, display: Display) -> tuple[Report, Exhibits]:
    """The same report, and what a page shows beside it. Raises BadInput and UsageError."""
    runs: list[RunExhibits] = []
    report = _report_on(path, choices, display, runs)
    if report.facts.session is None:
        return report, Exhibits(tuple(runs), ((path.name, hash_file(path)),))
    with closing(open_session(path)) as session:
        files = tuple(sorted(session.checked.files.items()))
        return report, Exhibits(tuple(runs), files, _making(session.manifest))


def _report_on(path: Path, choices: Choices, display: Display, kept: list[RunExhibits] | None) -> Report:
    if path.is_dir() or path.name == MANIFEST:
        with closing(open_session(path)) as session:
            return _on_session(session, choices.over(session.manifest.get("choices")), display, kept)
    return _on_file(path, choices, display, kept)


def _making(manifest: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    """What a manifest says of the session's making that the report does not: when, and by which board."""
    board = manifest.get("board")
    parts = {"started": manifest.get("started")}
    if isinstance(board, dict):
        parts |= {f"board {name}": board.get(name) for name in ("board", "build", "uid", "protocol", "table_hash")}
    return tuple((name, str(value)) for name, value in parts.items() if value is not None)


def _on_file(path: Path, choices: Choices, display: Display, kept: list[RunExhibits] | None) -> Report:
    if choices.calibration.needs:
        raise CalibrationError(
            f"the figure needs {choices.calibration.needs[0]}, and {path.name} does not say which device made it",
            "a session: only there the device is known",
            "record with rig measure --calibration DIR",
        )
    with open_recording(path) as source:
        roles = _roles(choices, ChannelRoles(0, 1), source.n_channels, path.name)
        hints = AnalysisHints(min_latency_s=choices.min_latency_s, max_latency_s=choices.max_latency_s)
        with display.analysing(1, 1, None):
            keeper = None if kept is None else CurveKeeper(1, source.rate_hz)
            run = analyse_run(source, roles, hints, run=1, on_trial=display.trial, keeper=keeper)
        if kept is not None and keeper is not None:
            kept.append(keeper.exhibits())
        facts = MeasurementFacts(
            mode="call",
            bench=BenchKind.FILE,
            source=path.name,
            reference_channel=roles.ref + 1,
            ear_channel=roles.ear + 1,
            min_latency_s=choices.min_latency_s,
            max_latency_s=choices.max_latency_s,
            cut_short="the file ends before its samples do" if source.truncated else None,
            notes=(*source.caveats, *([NO_IDENTITY] if choices.calibration.folder is not None else [])),
            limit_s=choices.limit_s,
            against=lines_of(choices.against, duration_s),
        )
    return summarise([run], facts)


def _on_session(session: Session, choices: Choices, display: Display, kept: list[RunExhibits] | None) -> Report:
    window = choices.min_latency_s, choices.max_latency_s
    check_window(*window)
    blank, runs, notes = None, [], [*session.caveats, *session.verify()]
    marks, config, said = _marks(session, choices.marks)
    notes += said
    stages: list[RunStages] = []
    roles = session.roles
    if session.blank is not None:
        roles = _roles(choices, session.roles, session.blank.source.n_channels, "the blank run")
        hints = session.blank.hints(None, *window)
        with display.analysing(0, len(session.runs), session.blank.plan.count):
            blank = analyse_blank(session.blank.source, roles, hints)
    for number, run in enumerate(session.runs, start=1):
        roles = _roles(choices, session.roles, run.source.n_channels, f"run {run.number}")
        hints = run.hints(blank, *window)
        with display.analysing(number, len(session.runs), run.plan.count):
            keeper = None if kept is None else CurveKeeper(run.number, run.source.rate_hz)
            analysis = analyse_run(run.source, roles, hints, run=run.number, on_trial=display.trial, keeper=keeper)
            if kept is not None and keeper is not None:
                kept.append(keeper.exhibits())
            evidence = run.clocks(session.tick_rate_hz)
            fitted = run_clocks(analysis, run.source, roles.ref, evidence)
            clocks = clock_facts(analysis, run.source, roles.ref, evidence, fitted)
            runs.append(replace(analysis, clocks=clocks))
            own = marks.get(run.number)
            if own is not None and (found := reconcile_run(analysis, fitted, own, session.host_clock)) is not None:
                stages.append(found)
    calibration = _calibration(session, choices, roles)
    notes += calibration.notes
    facts = _session_facts(session, choices, roles, blank, runs, notes)
    facts = replace(facts, config=config)
    facts = replace(facts, corrections=corrections(runs, calibration), uncalibrated=uncalibrated(runs, calibration))
    if kept is not None:
        shift_s = sum(c.value_s for c in facts.corrections)
        kept[:] = [moved(exhibits, shift_s) for exhibits in kept]
    return summarise([correct(run, calibration) for run in runs], facts, stage_table_of(stages, runs))


def _marks(session: Session, later: Path | None) -> tuple[dict[int, RunMarks], tuple[tuple[str, str], ...], list[str]]:
    """The marks of each run, the settings that the system says it has, and what is to be said of them: of the file
    given, else those kept with the session.

    Marks that cannot be used cost no figure. Only a file that was asked for now raises BadInput."""
    path = session.marks_path if later is None else later
    numbers = [run.number for run in session.runs]
    if path is None:
        kept = session.mark_lines
        return {}, (), ["marks were asked for, and the system wrote none"] if kept and later is None else []
    try:
        marks = read_marks(path)
    except BadInput as error:
        if later is not None:
            raise
        return {}, (), [f"the marks are not used: {error.what}"]
    lines = session.mark_lines if later is None else {}
    silent = [n for n in numbers if lines and lines[n].count == 0] if set(numbers) <= set(lines) else []
    said = [*marks.notes, *(f"no marks came during run {n}" for n in silent)]
    return marks_by_run(marks, lines, numbers), settings_said(marks), said


def _calibration(session: Session, choices: Choices, roles: ChannelRoles) -> Calibration:
    """What was asked for now, or else what the session was made with. Raises CalibrationError."""
    if not choices.calibration.given:
        return of_session(session.manifest) or Calibration()
    if not session.runs or choices.calibration.off:
        return Calibration()
    where = circumstances(session.manifest, session.bench, session.runs[0].grant, (roles.ref + 1, roles.ear + 1))
    if choices.calibration.folder is None:
        kept = of_session(session.manifest) or Calibration()
        require(kept, choices.calibration.needs)
        return kept
    return calibration_for(choices.calibration, where) or Calibration()


def _session_facts(
    session: Session,
    choices: Choices,
    roles: ChannelRoles,
    blank: BlankFloor | None,
    runs: list[RunAnalysis],
    notes: list[str],
) -> MeasurementFacts:
    manifest = session.manifest
    first = session.runs[0] if session.runs else None
    xruns = [run.xruns for run in session.runs]
    planned = manifest.get("runs_planned")
    return MeasurementFacts(
        mode=session.mode or "call",
        bench=session.bench,
        device=_text(manifest.get("device")) or (None if first is None else first.grant.device),
        build=_text(manifest.get("build")),
        system=_texts(manifest.get("system")),
        started=_text(manifest.get("started")),
        session=session.identity,
        scenario=_text(manifest.get("scenario")),
        seed=session.seed,
        asked=None if first is None else first.asked,
        granted=None if first is None else first.grant,
        plan=None if first is None else first.plan,
        wav=_wav(manifest.get("options")),
        runs_planned=planned if isinstance(planned, int) else len(runs),
        run_starts_s=session.run_starts_s,
        reference_channel=roles.ref + 1,
        ear_channel=roles.ear + 1,
        min_latency_s=choices.min_latency_s,
        max_latency_s=choices.max_latency_s,
        environment=_texts(manifest.get("environment")),
        xruns=None if not xruns or None in xruns else sum(x for x in xruns if x is not None),
        blank=blank,
        no_blank_because=session.no_blank_because,
        cut_short=CUT_SHORT.get(session.status),
        notes=tuple(notes),
        limit_s=choices.limit_s,
        against=lines_of(choices.against, duration_s),
    )


def _roles(choices: Choices, given: ChannelRoles, n_channels: int, name: str) -> ChannelRoles:
    """The roles as chosen or else as given, zero-based. Raises BadInput for a channel that is not there."""
    ref = given.ref if choices.ref is None else choices.ref - 1
    ear = given.ear if choices.ear is None else choices.ear - 1
    check_channels(ref + 1, ear + 1)
    for option, channel in (("--ref", ref), ("--ear", ear)):
        if channel >= n_channels:
            raise BadInput(
                f"{option} {channel + 1}: {name} has {n_channels} channels",
                f"a channel from 1 to {n_channels}",
                f"name another channel with {option}",
            )
    return ChannelRoles(ref, ear)


def _texts(raw: Any) -> tuple[tuple[str, str], ...]:
    """Facts of the manifest as text; those that are not known are left out."""
    if not isinstance(raw, dict):
        return ()
    words = {True: "yes", False: "no"}
    return tuple((str(k), words[v] if isinstance(v, bool) else str(v)) for k, v in raw.items() if v is not None)


def _wav(raw: Any) -> tuple[str, str | None] | None:
    options = raw if isinstance(raw, dict) else {}
    name = _text(options.get("wav"))
    return None if name is None else (name, _text(options.get("wav_sha256")))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
