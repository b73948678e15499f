"""What is recorded for each step of a calibration: which plan, and how loud."""

from __future__ import annotations

from rig.bench.plan import BenchPlan, draw_spacing
from rig.domain.records import ChannelRoles, StimulusPlan, StreamSpec

STIMULUS = "chirp"
QUIET_S = 62.0
"""How long the clock is watched: a minute and a little, so that a minute remains when the ends are left out."""

SPACING_S = (0.6, 0.75)
BOARD_SPACING_S = (1.0, 1.0)
"""The board's stimuli come evenly: nothing beats with them, and an Allan deviation wants an even grid."""

TAIL_S = 0.6
SETTLE_S = 0.7
LOUDNESS = (0.1, 0.3, 0.5, 0.7, 0.85, 1.0)
"""Amplitudes that a search for the level of clipping goes through, of full scale."""


def calibration_plan(
    wiring: str, device: str, rate_hz: int, roles: ChannelRoles, seed: int, count: int, amplitude: float
) -> BenchPlan:
    """The plan of one step: `open` a minute of silence and one chirp, `limit` three chirps at each loudness, the others
    `count` chirps. They are played by the interface, for `board` by the board."""
    levels = LOUDNESS if wiring == "limit" else (amplitude,)
    each = 3 if wiring == "limit" else 1 if wiring == "open" else count
    source, spacing_s = ("mcu", BOARD_SPACING_S) if wiring == "board" else ("interface", SPACING_S)
    stimuli = tuple(
        StimulusPlan(STIMULUS, each, draw_spacing(seed + k, each, *spacing_s), level, source)
        for k, level in enumerate(levels)
    )
    return BenchPlan(
        stream=StreamSpec(device, rate_hz, max(2, roles.ref + 1, roles.ear + 1)),
        roles=roles,
        stimuli=stimuli,
        mode="calibrate",
        blank=False,
        settle_s=QUIET_S if wiring == "open" else SETTLE_S,
        tail_s=TAIL_S,
        response_s=TAIL_S,
    )
