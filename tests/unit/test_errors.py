"""docs/errors.md is what the error tree says, and every error has its three lines and its exit code."""

from __future__ import annotations

from pathlib import Path

from rig import errors
from rig.cli.errors_page import errors_page

PAGE = Path(__file__).parents[2] / "docs" / "errors.md"


def tree(branch: type[errors.RigError]) -> list[type[errors.RigError]]:
    return [branch] + [kind for child in branch.__subclasses__() for kind in tree(child)]


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text(encoding="utf-8") == errors_page(), "run: python -m rig.cli.errors_page > docs/errors.md"


def test_the_page_has_every_exit_code_once() -> None:
    table = errors_page().split("## The errors")[0]
    codes = [int(line.split("|")[1]) for line in table.splitlines() if line.startswith("| ") and line[2].isdigit()]
    raised = {kind.exit_code for kind in tree(errors.RigError) if kind.__module__ == errors.__name__}
    assert codes == sorted(codes)
    assert set(codes) == raised | {0, errors.EXIT_OVER_LIMIT, errors.EXIT_INTERRUPTED}


def test_a_branch_has_one_exit_code_and_no_two_branches_share_one() -> None:
    branches = errors.RigError.__subclasses__()
    assert len({branch.exit_code for branch in branches}) == len(branches)
    for branch in branches:
        assert {kind.exit_code for kind in tree(branch)} == {branch.exit_code}


def test_an_error_carries_what_happened_what_was_expected_and_the_remedy() -> None:
    error = errors.BadInput("take.wav is empty", "a recording", "record again")
    assert (str(error), error.what, error.expected, error.remedy) == (
        "take.wav is empty",
        "take.wav is empty",
        "a recording",
        "record again",
    )
