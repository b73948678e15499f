"""docs/ as a site: it builds without a warning, every page is in its navigation, nothing is fetched from elsewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mkdocs", reason="the site needs mkdocs, the extra docs")
yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[2]


def pages(nav: Any) -> Iterator[str]:
    for item in nav:
        for value in item.values():
            if isinstance(value, str):
                yield value
            else:
                yield from pages(value)


def test_every_page_is_in_the_navigation() -> None:
    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    listed = list(pages(config["nav"]))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    decisions = {page for page in there if page.startswith("decisions/")}
    assert sorted(listed) == sorted(there - decisions), "name each page of docs/ once under nav in mkdocs.yml"


def test_the_site_builds_without_a_warning_and_stands_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    made = list((tmp_path / "site").rglob("*.html"))
    assert len(made) > 20
    for page in made:
        fetched = re.findall(
            r'<(?:script|img|link)[^>]*(?:src|href)="(?:https?:)?//[^"]*"', page.read_text(encoding="utf-8")
        )
        assert not fetched, f"{page.name} loads {fetched}"
