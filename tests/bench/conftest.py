"""What the truth benchmarks share: full size or a tenth, figures printed and kept, the table in docs/truth.md."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `worlds`
sys.path.insert(0, str(Path(__file__).parent))  # for `harness` and its neighbours

from figures import Figures, write_truth_page

_FIGURES = "figures"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that asks for `size` runs twice: a tenth by default, the full count under --truth."""
    if "size" in metafunc.fixturenames:
        metafunc.parametrize("size", ["tenth", pytest.param("full", marks=pytest.mark.truth)])


@pytest.fixture
def count(size: str) -> Callable[[int], int]:
    """Turns a full count into the count of this run: itself, or a tenth of it, at least one."""
    return lambda full: full if size == "full" else max(1, full // 10)


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Collects the lines that a benchmark measured; prints them at once and keeps them for docs/truth.md."""
    doc = request.function.__doc__ or ""
    title = doc.strip().splitlines()[0].rstrip(".") if doc.strip() else request.node.name
    kept = Figures(title=title)
    # As plain lists and strings: under pytest-xdist the properties travel from worker to controller.
    request.node.user_properties.append((_FIGURES, [kept.title, kept.lines]))
    return kept


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Writes docs/truth.md after a full run of all benchmarks; a run of a selection leaves it alone."""
    if not config.getoption("--truth"):
        return
    blocks = []
    for outcome in ("passed", "failed"):
        for report in terminalreporter.stats.get(outcome, []):
            if report.when == "call":
                blocks += [(Figures(*kept), outcome) for name, kept in report.user_properties if name == _FIGURES]
    whole = not config.getoption("keyword") and all("::" not in str(a) for a in config.args)
    if blocks and whole:
        page = write_truth_page(Path(str(config.rootpath)) / "docs" / "truth.md", blocks)
        terminalreporter.write_line(f"figures written to {page}")
