"""docs/errors.md from the error tree: `python -m rig.cli.errors_page` prints it. A test keeps the page fresh."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from rig import errors

_HEAD = """# Errors and exit codes

Every error that a user can act on is three lines on stderr: what happened, what was expected, what to do. stdout
carries the report and nothing else, so it stays empty then. A refusal (code 7) is a report too, one without a figure.

| exit code | means | who must act |
| --- | --- | --- |
"""

_CODES = (
    (0, "measured", "nobody"),
    (1, "a fault of rig itself; a traceback is shown", "whoever maintains rig"),
    (2, "a wrong option, plan or file", "the caller"),
    (errors.EXIT_OVER_LIMIT, "measured, and the median is over `--limit`", "whoever owns the system"),
    (4, "device, port or firmware not there or not usable", "the operator"),
    (5, "a calibration is missing, stale or of another device", "the operator: calibrate"),
    (6, "the recording or the link was lost; what was recorded is kept", "the operator: measure again"),
    (7, "recorded, but no valid figure; the report counts the reasons", "whoever owns the bench"),
    (errors.EXIT_INTERRUPTED, "stopped with Ctrl-C; the board is silent, what was recorded is kept", "nobody"),
)

_TREE = """
## The errors

| error | exit code | meaning |
| --- | --- | --- |
"""

_TAIL = """
A single bad trial is no error: it is refused with a reason, counted in the report, and the report says what to do about
it. This page is made from `rig/errors.py` by `rig/cli/errors_page.py`.
"""


def errors_page() -> str:
    """The page as Markdown."""
    codes = "".join(f"| {code} | {meaning} | {who} |\n" for code, meaning, who in _CODES)
    rows = "".join(f"| {name} | {code} | {meaning} |\n" for name, code, meaning in _rows(errors.RigError, 0))
    return _HEAD + codes + _TREE + rows + _TAIL


def _rows(branch: type[errors.RigError], depth: int) -> Iterator[tuple[str, int, str]]:
    for kind in branch.__subclasses__():
        if kind.__module__ == errors.__name__:
            meaning = " ".join((inspect.getdoc(kind) or "").split())
            yield f"{'&nbsp;&nbsp;' * depth}`{kind.__name__}`", kind.exit_code, meaning
            yield from _rows(kind, depth + 1)


if __name__ == "__main__":
    print(errors_page(), end="")
