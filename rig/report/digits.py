"""Numbers as text: milliseconds with as many digits as their uncertainty supports, and None as a dash."""

from __future__ import annotations

import math
from typing import Any

WIDTH = 80
"""Columns of the text report."""

MOST_DECIMALS = 4
ABSENT = "-"


def decimals_for(u95_s: float | None) -> int:
    """Decimals in ms that show two significant digits of the expanded uncertainty `u95_s`: 0.043 ms gives 3.

    Between 0 and 4; 2 where no uncertainty is known or it is 0."""
    if u95_s is None or u95_s <= 0.0 or not math.isfinite(u95_s):
        return 2
    return min(MOST_DECIMALS, max(0, 1 - math.floor(math.log10(u95_s * 1e3) + 1e-12)))


def ms(seconds: float | None, decimals: int = 2, signed: bool = False) -> str:
    """Seconds as milliseconds without the unit; a dash for None; never minus zero."""
    if seconds is None:
        return ABSENT
    text = f"{seconds * 1e3:+.{decimals}f}" if signed else f"{seconds * 1e3:.{decimals}f}"
    return _positive_zero(text, signed)


def number(value: float | None, decimals: int = 1, signed: bool = False) -> str:
    """A plain number, or a dash for None."""
    if value is None:
        return ABSENT
    return _positive_zero(f"{value:+.{decimals}f}" if signed else f"{value:.{decimals}f}", signed)


def plain(value: Any) -> str:
    """A recorded value as it is shown and compared: 0.05, yes, 300 to 3400; a dash for None."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.12g}"
    return " to ".join(map(plain, value)) if isinstance(value, list | tuple) else str(value)


def _positive_zero(text: str, signed: bool) -> str:
    return text.replace("-", "+" if signed else "", 1) if float(text) == 0.0 else text


def table(rows: list[list[str]], indent: int = 2) -> list[str]:
    """Rows of cells as aligned lines, the first row the heading; numbers to the right, the last column to the left."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[:-1], widths, strict=False)]
        lines.append((" " * indent + "  ".join([*cells, row[-1]])).rstrip())
    return lines
