"""`python -m benchmarks [--quick]`: prints speed, memory and start-up of `rig`, each beside its yardstick.

One hour of two channels at 48 kHz with a stimulus every 2 s goes through `rig analyze` in a process of its own with one
thread, and through a plain correlator told where the stimuli are. `--quick` takes 10 minutes for the hour.

`python -m benchmarks findings` makes the tables of docs/findings.md instead, see `benchmarks/findings/`.
"""

from __future__ import annotations

import json
import platform
import sys
import tempfile
from pathlib import Path

from benchmarks import longfile
from benchmarks.child import Cost, alternating, run
from benchmarks.listing import listing

SEED = 1
RIG = [sys.executable, "-c", "from rig.cli.main import run; run()"]


def main() -> None:
    """Runs them all and prints as it goes."""
    if sys.argv[1:2] == ["findings"]:
        from benchmarks.findings.main import main as findings

        findings(sys.argv[2:])
        return
    quick = "--quick" in sys.argv[1:]
    print(f"Python {platform.python_version()}, {platform.system()} {platform.machine()}; one thread for each process")
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as folder:
        start_up(Path(folder))
        listing(Path(folder), 100 if quick else 1000)
        one_mark(Path(folder))
        lengths(Path(folder), (60.0, 600.0) if quick else (600.0, 3600.0))


MARKS = """import sys
from rig.marks import Marks
with Marks(sys.argv[1]) as marks:
    for seq in range(int(sys.argv[2])):
        marks.mark(seq, "t_capture")
"""


def one_mark(folder: Path) -> None:
    """CPU of one mark in a system under test, everything included until its line is in the file."""
    count = 50_000
    none, many = (run([sys.executable, "-c", MARKS, str(folder / f"{n}.jsonl"), str(n)]) for n in (0, count))
    each_us = (many.cpu_s - none.cpu_s) / count * 1e6
    print(f"\none mark by rig.marks: {each_us:.2f} us of CPU, its line in the file included")


def lengths(folder: Path, durations_s: tuple[float, float]) -> None:
    """The same work at two lengths: real-time factor, memory, and whether the cost per hour grows."""
    print("\nrig analyze of a long recording, stimulus every 2 s, 48 kHz, two channels, every validity figure computed")
    per_hour, peaks_mb = [], []
    for duration_s in durations_s:
        path = folder / f"{duration_s:.0f}.wav"
        stimuli = longfile.write(path, duration_s, SEED)
        rig = run([*RIG, "analyze", str(path), "--json"])
        plain = run([sys.executable, "-m", "benchmarks.yardstick", str(path), str(duration_s), str(SEED)])
        path.unlink()
        per_hour.append(rig.cpu_s * 3600.0 / duration_s)
        peaks_mb.append(rig.peak_mb)
        report("rig analyze", rig, duration_s, found(rig, stimuli))
        report("plain correlate", plain, duration_s, plain.out.strip().replace(" ", " stimuli, right lag ", 1))
        ratio = rig.cpu_s / plain.cpu_s if plain.cpu_s else float("nan")
        print(f"  CPU of rig over plain, both with their imports: {ratio:.2f}")
    more_mb = (peaks_mb[1] - peaks_mb[0]) / (durations_s[1] - durations_s[0]) * 3600.0
    print(f"  peak memory grows by {more_mb:.0f} MB for each further hour")
    growth = per_hour[1] / per_hour[0]
    print(f"  CPU per hour of recording, {durations_s[1]:.0f} s over {durations_s[0]:.0f} s: {growth:.2f}")


def found(cost: Cost, stimuli: int) -> str:
    """How many stimuli of those written were accepted, and the median; or why there is no document."""
    if not cost.out.strip():
        return f"exit {cost.code}: {cost.err.strip()[-300:]}"
    document = json.loads(cost.out)
    latency = document.get("latency_s")
    if latency is None:
        return f"exit {cost.code}: no figure"
    return f"{latency['n']} of {stimuli} accepted, median {1e3 * latency['median']:.4f} ms"


def report(name: str, cost: Cost, duration_s: float, what: str) -> None:
    """One line of one process."""
    print(
        f"  {duration_s:5.0f} s  {name:15}  {duration_s / cost.wall_s:6.0f} x real time  wall {cost.wall_s:6.2f} s"
        f"  CPU {cost.cpu_s:6.2f} s  peak {cost.peak_mb:5.0f} MB  {what}"
    )


def start_up(folder: Path) -> None:
    """`rig --help` beside importing typer; `rig analyze` of 5 s, and the modules that each loads."""
    print("\nstart-up, median wall time of 9 alternating runs")
    path = folder / "five.wav"
    longfile.write(path, 5.0, SEED, spacing_s=1.2)  # three stimuli: the fewest that make a figure
    commands = {
        "python -c 'import typer'": [sys.executable, "-c", "import typer"],
        "rig --help": [*RIG, "--help"],
    }
    walls = alternating(commands, 9)
    for name, wall_s in walls.items():
        print(f"  {name:26}  {1e3 * wall_s:6.0f} ms")
    names = list(walls)
    print(f"  ratio {walls[names[1]] / walls[names[0]]:.2f} (wanted: 1.5 at most)")
    for label, arguments in (("rig --help", ["--help"]), ("rig analyze, 5 s file", ["analyze", str(path), "--json"])):
        modules, cost = loaded(arguments)
        heavy = sorted({m.split(".")[0] for m in modules} & {"numpy", "scipy", "soundfile", "rich", "av", "serial"})
        which = ", ".join(heavy) or "none"
        print(f"  {label:26}  {1e3 * cost.wall_s:6.0f} ms  {len(modules)} modules, heavy ones among them: {which}")


def loaded(arguments: list[str]) -> tuple[set[str], Cost]:
    """The modules that a command has loaded when it ends, and what it cost."""
    code = (
        "import atexit, sys\n"
        "atexit.register(lambda: sys.stderr.write('\\nMODULES ' + ' '.join(sys.modules)))\n"
        "from rig.cli.main import run\n"
        "run()"
    )
    cost = run([sys.executable, "-c", code, *arguments])
    _, _, names = cost.err.rpartition("\nMODULES ")
    return set(names.split()), cost


if __name__ == "__main__":
    main()
