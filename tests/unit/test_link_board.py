"""The link and the scripted board over a bad line: what is survived, and what is said when it is not."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pytest

from rig.acquire.link import Link
from rig.acquire.wire import Message
from rig.domain.records import StimulusFired, StimulusPlan
from rig.domain.timebase import Duration, Instant, Timebase
from rig.domain.waveforms import board_samples
from rig.errors import AcquisitionLost, FirmwareMismatch, LinkLost, LinkTimeout
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.mcu import Cancel, ScriptedMcu
from rig.sim.uart import FTDI, Adapter, Faults

PLAN = StimulusPlan("chirp", 5, (0.9, 1.234567, 1.1, 0.75), 0.7, "mcu")


@dataclass
class Room:
    """What the world was told of tones: (start, samples, rate) and when each was cut off."""

    tones: list[tuple[float, npt.NDArray[np.int8], float]] = field(default_factory=list)
    cuts: dict[int, float] = field(default_factory=dict)

    def hear(self, start_s: float, samples: npt.NDArray[np.int8], rate_hz: float) -> Cancel:
        number = len(self.tones)
        self.tones.append((start_s, samples, rate_hz))
        return lambda cut_s: self.cuts.__setitem__(number, cut_s)


class World:
    """A board and a link to it, both new; the seed is the whole difference between two of them."""

    def __init__(
        self,
        seed: int,
        adapter: Adapter | None = None,
        faults: Faults | None = None,
        start: float = 1e6,
        ppm: float = 0.0,
    ) -> None:
        self.time = VirtualTime()
        self.clock = DriftingClock(2e6, ppm, start=start)
        self.room = Room()
        self.frames: list[tuple[str, float, Message | bytes]] = []
        rng = np.random.default_rng(seed)
        self.mcu = ScriptedMcu(self.time, self.clock, rng, self.room.hear, adapter=adapter, faults=faults)
        self.link = Link(self.mcu, self.time, lambda *frame: self.frames.append(frame))

    def later(self, seconds: float) -> Instant:  # type: ignore[type-arg]
        return self.time.now().plus(Duration(seconds))

    def run(self, plan: StimulusPlan = PLAN) -> list[StimulusFired]:
        """Arms, fires and waits for every firing."""
        self.link.arm(plan)
        self.link.fire()
        fired: list[StimulusFired] = []
        while len(fired) < plan.count:
            found = self.link.poll(self.later(5.0))
            assert found, f"only {len(fired)} firings came"
            fired += found
        return fired


# --- truth -----------------------------------------------------------------------------------------------------------


def test_the_stamps_are_the_true_times_of_the_tones(seed: int) -> None:
    world = World(seed, ppm=4321.0)
    fired = world.run()
    assert [world.clock.true_s(f.tick) for f in fired] == pytest.approx([t[0] for t in world.room.tones], abs=1e-9)
    for start_s, samples, rate_hz in world.room.tones:
        np.testing.assert_array_equal(samples, board_samples("chirp", 0.7))
        assert rate_hz == pytest.approx(31250.0 * (1 + 4321e-6), rel=1e-9)
        assert start_s > world.time.now_s - 20.0


def test_an_event_is_never_readable_before_its_tone_is_over(seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    for start_s, samples, rate_hz in world.room.tones:
        end_s = start_s + len(samples) / rate_hz
        assert world.link.poll(Instant(world.time.timebase, end_s - 1e-4)) == []
        assert len(world.link.poll(Instant(world.time.timebase, end_s + 5e-3))) == 1


def test_safe_cuts_the_tone_that_sounds_and_those_to_come(seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    second_s = world.room.tones[1][0]
    world.link.poll(Instant(world.time.timebase, second_s - 0.2))
    world.time.sleep_until(Instant(world.time.timebase, second_s + 0.03))
    world.link.safe()
    assert sorted(world.room.cuts) == [1, 2, 3, 4]
    assert all(second_s + 0.03 < cut_s < second_s + 0.04 for cut_s in world.room.cuts.values())
    assert [f.index for f in world.link.poll(world.later(1.0))] == [1]
    assert world.link.poll(world.later(10.0)) == []  # nobody waits for the rest


def test_the_same_seed_is_the_same_world_to_the_byte(seed: int) -> None:
    runs = []
    for _ in range(2):
        world = World(seed, faults=Faults(byte_loss=0.002, garbage=0.05))
        world.run()
        runs.append([(way, at_s, m.as_dict() if isinstance(m, Message) else m) for way, at_s, m in world.frames])
    assert runs[0] == runs[1]
    other = World(seed + 1)
    other.run()
    assert [at_s for _, at_s, _ in other.frames] != [at_s for _, at_s, _ in runs[0]]


# --- clock exchanges -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("adapter", "close_s"),
    [(Adapter(), 0.3e-3), (FTDI, 1.5e-3), (Adapter(0.0, 0.0, jitter_s=10e-6), 0.1e-3), (Adapter(jitter_s=2e-3), 2e-3)],
    ids=["full speed", "ftdi", "served at once", "busy host"],
)
@pytest.mark.parametrize("ppm", [-5000.0, 0.0, 5000.0])
def test_every_exchange_bounds_the_true_clock(
    adapter: Adapter, close_s: float, ppm: float, seed: int, rng: np.random.Generator
) -> None:
    # The clock map rests on this: the board's stamp, in true time, lies between the two bounds, always. And the bounds
    # are of use: on both sides the best of them comes close.
    world = World(seed, adapter, ppm=ppm)
    before_s, after_s = [], []
    for _ in range(200):
        e = world.link.exchange_clock()
        before_s.append(world.clock.true_s(e.mcu_received_tick + 1) - e.host_sent_s)
        after_s.append(e.host_received_s - world.clock.true_s(e.mcu_sent_tick))
        world.time.sleep_until(world.later(0.05 + float(rng.uniform(0.0, 0.05))))
    assert 0.0 <= min(before_s) < close_s
    assert 0.0 <= min(after_s) < close_s


def test_a_slower_line_changes_nothing_about_the_tones(seed: int) -> None:
    fast, slow = World(seed, Adapter(0.0, 0.0)), World(seed, FTDI)
    ticks = [[f.tick for f in world.run()] for world in (fast, slow)]
    assert np.diff(ticks[0]).tolist() == np.diff(ticks[1]).tolist()
    assert slow.time.now_s > fast.time.now_s


def test_ticks_do_not_wrap_in_a_run_across_the_wrap(seed: int) -> None:
    world = World(seed, start=2**32 - 2e6 * 3.5)
    before = world.link.exchange_clock()
    fired = world.run()
    after = world.link.exchange_clock()
    assert before.mcu_sent_tick < 2**32 < fired[-1].tick < after.mcu_received_tick
    assert all(b.tick > a.tick for a, b in itertools.pairwise(fired))
    assert after.mcu_received_tick - before.mcu_sent_tick == pytest.approx(
        2e6 * (after.host_sent_s - before.host_received_s), abs=2e4
    )


# --- a bad line ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(8))
def test_no_firing_is_lost_on_a_line_that_loses_bytes(number: int, seed: int) -> None:
    world = World(seed + number, faults=Faults(byte_loss=0.008, garbage=0.1))
    fired = world.run()
    assert [f.index for f in fired] == [0, 1, 2, 3, 4]
    assert [world.clock.true_s(f.tick) for f in fired] == pytest.approx([t[0] for t in world.room.tones], abs=1e-9)
    assert len(world.room.tones) == 5  # nothing was fired twice
    counts = world.link.counts
    assert counts.bad_frames + counts.retries + counts.recalled_events > 0


@pytest.mark.parametrize("lost", [0, 2, 4])
def test_an_event_that_was_lost_is_asked_for(lost: int, seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    fired: list[StimulusFired] = []
    for index, (start_s, samples, rate_hz) in enumerate(world.room.tones):
        end_s = start_s + len(samples) / rate_hz
        fired += world.link.poll(Instant(world.time.timebase, end_s - 0.01))
        if index == lost:
            world.mcu.faults = Faults(byte_loss=1.0)
            fired += world.link.poll(Instant(world.time.timebase, end_s + 0.05))
            world.mcu.faults = Faults()
        fired += world.link.poll(Instant(world.time.timebase, end_s + 0.3))
    fired += world.link.poll(world.later(2.0))
    assert [f.index for f in fired] == [0, 1, 2, 3, 4]
    assert [world.clock.true_s(f.tick) for f in fired] == pytest.approx([t[0] for t in world.room.tones], abs=1e-9)
    assert world.link.counts.recalled_events == 1


def test_a_later_event_shows_at_once_that_one_was_lost(seed: int) -> None:
    world = World(seed)
    world.link.arm(StimulusPlan("click", 3, (0.05, 0.05), 0.5, "mcu"))
    world.link.fire()
    first_s, second_s, _ = (start_s for start_s, _, _ in world.room.tones)
    world.mcu.faults = Faults(byte_loss=1.0)
    assert world.link.poll(Instant(world.time.timebase, second_s - 0.01)) == []
    world.mcu.faults = Faults()
    fired = list(world.link.poll(world.later(5.0)))
    assert [f.index for f in fired] == [0, 1]
    assert [world.clock.true_s(f.tick) for f in fired] == pytest.approx([first_s, second_s], abs=1e-9)
    assert world.time.now_s < second_s + 0.03


def test_a_board_that_stalls_is_waited_for(seed: int) -> None:
    world = World(seed)
    world.link.identify()
    world.mcu.faults = Faults(stalls=((world.time.now_s, 0.9),))
    start_s = world.time.now_s
    world.link.status()
    assert 0.9 <= world.time.now_s - start_s < 1.3
    world.link.exchange_clock()
    assert world.link.counts.late_replies >= 1  # the answers to the repeated questions


def test_a_silent_board_is_given_up(seed: int) -> None:
    world = World(seed, faults=Faults(silent=True))
    with pytest.raises(LinkTimeout, match=r"simulated board at 500000 baud: no answer to identify within 6\.0 s"):
        world.link.identify()


def test_a_board_that_falls_silent_in_a_run_does_not_hang_the_poll(seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    world.mcu.faults = Faults(silent=True, byte_loss=1.0)
    with pytest.raises(LinkTimeout, match="no answer to recall"):
        world.link.poll(world.later(60.0))
    assert world.time.now_s < 10.0


def test_a_port_that_vanishes_in_a_run_ends_it_at_once(seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    vanish_s = world.room.tones[2][0]
    world.mcu.faults = replace(world.mcu.faults, vanish_at_s=vanish_s)
    fired: list[StimulusFired] = []

    def poll_on() -> None:
        while True:
            fired.extend(world.link.poll(world.later(30.0)))

    with pytest.raises(LinkLost, match="disappeared or is open in another program"):
        poll_on()
    assert [f.index for f in fired] == [0, 1]  # what came before is kept
    assert world.time.now_s == pytest.approx(vanish_s, abs=1e-6)
    world.link.safe()
    assert isinstance(world.link.safe_error, LinkLost)


@pytest.mark.parametrize("faults", [Faults(wrong_table_hash=True), Faults(protocol_level=2)], ids=["hash", "level"])
def test_a_board_of_another_protocol_is_refused(faults: Faults, seed: int) -> None:
    with pytest.raises(FirmwareMismatch, match="protocol level"):
        World(seed, faults=faults).link.identify()


def test_a_board_whose_plan_is_gone_in_a_run_is_said_to_have_restarted(seed: int) -> None:
    world = World(seed)
    world.link.arm(PLAN)
    world.link.fire()
    # Somebody else resets the board through the same port: it forgets its plan.
    Link(world.mcu, world.time).safe()
    with pytest.raises(AcquisitionLost, match="it restarted"):
        world.link.poll(world.later(30.0))


# --- the seam --------------------------------------------------------------------------------------------------------


def test_a_deadline_of_another_world_is_refused(seed: int) -> None:
    world = World(seed)
    with pytest.raises(TypeError, match="another world"):
        world.mcu.read(1, Instant(Timebase("host", "elsewhere"), 5.0))


def test_a_read_waits_to_its_deadline_and_no_longer(seed: int) -> None:
    world = World(seed, faults=Faults(silent=True))
    world.mcu.read(1000, world.later(1.7))
    while world.mcu.read(1000, world.later(0.0)):
        pass
    at_s = world.time.now_s
    assert world.mcu.read(10, world.later(0.25)) == b""
    assert world.time.now_s == pytest.approx(at_s + 0.25, abs=1e-8)


def test_a_closed_port_is_lost(seed: int) -> None:
    world = World(seed)
    world.mcu.close()
    with pytest.raises(LinkLost, match="closed"):
        world.link.identify()


def test_a_clock_that_does_not_fit_the_tone_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number"):
        ScriptedMcu(VirtualTime(), DriftingClock(1e6 + 1), np.random.default_rng(1))
