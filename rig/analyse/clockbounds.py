"""Lines between two-sided bounds: which of them has the largest margin, and how far all of them reach.

A ping bounds the map from both sides. When the board stamped its receipt at x, the host's clock was at least at the
sending; when the board stamped its answer at x', the host's clock was at most at the receipt. So the map runs above
every lower point and below every upper point. Of all lines that do, the one with the largest least distance (vertical)
is the estimate: one-sided delays of any length do not pull it, the quickest exchange of each direction counts.

The linear program has two variables, and is solved exactly in its dual: a line y = a*x + b passes when
F(a) <= b <= G(a), with F(a) the largest of (y - a*x) over the lower points and G(a) the least over the upper ones.
Both are piecewise linear, with breaks at the slopes of the edges of the points' convex hulls, so G - F is concave and
its maximum, twice the margin, lies at a break. The lines that pass are the polygon between F and G. The method follows
Moon, Skelly and Towsley (INFOCOM 1999, one-way delays) with both directions at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Lines:
    """All lines that keep the bounds; slopes are dy/dx, times in s.

    Of the line with the largest margin, `slope` and its value `y0_s` at `x0_s`; `margin_s` is its least distance from
    any bound, so positive or 0. `slopes`, `lows_s`, `highs_s`, each of shape (m,): at each corner slope, the least and
    the largest value at `x0_s` that a line of that slope may have.
    """

    x0_s: float
    y0_s: float
    slope: float
    margin_s: float
    slopes: Floats
    lows_s: Floats
    highs_s: Floats

    def at(self, x_s: Floats) -> Floats:
        """The line with the largest margin at `x_s`, shape (n,)."""
        return np.asarray(self.y0_s + self.slope * (x_s - self.x0_s))

    def interval(self, x_s: Floats) -> tuple[Floats, Floats]:
        """Least and largest value of any of the lines at `x_s`; each of shape (n,)."""
        reach = np.multiply.outer(x_s - self.x0_s, self.slopes)
        return np.min(reach + self.lows_s, axis=-1), np.max(reach + self.highs_s, axis=-1)

    @property
    def slope_range(self) -> tuple[float, float]:
        """Least and largest slope of any of the lines."""
        return float(self.slopes[0]), float(self.slopes[-1])


def lines_between(below_x: Floats, below_y: Floats, above_x: Floats, above_y: Floats) -> Lines | None:
    """The lines above the points (`below_x`, `below_y`) and below (`above_x`, `above_y`); None: there are none.

    Each array of shape (n,), in s. Raises ValueError where the points leave the slope unbounded: the two sets must
    overlap in x, both ways.
    """
    if not (len(below_x) and len(above_x) and below_x.max() > above_x.min() and above_x.max() > below_x.min()):
        raise ValueError("bounds that do not overlap in time leave the slope of the line open")
    x0 = 0.5 * (float(below_x.min()) + float(above_x.max()))
    y0 = float(np.mean(above_y))
    # Slopes are near 1: what is left after taking that off is small, and so are its rounding errors.
    low_x, low_y = _upper_hull(below_x - x0, (below_y - y0) - (below_x - x0))
    high_x, high_y = _upper_hull(above_x - x0, (above_x - x0) - (above_y - y0))
    high_y = -high_y
    breaks = np.unique(np.concatenate((np.diff(low_y) / np.diff(low_x), np.diff(high_y) / np.diff(high_x))))

    def least(a: Floats) -> Floats:
        return np.asarray(np.max(low_y - np.multiply.outer(a, low_x), axis=-1))

    def largest(a: Floats) -> Floats:
        return np.asarray(np.min(high_y - np.multiply.outer(a, high_x), axis=-1))

    room = largest(breaks) - least(breaks)
    most = float(room.max())
    if most < 0.0:
        return None
    best = np.flatnonzero(room >= most - 1e-15)
    slope = 0.5 * float(breaks[best[0]] + breaks[best[-1]])  # equal margins: the middle of them
    first = _edge(breaks, room, float(low_x[-1] - high_x[0]))
    last = -_edge(-breaks[::-1], room[::-1], float(high_x[-1] - low_x[0]))
    corners = np.concatenate(([first], breaks[(breaks > first) & (breaks < last)], [last]))
    lows, highs = least(corners), largest(corners)
    middle = np.array([slope])
    offset = 0.5 * float(least(middle)[0] + largest(middle)[0])
    return Lines(
        x0_s=x0,
        y0_s=y0 + offset,
        slope=1.0 + slope,
        margin_s=0.5 * most,
        slopes=1.0 + corners,
        lows_s=y0 + lows,
        highs_s=y0 + np.maximum(lows, highs),  # at the outer corners both are the same but for rounding
    )


def _edge(breaks: Floats, room: Floats, slope_before: float) -> float:
    """The least slope at which there is room: left of the first break, `room` rises at `slope_before`."""
    k = int(np.argmax(room >= 0.0))
    if k == 0:
        return float(breaks[0] - room[0] / slope_before)
    share = room[k] / (room[k] - room[k - 1])
    return float(breaks[k] - share * (breaks[k] - breaks[k - 1]))


def _upper_hull(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The upper convex hull of the points from left to right, one point for each x (Andrew's monotone chain)."""
    order = np.lexsort((-y, x))
    hull: list[tuple[float, float]] = []
    for px, py in zip(x[order].tolist(), y[order].tolist(), strict=True):
        if hull and px == hull[-1][0]:
            continue  # the same x again, lower
        while len(hull) >= 2:
            (ax, ay), (bx, by) = hull[-2], hull[-1]
            if (by - ay) * (px - ax) > (py - ay) * (bx - ax):
                break
            hull.pop()
        hull.append((px, py))
    points = np.array(hull)
    return points[:, 0], points[:, 1]
