"""A delay that changes while the stimulus sounds: refused, or one of the two delays; never something in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from figures import Figures, table
from harness import Judged, analyse, judge, reasons, spread_over
from plain import analyse_plainly
from worlds import RATE_HZ, faults
from worlds.recording import Recording, Scene, build

from rig.domain.records import Reason

INSERTED_S = 0.01
NEAR_S = 0.3e-3
"""An accepted figure must lie this close to the delay before or after. The repeated 10 ms lie at either, or beyond."""


@dataclass(frozen=True)
class Job:
    """One run. `once`: only the middle clip is stretched, all later ones are late by the same; else every clip is."""

    kind: str
    once: bool
    seed: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """Stretched clips: how many, accepted at the old or the new delay, in between, and the reasons for the rest.

    `stepped` is for the runs with one step: the trials before and after it are there, at their own delays. `no_figure`:
    under half of the run's trials were accepted, so the report gives no figure at all.
    """

    n: int
    old: int
    new: int
    between: tuple[str, ...]
    reasons: dict[str, int]
    stepped: bool
    no_figure: bool


def stretched(job: Job) -> tuple[Recording, list[int]]:
    """The recording, and which of its clips have 10 ms inserted."""
    rng = np.random.default_rng(job.seed)
    n = 11
    recording = build(Scene(kind=job.kind, n=n, latency_s=0.18, snr_db=30.0, clip_s=1.0), rng)
    chosen = [n // 2] if job.once else list(range(n))
    ear = recording.frames[:, 1].copy()
    length = round(INSERTED_S * RATE_HZ)
    for index in chosen:
        start, stop = faults.clip_span(recording, index)
        at = int(start + rng.uniform(0.15, 0.85) * (stop - start))
        if job.once:
            ear = faults.insert_repeat(ear, at)
        else:  # the buffer drains again in the pause: the next clip starts at the old delay
            end = int(recording.onsets[index + 1]) if index + 1 < n else ear.size
            ear[:end] = faults.insert_repeat(ear[:end], at)
    assert length == 480
    return recording.with_frames(np.stack([recording.frames[:, 0], ear], axis=1)), chosen


def run_job(job: Job) -> Outcome:
    """Builds, analyses and judges one run."""
    recording, chosen = stretched(job)
    judged = judge(recording, analyse(recording))
    touched = [judged[i] for i in chosen]
    old = [j for j in touched if j.accepted and abs(j.error_s) <= NEAR_S]
    new = [j for j in touched if j.accepted and abs(j.error_s - INSERTED_S) <= NEAR_S]
    between = [j for j in touched if j.accepted and j not in old and j not in new]
    return Outcome(
        len(touched),
        len(old),
        len(new),
        tuple(f"{job}: {1e3 * j.error_s:+.3f} ms; {j.trial}" for j in between),
        reasons(touched),
        has_stepped(judged, chosen[0]) if job.once else True,
        2 * sum(j.accepted for j in judged) < len(judged),
    )


def has_stepped(judged: list[Judged], at: int) -> bool:
    """Most trials before `at` are at the old delay, most after it 10 ms later, none elsewhere."""
    before, after = judged[:at], judged[at + 1 :]
    right = [j for j in before if j.accepted and abs(j.error_s) <= NEAR_S]
    late = [j for j in after if j.accepted and abs(j.error_s - INSERTED_S) <= NEAR_S]
    wrong = [j for j in before + after if j.accepted and j not in right and j not in late]
    return len(right) > len(before) // 2 and len(late) > len(after) // 2 and not wrong


@pytest.mark.parametrize("once", [True, False], ids=["a step in the run", "every clip"])
def test_a_delay_that_changes_in_the_clip(once: bool, count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """10 ms inserted inside the clip: refused, or the delay before or after, never averaged."""
    runs = max(3, count(120 if once else 30))
    rows, wrong, unseen, silent = [], [], 0, 0
    for kind in ("chirp", "chirp-nb", "mls", "speech"):
        outcomes = spread_over(run_job, [Job(kind, once, (seed, k)) for k in range(runs)])
        why: dict[str, int] = {}
        for o in outcomes:
            for k, v in o.reasons.items():
                why[k] = why.get(k, 0) + v
        unseen += sum(not o.stepped and not o.no_figure for o in outcomes)
        silent += sum(o.no_figure for o in outcomes) if once else 0
        wrong += [b for o in outcomes for b in o.between]
        counts = [sum(getattr(o, name) for o in outcomes) for name in ("n", "old", "new")]
        rows.append([kind, *counts, sum(len(o.between) for o in outcomes), why])
    figures.say(f"{'a step in the run' if once else 'every clip'}, seed {seed}")
    for line in table(["stimulus", "stretched", "old delay", "new delay", "between", "refused as"], rows):
        figures.say(line)
    assert not wrong, wrong[:5]
    if once:
        figures.say(f"runs refused as a whole: {silent} of {4 * runs}")
    assert unseen == 0, f"{unseen} runs do not show the step between the trials before and after it"
    assert silent <= 0.02 * 4 * runs, f"{silent} of {4 * runs} runs are refused although one clip alone is stretched"


def test_the_reason_is_named(seed: int) -> None:
    """Refusals of stretched chirps say that the delay changed, not just that something is weak."""
    recording, chosen = stretched(Job("chirp", False, (seed, 0)))
    judged = judge(recording, analyse(recording))
    refused = [judged[i].trial for i in chosen if not judged[i].accepted]
    assert refused, "no stretched clip was refused at all"
    named = [t for t in refused if t is not None and t.reason is Reason.DELAY_CHANGED_IN_CLIP]
    assert len(named) >= len(refused) / 2, reasons(judged)


def test_the_judge_of_steps_can_tell(seed: int) -> None:
    """A correlator that averages two delays would be seen: 5 ms is neither of them."""
    recording, chosen = stretched(Job("chirp", True, (seed, 0)))
    run = analyse_plainly(recording)
    judged = judge(recording, run)
    assert has_stepped(judged, chosen[0])
    spoilt = [Judged(j.index, j.truth_s - 0.005, j.arrival_s, j.trial) for j in judged]
    assert not has_stepped(spoilt, chosen[0])
