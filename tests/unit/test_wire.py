"""The message table and the frames: pinned bytes, ranges, and what garbage does to them."""

from __future__ import annotations

import pytest

from rig.acquire import wire
from rig.acquire.framing import MAX_BODY_BYTES, MAX_FRAME_BYTES, FrameSplitter, body_of, crc16, frame
from rig.acquire.wire import BY_NAME, ERRORS, KINDS, TABLE, BadFrame, FrameDecoder, Message, StrangeFrame, message
from rig.domain.waveforms import STIMULI

GOLDEN = [
    # Bytes that a board in a drawer may speak: they may only change with the protocol level.
    (message("identify", 1), "000501011f3e00"),
    (message("ping", 0), "000202036d7b00"),
    (message("pong", 7, received_tick=0x00010000, sent_tick=0xFFFFFFFF), "0003820701020107ffffffff43b600"),
    (message("safe", 255), "000506ff59a900"),
    (message("fired", 2, index=2, tick=0x01020304, played_samples=3125, done=0), "00044002020704030201350c031ede00"),
    (message("load", 3, first_index=0, spacing_ticks=(2_000_000,)), "00030303010480841e03173b00"),
]


def test_the_check_value_of_the_crc() -> None:
    assert crc16(b"123456789") == 0x29B1
    assert crc16(b"") == 0xFFFF


@pytest.mark.parametrize(("msg", "bytes_hex"), GOLDEN, ids=lambda value: getattr(value, "name", ""))
def test_the_bytes_of_a_message_are_pinned(msg: Message, bytes_hex: str) -> None:
    assert wire.encode(msg).hex() == bytes_hex
    assert FrameDecoder().feed(bytes.fromhex(bytes_hex)) == [msg]


def test_the_hash_of_the_table_is_pinned() -> None:
    # When this fails the table has changed: boards in use will be refused. Raise PROTOCOL_LEVEL if that is meant.
    assert (wire.PROTOCOL_LEVEL, f"{wire.table_hash():08x}") == (1, "6ad804b7")


def test_the_hash_sees_the_table_and_not_its_prose(monkeypatch: pytest.MonkeyPatch) -> None:
    before = wire.table_hash()
    reworded = [wire.MessageType(r.id, r.name, r.role, r.fields, "other words", r.reply) for r in TABLE]
    monkeypatch.setattr(wire, "TABLE", tuple(reworded))
    assert wire.table_hash() == before
    renamed = wire.MessageType(0x40, "fired", "event", (*TABLE[-2].fields[:-1], wire.Field("ended", "u8", "")), "")
    monkeypatch.setattr(wire, "TABLE", (*TABLE[:-2], renamed, TABLE[-1]))
    assert wire.table_hash() != before


def test_the_table_is_sound() -> None:
    assert len({row.id for row in TABLE}) == len({row.name for row in TABLE}) == len(TABLE)
    for row in TABLE:
        if row.role == "command":
            assert row.reply is not None, row.name
            assert BY_NAME[row.reply].id == row.id | 0x80, row.name
        else:
            assert row.reply is None, row.name
        assert [f.type for f in row.fields].count("u32[]") <= 1, row.name
        assert all(f.type != "u32[]" for f in row.fields[:-1]), row.name
    assert tuple(STIMULI) == KINDS
    assert len({name for name, _ in ERRORS.values()}) == len(ERRORS)


def test_every_message_fits_the_longest_frame() -> None:
    for row in TABLE:
        if row.fields and row.fields[-1].type == "u32[]":
            full = message(row.name, 255, first_index=0, spacing_ticks=(0xFFFFFFFF,) * wire.MAX_SPACINGS_A_FRAME)
            assert len(wire.encode(full)) <= MAX_FRAME_BYTES
        else:
            assert wire.frame_bytes(row.name) <= MAX_FRAME_BYTES


def test_a_frame_without_a_list_has_one_length_whatever_it_holds() -> None:
    for ticks in (0, 1, 0x01010101, 0xFFFFFFFF):
        for seq in (0, 1, 255):
            pong = message("pong", seq, received_tick=ticks, sent_tick=ticks)
            assert len(wire.encode(pong)) == wire.frame_bytes("pong")


