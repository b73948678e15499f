"""From settings to a page that runs, until told: the server, the browser, and what each of them says meanwhile."""

from __future__ import annotations

import contextlib
import queue
import signal
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from rig.errors import AudioLost, BadInput, BenchNotReady, RigError
from rig.sut.browser.chromium import Chromium, find
from rig.sut.browser.server import PageServer

READY_WITHIN_S = 50.0
"""From the start of Chromium until sound runs. Under the minute that rig measure --sut-ready waits."""

_REMEDIES = {
    "NotFoundError": "see that PulseAudio or PipeWire runs and has a microphone: pactl list short sources; on a machine"
    " without one: rig virtual up, rig virtual run -- COMMAND",
    "NoSpeaker": "see that PulseAudio or PipeWire runs and has a speaker: pactl list short sinks; on a machine without"
    " one: rig virtual up, rig virtual run -- COMMAND",
    "NotReadableError": "another program may hold the microphone: end it, or choose another default source",
}


def run_page(
    settings: dict[str, Any], *, program: str | None, marks: Path | None, ready: Callable[[], None]
) -> dict[str, Any]:
    """Runs a page until SIGTERM or SIGINT and returns the last that it reported. `ready` is called once sound runs.

    Raises MissingLibrary without Chromium, BadInput for a file of marks that cannot be written, BenchNotReady where no
    sound runs, and AudioLost where it ends before it is told to.
    """
    program = find(program)
    happened: queue.SimpleQueue[tuple[str, Any]] = queue.SimpleQueue()  # the only queue that a signal may put into
    before = {number: signal.signal(number, _tell(happened)) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        with contextlib.ExitStack() as stack:
            file = None if marks is None else stack.enter_context(_opened(marks))
            server = PageServer(settings, file, lambda report: happened.put(("report", report)))
            stack.callback(server.close)
            browser = Chromium(program, server.address, lambda code: happened.put(("ended", code)))
            stack.callback(browser.stop)
            return _until_told(happened, browser, ready)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _until_told(
    happened: queue.SimpleQueue[tuple[str, Any]], browser: Chromium, ready: Callable[[], None]
) -> dict[str, Any]:
    last: dict[str, Any] = {}
    running = False
    while True:
        try:
            kind, what = happened.get(timeout=None if running else READY_WITHIN_S)
        except queue.Empty:
            raise BenchNotReady(
                f"no sound has run in the page for {READY_WITHIN_S:g} s{_quoted(browser.said())}",
                "a page that has its microphone and its speaker within that time",
                "see whether the machine is busy, and whether the sound server answers: pactl info",
            ) from None
        if kind == "told":
            return last
        if kind == "ended":
            raise _failure(running, f"Chromium ended with exit code {what}{_quoted(browser.said())}", "Ended")
        if what["state"] == "failed":
            raise _failure(running, f"the page: {str(what.get('what'))[:400]}", str(what.get("kind")))
        last = {name: value for name, value in what.items() if name != "state"}
        if not running:
            running = True
            ready()


def _failure(running: bool, what: str, kind: str) -> RigError:
    if running:
        return AudioLost(
            what, "microphone, speaker and browser to be there until the end", "see whether the sound server runs"
        )
    return BenchNotReady(
        what,
        "a page that has its microphone and its speaker",
        _REMEDIES.get(kind, "run Chromium by hand once, and see whether a page can record there"),
    )


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


def _tell(happened: queue.SimpleQueue[tuple[str, Any]]) -> Callable[..., None]:
    return lambda *_: happened.put(("told", None))


def _opened(path: Path) -> IO[bytes]:
    try:
        return open(path, "ab")  # as rig.marks does: each start begins with a header of its own
    except OSError as error:
        raise BadInput(
            f"{path} cannot be written: {error.strerror or error}", "a file for the marks", "name another with --marks"
        ) from error
