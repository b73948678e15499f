"""The language of the board: the message table as data, and the frames that carry it.

This file is the one owner of the protocol. The board's C header and the tables in docs/protocol.md are generated from
it (`wire_export.py`), and host and board compare a hash of it before they talk.

A body is id (u8), sequence (u8), fields, all little-endian; `framing.py` puts it on the line. A command is answered by
exactly one reply with the same sequence: its own, or `error`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from rig.acquire.framing import MAX_BODY_BYTES as MAX_BODY_BYTES
from rig.acquire.framing import MAX_FRAME_BYTES as MAX_FRAME_BYTES
from rig.acquire.framing import OVERHEAD_BYTES, FrameSplitter, body_of, frame
from rig.acquire.framing import crc16 as crc16
from rig.domain.waveforms import STIMULI

PROTOCOL_LEVEL = 1
BAUD_RATE = 500_000  # 16 MHz divides to it exactly: no 2 % error of the byte time, as at 115200
MAX_SPACINGS_A_FRAME = 12
TEXT_BYTES = 12

KINDS: tuple[str, ...] = tuple(STIMULI)
"""Stimulus kinds; the index is the number on the wire."""

STATES: tuple[str, ...] = ("idle", "armed", "firing", "done")

ERRORS: dict[int, tuple[str, str]] = {
    1: ("unknown_message", "no message has this id; detail: the id"),
    2: ("bad_length", "the fields are too short or too long; detail: bytes of fields received"),
    3: ("bad_value", "a field is out of range; detail: its position in the command, counted from 0"),
    4: ("not_armed", "fire without arm; detail: the state"),
    5: ("busy", "not while firing: send safe first; detail: the state"),
    6: ("plan_incomplete", "arm asks for more stimuli than spacings were loaded for; detail: spacings held"),
    7: ("plan_too_long", "more stimuli than the board can hold; detail: how many it can"),
    8: ("spacing_too_short", "a stimulus would start before the last one ends; detail: position in the spacing list"),
    9: ("too_soon", "the tick to fire at is past, or less than 20 ms ahead; detail: the tick it is"),
}
"""Error codes: name and meaning."""

_INTEGERS = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}


@dataclass(frozen=True, slots=True)
class Field:
    """One field. `type` is u8, u16, u32, u64, text (12 bytes, padded with 0) or u32[] (up to 12, last field only)."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True, slots=True)
class MessageType:
    """One row of the table. `role` is command, reply or event; a command names its one reply."""

    id: int
    name: str
    role: str
    fields: tuple[Field, ...]
    meaning: str
    reply: str | None = None


def _command(id: int, name: str, reply: str, meaning: str, *fields: tuple[str, str, str]) -> MessageType:
    return MessageType(id, name, "command", tuple(Field(*f) for f in fields), meaning, reply)


def _reply(id: int, name: str, meaning: str, *fields: tuple[str, str, str]) -> MessageType:
    return MessageType(id, name, "reply", tuple(Field(*f) for f in fields), meaning)


_FIRING = (
    ("index", "u16", "which stimulus of the plan, from 0"),
    ("tick", "u32", "tick of the tone's first sample"),
    ("played_samples", "u16", "samples really played: fewer than armed when cut off by safe"),
    ("done", "u8", "1: nothing of the plan is left to play"),
)
_SETTINGS = (
    ("kind", "u8", "number of the stimulus kind"),
    ("amplitude_256ths", "u16", "amplitude, 1 to 256; 256 is full scale"),
    ("count", "u16", "how many stimuli; needs count - 1 spacings loaded before"),
    ("pulse_us", "u16", "width of the pulse that starts with each tone; 0: none"),
)

