"""The precision figure against the Cramer-Rao bound: white noise, fractional delays, one clean path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from figures import Figures, table
from harness import analyse, judge, spread_over
from plain import analyse_plainly
from worlds import RATE_HZ, oracle
from worlds.recording import Scene, build

# SNR in dB, or the SNR after matched filtering (energy of the stimulus over the noise variance of a sample).
LEVELS = ((40.0, None), (20.0, None), (0.0, None), (None, 24.0), (None, 20.0))
TRIALS = 600  # each stimulus and level; the standard error of a deviation is then 3 %
PER_RUN = 25
STIMULI = ("chirp", "chirp-nb", "mls")


@dataclass(frozen=True)
class Cell:
    """One run to judge."""

    kind: str
    snr_db: float
    seed: tuple[int, ...]
    plainly: bool = False


@dataclass(frozen=True)
class Outcome:
    """What one run gave: errors of the precision figure and bounds, in samples; None where a trial had none."""

    errors: list[float | None]
    bounds: list[float | None]
    bound: float


def level_db(kind: str, snr_db: float | None, filtered_db: float | None) -> float:
    """The SNR of a level for that stimulus."""
    from worlds import stimuli

    if snr_db is not None:
        return snr_db
    assert filtered_db is not None
    return filtered_db - 10 * float(np.log10(stimuli.make(kind).n_active))


def run_cell(cell: Cell) -> Outcome:
    """Builds, analyses and compares one run."""
    scene = Scene(kind=cell.kind, n=PER_RUN, snr_db=cell.snr_db, reference_snr_db=65.0, spacing_s=(1.2, 1.8))
    recording = build(scene, np.random.default_rng(cell.seed))
    run = analyse_plainly(recording) if cell.plainly else analyse(recording)
    gain = recording.ear_scale / scene.reference_peak
    sigma = float(np.hypot(recording.sigma_ear, gain * recording.sigma_reference))
    bound = oracle.crlb_samples(recording.ear_scale * recording.stimulus.wave, sigma)
    errors: list[float | None] = []
    bounds: list[float | None] = []
    for j in judge(recording, run):
        t = j.trial
        errors.append(None if t is None or t.precision_s is None else (t.precision_s - j.arrival_s) * RATE_HZ)
        bounds.append(None if t is None or t.crlb_s is None else t.crlb_s * RATE_HZ)
    return Outcome(errors, bounds, bound)


@dataclass(frozen=True)
class Summary:
    """Over all runs of a cell; deviations in units of the bound."""

    n: int
    missing: int
    deviation: float
    bias: float
    bias_limit: float
    stated: float
    bound: float


def summarise(outcomes: list[Outcome]) -> Summary:
    """Deviation over the bound; bias in samples, with what chance allows on top of 0.02; stated over true bound."""
    errors = np.array([e for o in outcomes for e in o.errors if e is not None])
    stated = [b / o.bound for o in outcomes for b in o.bounds if b is not None]
    bound = float(np.median([o.bound for o in outcomes]))
    missing = sum(e is None for o in outcomes for e in o.errors)
    return Summary(
        n=errors.size,
        missing=missing,
        deviation=float(errors.std() / bound) if errors.size > 1 else float("nan"),
        bias=float(errors.mean()) if errors.size else float("nan"),
        bias_limit=0.02 + 3.0 * bound / np.sqrt(max(errors.size, 1)),
        stated=float(np.median(stated)) if stated else float("nan"),
        bound=bound,
    )


def cells(kind: str, seed: int, trials: int, plainly: bool = False) -> list[tuple[float, list[Cell]]]:
    """The runs of each level."""
    runs = max(1, trials // PER_RUN)
    out = []
    for k, (snr, filtered) in enumerate(LEVELS):
        snr_db = level_db(kind, snr, filtered)
        out.append((snr_db, [Cell(kind, snr_db, (seed, k, r), plainly) for r in range(runs)]))
    return out


@pytest.mark.parametrize("kind", STIMULI)
def test_precision_figure_reaches_the_bound(
    kind: str, count: Callable[[int], int], seed: int, figures: Figures
) -> None:
    """Precision figure: deviation and bias against the Cramer-Rao bound.

    Deviation within 0.8 to 1.15 of the bound (beating an unbiased bound means something is being fitted to the truth),
    bias under 0.02 sample, the stated bound within 15 % of the true one. The tenth has its own sampling error of the
    deviation, 1 / sqrt(2 n), on top of both limits (twice); the full run has none.
    """
    n = count(TRIALS)
    figures.say(
        f"{kind}: seed {seed}, {n} trials a level; deviation and stated bound in units of the bound, bias in samples"
    )
    rows, wrong = [], []
    for snr_db, jobs in cells(kind, seed, n):
        s = summarise(spread_over(run_cell, jobs))
        rows.append(
            [
                f"{snr_db:+.1f} dB",
                s.n,
                s.missing,
                f"{s.bound:.5f}",
                f"{s.deviation:.3f}",
                f"{s.bias:+.4f}",
                f"{s.stated:.3f}",
            ]
        )
        slack = 0.0 if n == TRIALS else 2.0 / np.sqrt(2.0 * max(s.n, 1))
        if not (0.8 * (1 - slack) < s.deviation < 1.15 * (1 + slack)):
            wrong.append(f"deviation at {snr_db:+.1f} dB is {s.deviation:.3f} of the bound")
        if not abs(s.bias) < s.bias_limit:
            wrong.append(f"bias at {snr_db:+.1f} dB is {s.bias:+.4f} sample")
        if not 0.85 < s.stated < 1.15:
            wrong.append(f"stated bound at {snr_db:+.1f} dB is {s.stated:.3f} of the true one")
        if s.missing > 0.6 * (s.n + s.missing):
            wrong.append(f"{s.missing} of {s.n + s.missing} trials at {snr_db:+.1f} dB have no precision figure")
    for line in table(["SNR", "n", "without", "bound", "deviation", "bias", "stated"], rows):
        figures.say(line)
    assert not wrong, f"seed {seed}: " + "; ".join(wrong)


def test_the_judge_of_precision_can_tell(seed: int) -> None:
    """A plain interpolated correlation passes at 20 dB; the same made worse, or suspiciously good, does not."""
    _, jobs = cells("chirp", seed, 200, plainly=True)[1]
    outcomes = [run_cell(job) for job in jobs]
    honest = summarise(outcomes)
    assert 0.85 < honest.deviation < 1.2, honest
    assert abs(honest.bias) < honest.bias_limit, honest
    rng = np.random.default_rng(seed)
    blurred = [
        Outcome([e + o.bound * rng.standard_normal() for e in o.errors if e is not None], o.bounds, o.bound)
        for o in outcomes
    ]
    assert summarise(blurred).deviation > 1.3
    flattered = [Outcome([0.7 * e for e in o.errors if e is not None], o.bounds, o.bound) for o in outcomes]
    assert summarise(flattered).deviation < 0.85
