"""How fast the sample clock runs against the host's: blocks of samples as they reached the program, over a minute.

A block comes late by what the computer was doing, never early. A line through the arrivals, with the stragglers left
out, has the clock's rate; what the arrivals scatter about it, and how alike neighbours are, is its uncertainty.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from rig.analyse.clockrate import MIN_SPAN_S, ClockRate, Floats
from rig.analyse.known import Found, alike, student
from rig.domain.records import BlockArrival, Gap

MIN_BLOCKS = 40
STRAGGLER = 4.0
LEAST_PPM = 1e-4


def host_rate(blocks: Sequence[BlockArrival], rate_hz: int, gaps: Sequence[Gap] = ()) -> ClockRate | None:
    """The rate against the host's clock, over the longest stretch without a loss. None with too few blocks, or over
    less than `MIN_SPAN_S`. How true the host's own clock is, is not in the uncertainty."""
    at_s, arrived_s = _longest(blocks, rate_hz, sorted(g.frame for g in gaps))
    if len(at_s) < MIN_BLOCKS or at_s[-1] - at_s[0] < MIN_SPAN_S:
        return None
    late_s = (arrived_s - arrived_s[0]) - (at_s - at_s[0])
    keep = np.ones(len(at_s), dtype=bool)
    for _ in range(8):
        slope, offset = np.polyfit(at_s[keep], late_s[keep], 1)
        rest = late_s - (offset + slope * at_s)
        middle = float(np.median(rest[keep]))
        spread = 1.4826 * float(np.median(np.abs(rest[keep] - middle)))
        now = np.abs(rest - middle) <= max(STRAGGLER * spread, 1e-9)
        if np.array_equal(now, keep) or np.count_nonzero(now) < MIN_BLOCKS:
            break
        keep = now
    x, y = at_s[keep], rest[keep] - rest[keep].mean()
    n = len(x)
    rho = alike(y)
    independent = max(4.0, n * (1.0 - rho) / (1.0 + rho))  # Bartlett's count for a first-order process
    u = float(np.sqrt(np.dot(y, y) / (n - 2))) / float(x.std()) / math.sqrt(independent)
    # Seconds of the host per nominal second are 1 / (1 + ppm).
    ppm = (1.0 / (1.0 + float(slope)) - 1.0) * 1e6
    return ClockRate(Found(ppm, max(1e6 * u * student(independent - 2.0), LEAST_PPM), n), x, late_s[keep])


def _longest(blocks: Sequence[BlockArrival], rate_hz: int, gaps: list[int]) -> tuple[Floats, Floats]:
    """Recording time of the ends of the blocks and when they arrived, between the two losses furthest apart."""
    parts: dict[int, list[BlockArrival]] = {}
    for block in blocks:
        parts.setdefault(bisect_right(gaps, block.frame), []).append(block)
    longest = max(parts.values(), key=lambda part: part[-1].frame - part[0].frame, default=[])
    ends = np.array([(b.frame + b.n_frames) / rate_hz for b in longest])
    return ends, np.array([b.arrived_s for b in longest])
