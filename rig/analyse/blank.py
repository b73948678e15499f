"""The blank run: what the ear hears of the mouth while the system is muted. No statistic can replace it."""

from __future__ import annotations

import numpy as np

from rig.analyse.examine import PRE_S, Evidence, examine
from rig.analyse.stream import LAG_LIMIT_S, LagRange, survey, windows
from rig.analyse.verdict import single_shot
from rig.domain.records import AnalysisHints, BlankFloor, ChannelRoles
from rig.domain.seams import FrameSource


def analyse_blank(source: FrameSource, roles: ChannelRoles, hints: AnalysisHints | None = None) -> BlankFloor:
    """Measures the leak: its lag and level, and the strongest thing after it (its reflections).

    `leak_lag_s` None: the stimuli were played and nothing of them was heard. `n_trials` 0: no stimulus was played at
    all, and the blank run says nothing.
    """
    hints = hints or AnalysisHints()
    found = survey(source, roles, hints)
    if found.shape is None:
        return BlankFloor(None, None, 0)
    rate = float(source.rate_hz)
    heard: list[Evidence] = []
    count = 0
    for window, _, _ in windows(source, roles, found, LagRange(-PRE_S, None, LAG_LIMIT_S), lambda _: None):
        count += 1
        evidence = examine(window, found.shape, rate, source.full_scale)
        if evidence.location is not None and single_shot(evidence, found.shape) is None:
            heard.append(evidence)
    if len(heard) < max(1, 0.3 * count):
        return BlankFloor(None, None, count)
    lags = [e.arrivals[-1].lag / rate for e in heard]
    levels = [20.0 * float(np.log10(max(e.arrivals[-1].level, 1e-9))) for e in heard]
    tails = [
        level + e.location.later.relative_db
        for e, level in zip(heard, levels, strict=True)
        if e.location is not None and e.location.later is not None
    ]
    return BlankFloor(
        leak_lag_s=float(np.median(lags)),
        leak_db=float(np.median(levels)),
        n_trials=count,
        tail_db=float(np.median(tails)) if tails else None,
    )
