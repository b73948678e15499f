"""How a clock's rate wanders: the overlapping Allan deviation, by the library of that name."""

from __future__ import annotations

import numpy as np

from rig.analyse.clockrate import ClockRate, even_phase
from rig.errors import MissingLibrary

MOST_SHARE = 4
"""Spans up to this part of the record: over longer ones the deviation is a matter of luck."""


def allan_deviation(rate: ClockRate) -> tuple[tuple[float, float], ...]:
    """(span in s, deviation of the mean rate from one span to the next) in octaves; no unit, 1e-6 is 1 ppm.

    Over short spans it is the jitter of the stamps, not the clock's: from arrivals of blocks it says that the clock
    wanders no more than this. Raises MissingLibrary without allantools.
    """
    try:
        import allantools
    except ImportError as error:
        raise MissingLibrary(
            "the wander of a clock needs allantools, which is not installed",
            "the library allantools",
            "pip install 'rig-bench[calibrate]'",
        ) from error
    step_s, phase_s = even_phase(rate)
    longest = len(phase_s) // MOST_SHARE
    factors = [1 << k for k in range(max(0, longest.bit_length())) if 1 << k <= longest]
    if not factors:
        return ()
    spans, deviations, _, _ = allantools.oadev(
        np.asarray(phase_s), rate=1.0 / step_s, data_type="phase", taus=[f * step_s for f in factors]
    )
    return tuple((float(s), float(d)) for s, d in zip(spans, deviations, strict=True) if d > 0.0)
