"""Figures of a benchmark: printed when they are known, kept for the page of the last full run."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Figures:
    """Lines of text of one benchmark under a title; `say` also prints, so that a failing test shows them."""

    title: str
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        """Keeps and prints one line."""
        self.lines.append(line)
        print(line)


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Columns padded to their width, the first to the left, the others to the right."""
    cells = [[str(c) for c in row] for row in [head, *rows]]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    return [
        "  ".join(
            c.ljust(w) if k == 0 else c.rjust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def write_truth_page(path: Path, blocks: Sequence[tuple[Figures, str]]) -> Path:
    """Writes the page with one section for each benchmark, in the order they ran; returns its path."""
    import numpy
    import scipy

    versions = f"Python {platform.python_version()}, numpy {numpy.__version__}, scipy {scipy.__version__}"
    out = [
        "# Against truth",
        "",
        "The output of the last `make truth`: the estimators against seeded worlds whose truth is known. Generated;",
        "do not edit. Delays in samples are at 48 kHz (20.83 µs). SNR is stimulus power over its duration against",
        "noise power from 0 to 24 kHz. Gross means over 0.5 ms from the truth. The worlds are in `tests/worlds`, the",
        "limits and seeds in `tests/bench`. Simulated acoustics and a real Opus library; no microphone was involved.",
        "",
        f"{versions}, {platform.system()} {platform.machine()}.",
    ]
    for kept, outcome in blocks:
        mark = "" if outcome == "passed" else " (FAILED)"
        out += ["", f"## {kept.title}{mark}", "", "```", *kept.lines, "```"]
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(out) + "\n", encoding="utf-8")
    return path
