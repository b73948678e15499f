"""Nothing there, nothing said: no stimulus on the ear channel, seven kinds of other sound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from figures import Figures, table
from harness import analyse, judge, reasons, spread_over, upper_95
from plain import analyse_plainly
from worlds import interferers, stimuli
from worlds.recording import Recording, Scene, build

CLIPS = 3000
PER_RUN = 10


@dataclass(frozen=True)
class Null:
    """One run with nothing of the stimulus on the ear."""

    kind: str
    interferer: str
    level_db: float
    seed: tuple[int, ...]


def null_recording(job: Null) -> Recording:
    """The interferer at `level_db` above what the stimulus would have had."""
    rng = np.random.default_rng(job.seed)
    recording = build(Scene(kind=job.kind, n=PER_RUN, snr_db=None, interferer=job.interferer, clip_s=0.8), rng)
    if job.interferer == "dither":
        return recording
    frames = recording.frames.copy()
    frames[:, 1] *= min(10 ** (job.level_db / 20), 0.95 / float(np.max(np.abs(frames[:, 1]))))
    return recording.with_frames(frames)


def run_null(job: Null) -> tuple[int, int, list[str], dict[str, int]]:
    """Clips, false accepts, what they were, and the reasons for the rest."""
    recording = null_recording(job)
    judged = judge(recording, analyse(recording))
    wrong = [f"{job} trial {j.index}: {j.trial}" for j in judged if j.accepted]
    return len(judged), len(wrong), wrong, reasons(judged)


def null_jobs(clips: int, seed: int) -> list[Null]:
    """Every interferer with every stimulus in turn, levels from -30 to +10 dB."""
    pairs = [(k, i) for i in interferers.KINDS for k in stimuli.KINDS]
    order = np.random.default_rng([seed, 1]).permutation(len(pairs))
    levels = np.random.default_rng([seed, 2]).uniform(-30, 10, clips)
    return [
        Null(*pairs[order[r % len(pairs)]], float(levels[r]), (seed, r))
        for r in range(max(len(pairs), clips // PER_RUN))
    ]


def test_nothing_there_nothing_said(count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """No stimulus on the ear: 0 false accepts over seven interferers and five stimuli."""
    jobs = null_jobs(count(CLIPS), seed)
    results = spread_over(run_null, jobs)
    rows = []
    for interferer in interferers.KINDS:
        mine = [r for r, job in zip(results, jobs, strict=True) if job.interferer == interferer]
        counted: dict[str, int] = {}
        for _, _, _, why in mine:
            for k, v in why.items():
                counted[k] = counted.get(k, 0) + v
        rows.append([interferer, sum(r[0] for r in mine), sum(r[1] for r in mine), counted])
    for line in table(["interferer", "clips", "accepted", "refused as"], rows):
        figures.say(line)
    clips, false = sum(r[0] for r in results), sum(r[1] for r in results)
    figures.say(
        f"seed {seed}: {false} false accepts in {clips} clips; 95 % upper bound {100 * upper_95(false, clips):.2f} %"
    )
    assert false == 0, [w for r in results for w in r[2]][:5]


def test_the_judge_of_nothing_can_tell(seed: int) -> None:
    """A correlator that accepts everything is caught on every clip."""
    recording = null_recording(Null("chirp", "white", 0.0, (seed, 0)))
    assert sum(j.accepted for j in judge(recording, analyse_plainly(recording))) == PER_RUN
