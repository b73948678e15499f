"""The excerpts in docs/reading-a-report.md are what the commands beside them print."""

from __future__ import annotations

import re
import shlex
from functools import cache
from pathlib import Path

import pytest
from test_readme import last_digit

from rig.cli.main import main

ROOT = Path(__file__).parents[2]
EXCERPT = re.compile(r"<!-- printed by: (rig [^\n]*) -->\n```\n(.*?)\n```", re.S)
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
PAGE = (ROOT / "docs" / "reading-a-report.md").read_text(encoding="utf-8")
FOUND = EXCERPT.findall(PAGE)


@cache
def readme_report() -> str:
    """README's report, which is compared with the real output by a test of its own."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"test_readme\.py -->\n```\n(.*?)\n```", readme, re.S)
    assert found is not None
    return found[1]


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"rig measure --device sim": readme_report()}


def differences(excerpt: str, report: str) -> list[str] | None:
    """Where the excerpt's lines stand together in the report: numbers that differ by more than a last digit.
    None where they do not stand there at all."""
    wanted, lines = excerpt.splitlines(), report.splitlines()
    masked = [NUMBER.sub("#", line).split() for line in wanted]
    for at in range(len(lines) - len(wanted) + 1):
        here = lines[at : at + len(wanted)]
        if [NUMBER.sub("#", line).split() for line in here] == masked:
            pairs = zip(NUMBER.findall("\n".join(wanted)), NUMBER.findall("\n".join(here)), strict=True)
            return [f"{a}: {b}" for a, b in pairs if abs(float(a) - float(b)) > 1.01 * last_digit(b)]
    return None


def test_every_excerpt_has_its_command_and_the_reader_sees_it() -> None:
    assert len(FOUND) == PAGE.count("```") // 2
    seen = re.sub(r"<!--.*?-->", "", PAGE, flags=re.S)
    assert all(f"`{command}`" in seen for command, _ in FOUND)


@pytest.mark.parametrize("number", range(len(FOUND)))
def test_an_excerpt_is_what_is_printed(
    number: int, printed: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command, excerpt = FOUND[number]
    if command not in printed:
        capsys.readouterr()
        main([*shlex.split(command)[1:], "--quiet", "--out", str(tmp_path / "session")])
        printed[command] = capsys.readouterr().out
    assert differences(excerpt, printed[command]) == [], printed[command]


def test_a_changed_excerpt_is_seen() -> None:
    report = readme_report()
    line = next(line for line in report.splitlines() if "median of" in line)
    assert differences(line, report) == []
    assert differences(line.replace("152.1", "153.1"), report) == ["153.1: 152.1"]
    assert differences(line.replace("latency", "delay"), report) is None
