"""What was measured of one row, and the file that keeps it: one JSON object a line, the last of a key counts.

So a pass that was stopped goes on where it was, and a row can be measured again on a quieter machine.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Run:
    """One start of the system. Times in s; `median_s` None: the run was refused, `why` says so.

    `trials_s` are the accepted ones; `refused` counts the others by reason; `claims` is what the system printed of its
    own latency when it ended, None where it printed nothing.
    """

    median_s: float | None
    trials_s: tuple[float, ...]
    n_trials: int
    refused: Mapping[str, int]
    claims: Mapping[str, Any] | None
    why: str | None = None


@dataclass(frozen=True, slots=True)
class Result:
    """`why` says why there are no runs. `others`: the share of the machine's cores, 0 to 1, that programs took which
    were no part of the measurement; None where the system does not tell."""

    key: str
    runs: tuple[Run, ...]
    why: str | None
    others: float | None
    measured: str  # date and time, UTC
    chromium: str | None = None


def load(path: Path) -> dict[str, Result]:
    """The results so far, by key; none where there is no file. A last line that was cut short is left out."""
    found: dict[str, Result] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            facts = json.loads(line)
        except ValueError:
            continue
        runs = tuple(Run(**{**run, "trials_s": tuple(run["trials_s"])}) for run in facts.pop("runs"))
        found[facts["key"]] = Result(runs=runs, **facts)
    return found


def append(path: Path, result: Result) -> None:
    """Adds one result; it is on disk when this returns."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(result)) + "\n")
