"""Probability laws in closed form: Student's t and chi squared for whole degrees of freedom, and the fair coin.

Standard library only, so that a report needs no more than numpy. Sources: Abramowitz and Stegun, Handbook of
Mathematical Functions (1964), 26.7.3 and 26.7.4 (Student), 26.4.4 and 26.4.5 (chi squared).
"""

from __future__ import annotations

import math
from functools import cache

NORMAL_95 = 1.959963984540054
"""Two-sided 95 % point of the normal law: from a standard to an expanded uncertainty."""


def student_outside(t: float, df: int) -> float:
    """Two-sided tail probability P(|T| > t) of Student's t with `df` >= 1 degrees of freedom."""
    if df < 1:
        raise ValueError(f"Student's t needs at least 1 degree of freedom, got {df}")
    theta = math.atan2(abs(t), math.sqrt(df))
    sine, cosine = math.sin(theta), math.cos(theta)
    if df % 2:
        term, total = cosine, 0.0
        for k in range(1, df - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = 2.0 / math.pi * (theta + sine * total)
    else:
        term, total = 1.0, 0.0
        for k in range(0, df - 1, 2):
            total += term
            term *= cosine * cosine * (k + 1) / (k + 2)
        inside = sine * total
    return min(1.0, max(0.0, 1.0 - inside))


@cache
def student_quantile(coverage: float, df: int) -> float:
    """The t with P(|T| <= t) = `coverage`; 12.706 for 95 % and 1 degree of freedom."""
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"a coverage lies between 0 and 1, got {coverage}")
    low, high = 0.0, 2.0
    while student_outside(high, df) > 1.0 - coverage:
        high *= 2.0
    for _ in range(80):
        middle = 0.5 * (low + high)
        if student_outside(middle, df) > 1.0 - coverage:
            low = middle
        else:
            high = middle
    return 0.5 * (low + high)


def chi_squared_above(x: float, df: int) -> float:
    """P(X > x) of the chi squared law with `df` >= 1 degrees of freedom."""
    if df < 1:
        raise ValueError(f"chi squared needs at least 1 degree of freedom, got {df}")
    if x <= 0.0:
        return 1.0
    if df % 2:
        total = math.erfc(math.sqrt(0.5 * x))
        term = math.sqrt(2.0 * x / math.pi) * math.exp(-0.5 * x)
        for k in range(1, df, 2):
            total += term
            term *= x / (k + 2)
    else:
        total, term = 0.0, math.exp(-0.5 * x)
        for k in range(0, df, 2):
            total += term
            term *= x / (k + 2)
    return min(1.0, total)


def normal_outside(z: float) -> float:
    """P(|Z| > z) of the standard normal law."""
    return math.erfc(abs(z) / math.sqrt(2.0))


def coin_at_most(k: int, n: int) -> float:
    """P(at most `k` heads in `n` throws of a fair coin)."""
    return math.fsum(math.exp(_log_choose(n, i) - n * math.log(2.0)) for i in range(k + 1))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
