"""How fast the sample clock runs against the host's: blocks of samples as they reached the program, over minutes.

A block comes late by what the computer was doing, never early. A line through the arrivals, with the stragglers left
out, has the clock's rate; what the arrivals scatter about it, and how alike neighbours are, is its uncertainty.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.analyse.known import Found, student
from rig.domain.records import BlockArrival

MIN_SPAN_S = 30.0
MIN_BLOCKS = 40
STRAGGLER = 4.0

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class HostRate:
    """`found` in ppm, positive: the sample clock is fast. `phase_s`, shape (n,): how late each block kept came by the
    nominal rate, at `at_s` of the recording."""

    found: Found
    at_s: Floats
    phase_s: Floats


def host_rate(blocks: Sequence[BlockArrival], rate_hz: int) -> HostRate | None:
    """The rate against the host's clock. None with too few blocks, or over less than `MIN_SPAN_S`."""
    at_s = np.array([(b.frame + b.n_frames) / rate_hz for b in blocks])
    if len(at_s) < MIN_BLOCKS or at_s[-1] - at_s[0] < MIN_SPAN_S:
        return None
    late_s = np.array([b.arrived_s for b in blocks]) - at_s
    late_s = late_s - late_s[0]
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
    alike = max(0.0, float(np.dot(y[1:], y[:-1]) / max(np.dot(y, y), 1e-300)))
    independent = max(4.0, n * (1.0 - alike) / (1.0 + alike))  # Bartlett's count for a first-order process
    u = float(np.sqrt(np.dot(y, y) / (n - 2))) / float(x.std()) / math.sqrt(independent)
    # Seconds of host per nominal second are 1 / (1 + ppm).
    ppm = (1.0 / (1.0 + float(slope)) - 1.0) * 1e6
    return HostRate(Found(ppm, max(1e6 * u * student(independent - 2.0), 1e-4), n), x, late_s[keep])
