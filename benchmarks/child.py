"""Runs a command as a child with one thread for each library, and says what it cost."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

LIBRARIES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
ONE_THREAD = dict.fromkeys(LIBRARIES, "1")


@dataclass(frozen=True)
class Cost:
    """Wall and CPU seconds, peak resident memory in MB (1e6 bytes), exit code, and what went to stdout and stderr."""

    wall_s: float
    cpu_s: float
    peak_mb: float
    code: int
    out: str
    err: str


def run(command: Sequence[str]) -> Cost:
    """Runs to the end. The peak is the kernel's own for that process (wait4), not a sample of it."""
    environment = {**os.environ, **ONE_THREAD}
    begin = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    # Both pipes are drained by reading one in a thread: a child that fills the other must not block.
    parts: dict[str, bytes] = {}

    def drain() -> None:
        parts["err"] = process.stderr.read() if process.stderr else b""

    reader = threading.Thread(target=drain)
    reader.start()
    out = process.stdout.read() if process.stdout else b""
    reader.join()
    _, status, usage = os.wait4(process.pid, 0)
    wall_s = time.perf_counter() - begin
    process.returncode = os.waitstatus_to_exitcode(status)
    scale = 1.0 if sys.platform == "darwin" else 1024.0  # ru_maxrss is in bytes there, in KiB on Linux
    return Cost(
        wall_s,
        usage.ru_utime + usage.ru_stime,
        usage.ru_maxrss * scale / 1e6,
        process.returncode,
        out.decode(errors="replace"),
        parts["err"].decode(errors="replace"),
    )


def alternating(commands: dict[str, Sequence[str]], rounds: int) -> dict[str, float]:
    """Median wall seconds of each command, in turn so that a slow moment meets all of them; one round unmeasured."""
    walls: dict[str, list[float]] = {name: [] for name in commands}
    for k in range(rounds + 1):
        for name, command in commands.items():
            cost = run(command)
            if cost.code != 0:
                raise SystemExit(f"{' '.join(command)} ended with {cost.code}: {cost.err.strip()[-400:]}")
            if k:
                walls[name].append(cost.wall_s)
    return {name: statistics.median(values) for name, values in walls.items()}
