"""The uncertainty budget of one trial: what is statistics, and what is knowledge about the bench (GUM, types A and B).

The terms are standard uncertainties of the latency in true seconds. docs/uncertainty.md has the reasons for each size
and how to measure it again; a calibration replaces the two type B terms by smaller ones.
"""

from __future__ import annotations

import math

from rig.domain.records import BudgetLine

SAMPLE_CLOCK_PPM = 25.0
"""Rate error of an uncalibrated interface: crystals are sold as +-50 ppm, taken as two standard uncertainties."""

CHANNEL_SKEW_S = 1.0e-6
"""Skew between two channels of one converter, uncalibrated: well under a twentieth of a sample at 48 kHz."""


def trial_uncertainty_s(latency_s: float, u_noise_s: float) -> float:
    """Combined standard uncertainty of one trial, in seconds."""
    return math.sqrt(u_noise_s**2 + (SAMPLE_CLOCK_PPM * 1e-6 * latency_s) ** 2 + CHANNEL_SKEW_S**2)


def budget(latency_s: float, u_noise_s: float) -> tuple[BudgetLine, ...]:
    """The lines of a run's budget at its median latency; `u_noise_s` is the median over its accepted trials."""
    return (
        BudgetLine("estimator noise", u_noise_s, "A", "ear noise propagated through the estimator, per trial"),
        BudgetLine(
            "sample clock rate",
            SAMPLE_CLOCK_PPM * 1e-6 * abs(latency_s),
            "B",
            f"uncalibrated crystal, {SAMPLE_CLOCK_PPM:g} ppm of the latency",
        ),
        BudgetLine("channel skew", CHANNEL_SKEW_S, "B", "uncalibrated converter, both channels on one chip"),
    )
