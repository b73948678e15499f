"""A stimulus is there: how often it is measured, and how often an accepted figure is grossly wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from figures import Figures, table
from harness import spread_over, upper_95
from present_worlds import GRID_CONDITIONS, GRID_STIMULI, PER_RUN, SNRS_DB, Outcome, clean_worlds, run_world, worlds
from worlds import stimuli

TRIALS = 10_000
CLEAN_TRIALS = 40_000
GROSS_LIMIT = 1e-3
GROSS_LIMIT_CLEAN = 1e-4


def share(outcomes: Sequence[Outcome]) -> str:
    """Accepted per cent, and grossly wrong ones among them where there are any."""
    n, accepted = sum(o.n for o in outcomes), sum(o.accepted for o in outcomes)
    gross = sum(len(o.gross) for o in outcomes)
    if n == 0:
        return "-"
    return f"{100 * accepted / n:.0f}" + (f" ({gross} gross)" if gross else "")


def test_present(count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """Stimulus present: gross errors among accepted trials, and the yield by level, stimulus and path."""
    jobs = worlds(count(TRIALS) // PER_RUN, seed)
    outcomes = spread_over(run_world, jobs)
    for line in tables(outcomes):
        figures.say(line)
    accepted, gross = totals(outcomes)
    clean_accepted, clean_gross = totals([o for o in outcomes if o.world.is_one_clean_path])
    n = sum(o.n for o in outcomes)
    figures.say("")
    figures.say(
        f"seed {seed}: {n} trials, {accepted} accepted, {gross} gross (95 % upper bound"
        f" {100 * upper_95(gross, max(accepted, 1)):.3f} %); one clean path: {clean_accepted} accepted,"
        f" {clean_gross} gross (upper bound {100 * upper_95(clean_gross, max(clean_accepted, 1)):.3f} %)"
    )
    figures.say(f"rooms and echoes passed over because 8, 10 and 12 dB disagree: {sum(o.undecided for o in outcomes)}")
    listed = [g for o in outcomes for g in o.gross]
    assert accepted > 0.4 * n, "a rule that accepts nothing makes no errors"
    assert gross <= GROSS_LIMIT * accepted, listed[:5]
    assert clean_gross <= GROSS_LIMIT_CLEAN * clean_accepted, listed[:5]


def test_present_on_one_clean_path(count: Callable[[int], int], seed: int, figures: Figures) -> None:
    """Stimulus present on one clean path: gross errors among accepted trials, a count that can show 0.01 %.

    Nothing but delay, gain and sign between reference and ear; all levels, stimuli and interferers.
    """
    full = count(CLEAN_TRIALS)
    outcomes = spread_over(run_world, clean_worlds(full if full == CLEAN_TRIALS else full // 5, seed))
    accepted, gross = totals(outcomes)
    n = sum(o.n for o in outcomes)
    rows = [
        [
            f"{snr:+d}",
            *(share([o for o in outcomes if o.world.snr_db == snr and o.world.kind == k]) for k in stimuli.KINDS),
        ]
        for snr in SNRS_DB
    ]
    figures.say("accepted, per cent, by SNR (dB) and stimulus, six interferers:")
    for line in table(["SNR", *stimuli.KINDS], rows):
        figures.say(line)
    figures.say(
        f"seed {seed}: {n} trials, {accepted} accepted, {gross} gross (95 % upper bound"
        f" {100 * upper_95(gross, max(accepted, 1)):.4f} %)"
    )
    assert accepted > 0.5 * n
    assert gross <= GROSS_LIMIT_CLEAN * accepted, [g for o in outcomes for g in o.gross][:5]


def totals(outcomes: Sequence[Outcome]) -> tuple[int, int]:
    """Accepted trials and gross errors among them."""
    return sum(o.accepted for o in outcomes), sum(len(o.gross) for o in outcomes)


def tables(outcomes: Sequence[Outcome]) -> list[str]:
    """Yield in per cent: by SNR and stimulus, by path and stimulus, on the comparison grid; then the refusals."""
    drawn = [o for o in outcomes if not o.world.grid]
    out = ["accepted, per cent, by SNR (dB) and stimulus, all paths and interferers:"]
    rows = [
        [f"{snr:+d}"]
        + [share([o for o in drawn if o.world.snr_db == snr and o.world.kind == k]) for k in stimuli.KINDS]
        for snr in SNRS_DB
    ]
    out += table(["SNR", *stimuli.KINDS], rows)
    out += ["", "the same by path, all levels:"]
    names = sorted({o.world.path for o in drawn})
    rows = [
        [p] + [share([o for o in drawn if o.world.path == p and o.world.kind == k]) for k in stimuli.KINDS]
        for p in names
    ]
    out += table(["path", *stimuli.KINDS], rows)
    out += ["", "the same by interferer, all levels:"]
    names = sorted({o.world.interferer for o in drawn})
    rows = [
        [i] + [share([o for o in drawn if o.world.interferer == i and o.world.kind == k]) for k in stimuli.KINDS]
        for i in names
    ]
    out += table(["interferer", *stimuli.KINDS], rows)
    grid = [o for o in outcomes if o.world.grid]
    out += ["", "comparison grid, +20 to -15 dB, per cent accepted:"]
    rows = [
        [k]
        + [share([o for o in grid if o.world.kind == k and o.world.condition == c]) for c in GRID_CONDITIONS]
        + [share([o for o in grid if o.world.kind == k])]
        for k in GRID_STIMULI
    ]
    out += table(["stimulus", *GRID_CONDITIONS, "all"], rows)
    counted: dict[str, int] = {}
    for o in outcomes:
        for k, v in o.reasons.items():
            counted[k] = counted.get(k, 0) + v
    return [*out, "", f"refused as: {dict(sorted(counted.items(), key=lambda kv: -kv[1]))}"]
