"""What every board must do, whatever it is made of. One suite, every implementation.

The scripted board always runs, and so does the emulated one, which runs the firmware itself, where its emulator can be
built: in lock-step, and in real time behind a port that pyserial opens. A real one joins with `--port PATH`. Another
kind joins by an entry in `BOARDS`.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from firmware import emulator_or_skip
from rig.acquire import wire
from rig.acquire.link import Link, SerialPipe, SystemTime
from rig.acquire.wire import STATES, FrameDecoder, Message, StrangeFrame, message
from rig.domain.records import ClockExchange, StimulusFired, StimulusPlan
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import Duration, HostClock, Instant
from rig.domain.waveforms import BOARD_TONE_RATE_HZ, board_samples
from rig.errors import BenchNotReady, UsageError
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.emulated import EmulatedMcu
from rig.sim.emulated_usb import EmulatedUsbMcu
from rig.sim.mcu import ScriptedMcu
from rig.sim.paced import PacedBoard


@dataclass(frozen=True)
class Bench:
    """A board that has booted, and the means to speak to it."""

    pipe: BytePipe
    time: HostTime
    link: Link

    def later(self, seconds: float) -> Instant[HostClock]:
        return self.time.now().plus(Duration(seconds))

    def raw(self, data: bytes, wait_s: float = 0.2) -> list[Message]:
        """Writes bytes past the link and returns the messages that come within `wait_s`."""
        self.pipe.write(data)
        decoder, deadline, found = FrameDecoder(), self.later(wait_s), []
        while self.time.now().seconds < deadline.seconds:
            found += [item for item in decoder.feed(self.pipe.read(256, deadline)) if isinstance(item, Message)]
        return found

    def ask(self, name: str, seq: int = 77, **fields: wire.Value) -> Message:
        """One command past the link, and its one reply."""
        replies = [m for m in self.raw(wire.encode(message(name, seq, **fields))) if m.type.role == "reply"]
        assert len(replies) == 1, f"{name} got {[reply.name for reply in replies]}"
        assert replies[0].seq == seq
        return replies[0]

    def fired(self, count: int, wait_s: float = 5.0) -> list[StimulusFired]:
        """Polls until `count` firings came or `wait_s` passed."""
        deadline, found = self.later(wait_s), []
        while len(found) < count and self.time.now().seconds < deadline.seconds:
            found += self.link.poll(deadline)
        return found


def scripted(seed: int) -> tuple[BytePipe, HostTime]:
    time, rng = VirtualTime(), np.random.default_rng(seed)
    # The ticks roll over while the suite runs.
    clock = DriftingClock(2e6, float(rng.uniform(-5000, 5000)), start=2**32 - 3e6)
    return ScriptedMcu(time, clock, rng), time


def emulated(seed: int) -> tuple[BytePipe, HostTime]:
    time, rng = VirtualTime(), np.random.default_rng(seed)
    clock = DriftingClock(2e6, float(rng.uniform(-5000, 5000)), start=2**32 - 3e6)
    return EmulatedMcu(time, clock, rng, emulator=emulator_or_skip()), time


def emulated_usb(seed: int) -> tuple[BytePipe, HostTime]:
    time, rng = VirtualTime(), np.random.default_rng(seed)
    clock = DriftingClock(2e6, float(rng.uniform(-5000, 5000)), start=2**32 - 3e6)
    return EmulatedUsbMcu(time, clock, rng, emulator=emulator_or_skip("atmega32u4")), time


class PacedPipe(SerialPipe):
    """A port with an emulated board of its own behind it, which ends with it."""

    def __init__(self, seed: int, host: HostTime) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rig-board-")
        ppm = float(np.random.default_rng(seed).uniform(-5000, 5000))
        self._board = PacedBoard(emulator_or_skip(), Path(self._folder.name) / "board", ppm=ppm)
        self._board.start()
        super().__init__(str(self._board.path), host)

    def close(self) -> None:
        super().close()
        self._board.close()
        self._folder.cleanup()


def paced(seed: int) -> tuple[BytePipe, HostTime]:
    """The firmware in real time, through a pseudo-terminal and pyserial."""
    time = SystemTime()
    return PacedPipe(seed, time), time


BOARDS: dict[str, Callable[[int], tuple[BytePipe, HostTime]]] = {
    "scripted": scripted,
    "emulated": emulated,
    "emulated-usb": emulated_usb,
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "board" in metafunc.fixturenames:
        port = metafunc.config.getoption("--port")
        metafunc.parametrize("board", [*BOARDS, *([f"port:{port}"] if port else [])])


@pytest.fixture
def bench(board: str, seed: int) -> Iterator[Bench]:
    if board.startswith("port:"):
        time: HostTime = SystemTime()
        pipe: BytePipe = SerialPipe(board.removeprefix("port:"), time)
    else:
        pipe, time = BOARDS[board](seed)
    link = Link(pipe, time)
    link.identify()
    link.safe()
    assert link.safe_error is None
    yield Bench(pipe, time, link)
    link.safe()
    pipe.close()


def plan(*spacing_s: float, kind: str = "click", amplitude: float = 0.25) -> StimulusPlan:
    return StimulusPlan(kind, len(spacing_s) + 1, spacing_s, amplitude, "mcu")


# --- identity and clock ----------------------------------------------------------------------------------------------


def test_it_tells_who_it_is_and_stays_the_same(bench: Bench) -> None:
    first, second = bench.link.identify(), bench.link.identify()
    assert first == second
    assert first.table_hash == f"{wire.table_hash():08x}"
    assert first.tick_rate_hz % BOARD_TONE_RATE_HZ == 0
    assert first.board
    assert int(first.uid, 16) not in (0, 2**64 - 1)  # an erased memory is no identity


def test_its_clock_runs_at_the_nominal_rate_within_1_percent(bench: Bench) -> None:
    first = bench.link.exchange_clock()
    bench.time.sleep_until(bench.later(1.0))
    second = bench.link.exchange_clock()
    host_s = second.host_sent_s - first.host_sent_s
    board_s = (second.mcu_received_tick - first.mcu_received_tick) / bench.link.identify().tick_rate_hz
    assert board_s == pytest.approx(host_s, rel=0.01, abs=0.005)


def exchanges(bench: Bench, n: int) -> list[ClockExchange]:
    return [bench.link.exchange_clock() for _ in range(n)]


def test_an_exchange_bounds_the_clock_from_both_sides(bench: Bench) -> None:
    # With the board's stamps in host time by one line, no ping arrives before it was sent and no pong leaves after it
    # was received: there is room between the two bounds for a line.
    rate_hz = bench.link.identify().tick_rate_hz
    lower, upper = [], []
    for e in exchanges(bench, 30):
        lower.append(e.host_sent_s - e.mcu_received_tick / rate_hz)
        upper.append(e.host_received_s - e.mcu_sent_tick / rate_hz)
    # The clock may drift by 1 % against the host over the second that this takes.
    assert max(lower) <= min(upper) + 0.01 * 1.0
    for e in exchanges(bench, 3):
        assert e.host_sent_s < e.host_received_s
        assert e.mcu_received_tick <= e.mcu_sent_tick


def test_it_holds_its_replies_for_a_random_time_up_to_2_ms(bench: Bench) -> None:
    rate_hz = bench.link.identify().tick_rate_hz
    held_s = np.array([(e.mcu_sent_tick - e.mcu_received_tick) / rate_hz for e in exchanges(bench, 60)])
    assert held_s.min() < 0.4e-3
    assert held_s.max() > 1.6e-3
    assert held_s.max() < 2.5e-3
    assert 0.7e-3 < held_s.mean() < 1.3e-3


# --- every command has one reply -------------------------------------------------------------------------------------


def test_every_whole_command_gets_exactly_one_reply_with_its_sequence(bench: Bench) -> None:
    for seq, row in enumerate(row for row in wire.TABLE if row.role == "command"):
        fields: dict[str, wire.Value] = {f.name: (1,) if f.type == "u32[]" else 0 for f in row.fields}
        reply = bench.ask(row.name, seq, **fields)
        assert reply.name in (row.reply, "error"), row.name


def test_an_unknown_command_gets_an_error_that_names_it(bench: Bench) -> None:
    for id in (0x00, 0x30, 0x7F, 0x81, 0x40, 0xFF):  # replies and events are no commands either
        replies = bench.raw(wire.frame(bytes([id, 9])))
        assert [(m.name, m.seq, m["command"], m["code"]) for m in replies] == [("error", 9, id, 1)]


def test_a_command_of_another_length_gets_an_error(bench: Bench) -> None:
    for body in (b"\x02\x09\x00", b"\x04\x09\x01", b"\x03\x09\x00", b"\x03\x09\x00\x00\x01\x02"):
        replies = bench.raw(wire.frame(body))
        assert [(m.name, m["code"], m["detail"]) for m in replies] == [("error", 2, len(body) - 2)]


@pytest.mark.parametrize("noise", [b"\xff" * 3, b"boot\r\n", b"\x00\x00\x00", b"\x55" * 500, b"\x05\x02\x01"])
def test_noise_gets_no_reply_and_does_not_spoil_the_next_command(bench: Bench, noise: bytes) -> None:
    assert bench.raw(noise) == []
    assert bench.ask("ping").name == "pong"


def test_a_damaged_command_is_counted_and_not_carried_out(bench: Bench) -> None:
    before = bench.link.status().bad_frames
    good = bytearray(wire.encode(message("identify", 3)))
    good[3] ^= 0x04
    assert bench.raw(bytes(good)) == []
    assert bench.link.status().bad_frames == before + 1


def test_a_command_cut_in_two_is_one_command(bench: Bench) -> None:
    data = wire.encode(message("status", 8))
    bench.pipe.write(data[:4])
    bench.time.sleep_until(bench.later(0.1))
    assert [m.name for m in bench.raw(data[4:])] == ["state"]


# --- the plan --------------------------------------------------------------------------------------------------------


def test_it_says_what_it_will_do_and_does_exactly_that(bench: Bench) -> None:
    asked = plan(0.05, 0.0617, 0.2, 0.0333333)
    armed = bench.link.arm(asked)
    rate_hz = bench.link.identify().tick_rate_hz
    assert (armed.kind, armed.count, armed.amplitude) == ("click", 5, 0.25)
    for spacing_s, ticks in zip(asked.spacing_s, armed.spacing_ticks, strict=True):
        assert abs(ticks / rate_hz - spacing_s) <= 0.5 / BOARD_TONE_RATE_HZ + 1e-9  # rounded to its sample period
    bench.link.fire()
    fired = bench.fired(5)
    assert [f.index for f in fired] == [0, 1, 2, 3, 4]
    assert tuple(b.tick - a.tick for a, b in itertools.pairwise(fired)) == armed.spacing_ticks
    assert bench.link.status().state == "done"
    assert bench.link.poll(bench.later(0.3)) == []


def test_an_event_comes_after_its_tone_and_never_before(bench: Bench) -> None:
    bench.link.arm(plan(0.15, kind="chirp"))
    rate_hz = bench.link.identify().tick_rate_hz
    bench.link.fire()
    for firing in bench.fired(2):
        now = bench.link.exchange_clock()
        assert now.mcu_received_tick - firing.tick >= 0.1 * rate_hz


def test_a_long_list_arrives_whole(bench: Bench) -> None:
    spacing = tuple(0.04 + 0.001 * k for k in range(40))
    armed = bench.link.arm(plan(*spacing))
    rate_hz = bench.link.identify().tick_rate_hz
    np.testing.assert_allclose(np.array(armed.spacing_ticks) / rate_hz, spacing, atol=0.5 / BOARD_TONE_RATE_HZ)


def test_a_plan_longer_than_its_memory_is_refused_with_its_size(bench: Bench) -> None:
    most = bench.ask("identify")["max_count"]
    bench.link.arm(plan(*[0.04] * (most - 1)))
    with pytest.raises(UsageError, match=rf"plan_too_long.*\({most}\)"):
        bench.link.arm(plan(*[0.04] * most))


def test_tones_that_would_overlap_are_refused(bench: Bench) -> None:
    with pytest.raises(UsageError, match=r"spacing_too_short.*\(1\)"):
        bench.link.arm(plan(0.2, 0.08, kind="chirp"))


def test_firing_without_arming_is_refused(bench: Bench) -> None:
    with pytest.raises(BenchNotReady, match="not_armed"):
        bench.link.fire()


def test_while_it_fires_it_takes_no_other_plan_but_answers(bench: Bench) -> None:
    bench.link.arm(plan(0.5, 0.5))
    bench.link.fire()
    with pytest.raises(BenchNotReady, match="busy"):
        bench.link.arm(plan())
    with pytest.raises(BenchNotReady, match="busy"):
        bench.link.fire()
    assert bench.link.status().state == "firing"
    bench.link.exchange_clock()


def test_it_fires_at_a_tick(bench: Bench) -> None:
    bench.link.arm(plan(0.05))
    asked = bench.link.exchange_clock().mcu_sent_tick + 200_001
    bench.link.fire(asked)
    first, second = bench.fired(2)
    assert asked <= first.tick < asked + 64
    assert second.tick > first.tick
    assert bench.ask("fire_at", 43, first_tick=(asked + 10**6) % 2**32)["code"] == 4  # it is done: not armed any more


def test_a_tick_that_is_past_or_too_near_fires_nothing(bench: Bench) -> None:
    bench.link.arm(plan(0.05))
    now = bench.link.exchange_clock().mcu_sent_tick
    for tick in (now - 1_000_000, now - 1, now + 30_000, now + 2**31 + 10**6):
        with pytest.raises(UsageError, match="too_soon"):
            bench.link.fire(tick)
    assert bench.link.status().state == "armed"
    assert bench.link.status().n_fired == 0
    bench.link.fire()
    assert len(bench.fired(2)) == 2


def test_the_same_fire_twice_fires_once(bench: Bench) -> None:
    bench.link.arm(plan(0.05))
    first, second = bench.ask("fire", 41), bench.ask("fire", 41)
    assert first == second
    assert bench.link.status().n_fired == 2
    assert bench.ask("fire", 41) == first  # still, when it is done
    assert bench.ask("fire", 42)["code"] == 4


def test_values_out_of_range_are_named_by_their_position(bench: Bench) -> None:
    good: dict[str, wire.Value] = {"kind": 0, "amplitude_256ths": 256, "count": 1, "pulse_us": 100}
    for position, changed in enumerate(({"kind": 9}, {"amplitude_256ths": 257}, {"count": 0}, {"pulse_us": 60_000})):
        reply = bench.ask("arm", **{**good, **changed})
        assert (reply.name, reply["code"], reply["detail"]) == ("error", 3, position)
    assert bench.ask("arm", **{**good, "count": 2})["code"] == 6  # no spacing was loaded
    assert bench.ask("load", first_index=1, spacing_ticks=(2_000_000,))["code"] == 3  # a hole
    assert bench.ask("arm", **good)["tone_samples"] == len(board_samples("chirp", 1.0))


def test_a_firing_can_be_asked_for_again_when_it_is_over(bench: Bench) -> None:
    bench.link.arm(plan(0.4))
    bench.link.fire()
    (first,) = bench.fired(1)
    again = bench.ask("recall", index=0)
    assert (again["index"], again["tick"], again["done"]) == (0, first.tick % 2**32, 0)
    assert again["played_samples"] == len(board_samples("click", 1.0))
    assert bench.ask("recall", index=1)["played_samples"] == 0
    assert bench.ask("recall", index=2)["code"] == 3
    assert [f.index for f in bench.fired(1)] == [1]
    assert bench.ask("recall", index=1)["done"] == 1


# --- safe ------------------------------------------------------------------------------------------------------------


def test_safe_stops_a_running_plan_and_is_idempotent(bench: Bench) -> None:
    bench.link.arm(plan(0.3, 0.3, 0.3))
    bench.link.fire()
    bench.fired(1)
    first = bench.ask("safe")
    assert (first["n_fired"], first["was_firing"]) == (1, 1)
    again = bench.ask("safe")
    assert (again["n_fired"], again["was_firing"]) == (0, 0)
    assert bench.raw(b"", 0.8) == []  # nothing more is fired
    assert bench.link.status().state == "idle"
    with pytest.raises(BenchNotReady, match="not_armed"):
        bench.link.fire()


def test_a_tone_that_safe_cuts_off_is_reported_with_what_was_played(bench: Bench) -> None:
    bench.link.arm(plan(0.5, kind="chirp"))
    (started,) = bench.raw(wire.encode(message("fire", 4)), 0.06)  # the tone starts after 20 ms and lasts 100
    heard = bench.raw(wire.encode(message("safe", 5)))
    assert [m.name for m in heard] == ["fired", "safed"]
    assert heard[0]["tick"] == started["first_tick"]
    assert heard[0]["done"] == 1
    assert 0 < heard[0]["played_samples"] < len(board_samples("chirp", 1.0))


def test_safe_is_answered_in_every_state(bench: Bench) -> None:
    assert bench.ask("safe")["was_firing"] == 0
    bench.link.arm(plan())
    assert bench.ask("safe")["was_firing"] == 0
    bench.link.arm(plan())
    bench.link.fire()
    assert bench.fired(1)
    assert bench.ask("safe")["n_fired"] == 1
    assert STATES[bench.ask("status")["state"]] == "idle"


# --- the tone --------------------------------------------------------------------------------------------------------


def test_it_would_play_the_very_samples_that_we_expect(bench: Bench) -> None:
    assert bench.link.self_test() == ()


def test_the_link_knows_every_frame_it_sends() -> None:
    # The suite reads what boards say with the same table: a strange frame would pass unseen.
    assert isinstance(FrameDecoder().feed(wire.frame(b"\x77\x00"))[0], StrangeFrame)
