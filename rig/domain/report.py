"""Frozen records of the report: what the renderers show, and nothing that they would have to compute.

Seconds everywhere. A missing value is None, never 0. A `Report` is a pure function of the analysed runs and the
`MeasurementFacts`, so the same session gives the same report, byte for byte.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from rig.domain.records import (
    BenchKind,
    BlankFloor,
    Correction,
    Reason,
    RunAnalysis,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
)


class Outcome(StrEnum):
    """How a measurement ended. REFUSED carries no figure."""

    MEASURED = "measured"
    OVER_LIMIT = "over_limit"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A latency to hold this one against. `of`: which quantity it is, None where the user says no more than a time."""

    name: str
    value_s: float
    of: str | None
    source: str


@dataclass(frozen=True, slots=True)
class MeasurementFacts:
    """What is known about a measurement beside its samples. None: not known, or not applicable."""

    mode: str  # call
    bench: BenchKind
    device: str | None = None
    build: str | None = None  # of the system under test, as the user named it
    system: tuple[tuple[str, str], ...] = ()  # how it was set, as far as rig did it: names and values
    config: tuple[tuple[str, str], ...] = ()  # what it says in its marks of its own settings
    started: str | None = None  # ISO 8601 with offset, by the host's calendar; None for a simulated bench
    source: str | None = None  # file name of a recording that rig did not make, without its folder
    session: str | None = None  # identity of the session, the same wherever its folder lies
    scenario: str | None = None  # name of the simulated scenario
    seed: int | None = None
    asked: StreamSpec | None = None
    granted: StreamGrant | None = None
    plan: StimulusPlan | None = None
    wav: tuple[str, str | None] | None = None  # (name without its folder, SHA-256) of a file that was played
    runs_planned: int | None = None
    run_starts_s: tuple[tuple[int, float], ...] = ()  # (run, its first frame after `started`, by the host's clock)
    reference_channel: int | None = None  # one-based, as the user says it
    ear_channel: int | None = None
    min_latency_s: float | None = None
    max_latency_s: float | None = None
    environment: tuple[tuple[str, str], ...] = ()
    xruns: int | None = None  # losses flagged by the backend over all runs; None: nobody counted
    blank: BlankFloor | None = None
    no_blank_because: str | None = None
    corrections: tuple[Correction, ...] = ()
    uncalibrated: tuple[str, ...] = ()  # what is calibrated only in part lacks, as sentences
    cut_short: str | None = None  # how, when the recording ended before the plan
    notes: tuple[str, ...] = ()  # what the recording or the session itself is known to lack, as sentences
    limit_s: float | None = None
    against: tuple[ReferenceLine, ...] = ()


@dataclass(frozen=True, slots=True)
class LatencyStatistics:
    """Statistics over `n` accepted trials of one run, or of several.

    `low_s` to `high_s` is the 95 % interval of the median, instrument included; `u95_s` its half length.
    `instrument_u95_s` is the part that the instrument alone answers for: its common terms and its noise.
    Percentiles are None where `n` does not support them.
    """

    n: int
    median_s: float
    mean_s: float
    min_s: float
    max_s: float
    range_s: float
    p5_s: float | None
    p95_s: float | None
    p99_s: float | None
    low_s: float
    high_s: float
    u95_s: float
    instrument_u95_s: float
    n_effective: float  # n, less where successive trials resemble each other
    method: str  # student | order_statistics | estimator_noise | between_runs


@dataclass(frozen=True, slots=True)
class Step:
    """The latency jumps inside a run: from trial `index` on it is `size_s` more (negative: less) than before."""

    run: int
    index: int  # of the first trial after the step
    at_s: float  # into the recording
    before_s: float
    after_s: float
    size_s: float


@dataclass(frozen=True, slots=True)
class Trend:
    """The latency slides inside a run by `slope_s_per_s`, `change_s` from its first to its last trial."""

    run: int
    slope_s_per_s: float
    change_s: float


