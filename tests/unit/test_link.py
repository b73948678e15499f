"""The link over a scripted port: booting boards, torn and late replies, refusals, and boards that go away."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from serial_lines import ScriptedPipe, identity, later

from rig.acquire import wire
from rig.acquire.link import Link
from rig.acquire.wire import Message, message
from rig.domain.records import StimulusPlan
from rig.errors import (
    BenchNotReady,
    FirmwareMismatch,
    LinkCorrupt,
    LinkLost,
    LinkTimeout,
    RigError,
    UsageError,
)
from rig.sim.clock import VirtualTime

Answers = Iterable[tuple[float, bytes]]
PLAN = StimulusPlan("chirp", 1, (), 0.5, "mcu")


def pong(command: Message, received_tick: int = 1000, held_ticks: int = 500) -> bytes:
    sent_tick = (received_tick + held_ticks) % 2**32
    return wire.encode(message("pong", command.seq, received_tick=received_tick, sent_tick=sent_tick))


def answering(**special: object) -> ScriptedPipe:
    """A port whose board answers identify and ping after 1 ms; `special` maps a command to its answers."""
    time = VirtualTime()

    def react(command: Message) -> Answers:
        given = special.get(command.name)
        if callable(given):
            return given(command)  # type: ignore[no-any-return]
        if command.name == "identify":
            return [(1e-3, identity(command.seq))]
        if command.name == "ping":
            tick = (time.now_ns // 500 + 1000) % 2**32
            return [(1e-3, pong(command, tick))]
        return []

    return ScriptedPipe(time, react)


# --- opening: boards that boot, make noise, or are something else --------------------------------------------------


def test_a_board_that_boots_for_two_seconds_is_waited_for() -> None:
    pipe = ScriptedPipe(VirtualTime())
    for at_s, noise in ((0.1, b"\x00\x00\xff"), (0.4, b"bootloader v1\r\n"), (1.7, b"\xfe\xaa\x55")):
        pipe.say(at_s, noise)
    pipe.react = lambda command: [(1e-3, identity(command.seq))] if pipe.time.now_s > 2.0 else []
    link = Link(pipe, pipe.time)
    assert link.identify().board == "uno"
    assert 2.0 < pipe.time.now_s < 2.4  # it asks often, it does not sleep for a fixed time
    assert link.counts.dropped_bytes == 21


def test_a_silent_port_is_given_up_with_port_baud_seconds_and_bytes() -> None:
    pipe = ScriptedPipe(VirtualTime())
    pipe.say(0.5, b"433\r\n")
    with pytest.raises(LinkTimeout) as raised:
        Link(pipe, pipe.time).identify()
    for fact in ("/dev/ttyTEST", "500000 baud", "6.0 s", "5 bytes seen"):
        assert fact in raised.value.what
    assert "may still be booting or run other firmware" in raised.value.remedy
    assert pipe.time.now_s == pytest.approx(6.0, abs=0.01)


def test_a_port_that_talks_without_end_is_given_up_at_the_same_deadline() -> None:
    pipe = ScriptedPipe(VirtualTime())
    for k in range(2000):
        pipe.say(0.005 * k, b"24.5 C\r\n\x00")
    with pytest.raises(LinkTimeout, match="bytes seen"):
        Link(pipe, pipe.time).identify()
    assert pipe.time.now_s == pytest.approx(6.0, abs=0.02)


def test_the_last_try_is_cut_short_by_the_deadline() -> None:
    pipe = ScriptedPipe(VirtualTime())
    with pytest.raises(LinkTimeout, match=r"within 0\.7 s, 0 bytes seen"):
        Link(pipe, pipe.time, handshake_s=0.7).identify()
    assert pipe.time.now_s == pytest.approx(0.7, abs=1e-6)
    assert len(pipe.heard) == 3


def test_bytes_that_are_no_text_never_reach_the_user() -> None:
    pipe = answering()
    pipe.say(0.0, b"\x00\x00\xff433\r\n\xc3\x28")
    link = Link(pipe, pipe.time)
    assert link.identify().uid == "000000000000abcd"
    assert link.counts.bad_frames == 1


def test_no_banner_is_needed() -> None:
    pipe = answering()
    assert Link(pipe, pipe.time).identify().tick_rate_hz == 2e6
    assert pipe.time.now_s < 0.01


def test_another_message_table_is_refused_with_both_values() -> None:
    pipe = answering(identify=lambda c: [(1e-3, identity(c.seq, table_hash=0xDEADBEEF))])
    with pytest.raises(FirmwareMismatch) as raised:
        Link(pipe, pipe.time).identify()
    assert "deadbeef" in raised.value.what
    assert f"{wire.table_hash():08x}" in raised.value.expected
    assert "rig firmware flash" in raised.value.remedy


def test_an_identity_of_a_later_level_with_other_fields_is_refused_with_both_values() -> None:
    def of_level_7(command: Message) -> Answers:
        return [(1e-3, wire.frame(bytes([0x81, command.seq, 7, 0x0D, 0xF0, 0xAD, 0xBA, 1, 2, 3])))]

    pipe = answering(identify=of_level_7)
    with pytest.raises(FirmwareMismatch, match=r"level 7 with message table baadf00d"):
        Link(pipe, pipe.time).identify()


def test_a_board_with_a_clock_of_0_hz_is_refused() -> None:
    pipe = answering(identify=lambda c: [(1e-3, identity(c.seq, tick_hz=0))])
    with pytest.raises(LinkCorrupt, match="0 Hz"):
        Link(pipe, pipe.time).identify()


# --- replies: torn, trickling, late, twice, damaged ------------------------------------------------------------------


def test_a_reply_torn_around_a_retry_is_one_reply() -> None:
    def torn(command: Message) -> Answers:
        whole = identity(command.seq)
        return [(0.29, whole[:20]), (0.35, whole[20:])]

    pipe = answering(identify=torn)
    link = Link(pipe, pipe.time)
    assert link.identify().build == "1"
    assert link.counts.retries == 1
    assert link.counts.bad_frames == 0


def test_half_a_reply_is_never_taken_for_a_whole_one() -> None:
    pipe = answering(ping=lambda c: [(1e-3, pong(c)[:-1])])
    link = Link(pipe, pipe.time)
    link.identify()
    with pytest.raises((LinkTimeout, LinkCorrupt)):
        link.exchange_clock()


def test_a_port_that_trickles_is_given_up_at_the_deadline_of_the_command() -> None:
    def trickle(command: Message) -> Answers:
        return [(0.01 * k, b"\x55") for k in range(500)]

    pipe = answering(ping=trickle)
    link = Link(pipe, pipe.time)
    link.identify()
    start_s = pipe.time.now_s
    with pytest.raises(LinkTimeout, match=r"no answer to ping within 1\.5 s"):
        link.exchange_clock()
    assert pipe.time.now_s - start_s == pytest.approx(1.5, abs=0.02)


def test_a_late_pong_is_not_paired_with_the_next_ping() -> None:
    lates = iter((0.45, 0.001))

    def late_once(command: Message) -> Answers:
        return [(next(lates), pong(command, received_tick=command.seq * 10_000))]

    pipe = answering(ping=late_once)
    link = Link(pipe, pipe.time)
    link.identify()
    exchange = link.exchange_clock()
    pings = [command for command in pipe.heard if command.name == "ping"]
    assert [command.seq for command in pings] == [2, 3]  # a new sequence for the second
    assert exchange.mcu_received_tick == 30_000
    assert exchange.host_received_s - exchange.host_sent_s < 0.002
    link.poll(later(pipe.time, 0.5))
    assert link.counts.late_replies == 1


def test_a_second_reply_is_dropped() -> None:
    pipe = answering(status=lambda c: [(1e-3, _state(c)), (2e-3, _state(c))])
    link = Link(pipe, pipe.time)
    assert link.status().state == "idle"
    link.exchange_clock()
    assert link.counts.late_replies == 1


def _state(command: Message, state: int = 0) -> bytes:
    return wire.encode(message("state", command.seq, state=state, count=0, n_fired=0, bad_frames=3, tick=2000))


def test_a_reply_of_another_kind_with_the_right_sequence_is_no_answer() -> None:
    pipe = answering(status=lambda c: [(1e-3, pong(c)), (2e-3, _state(c))])
    assert Link(pipe, pipe.time).status().bad_frames == 3


def test_answers_that_arrive_damaged_are_told_apart_from_silence() -> None:
    def damaged(command: Message) -> Answers:
        data = bytearray(pong(command))
        data[6] ^= 0x20
        return [(1e-3, bytes(data))]

    pipe = answering(ping=damaged)
    link = Link(pipe, pipe.time)
    link.identify()
    with pytest.raises(LinkCorrupt, match=r"5 damaged frames"):
        link.exchange_clock()


def test_a_command_whose_reply_was_lost_is_repeated_with_its_sequence() -> None:
    answers = iter(([], [(1e-3, "reply")]))

    def lost_once(command: Message) -> Answers:
        first = wire.encode(message("firing", command.seq, first_tick=5000))
        return [(after_s, first) for after_s, _ in next(answers)]

    pipe = answering(fire=lost_once)
    Link(pipe, pipe.time).fire()
    fires = [command for command in pipe.heard if command.name == "fire"]
    assert len(fires) == 2
    assert fires[0].seq == fires[1].seq


# --- what the board refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error", "words"),
    [
        (1, FirmwareMismatch, "unknown_message"),
        (2, FirmwareMismatch, "bad_length"),
        (3, UsageError, "bad_value"),
        (4, BenchNotReady, "not_armed"),
        (5, BenchNotReady, "busy"),
        (6, BenchNotReady, "plan_incomplete"),
        (7, UsageError, "plan_too_long"),
        (8, UsageError, "spacing_too_short"),
        (99, BenchNotReady, "error 99"),
    ],
)
def test_each_error_code_has_its_error_and_a_remedy(code: int, error: type[RigError], words: str) -> None:
    def refuse(command: Message) -> Answers:
        return [(1e-3, wire.encode(message("error", command.seq, command=command.type.id, code=code, detail=17)))]

    pipe = answering(fire=refuse)
    with pytest.raises(error, match=words) as raised:
        Link(pipe, pipe.time).fire()
    assert "refused fire" in raised.value.what
    assert "(17)" in raised.value.what
    assert raised.value.remedy


def test_every_error_code_of_the_table_is_translated() -> None:
    from rig.acquire.dialogue import _REFUSALS

    assert set(_REFUSALS) == {name for name, _ in wire.ERRORS.values()}


def test_an_error_about_another_command_is_not_taken_for_the_answer() -> None:
    def confused(command: Message) -> Answers:
        wrong = message("error", command.seq, command=0x05, code=4, detail=0)
        return [(1e-3, wire.encode(wrong)), (2e-3, _state(command))]

    pipe = answering(status=confused)
    assert Link(pipe, pipe.time).status().state == "idle"


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        (StimulusPlan("wav", 1, (), 0.5, "mcu", wav="a.wav"), "cannot play wav"),
        (StimulusPlan("chirp", 1, (), 0.5, "mcu", lead_in="speech"), "lead-in"),
        (StimulusPlan("chirp", 0, (), 0.5, "mcu"), "0 stimuli"),
        (StimulusPlan("chirp", 3, (1.0,), 0.5, "mcu"), "3 stimuli with 1 spacings"),
        (StimulusPlan("chirp", 2, (float("nan"),), 0.5, "mcu"), "not a positive time"),
        (StimulusPlan("chirp", 2, (-1.0,), 0.5, "mcu"), "not a positive time"),
        (StimulusPlan("chirp", 2, (2000.0,), 0.5, "mcu"), "spacing of 2000 s"),
        (StimulusPlan("chirp", 1, (), 0.0, "mcu"), "amplitude"),
        (StimulusPlan("chirp", 1, (), float("nan"), "mcu"), "amplitude"),
    ],
)
def test_a_plan_that_no_board_can_play_is_refused_before_it_is_sent(plan: StimulusPlan, words: str) -> None:
    pipe = answering()
    with pytest.raises(UsageError, match=words):
        Link(pipe, pipe.time).arm(plan)
    assert {command.name for command in pipe.heard} == {"identify"}


# --- answers that contradict the question ---------------------------------------------------------------------------


def test_a_hold_longer_than_the_exchange_is_refused() -> None:
    pipe = answering(ping=lambda c: [(1e-3, pong(c, held_ticks=400_000))])
    with pytest.raises(LinkCorrupt, match="longer than the exchange"):
        Link(pipe, pipe.time).exchange_clock()


def test_a_plan_that_comes_back_changed_is_refused() -> None:
    def shorter(command: Message) -> Answers:
        values = command.as_dict() | {"count": 4, "tone_samples": 3125}
        return [(1e-3, wire.encode(message("armed", command.seq, **values)))]

    pipe = answering(arm=shorter)
    with pytest.raises(LinkCorrupt, match="another plan"):
        Link(pipe, pipe.time).arm(PLAN)


def test_a_list_that_comes_back_shorter_is_refused() -> None:
    def shorter(command: Message) -> Answers:
        return [(1e-3, wire.encode(message("loaded", command.seq, first_index=0, spacing_ticks=(5,))))]

    pipe = answering(load=shorter)
    with pytest.raises(LinkCorrupt, match="another part"):
        Link(pipe, pipe.time).arm(StimulusPlan("chirp", 3, (1.0, 1.0), 0.5, "mcu"))


# --- boards that go away ---------------------------------------------------------------------------------------------


def test_a_port_that_disappears_is_said_to_have_and_safe_stays_quiet() -> None:
    pipe = answering()
    link = Link(pipe, pipe.time)
    link.exchange_clock()
    pipe.vanished = True
    with pytest.raises(LinkLost, match="/dev/ttyTEST disappeared"):
        link.exchange_clock()
    link.safe()
    link.safe()
    assert isinstance(link.safe_error, LinkLost)


def test_safe_on_a_silent_board_ends_within_a_second() -> None:
    pipe = answering()
    link = Link(pipe, pipe.time)
    link.safe()
    assert pipe.time.now_s == pytest.approx(1.0, abs=0.01)
    assert isinstance(link.safe_error, LinkTimeout)
    assert [command.name for command in pipe.heard] == ["safe"] * 4


def test_safe_survives_a_record_that_cannot_be_written() -> None:
    def full_disk(direction: str, host_s: float, msg: Message | bytes) -> None:
        raise OSError("no space left on device")

    pipe = answering()
    link = Link(pipe, pipe.time, on_frame=full_disk)
    link.safe()
    assert link.safe_error is not None
    assert "no space left" in link.safe_error.what


def test_a_board_that_restarts_in_use_is_noticed() -> None:
    ticks = iter((50_000_000, 50_100_000, 3_000))
    pipe = answering(ping=lambda c: [(1e-3, pong(c, next(ticks)))])
    link = Link(pipe, pipe.time)
    link.exchange_clock()
    pipe.time.sleep_until(later(pipe.time, 0.05))
    link.exchange_clock()
    pipe.time.sleep_until(later(pipe.time, 2.0))
    with pytest.raises(LinkLost, match="the board restarted"):
        link.exchange_clock()


# --- the record -------------------------------------------------------------------------------------------------------


def test_every_frame_is_recorded_with_its_direction_and_time() -> None:
    seen: list[tuple[str, float, Message | bytes]] = []
    pipe = answering()
    pipe.say(0.0, b"\xffnoise\x00")
    link = Link(pipe, pipe.time, on_frame=lambda *frame: seen.append(frame))
    link.identify()
    pipe.say(0.0, wire.frame(b"\x77\x01"))
    link.exchange_clock()
    kinds = [(way, msg.name if isinstance(msg, Message) else msg) for way, _, msg in seen]
    assert kinds == [
        ("tx", "identify"),
        ("rx", b"\xffnoise"),
        ("rx", "identity"),
        ("tx", "ping"),
        ("rx", b"\x77\x01"),
        ("rx", "pong"),
    ]
    times = [at_s for _, at_s, _ in seen]
    assert times == sorted(times)
    assert link.counts.strange_frames == 1
