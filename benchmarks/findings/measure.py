"""Measures one row: `rig measure` on the virtual bench, its document, and what the system printed of itself."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.findings.results import Result, Run
from benchmarks.findings.rows import Row
from rig.virtual.pulse import INTERFACE

RIG = [sys.executable, "-c", "from rig.cli.main import run; run()"]
LEAST_SPACING = "1s"
WITHIN_S = 120.0  # of a run beyond what its stimuli take
STOPS_WITHIN_S = 20.0


def measure(row: Row, runs: int, environment: dict[str, str], servers: list[int], chromium: str | None) -> Result:
    """Measures `runs` starts of the row's system. What goes wrong is in the result, never an exception.

    `servers`: the process numbers of the bench, whose work is no other program's.
    """
    before, begun_s = _others_s(servers), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rf", dir="/tmp") as name:
        folder = Path(name)
        said = folder / "claims.jsonl"
        system = f"exec {shlex.join([*RIG, 'sut', *row.words])} >> {shlex.quote(str(said))}"
        command = [
            *(*RIG, "measure", "--device", INTERFACE, "--port", "none", "--no-blank", "--spacing", LEAST_SPACING),
            *(
                "--runs",
                str(runs),
                "--stimuli",
                str(row.stimuli),
                "--out",
                str(folder / "session"),
                "--json",
                "--quiet",
            ),
            *("--sut-ready", "ready", "--sut", shlex.join(["sh", "-c", system])),
        ]
        out, why = _run(command, runs * (2.0 * row.stimuli + WITHIN_S), environment)
        claims = [_object(line) for line in said.read_text(encoding="utf-8").splitlines()] if said.exists() else []
        found = () if out is None else runs_of(out, claims)
    return Result(
        key=row.key,
        runs=found,
        why=why,
        others=_share(before, _others_s(servers), time.monotonic() - begun_s),
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        chromium=chromium if row.words[0] != "passthrough" else None,
    )


def runs_of(document: dict[str, Any], claims: list[dict[str, Any] | None]) -> tuple[Run, ...]:
    """The runs of a report's JSON document. A system that printed nothing in some run leaves its claims unassigned."""
    runs = document["runs"]
    whose = claims if len(claims) == len(runs) else [None] * len(runs)
    return tuple(_run_of(run, said) for run, said in zip(runs, whose, strict=True))


def _run_of(run: dict[str, Any], claims: dict[str, Any] | None) -> Run:
    trials = run["trials"]
    refused: dict[str, int] = {}
    for trial in trials:
        if not trial["valid"]:
            refused[trial["reason"]] = refused.get(trial["reason"], 0) + 1
    latency = run["latency_s"]
    return Run(
        median_s=None if latency is None else latency["median"],
        trials_s=tuple(trial["latency_s"] for trial in trials if trial["valid"]),
        n_trials=len(trials),
        refused=refused,
        claims=claims,
        why=None if latency is not None else run["refusal"],
    )


def _run(command: list[str], within_s: float, environment: dict[str, str]) -> tuple[dict[str, Any] | None, str | None]:
    """The document, or why there is none. A document without a figure is one: its runs say what was refused."""
    process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        out, err = process.communicate(timeout=within_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)  # so that it stops the system, which a kill would leave behind
        try:
            process.communicate(timeout=STOPS_WITHIN_S)
        finally:
            process.kill()
        return None, f"not done within {within_s:.0f} s"
    if out.strip().startswith("{"):
        return json.loads(out), None
    error = next((line for line in err.splitlines() if line.startswith("rig:")), err.strip()[-200:])
    return None, f"exit {process.returncode}: {error.removeprefix('rig:').strip()}"


def _object(line: str) -> dict[str, Any] | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _others_s(servers: list[int]) -> float | None:
    """CPU seconds so far of all programs but this one, its children that have ended, and the bench's servers."""
    try:
        ticks = _ticks(Path("/proc/stat"))[1:9]
        user, nice, system, _idle, _wait, irq, softirq, steal = (int(word) for word in ticks)
        all_ticks = user + nice + system + irq + softirq + steal
        # Behind the name in brackets, which may hold anything: utime is the 12th word from there, stime the 13th.
        for pid in servers:
            after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            all_ticks -= int(after_name[11]) + int(after_name[12])
    except (OSError, ValueError):
        return None
    used = os.times()
    own_s = used.user + used.system + used.children_user + used.children_system
    return all_ticks / os.sysconf("SC_CLK_TCK") - own_s


def _ticks(path: Path) -> list[str]:
    return path.read_text().split("\n", 1)[0].split()


def _share(before_s: float | None, after_s: float | None, wall_s: float) -> float | None:
    if before_s is None or after_s is None:
        return None
    return max(0.0, after_s - before_s) / (wall_s * (os.cpu_count() or 1))
