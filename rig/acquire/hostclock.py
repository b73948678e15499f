"""How well the rate of this computer's clock is known: kept by a time service, or left to its own crystal."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

KEPT_U_PPM = 1.0
"""Standard uncertainty of the rate of a clock that a time service keeps: over a minute its corrections move the rate by
about this much."""

FREE_U_PPM = 25.0
"""The same of a clock that nobody keeps: crystals are sold as +-50 ppm, taken as two standard uncertainties."""

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of timex.h
_TIME_ERROR = 5
_ROOM = 512  # struct timex has about 208 bytes


def rate_u_ppm(kept: Callable[[], bool | None] | None = None) -> float:
    """Standard uncertainty of the host clock's rate in ppm; where the system does not say, as if nobody kept it."""
    return KEPT_U_PPM if (kept or is_kept)() else FREE_U_PPM


def is_kept() -> bool | None:
    """Whether a time service keeps the clock, as the kernel has it. None where it does not tell."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        return None
    room = (ctypes.c_char * _ROOM)()  # zeros: modes 0 changes nothing and only reads
    state = int(adjtimex(ctypes.byref(room)))
    if state < 0:
        return None
    # int modes, then five longs from the next boundary: offset, freq, maxerror, esterror; then int status.
    size = ctypes.sizeof(ctypes.c_long)
    status = ctypes.c_int.from_buffer(room, size * 5).value
    return state != _TIME_ERROR and not status & _UNSYNCHRONISED