@pytest.mark.parametrize(
    ("name", "seq", "values", "words"),
    [
        ("ping", 256, {}, "does not fit"),
        ("ping", -1, {}, "does not fit"),
        ("ping", 0, {"tick": 1}, "has the fields"),
        ("pong", 0, {"received_tick": 1}, "has the fields"),
        ("pong", 0, {"received_tick": -1, "sent_tick": 0}, "does not fit"),
        ("pong", 0, {"received_tick": 2**32, "sent_tick": 0}, "does not fit"),
        ("pong", 0, {"received_tick": "1", "sent_tick": 0}, "is of type u32"),
        ("load", 0, {"first_index": 0, "spacing_ticks": (1,) * 13}, "at most 12"),
        ("load", 0, {"first_index": 0, "spacing_ticks": (2**32,)}, "does not fit"),
        ("load", 0, {"first_index": 0, "spacing_ticks": 5}, "is of type"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(name: str, seq: int, values: dict[str, wire.Value], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        message(name, seq, **values)


@pytest.mark.parametrize("text", ["thirteen char", "nul\0", "größe"])
def test_a_text_that_does_not_fit_is_refused(text: str) -> None:
    good: dict[str, wire.Value] = {f.name: 1 for f in BY_NAME["identity"].fields if f.type != "text"}
    with pytest.raises(ValueError, match="ASCII"):
        message("identity", 1, **good, board=text, build="1")


def test_fields_are_read_by_name() -> None:
    msg = message("load", 9, first_index=3, spacing_ticks=(5, 6))
    assert msg["first_index"] == 3
    assert msg.numbers("spacing_ticks") == (5, 6)
    assert msg.as_dict() == {"first_index": 3, "spacing_ticks": (5, 6)}
    with pytest.raises(KeyError, match="load has no field tick"):
        msg["tick"]
    with pytest.raises(KeyError, match="not an integer"):
        msg["spacing_ticks"]


def test_a_text_from_the_wire_that_is_not_text_does_not_raise() -> None:
    good: dict[str, wire.Value] = {f.name: 1 for f in BY_NAME["identity"].fields if f.type != "text"}
    body = bytearray(wire.pack(message("identity", 1, **good, board="a", build="b")))
    body[-24:-12] = b"\xff\xfe" + b"x" * 10
    (read,) = FrameDecoder().feed(frame(bytes(body)))
    assert isinstance(read, Message)
    assert read.text("board") == "��xxxxxxxxxx"


@pytest.mark.parametrize(
    "body",
    [
        bytes([0x77, 1]),  # no such id
        bytes([0x02, 1, 0]),  # a ping with a field
        bytes([0x82, 1, 0, 0, 0]),  # a pong cut short
        bytes([0x03, 1, 0, 0, 1, 2, 3]),  # a list that does not end on a number
    ],
)
def test_a_sound_frame_that_the_table_does_not_know_is_strange(body: bytes) -> None:
    decoder = FrameDecoder()
    assert decoder.feed(frame(body)) == [StrangeFrame(body)]
    assert decoder.bad_frames == 0


def test_a_damaged_frame_is_counted_and_the_next_one_read() -> None:
    good = wire.encode(message("ping", 5))
    for at in range(1, len(good) - 1):
        damaged = bytearray(good)
        damaged[at] ^= 0x10
        decoder = FrameDecoder()
        read = decoder.feed(bytes(damaged) + good)
        assert read[-1] == message("ping", 5)
        assert [item for item in read if isinstance(item, Message)] == [message("ping", 5)], f"byte {at}"
        assert decoder.bad_frames >= 1


def test_noise_right_before_a_frame_does_not_swallow_it() -> None:
    read = FrameDecoder().feed(b"boot\xff\x80" + wire.encode(message("ping", 5)))
    assert read == [BadFrame(b"boot\xff\x80"), message("ping", 5)]


def test_noise_without_an_end_does_not_fill_the_memory() -> None:
    decoder = FrameDecoder()
    for _ in range(100):
        assert decoder.feed(b"\x55" * 1000) == []
        assert decoder.held_bytes < MAX_FRAME_BYTES
    read = decoder.feed(wire.encode(message("ping", 5)))
    assert isinstance(read[0], BadFrame)
    assert read[1:] == [message("ping", 5)]
    assert decoder.bad_frames == 1


def test_a_frame_of_the_longest_body_passes_and_a_longer_one_is_refused() -> None:
    longest = bytes(range(1, MAX_BODY_BYTES + 1))
    assert len(frame(longest)) == MAX_FRAME_BYTES
    (stretch,) = FrameSplitter().feed(frame(longest))
    assert body_of(stretch) == longest
    with pytest.raises(ValueError, match="2 to 59 bytes"):
        frame(longest + b"x")
    with pytest.raises(ValueError, match="2 to 59 bytes"):
        frame(b"x")


def test_a_stretch_that_was_cut_to_fit_is_no_frame_even_if_its_crc_is_right() -> None:
    body = bytes(range(1, MAX_BODY_BYTES + 2))
    whole = body + crc16(body).to_bytes(2, "little")
    stuffed = b"".join(bytes([len(block) + 1]) + block for block in whole.split(b"\0"))
    assert body_of(stuffed) is None
