"""A user's shell with a virtual bench of its own, and what to skip where the machine lacks something."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig.acquire.link import SystemTime
from rig.virtual import bench as bench_life

ROOT = Path(__file__).parents[2]
RIG = [sys.executable, "-c", "from rig.cli.main import run; run()"]


@dataclass(frozen=True)
class Shell:
    """Runs `rig` as a user would, with one virtual bench folder."""

    environ: dict[str, str]

    def rig(self, *words: str, code: int | None = 0, timeout_s: float = 60.0) -> subprocess.CompletedProcess[str]:
        """`rig WORDS`; fails the test where it does not end with `code`, None: whatever it ends with."""
        done = subprocess.run(
            [*RIG, *words], env=self.environ, cwd=ROOT, capture_output=True, text=True, timeout=timeout_s, check=False
        )
        assert code is None or done.returncode == code, (
            f"rig {' '.join(words)}: {done.returncode}\n{done.stdout}\n{done.stderr}"
        )
        return done

    def start(self, *words: str) -> subprocess.Popen[str]:
        """`rig WORDS` in the background, both its streams as pipes."""
        return subprocess.Popen(
            [*RIG, *words], env=self.environ, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def up(self, kind: str = "pulse") -> None:
        """As `rig virtual up`, without a process for it."""
        bench_life.up(kind, SystemTime(), self.environ)

    def down(self) -> None:
        """As `rig virtual down` for every kind, without a process for it."""
        for kind in bench_life.KINDS:
            bench_life.down(kind, SystemTime(), self.environ)


def need(*programs: str) -> None:
    """Skips the test where a program is not installed, naming it."""
    missing = [program for program in programs if shutil.which(program) is None]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")


def need_library(name: str) -> None:
    """Skips the test where a Python library, or the system library below it, does not load."""
    done = subprocess.run([sys.executable, "-c", f"import {name}"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"{name} does not load: {done.stderr.strip().splitlines()[-1]}")


def started(place: Path) -> dict[str, int]:
    """The numbers of what the bench on PulseAudio below `place` has started, by name."""
    found = json.loads((place / "v" / "pulse" / "state.json").read_text())
    return {each["name"]: int(each["pid"]) for each in found["processes"]}


def runs(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
