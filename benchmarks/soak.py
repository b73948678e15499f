"""`python -m benchmarks.soak [--seconds 600] [--load other|both] [--busy-thread] [WAY ...]`: capture under CPU load.

On a virtual bench of its own a player sends numbered frames to channel 2, and each WAY (sounddevice, pyaudio, rtmixer;
all that are installed) records them in a process of its own, all at the same time. So each is held against the truth,
to the frame, and all of them have met the same moments. `--load other`: a program that never rests holds one core,
`both`: two of them on every core. `--busy-thread`: in each recorder a thread that never rests, in Python.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.numbered import cycle
from rig.acquire.link import SystemTime
from rig.virtual import bench as bench_life

WAYS = ("sounddevice", "pyaudio", "rtmixer")
RATE_HZ = 48_000
SMALLEST_FRAMES = 240  # 5 ms: what the clock can tell from jitter, see rig/bench/gapwatch.py
NEAR_FRAMES = RATE_HZ  # a report within 1 s of a loss is of that loss


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soak", description=__doc__)
    parser.add_argument(
        "ways", nargs="*", metavar="WAY", default=[way for way in WAYS if importlib.util.find_spec(way)]
    )
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--load", choices=("none", "other", "both"), default="other")
    parser.add_argument("--busy-thread", action="store_true")
    asked = parser.parse_args()
    with virtual_bench() as (environment, _), player(environment), load(asked.load):
        before = os.getloadavg()[0]
        accounts = record(asked.ways, asked.seconds, asked.busy_thread, environment)
    print(f"{asked.seconds:.0f} s, load: {asked.load}{', and a busy thread in each' if asked.busy_thread else ''};")
    print(f"load average {before:.1f} at the start, {os.getloadavg()[0]:.1f} at the end, {os.cpu_count()} cores")
    for account in accounts:
        print(words(account))
    print(json.dumps(accounts))


@contextlib.contextmanager
def virtual_bench() -> Iterator[tuple[dict[str, str], list[int]]]:
    """A PulseAudio of its own; yields the environment of a program inside, and the numbers of the bench's processes."""
    with tempfile.TemporaryDirectory(prefix="rb", dir="/tmp") as folder:
        own = {**os.environ, "RIG_VIRTUAL_DIR": folder}
        try:
            made = bench_life.up("pulse", SystemTime(), own)
            yield own | made.environment, [process.pid for process in made.state.processes]
        finally:
            bench_life.down("pulse", SystemTime(), own)


@contextlib.contextmanager
def player(environment: dict[str, str], device: str = "speaker") -> Iterator[None]:
    """Numbered frames without end, from a second of buffer, so that the player does not starve."""
    form = [f"--rate={RATE_HZ}", "--channels=1", "--format=float32le", "--latency-msec=1000"]
    pacat = subprocess.Popen(
        ["pacat", "--playback", "--raw", f"--device={device}", *form], stdin=subprocess.PIPE, env=environment
    )
    numbers = cycle().tobytes()

    def feed() -> None:
        with contextlib.suppress(OSError):
            while pacat.stdin is not None:
                pacat.stdin.write(numbers)

    feeder = threading.Thread(target=feed, daemon=True)
    feeder.start()
    time.sleep(2.0)
    try:
        yield
    finally:
        pacat.kill()
        pacat.wait()
        feeder.join()
        if pacat.stdin is not None:
            with contextlib.suppress(OSError):
                pacat.stdin.close()


@contextlib.contextmanager
def load(kind: str) -> Iterator[None]:
    """Programs that never rest: `other`, one on the last core; `both`, two on each; `none`."""
    cores = sorted(os.sched_getaffinity(0))
    where = {"none": [], "other": cores[-1:], "both": [*cores, *cores]}[kind]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in where]
    try:
        for process, core in zip(busy, where, strict=True):
            os.sched_setaffinity(process.pid, {core})
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def record(ways: list[str], seconds: float, busy: bool, environment: dict[str, str]) -> list[dict[str, Any]]:
    """The accounts of all recorders, which run at the same time."""
    environment = {**environment, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path[1:]])}
    me = [sys.executable, "-m", "benchmarks.soak_capture"]
    started = [
        subprocess.Popen(
            [*me, way, str(seconds), str(int(busy))], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment
        )
        for way in ways
    ]
    accounts = []
    try:
        for process in started:
            out, err = process.communicate(timeout=seconds + 120.0)
            if process.returncode:
                raise SystemExit(f"{process.args}: {process.returncode}\n{err.decode(errors='replace')}")
            accounts.append(json.loads(out))
    finally:
        for process in started:
            process.kill()
            process.wait()
    return accounts


def words(account: dict[str, Any]) -> str:
    """One line of one recorder."""
    losses = account["losses"]
    large = [loss for loss in losses if loss["lost"] >= SMALLEST_FRAMES]
    clock = account["by_clock"]
    said = {after: [*account["reports"], *frames] for after, frames in clock.items()}
    untold = {a: sum(not _near(loss["frame"], frames) for loss in large) for a, frames in said.items()}
    false = {a: sum(not _near(at, [loss["frame"] for loss in losses]) for at in frames) for a, frames in said.items()}
    cpu = "" if account["cpu_s"] is None else f", CPU {100.0 * account['cpu_s'] / account['seconds']:.1f} %"
    return (
        f"{account['way']:11} {account['n_frames']} frames, lost {sum(loss['lost'] for loss in losses)} in"
        f" {len(losses)} places, {len(large)} of 5 ms or more{cpu}; flagged {account['flagged']};"
        f" player starved {account['n_starved']} frames\n"
        f"            not told, by how long the clock waits: {untold}\n"
        f"            told without a loss: {false}"
    )


def _near(frame: int, others: list[int]) -> bool:
    return any(abs(frame - other) <= NEAR_FRAMES for other in others)


if __name__ == "__main__":
    main()
