"""A tone that an emulated board announces must be heard, or `safe` must explain why it was not."""

from __future__ import annotations

import pytest

from rig.acquire.wire import KINDS, message
from rig.sim.emulator import CYCLES_A_TICK
from rig.sim.foretold import PATIENCE_CYCLES, Foretold

FIRST_TICK = 1000
FIRST_CYCLE = CYCLES_A_TICK * FIRST_TICK


def announced(cuts: list[int]) -> Foretold:
    follower = Foretold(lambda tick: CYCLES_A_TICK * tick, lambda tones: None, cuts.append)
    click = KINDS.index("click")
    follower.heard(message("armed", 1, kind=click, amplitude_256ths=256, count=1, pulse_us=0, tone_samples=156), 0)
    follower.heard(message("firing", 2, first_tick=FIRST_TICK), 0)
    return follower


def test_a_tone_that_is_never_played_is_a_fault() -> None:
    follower = announced([])
    with pytest.raises(RuntimeError, match="did not play"):
        follower.late(FIRST_CYCLE + 2 * PATIENCE_CYCLES)


def test_a_tone_that_is_cut_off_at_the_level_of_silence_is_explained_by_safe() -> None:
    # No level changes then, and the answer to safe comes later than the next sample would have.
    cuts: list[int] = []
    follower = announced(cuts)
    follower.late(FIRST_CYCLE + 20_000)
    follower.heard(message("safed", 3, n_fired=1, was_firing=1), FIRST_CYCLE + 21_000)
    follower.late(FIRST_CYCLE + 10 * PATIENCE_CYCLES)
    assert len(cuts) == 1
    assert cuts[0] <= FIRST_CYCLE + 20_000
