"""Start-up: what is imported when, and how long it takes beside an import of typer alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import pytest

GOLDEN = Path(__file__).parents[1] / "golden"
HEAVY = ("numpy", "scipy", "soundfile", "rich", "serial", "av", "sounddevice", "pyaudio")
REPEATS = 7

LOADED = """
import json, sys
from rig.cli.main import main
code = main(sys.argv[1:])
heavy = sorted(set(json.loads({heavy!r})) & set(sys.modules))
print("\\n" + json.dumps([code, heavy]))
"""


def loaded_by(*arguments: str) -> tuple[int, list[str]]:
    """Exit code of a command, and the slow libraries that are loaded when it ends."""
    script = LOADED.format(heavy=json.dumps(HEAVY))
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=60, check=True
    )
    code, heavy = json.loads(done.stdout.splitlines()[-1])
    return code, heavy


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["measure", "--help"], ["analyze", "--help"], ["sim", "--help"], ["version"], ["analyze", "--nope"]],
    ids=" ".join,
)
def test_help_loads_nothing_slow(arguments: list[str]) -> None:
    assert loaded_by(*arguments)[1] == []


@pytest.mark.parametrize(
    "arguments", [["analyze", "x.wav", "--limit", "300"], ["measure", "--device", "sim", "--ref", "2"]]
)
def test_a_wrong_option_is_told_before_anything_slow_is_loaded(arguments: list[str]) -> None:
    assert loaded_by(*arguments) == (2, [])


def test_analyze_loads_what_it_needs_and_no_more() -> None:
    code, heavy = loaded_by("analyze", str(GOLDEN / "chromium-rtc-chirp.flac"), "--quiet")
    assert code == 0
    assert set(heavy) <= {"numpy", "soundfile"}


def seconds(*command: str) -> float:
    begun = perf_counter()
    subprocess.run([sys.executable, *command], capture_output=True, timeout=60, check=True)
    return perf_counter() - begun


def test_print_start_up_times() -> None:
    """Prints; a busy machine must not fail the tests. The goal for help is 1.5 times an import of typer."""
    entry = "from rig.cli.main import run; run()"
    commands = {
        "python -c 'import typer'": ("-c", "import typer"),
        "rig --help": ("-c", entry, "--help"),
        "rig analyze, a recording of 5 s": ("-c", entry, "analyze", str(GOLDEN / "chromium-rtc-chirp.flac"), "--quiet"),
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(REPEATS):  # interleaved, so that a busy spell hits all alike
        for name, command in commands.items():
            times[name].append(seconds(*command))
    best = {name: min(taken) for name, taken in times.items()}
    plain = best["python -c 'import typer'"]
    for name, taken in best.items():
        print(f"start-up  {name:34s} {1e3 * taken:6.0f} ms  {taken / plain:5.2f} x an import of typer")
    assert all(taken > 0.0 for taken in best.values())