@dataclass(frozen=True, slots=True)
class Cluster:
    """One of several groups that the accepted trials of all runs fall into."""

    n: int
    median_s: float
    min_s: float
    max_s: float
    runs: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Outlier:
    """An accepted trial that stands alone, `distance_s` from the nearest other one; positive: later."""

    run: int
    index: int
    latency_s: float
    distance_s: float


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the accepted trials group: neighbours closer than `gap_s` belong together."""

    gap_s: float
    clusters: tuple[Cluster, ...]  # one entry: they are one group
    outliers: tuple[Outlier, ...]


@dataclass(frozen=True, slots=True)
class BetweenRuns:
    """How the medians of the runs differ. `sd_s` is their standard deviation."""

    n: int
    sd_s: float
    range_s: float
    agree: bool  # no more apart than their own intervals explain
    slope_s_per_run: float | None  # where the medians creep one way from run to run


@dataclass(frozen=True, slots=True)
class Spread:
    """Robust standard deviation of the accepted trials about the median of their own run, pooled over the runs."""

    within_s: float
    method: str  # mad | sd


@dataclass(frozen=True, slots=True)
class RunStage:
    """One stage in one run; `u95_s` is half of the 95 % interval of its median."""

    run: int
    n: int
    median_s: float
    min_s: float
    max_s: float
    range_s: float
    u95_s: float


@dataclass(frozen=True, slots=True)
class StageRow:
    """One stage over the runs. `undeclared_s` is the true time minus the claimed one, with its sign; `distinct` says
    whether it is further from 0 than its uncertainty. None: nobody claimed anything, or (`problem`) nothing usable."""

    name: str
    by: str  # rig | software | calibration
    statistics: LatencyStatistics
    runs: tuple[RunStage, ...]
    runs_apart_s: float | None  # range of the runs' medians
    claimed_s: float | None
    claimed_by: str | None
    problem: str | None
    undeclared_s: float | None
    distinct: bool | None
    below_resolution: bool  # of the clock that the marks are on


@dataclass(frozen=True, slots=True)
class ColdStart:
    """A stage that is not the same at the beginning. `where`: "first stimulus" of the runs, or "first run"."""

    stage: str
    where: str
    first_s: float
    later_s: float


@dataclass(frozen=True, slots=True)
class StageFrame:
    """The frame that carried the beginning of a trial's sound. `stages_s`: its value of each row of the table, None
    where that is not of single trials. `filled_s`: how long the sound waited for the frame to be complete; None: not
    known, so that nothing says at what time of the trial the software had it."""

    trial: int
    seq: int
    filled_s: float | None
    stages_s: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class StageTable:
    """Who owns each part of the latency. `rows` in the order of the sound's way; `hidden`: capture and output together.

    `total_s` is the median latency of the trials that the rows speak of, `sum_s` the sum of the rows' medians, and
    `residual_s` what the first exceeds the second by, with its 95 % interval: medians need not add up.
    `trial_residual_s`: the median over single trials, where every stage was found by itself; it checks the clocks.
    """

    rows: tuple[StageRow, ...]
    hidden: StageRow | None
    n_trials: int
    runs: tuple[int, ...]
    total_s: float
    sum_s: float
    residual_s: float
    residual_low_s: float
    residual_high_s: float
    trial_residual_s: float | None
    tie: str | None
    half_width_s: float | None
    resolution_s: float | None
    frame_s: float | None  # length of the frames, where all have one
    no_split_because: str | None
    missing: tuple[tuple[int, tuple[int, ...]], ...]  # (run, its accepted trials without a frame)
    carriers: tuple[tuple[int, tuple[StageFrame, ...]], ...]  # (run, its frames)
    cold: tuple[ColdStart, ...]
    words: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RefusalCount:
    """How often a reason refused a trial (`n_trials`) or a whole run (`n_runs`), and what to do about it."""

    reason: Reason
    n_trials: int
    n_runs: int
    meaning: str
    remedy: str


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run: what the analysis says, and the statistics where they stand. `latency` None: `refusal` says why."""

    analysis: RunAnalysis
    n_trials: int
    n_accepted: int
    latency: LatencyStatistics | None
    refusal: Reason | None
    refusal_detail: str | None
    steps: tuple[Step, ...]
    trend: Trend | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the user sees. `latency` is None exactly when `outcome` is REFUSED."""

    facts: MeasurementFacts
    outcome: Outcome
    latency: LatencyStatistics | None
    mixture: bool  # the median is taken over groups that are not simply the runs
    runs: tuple[RunReport, ...]
    spread: Spread | None
    between: BetweenRuns | None
    grouping: Grouping | None
    refusals: tuple[RefusalCount, ...]
    polarity: int | None  # +1, -1; None: no accepted trial, or they disagree
    caveats: tuple[str, ...]
    stages: StageTable | None = None  # None: no marks, or none that could be used
