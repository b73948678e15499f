"""The stated 95 % interval against the truth, over random worlds with rooms, dispersion and an imperfect interface."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from figures import Figures, table
from harness import analyse, judge, spread_over
from worlds import RATE_HZ, paths
from worlds.recording import Scene, build

WORLDS = 2000
PER_RUN = 6
PPM_DEVIATION = 25.0
SKEW_DEVIATION_S = 1e-6


@dataclass(frozen=True)
class Covered:
    """One world: the group it belongs to, errors over stated u of its trials, and the same of its median interval.

    `median_inside` None: the run has too few accepted trials for an interval. `median_half_s` is its half-width.
    """

    group: str
    ratios: tuple[float, ...]
    errors_s: tuple[float, ...]
    u_s: tuple[float, ...]
    median_inside: bool | None
    median_half_s: float | None


def random_scene(rng: np.random.Generator) -> tuple[str, Scene]:
    """A world of the coverage test: SNR 0 to 40 dB; chirp, chirp-nb or mls; path clean, dispersive, a room or both."""
    group = str(rng.choice(["clean", "dispersive", "room", "dispersive room"], p=[0.25, 0.25, 0.3, 0.2]))
    path = paths.clean(float(rng.choice([-1.0, 1.0])))
    if "dispersive" in group:
        path = path.then(paths.loudspeaker(rng.uniform(250, 650), rng.uniform(0.7, 1.5), rng.uniform(5000, 9000)))
        if rng.random() < 0.4:
            path = path.then(paths.telephone())
    if "room" in group:
        path = path.then(paths.room(rng, float(rng.uniform(0.2, 1.2))))
    scene = Scene(
        kind=str(rng.choice(["chirp", "chirp-nb", "mls"], p=[0.6, 0.2, 0.2])),
        n=PER_RUN,
        path=path,
        latency_s=float(rng.uniform(0.005, 0.6)),
        snr_db=float(rng.uniform(0, 40)),
        interferer=str(rng.choice(["white", "pink"])),
        reference_snr_db=float(rng.uniform(40, 60)),
        ppm=float(rng.normal(0, PPM_DEVIATION)),
        skew_s=float(rng.normal(0, SKEW_DEVIATION_S)),
    )
    return group, scene


def run_world(seed: tuple[int, ...]) -> Covered:
    """Builds, analyses and judges one world."""
    from rig.report.statistics import run_statistics, sample_of

    rng = np.random.default_rng(seed)
    group, scene = random_scene(rng)
    recording = build(scene, rng)
    run = analyse(recording)
    accepted = [j for j in judge(recording, run) if j.accepted]
    errors = [j.error_s for j in accepted]
    u = [float(j.trial.u_s) for j in accepted if j.trial is not None and j.trial.u_s is not None]
    inside, half_s = None, None
    if len(accepted) >= 3:
        statistics = run_statistics(sample_of(run))
        inside = bool(statistics.low_s <= recording.centre_s <= statistics.high_s)
        half_s = (statistics.high_s - statistics.low_s) / 2
    ratios = tuple(e / v for e, v in zip(errors, u, strict=True))
    return Covered(group, ratios, tuple(errors), tuple(u), inside, half_s)


def test_coverage(count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """Coverage: the 95 % interval of a single trial and of a run's median holds the truth in 93 to 98 % of worlds.

    One trial of each world is judged: trials of one world share its errors. In the tenth the limits are widened by two
    standard errors of the share.
    """
    n = count(WORLDS)
    worlds = spread_over(run_world, [(seed, k) for k in range(n)])
    pick = np.random.default_rng([seed, 5])
    rows, single_all, median_all = [], [], []
    for group in ("clean", "dispersive", "room", "dispersive room"):
        mine = [w for w in worlds if w.group == group]
        ratios = np.array([w.ratios[int(pick.integers(len(w.ratios)))] for w in mine if w.ratios])
        medians = np.array([w.median_inside for w in mine if w.median_inside is not None])
        single_all.append(ratios)
        median_all.append(medians)
        u = np.array([v for w in mine for v in w.u_s])
        e = np.array([v for w in mine for v in w.errors_s])
        half = np.array([w.median_half_s for w in mine if w.median_half_s is not None])
        counts = [group, len(mine), ratios.size, percent(np.abs(ratios) <= 1.96), f"{np.std(ratios):.2f}"]
        widths = [f"{1e6 * x:.2f}" for x in (np.sqrt(np.mean(e**2)), np.median(u), np.median(half))]
        rows.append([*counts, medians.size, percent(medians), *widths])
    single, median = np.concatenate(single_all), np.concatenate(median_all)
    head = ["path", "worlds", "trials", "single %", "sd of e/u", "runs", "median %", "RMS e µs", "u µs", "±median µs"]
    for line in table(head, rows):
        figures.say(line)
    hit, hit_median = float(np.mean(np.abs(single) <= 1.96)), float(np.mean(median))
    figures.say(
        f"seed {seed}: single trial {100 * hit:.1f} % of {single.size},"
        f" run's median {100 * hit_median:.1f} % of {median.size}"
    )
    assert single.size > 0.7 * n, "too few worlds were measured at all"
    slack = 0.0 if n == WORLDS else 2 * np.sqrt(0.95 * 0.05 / n)
    for what, share in (("single trial", hit), ("run's median", hit_median)):
        assert 0.93 - slack <= share <= 0.98 + slack, f"{what}: {100 * share:.1f} % covered (seed {seed})"


def percent(inside: np.ndarray) -> str:
    """Share of true values in per cent."""
    return f"{100 * float(np.mean(inside)):.1f}" if inside.size else "-"


def test_truth_is_in_true_seconds() -> None:
    """An interface that runs 1000 ppm fast counts 0.1 % more frames than the truth in seconds."""
    scene = Scene(kind="chirp", n=3, latency_s=0.5, spread_samples=0.0, ppm=1000.0)
    recording = build(scene, np.random.default_rng(4))
    from plain import analyse_plainly

    frames_s = [t.latency_s for t in analyse_plainly(recording).trials]
    assert frames_s == pytest.approx([0.5005] * 3, abs=0.1 / RATE_HZ)
    assert recording.truth_s == pytest.approx([0.5] * 3, abs=1e-9)
