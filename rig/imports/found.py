"""What an import found: lines of marks, the figures behind them with who says so, and what the file does not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MARK_NAMES = ("t_capture", "t_encode_done", "t_send_done", "t_first_packet", "t_first_play")
"""As docs/marks.md has them."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the file. `mean` over the stretch it covers, `low` and `high` of its `n` single values, in s where
    `in_seconds`. `becomes`: what stands for it in the marks, None: nothing, it is shown only."""

    source: str
    mean: float
    low: float
    high: float
    n: int
    becomes: str | None = None
    in_seconds: bool = True


@dataclass(frozen=True, slots=True)
class FoundPart:
    """What becomes one start of the system in the marks. `lines` begin with its header; empty: nothing of use."""

    name: str
    about: tuple[str, ...]
    figures: tuple[Figure, ...]
    lines: tuple[dict[str, Any], ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """The whole file. `kind` in words; `missing` holds for all parts."""

    kind: str
    parts: tuple[FoundPart, ...]
    missing: tuple[str, ...]
    notes: tuple[str, ...] = ()
