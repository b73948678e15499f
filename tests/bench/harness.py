"""Runs the estimator on a recording and sets each trial beside its truth."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from worlds import RATE_HZ
from worlds.recording import Recording, Scene, build

from rig.domain.records import AnalysisHints, BenchKind, ChannelRoles, Reason, RunAnalysis, Trial
from rig.domain.report import MeasurementFacts
from rig.report.summary import summarise

GROSS_S = 0.5e-3
"""An accepted figure further than this from the truth is gross."""

ROLES = ChannelRoles(ref=0, ear=1)

Analyse = Callable[..., RunAnalysis]
Job = TypeVar("Job")
Result = TypeVar("Result")


@dataclass(frozen=True)
class Judged:
    """One stimulus that was played, and what the estimator said of it. `trial` None: it was not found at all."""

    index: int
    truth_s: float
    arrival_s: float
    trial: Trial | None

    @property
    def accepted(self) -> bool:
        """The estimator gave a figure and stands by it."""
        return self.trial is not None and self.trial.valid

    @property
    def error_s(self) -> float:
        """Accepted figure minus truth; NaN without one."""
        if self.trial is None or self.trial.latency_s is None:
            return float("nan")
        return self.trial.latency_s - self.truth_s

    @property
    def error(self) -> float:
        """The same in samples."""
        return self.error_s * RATE_HZ

    @property
    def gross(self) -> bool:
        """Accepted and wrong."""
        return self.accepted and not abs(self.error_s) <= GROSS_S


def analyse(recording: Recording, hints: AnalysisHints | None = None) -> RunAnalysis:
    """The estimator under test on a recording; told nothing but the kind of stimulus unless `hints` say more."""
    from rig.analyse.run import analyse_run

    return analyse_run(recording.source(), ROLES, hints or AnalysisHints(stimulus=planned(recording.scene.kind)))


def refusal(run: RunAnalysis) -> Reason | None:
    """Why a user gets no figure from this run alone; None: there is one. Analysis and report both have a say."""
    return summarise([run], MeasurementFacts("call", BenchKind.FILE)).runs[0].refusal


def planned(kind: str) -> str:
    """The stimulus kind as a plan names it: clips of speech come from a file."""
    return "wav" if kind == "speech" else kind


def judge(recording: Recording, run: RunAnalysis) -> list[Judged]:
    """Pairs the stimuli that were played with the trials that were reported, by place in the recording.

    A trial belongs to the stimulus in whose span it lies; speech may begin with a pause, so anywhere in it. Trials that
    belong to none, or come second, are appended with a truth of NaN: accepted, they count as gross. Checks on the way
    what every trial must satisfy, whatever it measured.
    """
    early, length = 0.25 * RATE_HZ, recording.stimulus.n_active
    free = list(run.trials)
    judged = []
    for index, onset in enumerate(recording.onsets):
        inside = [t for t in free if onset - early < t.reference_frame < onset + length]
        trial = min(inside, key=lambda t: abs(t.reference_frame - onset)) if inside else None
        if trial is not None:
            free.remove(trial)
        judged.append(Judged(index, float(recording.truth_s[index]), float(recording.arrival_s[index]), trial))
    judged += [Judged(-1, float("nan"), float("nan"), t) for t in free]
    for t in run.trials:
        check_consistent(t)
    return judged


def check_consistent(trial: Trial) -> None:
    """A figure exactly when valid, a reason exactly when not, positive uncertainty, no NaN and no stand-in zero."""
    assert trial.valid == (trial.latency_s is not None), trial
    assert trial.valid == (trial.reason is None), trial
    if trial.valid:
        assert trial.u_s is not None, trial
        assert trial.u_s > 0, trial
        assert trial.u_noise_s is not None, trial
        assert 0 <= trial.u_noise_s <= trial.u_s, trial
    for value in (trial.latency_s, trial.u_s, trial.precision_s, trial.crlb_s, trial.z, trial.decoy_db, trial.split_s):
        assert value is None or np.isfinite(value), trial


def measured(scene: Scene, seed: Sequence[int], hints: AnalysisHints | None = None) -> tuple[Recording, list[Judged]]:
    """Builds a scene from its seed, analyses and judges it."""
    recording = build(scene, np.random.default_rng(seed))
    return recording, judge(recording, analyse(recording, hints))


def spread_over(work: Callable[[Job], Result], jobs: Iterable[Job]) -> list[Result]:
    """`work` on every job, in order. Uses two processes, or this one alone below a pytest-xdist worker."""
    jobs = list(jobs)
    processes = int(os.environ.get("RIG_BENCH_PROCESSES", "1" if "PYTEST_XDIST_WORKER" in os.environ else "2"))
    if processes <= 1 or len(jobs) < 4:
        return [work(job) for job in jobs]
    with ProcessPoolExecutor(min(processes, 2), mp_context=get_context("fork")) as pool:
        return list(pool.map(work, jobs, chunksize=max(1, min(8, len(jobs) // 8))))


def errors(judged: Iterable[Judged]) -> np.ndarray:
    """Errors of the accepted ones in samples."""
    return np.array([j.error for j in judged if j.accepted])


def reasons(judged: Iterable[Judged]) -> dict[str, int]:
    """How many were refused for which reason; "not_found" where no trial was reported at all."""
    counted: dict[str, int] = {}
    for j in judged:
        if not j.accepted:
            reason = j.trial.reason if j.trial is not None else None
            name = reason.value if isinstance(reason, Reason) else "not_found"
            counted[name] = counted.get(name, 0) + 1
    return dict(sorted(counted.items()))


def upper_95(events: int, n: int) -> float:
    """Upper 95 % bound of a rate of which `events` were seen in `n` (Clopper-Pearson, one-sided)."""
    from scipy.stats import beta

    return 1.0 if events >= n else float(beta.ppf(0.95, events + 1, n - events))