TABLE: tuple[MessageType, ...] = (
    _command(0x01, "identify", "identity", "who is there; answered in every state, and the same at every level"),
    _reply(
        0x81,
        "identity",
        "what the board is; later levels keep the first two fields as they are",
        ("protocol_level", "u8", "level of this protocol"),
        ("table_hash", "u32", "hash of the message table the board was built with"),
        ("tick_hz", "u32", "nominal rate of the timer that all ticks count"),
        ("tone_hz", "u16", "nominal rate of the tone's samples"),
        ("byte_ns", "u16", "time that a byte takes on the wire; 0: no fixed line speed (native USB)"),
        ("max_count", "u16", "most stimuli in one plan"),
        ("uid", "u64", "persistent number of this very board"),
        ("board", "text", "kind of board"),
        ("build", "text", "firmware build"),
    ),
    _command(0x02, "ping", "pong", "the clock exchange; the board holds the reply for a random 0 to 2 ms"),
    _reply(
        0x82,
        "pong",
        "the board's two stamps of the exchange",
        ("received_tick", "u32", "when the last byte of the ping had arrived"),
        ("sent_tick", "u32", "when the first byte of this frame goes out"),
    ),
    _command(
        0x03,
        "load",
        "loaded",
        "part of the spacing list; first_index 0 starts a new list, no holes, may be repeated",
        ("first_index", "u16", "position of the first spacing given, from 0"),
        ("spacing_ticks", "u32[]", "from the start of one tone to the start of the next"),
    ),
    _reply(
        0x83,
        "loaded",
        "the same part as the board holds it, rounded to its sample period",
        ("first_index", "u16", "as in the command"),
        ("spacing_ticks", "u32[]", "what will really be done"),
    ),
    _command(0x04, "arm", "armed", "prepares the plan; may be repeated", *_SETTINGS),
    _reply(
        0x84,
        "armed",
        "what will really be done",
        *_SETTINGS,
        ("tone_samples", "u16", "length of one tone"),
    ),
    _command(0x05, "fire", "firing", "starts the armed plan; repeated with the same sequence it only answers again"),
    _reply(0x85, "firing", "the plan runs", ("first_tick", "u32", "when the first tone will start")),
    _command(0x06, "safe", "safed", "silence and an empty plan at once, in every state; may be repeated"),
    _reply(
        0x86,
        "safed",
        "everything is off",
        ("n_fired", "u16", "tones of the plan that were started"),
        ("was_firing", "u8", "1: a plan was running"),
    ),
    _command(0x07, "status", "state", "how the board is"),
    _reply(
        0x87,
        "state",
        "how the board is",
        ("state", "u8", "number of the state"),
        ("count", "u16", "stimuli in the plan"),
        ("n_fired", "u16", "tones of the plan that were started"),
        ("bad_frames", "u16", "frames dropped for a wrong CRC or length, since reset, modulo 65536"),
        ("tick", "u32", "the timer when this was made"),
    ),
    _command(0x08, "recall", "recalled", "asks again for a firing whose event was lost", ("index", "u16", "from 0")),
    _reply(0x88, "recalled", "as in the event; played_samples 0: not fired, or not over yet", *_FIRING),
    _command(0x09, "self_test", "self_tested", "makes one tone in memory", ("kind", "u8", "number of the kind")),
    _reply(
        0x89,
        "self_tested",
        "proof that board and host mean the same tone",
        ("kind", "u8", "as in the command"),
        ("tone_samples", "u16", "length of the tone"),
        ("tone_crc", "u16", "CRC of its samples at full amplitude, one byte each"),
        ("failed_bits", "u8", "bit 0: memory, bit 1: timer; 0: all well"),
    ),
    _command(
        0x0A,
        "fire_at",
        "firing_at",
        "as fire, and the first tone starts with the first sample at or after a tick, 20 ms ahead at least",
        ("first_tick", "u32", "the tick"),
    ),
    _reply(0x8A, "firing_at", "the plan waits for its tick", ("first_tick", "u32", "when the first tone will start")),
    MessageType(
        0x40,
        "fired",
        "event",
        tuple(Field(*f) for f in _FIRING),
        "a tone has ended; the sequence counts the events of one plan from 0; sent once",
    ),
    _reply(
        0xFF,
        "error",
        "the command was not carried out",
        ("command", "u8", "id of the command"),
        ("code", "u8", "error code"),
        ("detail", "u32", "see the code"),
    ),
)

BY_ID: dict[int, MessageType] = {row.id: row for row in TABLE}
BY_NAME: dict[str, MessageType] = {row.name: row for row in TABLE}

Value = int | str | tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """One message of the table. `values` are in the order of the fields: int, str (text) or tuple of int (u32[])."""

    type: MessageType
    seq: int
    values: tuple[Value, ...]

    @property
    def name(self) -> str:
        return self.type.name

    def __getitem__(self, field: str) -> int:
        """An integer field by its name. Raises KeyError where there is none."""
        value = self._value(field)
        if not isinstance(value, int):
            raise KeyError(f"{self.name}.{field} is not an integer")
        return value

    def text(self, field: str) -> str:
        """A text field by its name."""
        return str(self._value(field))

    def numbers(self, field: str) -> tuple[int, ...]:
        """A list field by its name."""
        value = self._value(field)
        return value if isinstance(value, tuple) else ()

    def _value(self, field: str) -> Value:
        for spec, value in zip(self.type.fields, self.values, strict=True):
            if spec.name == field:
                return value
        raise KeyError(f"{self.name} has no field {field}")

    def as_dict(self) -> dict[str, Value]:
        """The fields by name, for a log."""
        return {spec.name: value for spec, value in zip(self.type.fields, self.values, strict=True)}


@dataclass(frozen=True, slots=True)
class StrangeFrame:
    """A sound frame that the table does not know: another id or length. `body` starts with id and sequence."""

    body: bytes


@dataclass(frozen=True, slots=True)
class BadFrame:
    """Bytes between two delimiters that are not a frame. `raw` is what came, shortened to the longest frame."""

    raw: bytes


Received = Message | StrangeFrame | BadFrame


