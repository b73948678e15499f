"""Carries a plan through the seams into a session: the blank run, then each run with a fresh start of the system.

Whatever ends it, the board is made safe, the system is stopped and the session is finished with what was recorded.
"""

from __future__ import annotations

import contextlib

from rig.bench.plan import BenchPlan, blank_plan, check_plan
from rig.bench.run import record_run
from rig.domain.seams import AudioBackend, HostTime, MarksSource, ProgressSink, StimulusLink, SystemUnderTest
from rig.errors import RigError
from rig.session.writer import SessionWriter


def run_plan(
    plan: BenchPlan,
    audio: AudioBackend,
    link: StimulusLink | None,
    system: SystemUnderTest,
    time: HostTime,
    writer: SessionWriter,
    progress: ProgressSink,
    marks: MarksSource | None = None,
) -> None:
    """Records every run of `plan` into `writer` and finishes the session. What the system marked comes along after
    each run, from `marks`; where nothing comes, the measurement stands without.

    `progress` hears: blank_skipped {reason}; run_started {run, kind, count, granted}; armed {run, armed}; block {run,
    n_frames, rate_hz, frames}; stimulus {run, index, count, near_frame (frame of the recording, within about 0.1 s),
    rate_hz, path}, when its response has passed; run_done {run, kind, n_frames, path}; done {}.

    Raises UsageError for a plan that cannot be carried out, BenchNotReady where a device or the system will not start,
    AcquisitionLost when stream, link or disk fail while recording (runs completed before are kept), and
    KeyboardInterrupt as it came.
    """
    status = "lost"
    try:
        check_plan(plan, has_board=link is not None)
        _record_all(plan, audio, link, system, time, writer, progress, marks)
        status = "complete"
    except KeyboardInterrupt:
        status = "interrupted"
        raise
    finally:
        if link is not None:
            # The board has been asked to stop; that it did not answer must hide neither the error nor the recording.
            try:
                link.safe()
            except RigError as error:
                with contextlib.suppress(RigError):
                    writer.event("safe_failed", why=error.what)
        if status == "complete":
            writer.finish(status)
        else:
            with contextlib.suppress(RigError):
                writer.finish(status)
    progress("done", {})


def _record_all(
    plan: BenchPlan,
    audio: AudioBackend,
    link: StimulusLink | None,
    system: SystemUnderTest,
    time: HostTime,
    writer: SessionWriter,
    progress: ProgressSink,
    marks: MarksSource | None,
) -> None:
    if plan.blank and system.can_stop:
        system.stop()
        record_run(0, "blank", blank_plan(plan.stimuli[0]), plan, audio, link, time, writer, progress)
    else:
        reason = "not asked for" if not plan.blank else "the system runs by itself and cannot be muted"
        writer.event("blank_skipped", reason=reason)
        progress("blank_skipped", {"reason": reason})
    for number, stimuli in enumerate(plan.stimuli, start=1):
        try:
            system.start(number)
            record_run(number, "run", stimuli, plan, audio, link, time, writer, progress)
        finally:
            system.stop()
            if system.ended_early is not None:
                writer.event("system_ended", why=system.ended_early)
            if marks is not None:
                _keep_marks(number, marks, system.can_stop, writer)


def _keep_marks(run: int, marks: MarksSource, stopped: bool, writer: SessionWriter) -> None:
    """Puts what the system wrote during the run into the session. Nothing that goes wrong here costs the recording."""
    try:
        writer.marks(run, marks.collect(whole=stopped))
    except OSError as error:
        writer.event("marks_failed", of_run=run, why=(error.strerror or str(error))[:200])
