"""What all tests share: replayable seeds, hypothesis profiles, the full-size runs.

A test that draws asks for `rng` (or `seed`). The seed follows from the test's own name, so that every run draws the
same; `--seed N` draws another, and a failure prints the line that replays it.
"""

from __future__ import annotations

import zlib
from collections.abc import Generator, Iterator
from typing import Any

import hypothesis
import numpy as np
import pytest

# The default run must not depend on luck: what a derandomized search misses, `--hypothesis-profile explore` may find.
hypothesis.settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
hypothesis.settings.register_profile("explore", deadline=None, print_blob=True, max_examples=2000)
hypothesis.settings.load_profile("ci")

_SEED_SECTION = "seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("rig")
    group.addoption("--seed", type=int, default=None, help="draw from this seed instead of each test's own")
    group.addoption("--port", default=None, help="run the board's contract on the real board at this serial port too")
    group.addoption("--truth", action="store_true", help="full counts against truth, not a seeded tenth of them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the tests marked `truth` out of the default run, and counts them as deselected."""
    if config.getoption("--truth"):
        return
    full_size = [item for item in items if item.get_closest_marker("truth")]
    if full_size:
        config.hook.pytest_deselected(items=full_size)
        items[:] = [item for item in items if not item.get_closest_marker("truth")]


@pytest.fixture(scope="session", autouse=True)
def results_of_their_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the tests analyse is not kept among the user's results."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RIG_CACHE", str(tmp_path_factory.mktemp("results")))
        yield


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: from its name, or the one given by --seed. Shown when the test fails."""
    given: int | None = request.config.getoption("--seed")
    value = zlib.crc32(request.node.nodeid.encode()) if given is None else given
    request.node.user_properties.append((_SEED_SECTION, value))
    return value


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    """A generator of its own for each test, replayable by its seed."""
    return np.random.default_rng(seed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    drawn = dict(item.user_properties).get(_SEED_SECTION)
    if report.failed and drawn is not None:
        report.sections.append((_SEED_SECTION, f"{drawn}; replay: pytest '{item.nodeid}' --seed {drawn}"))
    return report
