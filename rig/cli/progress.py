"""What is shown on stderr while a command runs: a live display on a terminal, a line now and then elsewhere.

Nothing is shown within the first second, and nothing here can change a result or stop a measurement.
"""

from __future__ import annotations

import contextlib
import os
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any, Protocol, TextIO

from rig.domain.records import Trial

QUIET_FOR_S = 1.0
PLAIN_EVERY_S = 5.0
LIVE_EVERY_S = 0.1
LAST_TRIALS = 6


class Painter(Protocol):
    """Puts the state of a command before the user."""

    live: bool
    """Whether lines are redrawn in place; else only the first one of them is shown, now and then."""

    def paint(self, lines: list[str], important: bool) -> None: ...
    def close(self) -> None: ...


class Display:
    """Collects what happens and hands it to a painter. Events of the bench and trials of the analysis come in here."""

    def __init__(self, painter: Painter | None) -> None:
        self._painter = painter
        self._begun_s = time.monotonic()
        self._phase = ""
        self._count: int | None = None
        self._done = 0
        self._accepted_ms: list[float] = []
        self._recent: list[str] = []
        self._runs: int | None = None

    def expect_runs(self, runs: int) -> None:
        """How many runs are planned, for the words."""
        self._runs = runs

    def bench(self, event: str, facts: dict[str, Any]) -> None:
        """A `ProgressSink` for the bench runner."""
        if event == "run_started":
            of = "" if self._runs is None else f" of {self._runs}"
            which = "the blank run" if facts.get("kind") == "blank" else f"run {facts.get('run')}{of}"
            self._begin(f"recording {which}", facts.get("count"))
        elif event == "stimulus":
            self._done = max(self._done, int(facts.get("index", -1)) + 1)
            self._show()
        elif event == "blank_skipped":
            self._recent.append(f"no blank run: {facts.get('reason')}")
            self._show(important=True)

    @contextlib.contextmanager
    def analysing(self, run: int, runs: int, count: int | None) -> Iterator[None]:
        """Around the analysis of run `run` (0: the blank run) of `runs`, of `count` stimuli where that is known."""
        self._begin("analysing the blank run" if run == 0 else f"analysing run {run} of {runs}", count)
        yield

    def trial(self, trial: Trial) -> None:
        """A trial has been analysed."""
        self._done += 1
        if trial.latency_s is not None:
            self._accepted_ms.append(trial.latency_s * 1e3)
            words = f"{trial.latency_s * 1e3:9.2f} ms"
        else:
            words = f"{'refused':>9}  {trial.reason}"
        self._recent = [*self._recent, f"  trial {trial.index:3d}  {words}"][-LAST_TRIALS:]
        self._show()

    def _begin(self, phase: str, count: Any) -> None:
        self._phase, self._count = phase, count if isinstance(count, int) else None
        self._done, self._accepted_ms, self._recent = 0, [], []
        self._show(important=True)

    def _show(self, important: bool = False) -> None:
        if self._painter is None or time.monotonic() - self._begun_s < QUIET_FOR_S:
            return
        of = "" if self._count is None else f" of {self._count}"
        words = "trials" if self._phase.startswith("analysing") else "stimuli"
        head = f"{self._phase}: {self._done}{of} {words}"
        if self._accepted_ms:
            head += f", {len(self._accepted_ms)} accepted, median {statistics.median(self._accepted_ms):.2f} ms"
        try:
            self._painter.paint([head, *self._recent], important)
        except (OSError, ValueError):  # stderr has gone: measure on in silence
            self._painter = None


class PlainPainter:
    """A line when a phase begins, and one every few seconds in between."""

    live = False

    def __init__(self, stream: TextIO, every_s: float = PLAIN_EVERY_S) -> None:
        self._stream = stream
        self._every_s = every_s
        self._last_s = -every_s

    def paint(self, lines: list[str], important: bool) -> None:
        now_s = time.monotonic()
        if important or now_s - self._last_s >= self._every_s:
            self._last_s = now_s
            print(lines[0], file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing to clear."""


class LivePainter:
    """Redraws a few lines in place, and leaves the terminal as it was."""

    live = True

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        console = Console(file=stream, stderr=True, highlight=False)
        self._live = Live(console=console, transient=True, auto_refresh=False)
        self._started = False
        self._last_s = 0.0

    def paint(self, lines: list[str], important: bool) -> None:
        from rich.text import Text

        now_s = time.monotonic()
        if not important and now_s - self._last_s < LIVE_EVERY_S:
            return
        self._last_s = now_s
        if not self._started:
            self._started = True
            self._live.start()
        shown = Text.assemble((lines[0], "bold"), "\n", ("\n".join(lines[1:]), "dim"))
        self._live.update(shown, refresh=True)

    def close(self) -> None:
        if self._started:
            with contextlib.suppress(OSError, ValueError):
                self._live.stop()


@contextlib.contextmanager
def open_display(quiet: bool = False, stream: TextIO | None = None) -> Iterator[Display]:
    """The display that suits stderr: live on a terminal, plain elsewhere, none when `quiet`."""
    with open_painter(quiet, stream) as painter:
        yield Display(painter)


@contextlib.contextmanager
def open_painter(
    quiet: bool = False, stream: TextIO | None = None, every_s: float = PLAIN_EVERY_S
) -> Iterator[Painter | None]:
    """The painter that suits stderr; a plain one paints every `every_s` at most. None when `quiet`."""
    stream = sys.stderr if stream is None else stream
    painter: Painter | None = None
    if not quiet:
        terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
        painter = LivePainter(stream) if terminal else PlainPainter(stream, every_s)
    try:
        yield painter
    finally:
        if painter is not None:
            painter.close()
