"""Takes clicks out of the ear channel: keys, contacts, drops of a radio link. Short, and far above what is around.

A matched filter spreads a click over the length of the stimulus, and a few of them hide a weak arrival that stands
between them. A stimulus lasts tens of milliseconds and is left alone.
"""

from __future__ import annotations

import numpy as np

from rig.analyse.spectrum import Real

HOP_S = 0.001
AROUND_HOPS = 12
ABOVE = 3.5
"""A millisecond this many times louder than the median of the 25 around it is a click; noise reaches 1.5 times."""

MOST = 0.08
"""Where more of the window than this would go, it is no matter of clicks, and nothing is taken out."""


def without_clicks(ear: Real, rate_hz: float) -> Real:
    """`ear` with its clicks faded out, or `ear` itself where there are none. Shape (n,); the input is not modified."""
    hop = max(4, round(HOP_S * rate_hz))
    hops = len(ear) // hop
    if hops < 4 * AROUND_HOPS:
        return ear
    shaped = ear[: hops * hop].reshape(hops, hop)
    centred = shaped - shaped.mean()
    level = np.sqrt(np.einsum("ij,ij->i", centred, centred) / hop)
    # Any click is far above the median of the whole; without such a hop nothing needs to be looked at more closely.
    if float(level.max()) < ABOVE * float(np.median(level)):
        return ear
    padded = np.pad(level, AROUND_HOPS, mode="reflect")
    around = np.median(np.lib.stride_tricks.sliding_window_view(padded, 2 * AROUND_HOPS + 1), axis=1)
    loud = level > ABOVE * around + 1e-12
    loud[1:] |= loud[:-1].copy()  # its tail
    loud[:-1] |= loud[1:].copy()  # and its beginning
    share = float(loud.mean())
    if share == 0.0 or share > MOST:
        return ear
    weight = np.repeat(np.where(loud, 0.0, 1.0), hop)
    ramp = hop // 4
    kernel = np.ones(2 * ramp + 1) / (2 * ramp + 1)
    cleaned = ear.copy()
    cleaned[: hops * hop] *= np.minimum(weight, np.convolve(weight, kernel, mode="same")).astype(ear.dtype)
    return cleaned
