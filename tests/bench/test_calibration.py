"""Calibration against truth: how often each quantity lies within its stated interval, on devices drawn at random."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from calibrated_worlds import Reading, air_world, board_world, cable_world, limit_world, quiet_world
from figures import Figures, table
from harness import spread_over

WORLDS = 500
LOW, HIGH = 0.93, 0.98

# Which worlds, and how many of them by default: a minute of recording each for the last three.
KINDS: dict[str, tuple[Callable[[tuple[int, ...]], list[Reading]], int]] = {
    "cable": (cable_world, 4),
    "limit": (limit_world, 1),
    "quiet": (quiet_world, 1),
    "air": (air_world, 3),
    "board": (board_world, 1),
}
SIGNS = ("polarity, reference", "polarity, ear")  # right or wrong: no share of them may be outside
FAR = 4.5  # standard uncertainties that no reading of a handful is off


@pytest.mark.parametrize("kind", KINDS)
def test_coverage_of_a_calibration(kind: str, size: str, seed: int, figures: Figures) -> None:
    """Calibration: every quantity within its stated 95 % interval in 93 to 98 % of 500 worlds; every sign right.

    The handful of the default run cannot show a share: there no reading may be far off, and nearly all are inside.
    """
    make, few = KINDS[kind]
    n = WORLDS if size == "full" else few
    readings = [r for world in spread_over(make, [(seed, k) for k in range(n)]) for r in world]
    names = list(dict.fromkeys(r.quantity for r in readings))
    rows, wrong = [], []
    for name in names:
        mine = [r for r in readings if r.quantity == name]
        ratios = np.array([r.ratio for r in mine])
        inside = float(np.mean(np.abs(ratios) <= 1.96))
        u = float(np.median([r.u for r in mine]))
        rows.append(
            [name, len(mine), f"{100 * inside:.1f}", f"{np.std(ratios):.2f}", f"{np.mean(ratios):+.2f}", f"{u:.3g}"]
        )
        if name in SIGNS:
            wrong += [f"{name}: wrong in {1 - inside:.1%}"] * (inside < 1.0)
        elif size == "full":
            wrong += [f"{name}: {100 * inside:.1f} % inside"] * (not LOW <= inside <= HIGH)
        else:
            wrong += [f"{name}: off by {np.max(np.abs(ratios)):.1f} u"] * bool(np.max(np.abs(ratios)) > FAR)
    figures.say(f"{kind}, seed {seed}, {n} worlds; e/u: error over standard uncertainty; u in the quantity's unit")
    for line in table(["quantity", "worlds", "inside %", "sd of e/u", "mean", "median u"], rows):
        figures.say(line)
    if size != "full":
        inside = float(np.mean([abs(r.ratio) <= 1.96 for r in readings]))
        assert inside >= 0.7, f"seed {seed}: {100 * inside:.0f} % of {len(readings)} inside"
    assert not wrong, f"seed {seed}: " + "; ".join(wrong)
