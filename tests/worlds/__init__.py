"""Seeded worlds with a known truth, for judging the estimators. Shares no code with `rig.sim` or `rig.analyse`.

Everything is at 48 kHz unless a function says otherwise; positions and delays are in samples (floats), latencies in
seconds. A world is made noise-free with exact fractional delays first; its truth is computed from the known impulse
response (`oracle`), never from the samples that the estimators see.
"""

RATE_HZ = 48_000
"""Sample rate of every generator here, Hz."""
