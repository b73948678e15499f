"""The clocks of a run: flywheel, windows, maps, and what is refused."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `worlds`

from worlds.clocks import RATE_HZ, TICK_RATE_HZ, World, draw_clocks, draw_world, wire_time_s

from rig.analyse.clockfit import COVER, ClockFit, fit_clocks, without_wire_time
from rig.analyse.clockmaps import clock_maps, map_for
from rig.analyse.flywheel import fit_flywheel
from rig.domain.records import ClockDrift, ClockExchange
from rig.domain.timebase import AudioClock, HostClock, Instant, McuClock, Timebase

HOST: Timebase[HostClock] = Timebase("host", "boot")
MCU: Timebase[McuClock] = Timebase("mcu", "board")
AUDIO: Timebase[AudioClock] = Timebase("audio", "stream")


def fit(world: World, pulses: bool = True) -> ClockFit:
    exchanges = without_wire_time(world.exchanges, *wire_time_s(world.link))
    if not pulses:
        return fit_clocks(exchanges, TICK_RATE_HZ)
    return fit_clocks(exchanges, TICK_RATE_HZ, world.pulse_ticks, world.heard_s)


def instants(world: World, n: int = 200) -> np.ndarray:
    return world.start_s + np.linspace(1.0, world.length_s - 1.0, n)


@pytest.mark.parametrize("spacing_s", [1.0, 1.5, 3.0])
def test_the_flywheel_follows_a_wandering_resonator_and_knows_how_well(spacing_s: float, seed: int) -> None:
    off, score = [], []
    for k in range(12):
        rng = np.random.default_rng([seed, k])
        clocks = draw_clocks(rng, 60.0)
        pulses = clocks.true_s[0] + 4.0 + np.cumsum(rng.uniform(0.8, 1.2, 20)) * spacing_s
        heard = clocks.audio_at(pulses) + rng.normal(0.0, 0.05 / RATE_HZ, 20)
        wheel = fit_flywheel(clocks.mcu_at(pulses), heard)
        assert wheel is not None
        between = np.linspace(pulses[0] - 1.0, pulses[-1] + 1.0, 300)
        mcu_s = clocks.mcu_at(between)
        error = wheel.audio(mcu_s) - clocks.audio_at(between)
        off.append(error)
        score.append(error / wheel.u_s(mcu_s))
    rms_us = 1e6 * float(np.sqrt(np.mean(np.square(off))))
    spread = float(np.std(score))
    assert rms_us < 1.5, f"seed {seed}: {rms_us:.2f} us, where a pulse is good to 1 us"
    assert 0.5 < spread < 1.3, f"seed {seed}: errors are {spread:.2f} of what is stated"
    assert np.max(np.abs(score)) < COVER, f"seed {seed}: {np.max(np.abs(score)):.1f} standard uncertainties"


def test_beyond_the_pulses_the_flywheel_knows_less_and_less(seed: int) -> None:
    score = []
    for k in range(40):
        rng = np.random.default_rng([seed, k])
        clocks = draw_clocks(rng, 40.0)
        pulses = clocks.true_s[0] + 4.0 + np.cumsum(rng.uniform(0.8, 1.2, 15))
        wheel = fit_flywheel(clocks.mcu_at(pulses), clocks.audio_at(pulses) + rng.normal(0.0, 1e-6, 15))
        assert wheel is not None
        after = pulses[-1] + np.array([0.0, 1.0, 3.0])
        u_s = wheel.u_s(clocks.mcu_at(after))
        assert u_s[0] < u_s[1] < 0.6 * u_s[2], f"seed {seed}: {u_s}"
        outside = np.array([pulses[0] - 3.0, pulses[-1] + 3.0])
        mcu_s = clocks.mcu_at(outside)
        score.append((wheel.audio(mcu_s) - clocks.audio_at(outside)) / wheel.u_s(mcu_s))
    assert 0.4 < np.std(score) < 1.4, f"seed {seed}: errors are {np.std(score):.2f} of what is stated"
    assert np.max(np.abs(score)) < COVER, f"seed {seed}"


def test_noisy_pulses_are_known_to_be_noisy(rng: np.random.Generator, seed: int) -> None:
    mcu_s = np.cumsum(rng.uniform(1.0, 2.0, 60))
    wheel = fit_flywheel(mcu_s, 1.004 * mcu_s + rng.normal(0.0, 30e-6, 60))
    assert wheel is not None
    assert 18e-6 < wheel.noise_s < 50e-6, f"seed {seed}"
    error = wheel.audio(mcu_s) - 1.004 * mcu_s
    assert np.std(error) < 15e-6, f"seed {seed}: smoothing gains nothing"


def test_a_stray_pulse_is_left_out(rng: np.random.Generator, seed: int) -> None:
    mcu_s = np.cumsum(rng.uniform(1.0, 2.0, 30))
    heard = 0.997 * mcu_s + rng.normal(0.0, 1e-6, 30)
    heard[11] += 0.4e-3
    wheel = fit_flywheel(mcu_s, heard)
    assert wheel is not None
    assert np.max(np.abs(wheel.audio(mcu_s) - 0.997 * mcu_s)) < 4e-6, f"seed {seed}"


def test_two_pulses_are_no_flywheel() -> None:
    assert fit_flywheel(np.array([1.0, 2.0]), np.array([1.0, 2.0])) is None


@pytest.mark.parametrize("link", ["hs", "cdc+stall", "ftdi16"])
@pytest.mark.parametrize("pulses", [True, False])
def test_the_truth_lies_in_every_interval(link: str, pulses: bool, seed: int) -> None:
    world = draw_world(np.random.default_rng(seed), 60.0, link)
    found = fit(world, pulses)
    true_s = instants(world)
    maps = [(found.mcu_host(world.clocks.mcu_at(true_s)), true_s)]
    if pulses:
        maps.append((found.audio_host(world.clocks.audio_at(true_s)), true_s))
        maps.append((found.mcu_audio(world.clocks.mcu_at(true_s)), world.clocks.audio_at(true_s)))
    for mapped, truth in maps:
        assert np.all(mapped.low_s <= truth), f"seed {seed}"
        assert np.all(truth <= mapped.high_s), f"seed {seed}"
        assert np.all((mapped.low_s <= mapped.s) & (mapped.s <= mapped.high_s))
        assert np.mean(mapped.high_s - mapped.low_s) < 2e-3, "an interval so wide says nothing"


def test_without_pulses_the_windows_are_short_enough_for_a_resonator(seed: int) -> None:
    # A bus that is served at once bounds so tightly that a straight line over a warming resonator leaves its bounds.
    for k in range(20):
        world = draw_world(np.random.default_rng([seed, k]), 120.0, "hs")
        true_s = instants(world, 400)
        mapped = fit(world, pulses=False).mcu_host(world.clocks.mcu_at(true_s))
        outside = np.count_nonzero((mapped.low_s > true_s) | (true_s > mapped.high_s))
        assert not outside, f"seed {seed}, world {k}: {outside} instants"


@pytest.mark.parametrize("length_s", [25.0, 300.0])
def test_drifts_hold_the_truth_and_fit_together(length_s: float, seed: int) -> None:
    world = draw_world(np.random.default_rng(seed), length_s, "cdc+stall")
    found = fit(world)
    assert found.span_mcu_s is not None
    mcu = np.array(found.span_mcu_s)
    true_s = world.clocks.true_of_mcu(mcu)
    audio = float(np.diff(world.clocks.audio_at(true_s))[0])
    host, board = float(np.diff(true_s)[0]), float(np.diff(mcu)[0])
    drifts: list[tuple[ClockDrift | None, float]] = [
        (found.audio_host_drift, audio / host),
        (found.mcu_host_drift, board / host),
        (found.audio_mcu_drift, audio / board),
    ]
    for drift, rate in drifts:
        assert drift is not None
        assert drift.low_ppm <= 1e6 * (rate - 1.0) <= drift.high_ppm, f"seed {seed}"
        assert drift.low_ppm < drift.ppm < drift.high_ppm
    assert drifts[2][0].high_ppm - drifts[2][0].low_ppm < 2.0  # type: ignore[union-attr]
    product = [1.0 + 1e-6 * d.ppm for d, _ in drifts if d is not None]
    assert product[0] == pytest.approx(product[1] * product[2], abs=1e-9)


def test_a_stamp_that_cannot_be_shortens_the_windows_around_it(rng: np.random.Generator, seed: int) -> None:
    world = draw_world(rng, 80.0, "cdc")
    exchanges = list(world.exchanges)
    bad = exchanges[400]
    late = round(5e-3 * TICK_RATE_HZ)
    exchanges[400] = dataclasses.replace(
        bad, mcu_received_tick=bad.mcu_received_tick - late, mcu_sent_tick=bad.mcu_sent_tick - late
    )
    found = fit_clocks(exchanges, TICK_RATE_HZ, world.pulse_ticks, world.heard_s)
    assert found.refusal is None
    assert len(found.windows) > 1
    true_s = instants(world, 400)
    mapped = found.mcu_host(world.clocks.mcu_at(true_s))
    known = ~np.isnan(mapped.s)
    assert 0.8 < np.mean(known) < 1.0, "only the surroundings of the bad stamp are lost"
    assert np.all((mapped.low_s <= true_s) & (true_s <= mapped.high_s) | ~known), f"seed {seed}"


def test_exchanges_that_contradict_each_other_are_refused(rng: np.random.Generator) -> None:
    world = draw_world(rng, 30.0, "hs")
    shaken = [
        dataclasses.replace(e, mcu_received_tick=e.mcu_received_tick + j, mcu_sent_tick=e.mcu_sent_tick + j)
        for e, j in zip(world.exchanges, rng.integers(-20_000, 20_000, len(world.exchanges)), strict=True)
    ]
    found = fit_clocks(shaken, TICK_RATE_HZ, world.pulse_ticks, world.heard_s)
    assert found.refusal is not None
    assert "contradict" in found.refusal
    assert found.mcu_host_drift is None
    assert found.audio_host_drift is None
    assert found.audio_mcu_drift is not None  # the pulses still stand
    assert np.all(np.isnan(found.mcu_host(np.array([20.0])).s))


def test_four_exchanges_are_too_few() -> None:
    found = fit_clocks([ClockExchange(k, 1000 * k, 1000 * k + 1, k + 0.001) for k in range(4)], 1000.0)
    assert found.refusal == "4 clock exchanges are too few"
    assert found.windows == ()


def test_stamps_without_pulses_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="2 stamps and 1 pulses"):
        fit_clocks([], 1000.0, [1.0, 2.0], [1.0])


def test_time_on_the_wire_comes_off_each_way() -> None:
    (exchange,) = without_wire_time([ClockExchange(1.0, 5, 6, 2.0)], 0.25, 0.5)
    assert exchange == ClockExchange(1.25, 5, 6, 1.5)


@pytest.mark.parametrize("length_s", [40.0, 300.0])
def test_the_maps_are_lines_that_keep_their_half_width(length_s: float, seed: int) -> None:
    world = draw_world(np.random.default_rng(seed), length_s, "cdc+stall")
    maps = clock_maps(fit(world), HOST, MCU, AUDIO)
    for true_s in instants(world).tolist():
        at = np.array([true_s])
        mcu = Instant(MCU, float(world.clocks.mcu_at(at)[0]))
        audio = Instant(AUDIO, float(world.clocks.audio_at(at)[0]))
        to_host = map_for(maps.mcu_host, mcu)
        from_audio = map_for(maps.audio_host, audio)
        to_audio = map_for(maps.mcu_audio, mcu)
        for off, width in (
            (to_host.apply(mcu).seconds - true_s, to_host.half_width_s),
            (from_audio.apply(audio).seconds - true_s, from_audio.half_width_s),
            (to_audio.apply(mcu).seconds - audio.seconds, to_audio.half_width_s),
        ):
            assert width is not None
            assert abs(off) <= width, f"seed {seed}"
    assert max(m.half_width_s or 1.0 for m in maps.mcu_audio) < 40e-6
    assert max(m.half_width_s or 1.0 for m in maps.mcu_host) < 0.5e-3
    with pytest.raises(ValueError, match="no map reaches"):
        map_for(maps.mcu_host, Instant(MCU, 0.0))


def test_without_pulses_there_is_no_audio_map(rng: np.random.Generator) -> None:
    maps = clock_maps(fit(draw_world(rng, 30.0, "hs"), pulses=False), HOST, MCU, AUDIO)
    assert maps.audio_host == maps.mcu_audio == ()
    assert maps.mcu_host
