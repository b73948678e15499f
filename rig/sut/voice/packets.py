"""What one packet of the voice loop looks like: four bytes that say what it is, its number, and the coded frame.

    byte 0   1, the version of this format
    byte 1   the codec: 0 pcm (16 bits, little end first), 1 opus, 2 a piece of a MediaRecorder's stream
    2 and 3  0
    4 to 7   seq, big end first: frames are counted from 0 in each connection
    8 on     the coded frame

The echo server sends them back as they are. A page writes the same (`rig/sut/browser/static/voice-net.js`).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

VERSION = 1
CODECS = ("pcm", "opus", "recorder")
"""By their number in a packet."""

_HEAD = struct.Struct(">BBHI")
MAX_PACKET_BYTES = 1 << 16
"""60 ms at 48 kHz are 5760 bytes of pcm; what is longer is none of ours."""

MAX_SEQ = (1 << 32) - 1


class BadPacket(ValueError):
    """The bytes are no packet; the message says why."""


@dataclass(frozen=True, slots=True)
class Packet:
    seq: int
    codec: str
    payload: bytes


def pack(packet: Packet) -> bytes:
    """Raises ValueError for a number or a payload that does not fit."""
    if not 0 <= packet.seq <= MAX_SEQ:
        raise ValueError(f"seq {packet.seq} is not within 0 and {MAX_SEQ}")
    if len(packet.payload) > MAX_PACKET_BYTES - _HEAD.size:
        raise ValueError(f"{len(packet.payload)} bytes are more than a packet holds")
    return _HEAD.pack(VERSION, CODECS.index(packet.codec), 0, packet.seq) + packet.payload


def unpack(data: bytes) -> Packet:
    """Raises BadPacket for anything that `pack` does not make."""
    if not _HEAD.size <= len(data) <= MAX_PACKET_BYTES:
        raise BadPacket(f"{len(data)} bytes are no packet")
    version, codec, zero, seq = _HEAD.unpack_from(data)
    if version != VERSION or zero != 0 or codec >= len(CODECS):
        raise BadPacket(f"it begins with {data[:4].hex()}")
    return Packet(seq, CODECS[codec], data[_HEAD.size :])
