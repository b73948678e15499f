"""The worlds of the large run with a stimulus present: which paths, stimuli, interferers and levels, drawn by seed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Judged, analyse, judge, planned
from worlds import RATE_HZ, oracle, paths, stimuli
from worlds.recording import Recording, Scene, build

from rig.domain.records import AnalysisHints, RunAnalysis

SNRS_DB = (40, 30, 20, 15, 10, 5, 0, -5, -10, -15, -20)
GRID_SNRS_DB = (20, 10, 5, 0, -5, -10, -15)
GRID_STIMULI = ("chirp", "chirp-nb", "mls")
GRID_CONDITIONS = ("white", "pink", "speech", "music", "clicks", "room 2 m", "opus 24k")
PATHS = (
    "clean", "clean", "inverted", "room 0.3 m", "room 1 m", "room 2 m", "opus 16k", "opus 24k", "opus 32k", "opus 64k",
    "8 kHz", "echo", "loudspeaker", "loudspeaker+room 1 m", "telephone+8 kHz", "jitter",
)  # fmt: skip
INTERFERERS = ("white", "pink", "speech", "music", "hum", "clicks")
PER_RUN = 10


@dataclass(frozen=True)
class World:
    """One run: what it consists of, and its seed. `grid` marks the runs of the fixed comparison grid."""

    kind: str
    path: str
    interferer: str
    snr_db: int
    seed: tuple[int, ...]
    grid: bool = False
    n: int = PER_RUN

    @property
    def condition(self) -> str:
        """Column of the comparison grid."""
        return self.interferer if self.path == "clean" else self.path

    @property
    def is_one_clean_path(self) -> bool:
        """Nothing but delay, gain and sign between reference and ear."""
        return self.path in ("clean", "inverted")


def worlds(n_runs: int, seed: int) -> list[World]:
    """`n_runs` runs: three tenths from the comparison grid, the rest drawn from all paths, stimuli and levels."""
    rng = np.random.default_rng([seed, 9])
    grid = [(k, c, s) for k in GRID_STIMULI for c in GRID_CONDITIONS for s in GRID_SNRS_DB]
    order = rng.permutation(len(grid))
    out = []
    for r in range(3 * n_runs // 10):
        kind, condition, snr = grid[order[r % len(grid)]]
        on_path = condition in ("room 2 m", "opus 24k")
        path, interferer = (condition, "white") if on_path else ("clean", condition)
        out.append(World(kind, path, interferer, snr, (seed, r), grid=True))
    deck: list[tuple[int, str, str]] = []
    for r in range(len(out), n_runs):
        if not deck:  # each level with each stimulus once before any comes again
            deck = [(s, k, PATHS[int(rng.integers(len(PATHS)))]) for s in SNRS_DB for k in stimuli.KINDS]
            rng.shuffle(deck)
        snr, kind, path = deck.pop()
        if kind == "click" and path == "jitter":
            path = "clean"  # a tone burst alone cannot follow jitter: that is what consensus means
        out.append(World(str(kind), str(path), str(rng.choice(INTERFERERS)), int(snr), (seed, r)))
    return out


def clean_worlds(trials: int, seed: int, per_run: int = 20) -> list[World]:
    """Runs on one clean path only, levels, stimuli and interferers in turn: rare errors need many trials."""
    rng = np.random.default_rng([seed, 10])
    return [
        World(
            stimuli.KINDS[r % len(stimuli.KINDS)],
            ("clean", "inverted")[int(rng.integers(2))],
            str(rng.choice(INTERFERERS)),
            int(rng.choice(SNRS_DB)),
            (seed, r),
            n=per_run,
        )
        for r in range(max(1, trials // per_run))
    ]


def scene_of(world: World, rng: np.random.Generator) -> tuple[Scene, int]:
    """The scene of a world, and how many rooms or echoes were passed over as undecided by the definition."""
    codec, passed = None, 0
    band = stimuli.make(world.kind, np.random.default_rng(1)).band_hz
    while True:
        path = paths.clean(-1.0 if world.path == "inverted" else 1.0)
        if world.path.startswith("loudspeaker"):
            path = path.then(paths.loudspeaker(rng.uniform(300, 600), rng.uniform(0.7, 1.4)))
        if "telephone" in world.path:
            path = path.then(paths.telephone())
        if "room" in world.path:
            # The comparison grid keeps to one living room; elsewhere size and reverberation are drawn.
            fixed = {"rt60_s": 0.4, "size_m": (5.0, 4.0, 2.7)} if world.grid else {}
            path = path.then(paths.room(rng, float(world.path.split()[-2]), **fixed))
        if world.path == "echo":
            delay_s = float(np.exp(rng.uniform(np.log(0.003), np.log(0.15))))
            path = paths.echo(delay_s, rng.uniform(-6, 6), inverted=bool(rng.random() < 0.5))
        if oracle.is_stable(path, band):
            break
        passed += 1
    if world.path.startswith("opus"):
        codec = f"opus:{int(world.path.split()[1][:-1]) * 1000}"
    elif "8 kHz" in world.path:
        codec = "mu-law"
    steps_s = tuple(rng.uniform(0, 0.04, world.n)) if world.path == "jitter" else None
    scene = Scene(
        kind=world.kind,
        n=world.n,
        path=path,
        latency_s=float(np.exp(rng.uniform(np.log(0.003), np.log(0.6)))),
        steps_s=steps_s,
        snr_db=float(world.snr_db),
        interferer=world.interferer,
        codec=codec,
        reference_snr_db=float(rng.uniform(40, 60)),
        ear_gain=float(10 ** rng.uniform(-1.5, 0)),
        clip_s=float(rng.uniform(0.5, 2.0)),
    )
    return scene, passed


@dataclass(frozen=True)
class Outcome:
    """What one world gave. `gross` and `worst` describe accepted trials; `undecided` counts worlds passed over."""

    world: World
    n: int
    accepted: int
    gross: tuple[str, ...]
    reasons: dict[str, int]
    undecided: int
    rms: float


def run_world(world: World) -> Outcome:
    """Builds, analyses and judges one world."""
    from harness import reasons

    rng = np.random.default_rng(world.seed)
    scene, passed = scene_of(world, rng)
    recording = build(scene, rng)
    run = analyse(recording, AnalysisHints(stimulus=planned(world.kind)))
    judged = in_declared_band(recording, run, judge(recording, run))
    wrong = tuple(
        f"{world}, path {scene.path.label}, trial {j.index}: {1e3 * j.error_s:+.3f} ms off the truth of"
        f" {1e3 * j.truth_s:.3f} ms; {j.trial}"
        for j in judged
        if j.gross
    )
    e = np.array([j.error for j in judged if j.accepted and not j.gross])
    rms = float(np.sqrt(np.mean(e**2))) if e.size else float("nan")
    return Outcome(world, len(judged), sum(j.accepted for j in judged), wrong, reasons(judged), passed, rms)


def in_declared_band(recording: Recording, run: RunAnalysis, judged: list[Judged]) -> list[Judged]:
    """The truth of a tone burst read in the band that the run declares: a burst has no agreed band of its own."""
    if recording.scene.kind != "click" or run.band_hz is None:
        return judged
    declared = oracle.arrivals(recording.scene.path, run.band_hz).first
    assumed = oracle.arrivals(recording.scene.path, recording.stimulus.band_hz).first
    shift_s = (declared - assumed) / RATE_HZ
    return [Judged(j.index, j.truth_s + shift_s, j.arrival_s, j.trial) for j in judged]
