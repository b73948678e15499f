"""The type checker refuses what `forbidden.py` does, and allows what a bench needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORBIDDEN = Path(__file__).with_name("forbidden.py")

ALLOWED = """
from rig.domain.timebase import AudioClock, ClockMap, Duration, HostClock, Instant, McuClock


def allowed(early: Instant[AudioClock], late: Instant[AudioClock], tick: Instant[McuClock],
            there: ClockMap[McuClock, HostClock], now: Instant[HostClock]) -> Duration:
    age: Duration = now - there.apply(tick)
    later: Instant[AudioClock] = early.plus(Duration(0.5) - age + -age)
    assert age < Duration(1.0)
    return late.since(later)
"""


def strict_mypy(*files: Path, cache: Path) -> tuple[int, str]:
    """Exit status and output of strict mypy over some files."""
    flags = ["--strict", "--warn-unused-ignores", "--no-error-summary", "--cache-dir", str(cache)]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *flags, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("mypy")
    return tmp_path_factory.mktemp("mypy")


def test_every_forbidden_operation_is_refused_and_every_allowed_one_passes(tmp_path: Path, cache: Path) -> None:
    allowed = tmp_path / "allowed.py"
    allowed.write_text(ALLOWED, encoding="utf-8")
    status, output = strict_mypy(FORBIDDEN, allowed, cache=cache)
    assert status == 0, output


def test_without_its_ignores_every_line_is_an_error(tmp_path: Path, cache: Path) -> None:
    # So the ignores hide one error each and nothing else, and none stands on a line that is legal.
    text = FORBIDDEN.read_text(encoding="utf-8")
    bare = tmp_path / "bare.py"
    bare.write_text(re.sub(r"  # type: ignore\[[\w-]+\]", "", text), encoding="utf-8")
    status, output = strict_mypy(bare, cache=cache)
    marked = [number for number, line in enumerate(text.splitlines(), 1) if "# type: ignore[" in line]
    refused = sorted({int(number) for number in re.findall(r"bare\.py:(\d+): error", output)})
    assert status == 1
    assert len(marked) >= 30
    assert refused == marked, output


def test_an_operation_that_became_legal_is_reported(tmp_path: Path, cache: Path) -> None:
    legal = tmp_path / "legal.py"
    ignored = ALLOWED.replace("now - there.apply(tick)", "now - there.apply(tick)  # type: ignore[operator]")
    legal.write_text(ignored, encoding="utf-8")
    status, output = strict_mypy(legal, cache=cache)
    assert status == 1
    assert 'Unused "type: ignore' in output
