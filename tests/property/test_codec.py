"""The codec under fire: any message, any cut, any garbage."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from rig.acquire import wire
from rig.acquire.framing import MAX_FRAME_BYTES, body_of, frame
from rig.acquire.wire import MAX_SPACINGS_A_FRAME, TABLE, TEXT_BYTES, Field, FrameDecoder, Message, MessageType

PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=TEXT_BYTES)


def _values(spec: Field) -> st.SearchStrategy[wire.Value]:
    if spec.type == "text":
        return PRINTABLE
    if spec.type == "u32[]":
        return st.lists(st.integers(0, 2**32 - 1), max_size=MAX_SPACINGS_A_FRAME).map(tuple)
    return st.integers(0, 2 ** int(spec.type[1:]) - 1)


def _messages_of(row: MessageType) -> st.SearchStrategy[Message]:
    values = st.tuples(*(_values(spec) for spec in row.fields))
    return st.builds(Message, st.just(row), st.integers(0, 255), values)


MESSAGES = st.sampled_from(TABLE).flatmap(_messages_of)


def _cut(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [data[a:b] for a, b in itertools.pairwise(edges)]


@given(messages=st.lists(MESSAGES, max_size=6), cuts=st.lists(st.integers(0, 400), max_size=8))
def test_every_message_comes_back_however_the_bytes_are_cut(messages: list[Message], cuts: list[int]) -> None:
    line = b"".join(wire.encode(msg) for msg in messages)
    decoder = FrameDecoder()
    assert [item for piece in _cut(line, cuts) for item in decoder.feed(piece)] == messages
    assert decoder.bad_frames == 0
    assert decoder.held_bytes == 0


@given(body=st.binary(min_size=2, max_size=59))
def test_every_body_comes_back_and_its_frame_holds_no_zero_inside(body: bytes) -> None:
    data = frame(body)
    assert data[0] == data[-1] == 0
    assert 0 not in data[1:-1]
    assert len(data) == len(body) + 5
    assert body_of(data[1:-1]) == body


@given(garbage=st.binary(max_size=300), msg=MESSAGES)
def test_a_message_after_any_garbage_is_read(garbage: bytes, msg: Message) -> None:
    read = FrameDecoder().feed(garbage + wire.encode(msg))
    assert read[-1] == msg


@given(pieces=st.lists(st.binary(max_size=200), max_size=20))
def test_no_garbage_raises_or_fills_the_memory(pieces: list[bytes]) -> None:
    decoder = FrameDecoder()
    for piece in pieces:
        decoder.feed(piece)
        assert decoder.held_bytes < MAX_FRAME_BYTES


@given(msg=MESSAGES, at=st.integers(0, 63), change=st.integers(1, 255))
def test_one_damaged_byte_never_makes_another_message(msg: Message, at: int, change: int) -> None:
    data = bytearray(wire.encode(msg))
    data[at % len(data)] ^= change
    read = [item for item in FrameDecoder().feed(bytes(data) + b"\0") if isinstance(item, Message)]
    assert read in ([], [msg])  # whole when only an outer delimiter was hit


@given(msg=MESSAGES, at=st.integers(0, 63))
def test_one_lost_byte_never_makes_another_message(msg: Message, at: int) -> None:
    data = bytearray(wire.encode(msg))
    del data[at % len(data)]
    read = [item for item in FrameDecoder().feed(bytes(data) + b"\0") if isinstance(item, Message)]
    assert read in ([], [msg])


@given(body=st.binary(min_size=2, max_size=59))
def test_any_sound_body_is_a_message_that_packs_to_the_same_or_is_strange(body: bytes) -> None:
    read = wire.unpack(body)
    if isinstance(read, Message) and all(spec.type != "text" for spec in read.type.fields):
        assert wire.pack(read) == body


@given(stuffed=st.binary(max_size=80))
def test_unstuffing_never_raises(stuffed: bytes) -> None:
    body = body_of(stuffed)
    assert body is None or 2 <= len(body) <= 59
