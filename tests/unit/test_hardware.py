"""The levels that docs/hardware.md states follow from the parts that it lists."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "hardware.md"
UNITS = {"kΩ": 1e3, "Ω": 1.0, "µF": 1e-6, "nF": 1e-9}
MOUTH_OHM = 10e3


def parts() -> dict[str, float]:
    """The values in the bill of materials, in ohm and farad."""
    found = {}
    for names, values in re.findall(r"^\| ((?:[RC]\d(?:, )?)+) \| ([^|]+) \|", PAGE.read_text(encoding="utf-8"), re.M):
        amounts = re.findall(r"([\d.]+) (kΩ|Ω|µF|nF)", values)
        for name, (number, unit) in zip(names.split(", "), amounts, strict=True):
            found[name] = float(number) * UNITS[unit]
    return found


def levels_db(f_hz: float, mouth_ohm: float | None) -> tuple[float, float]:
    """Node A and input 1 against the pin, by the ladder's impedances from its end."""
    r1, r2, r3, r4, c1, c2, c3 = (parts()[name] for name in ("R1", "R2", "R3", "R4", "C1", "C2", "C3"))
    s = 2j * np.pi * f_hz
    at_a = r3 + r4 if mouth_ohm is None else 1 / (1 / (r3 + r4) + 1 / mouth_ohm)
    behind_c3 = at_a + 1 / (s * c3)
    at_2 = 1 / (s * c2 + 1 / behind_c3)
    at_1 = 1 / (s * c1 + 1 / (r2 + at_2))
    node_a = at_1 / (r1 + at_1) * at_2 / (r2 + at_2) * at_a / behind_c3
    return 20 * np.log10(abs(node_a)), 20 * np.log10(abs(node_a * r4 / (r3 + r4)))


ROWS = re.findall(r"^\| (\d+) Hz[^|]* \| (\S+) \| (\S+) \| (\S+) \|", PAGE.read_text(encoding="utf-8"), re.M)


def test_the_table_is_there() -> None:
    assert len(ROWS) == 4
    assert set(parts()) == {"R1", "R2", "R3", "R4", "C1", "C2", "C3"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} Hz")
def test_levels_follow_from_the_parts(row: tuple[str, str, str, str]) -> None:
    f_hz, *stated = map(float, row)
    alone, with_mouth = levels_db(f_hz, None), levels_db(f_hz, MOUTH_OHM)
    assert stated == pytest.approx([alone[0], alone[1], with_mouth[1]], abs=0.05)
