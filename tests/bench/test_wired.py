"""The mistakes that a hand makes when it wires a calibration, each told by its name; and none where none was made."""

from __future__ import annotations

import pytest
from cabled import channels, recorded, wired

from rig.analyse.wired import Fault, Miswired, check_air, check_limit, check_loop, check_open, check_split
from rig.sim.world import SPEED_OF_SOUND_M_S

DISTANCE_M = 0.30
AIR_FRAMES = DISTANCE_M / SPEED_OF_SOUND_M_S * 48_000


def told(scenario: str, wiring: str, seed: int, check: str | None = None, **settings: object) -> Miswired | None:
    """What the check of a step says of a scenario's bench; `check`: of another step than the one it is wired for."""
    bench = wired(scenario, seed, wiring, DISTANCE_M if wiring == "air" else None, **settings)
    with recorded(bench, wiring, count=6) as session:
        levels = [channels(run) for run in session.runs]
    reference, ear = levels[0]
    step = check or wiring
    if step == "limit":
        return check_limit(levels)
    if step == "air":
        return check_air(reference, ear, AIR_FRAMES)
    return {"open": check_open, "loop": check_loop, "split": check_split}[step](reference, ear)


@pytest.mark.parametrize("scenario", ["crooked", "default", "inverted"])
def test_a_bench_that_is_wired_as_asked_passes(scenario: str, seed: int) -> None:
    for wiring in ("loop", "split", "air", *(("limit",) if scenario == "crooked" else ())):
        wrong = told(scenario, wiring, seed)
        assert wrong is None, f"{wiring}, seed {seed}: {wrong}"


@pytest.mark.parametrize(
    ("scenario", "wiring", "fault", "words"),
    [
        ("wrong-input", "loop", Fault.WRONG_CHANNEL, "on input {ear}, and not on input {ref}"),
        ("wrong-input", "air", Fault.WRONG_CHANNEL, "before input {ref}"),
        ("wrong-cable", "loop", Fault.WRONG_CABLE, "on both inputs"),
        ("wrong-cable", "split", Fault.WRONG_CABLE, "on input {ref} alone"),
        ("no-cable", "loop", Fault.NOTHING_CONNECTED, "input {ref} hears nothing"),
        ("no-cable", "split", Fault.NOTHING_CONNECTED, "input {ref} hears nothing"),
        ("no-cable", "air", Fault.NOTHING_CONNECTED, "input {ref} hears nothing"),
        ("too-loud", "loop", Fault.CLIPPED, "input {ref} clips"),
        ("too-loud", "split", Fault.CLIPPED, "input {ref} clips"),
        ("moving-mic", "air", Fault.MOVING_MICROPHONE, "changed while it was measured"),
        ("same-signal", "split", Fault.ONE_SIGNAL, "the same samples"),
        ("same-signal", "air", Fault.WRONG_CABLE, "no air between"),
        ("dead-ear", "split", Fault.DIGITAL_SILENCE, "input {ear}"),
        ("dead-ear", "air", Fault.DIGITAL_SILENCE, "input {ear}"),
    ],
)
def test_a_mistake_is_told_by_its_name(scenario: str, wiring: str, fault: Fault, words: str, seed: int) -> None:
    wrong = told(scenario, wiring, seed)
    assert wrong is not None, f"seed {seed}"
    assert wrong.fault is fault, f"seed {seed}: {wrong}"
    assert words in wrong.what
    assert wrong.remedy


@pytest.mark.parametrize(
    ("wiring", "check", "settings", "fault", "channel"),
    [
        ("loop", "loop", {"reference_snr_db": -45.0}, Fault.TOO_NOISY, "{ref}"),
        ("loop", "air", {}, Fault.NOTHING_CONNECTED, "{ear}"),
        ("limit", "limit", {"reference_level": 0.05}, Fault.NOT_LOUD_ENOUGH, "{ref}"),
    ],
)
def test_what_cannot_be_heard_is_told_apart(
    wiring: str, check: str, settings: dict[str, float], fault: Fault, channel: str, seed: int
) -> None:
    wrong = told("crooked", wiring, seed, check, **settings)
    assert wrong is not None, f"seed {seed}"
    assert wrong.fault is fault, f"seed {seed}: {wrong}"
    assert channel in wrong.what


def test_a_plug_that_was_left_in_is_seen(seed: int) -> None:
    for wiring in ("loop", "split"):
        wrong = told("crooked", wiring, seed, check="open")
        assert wrong is not None
        assert wrong.fault is Fault.STILL_CONNECTED