def message(name: str, seq: int, **values: Value) -> Message:
    """Builds a message by name. Raises ValueError when fields are missing, unknown or out of range."""
    row = BY_NAME[name]
    if set(values) != {f.name for f in row.fields}:
        raise ValueError(f"{name} has the fields {[f.name for f in row.fields]}, not {sorted(values)}")
    built = Message(row, seq, tuple(values[f.name] for f in row.fields))
    pack(built)
    return built


def pack(msg: Message) -> bytes:
    """The body of a message. Raises ValueError when a value does not fit its field."""
    try:
        parts = [struct.pack("<BB", msg.type.id, msg.seq)]
        for spec, value in zip(msg.type.fields, msg.values, strict=True):
            parts.append(_pack_value(spec, value))
    except struct.error as error:
        raise ValueError(f"{msg.name}: a value does not fit its field ({error})") from error
    return b"".join(parts)


def _pack_value(spec: Field, value: Value) -> bytes:
    if isinstance(value, tuple) and spec.type == "u32[]":
        if len(value) > MAX_SPACINGS_A_FRAME:
            raise ValueError(f"{spec.name} holds at most {MAX_SPACINGS_A_FRAME} values in one frame, not {len(value)}")
        return struct.pack(f"<{len(value)}I", *value)
    if isinstance(value, str) and spec.type == "text":
        if len(value) > TEXT_BYTES or not value.isascii() or "\0" in value:
            raise ValueError(f"{spec.name} is up to {TEXT_BYTES} ASCII characters, not {value!r}")
        return value.encode("ascii").ljust(TEXT_BYTES, b"\0")
    if isinstance(value, int) and spec.type in _INTEGERS:
        return struct.pack("<" + {1: "B", 2: "H", 4: "I", 8: "Q"}[_INTEGERS[spec.type]], value)
    raise ValueError(f"{spec.name} is of type {spec.type}, not {type(value).__name__}")


def unpack(body: bytes) -> Message | StrangeFrame:
    """The message in a body; a StrangeFrame when the id is unknown or the length wrong. Never raises."""
    row = BY_ID.get(body[0]) if len(body) >= 2 else None
    if row is None:
        return StrangeFrame(body)
    values: list[Value] = []
    at = 2
    for spec in row.fields:
        rest = len(body) - at
        if spec.type == "u32[]":
            if rest % 4 or rest > 4 * MAX_SPACINGS_A_FRAME:
                return StrangeFrame(body)
            values.append(struct.unpack_from(f"<{rest // 4}I", body, at))
            at = len(body)
            continue
        size = TEXT_BYTES if spec.type == "text" else _INTEGERS[spec.type]
        if rest < size:
            return StrangeFrame(body)
        part = body[at : at + size]
        if spec.type == "text":
            values.append(part.split(b"\0", 1)[0].decode("ascii", "replace"))
        else:
            values.append(int.from_bytes(part, "little"))
        at += size
    return Message(row, body[1], tuple(values)) if at == len(body) else StrangeFrame(body)


def encode(msg: Message) -> bytes:
    """A message as bytes on the wire. Raises ValueError when a value does not fit."""
    return frame(pack(msg))


def frame_bytes(name: str) -> int:
    """How many bytes the frame of a message without a list takes on the wire: the same for every content."""
    sizes = (TEXT_BYTES if f.type == "text" else _INTEGERS[f.type] for f in BY_NAME[name].fields)
    return 2 + sum(sizes) + OVERHEAD_BYTES


class FrameDecoder:
    """Bytes in, messages out. Takes any bytes, in any pieces; holds at most one frame; never raises.

    `bad_frames` counts stretches between delimiters that were not a frame.
    """

    def __init__(self) -> None:
        self.bad_frames = 0
        self._splitter = FrameSplitter()

    @property
    def held_bytes(self) -> int:
        """Bytes of a frame that has not ended yet."""
        return self._splitter.held_bytes

    def feed(self, data: Iterable[int]) -> list[Received]:
        """Takes the bytes that came and gives what they completed, in order."""
        found: list[Received] = []
        for stretch in self._splitter.feed(data):
            body = body_of(stretch)
            if body is None:
                self.bad_frames += 1
                found.append(BadFrame(stretch))
            else:
                found.append(unpack(body))
        return found


def table_hash() -> int:
    """FNV-1a (32 bit) of the table: ids, names, types, codes, kinds, states, level. Meanings may be reworded freely."""
    lines = [f"level {PROTOCOL_LEVEL}", *KINDS, *STATES, *(f"{code} {name}" for code, (name, _) in ERRORS.items())]
    for row in TABLE:
        lines.append(f"{row.id} {row.name} {row.role} {row.reply or '-'}")
        lines += [f"{spec.name} {spec.type}" for spec in row.fields]
    value = 0x811C9DC5
    for byte in "\n".join(lines).encode("ascii"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return value
