"""What a page shows beside the report so that a doubter can judge by eye: curves of trials, spectra, hashes of files.

None of it decides anything; the figures are in the `Report` alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.floating]


@dataclass(frozen=True, slots=True)
class Curve:
    """Evenly spaced values: value k stands `start_s + k * step_s` after the start of the trial's stimulus."""

    start_s: float
    step_s: float
    values: Values


@dataclass(frozen=True, slots=True)
class TrialCurves:
    """One trial as the estimator saw it. Samples against full scale 1.0; envelopes against their own top.

    `reference` and `ear` are the recorded samples, low-passed to what can be drawn. `matched` and `response` are the
    envelopes that were searched, over all lags (each value the largest of its stretch); `matched_near` and
    `response_near` are the same, unthinned, about the strongest arrival. `timed` holds the refined response about each
    arrival that was timed, the one whose peak is the latency among them.
    """

    run: int
    index: int
    band_hz: tuple[float, float] | None
    reference: Curve
    ear: Curve
    matched: Curve | None
    response: Curve | None
    matched_near: Curve | None
    response_near: Curve | None
    timed: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class RunSpectra:
    """Mean power densities of a run on `frequency_hz`, dB of full scale squared per Hz, one-sided.

    While the stimulus sounds on the reference and its arrival on the ear, and in the pauses; None where there was none.
    """

    frequency_hz: Values
    reference_db: Values
    reference_pause_db: Values | None
    ear_db: Values | None
    ear_pause_db: Values | None
    n_trials: int


@dataclass(frozen=True, slots=True)
class RunExhibits:
    """What was kept of one run."""

    run: int
    trials: tuple[TrialCurves, ...]
    spectra: RunSpectra | None


@dataclass(frozen=True, slots=True)
class Exhibits:
    """What was kept of a measurement. `files`: (name, SHA-256) of everything that the figures rest on; `facts`: what
    else the session says about its making, as (name, words)."""

    runs: tuple[RunExhibits, ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
