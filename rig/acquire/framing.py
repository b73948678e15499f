"""Frames on a serial line: where one starts and ends, and whether it came whole.

A frame is 0x00, COBS(body, CRC), 0x00. The CRC is CRC-16/IBM-3740 (polynomial 0x1021, start 0xFFFF) of the body,
little-endian. COBS after Cheshire and Baker 1999: the stuffed bytes hold no 0, so a 0 is always a frame's edge and a
reader that lost its place finds it again at the next one.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterable

MAX_FRAME_BYTES = 64  # with both delimiters: a board keeps two of these in its memory
MAX_BODY_BYTES = MAX_FRAME_BYTES - 5  # 2 delimiters, 1 COBS byte, 2 CRC bytes
OVERHEAD_BYTES = 5


def crc16(data: bytes) -> int:
    """CRC-16/IBM-3740; the check value of b"123456789" is 0x29B1."""
    return binascii.crc_hqx(data, 0xFFFF)


def frame(body: bytes) -> bytes:
    """The bytes on the wire for a body. A delimiter on both sides, so that noise before it cannot swallow it."""
    if not 2 <= len(body) <= MAX_BODY_BYTES:
        raise ValueError(f"a body has 2 to {MAX_BODY_BYTES} bytes, not {len(body)}")
    out = bytearray(b"\0")
    for block in (body + crc16(body).to_bytes(2, "little")).split(b"\0"):
        out.append(len(block) + 1)  # 1 to 62: COBS's long blocks cannot occur
        out += block
    out.append(0)
    return bytes(out)


def _unstuff(stuffed: bytes) -> bytes | None:
    out = bytearray()
    at = 0
    while at < len(stuffed):
        code = stuffed[at]
        block = stuffed[at + 1 : at + code]
        if len(block) != code - 1:
            return None
        out += block
        at += code
        if at < len(stuffed):
            out.append(0)
    return bytes(out)


def body_of(stuffed: bytes) -> bytes | None:
    """The body of what stood between two delimiters, or None when it is not a whole frame. Never raises."""
    whole = _unstuff(stuffed) if len(stuffed) <= MAX_FRAME_BYTES - 2 else None
    if whole is None or len(whole) < 4 or crc16(whole[:-2]).to_bytes(2, "little") != whole[-2:]:
        return None
    return whole[:-2]


class FrameSplitter:
    """Bytes in, stretches between delimiters out. Takes any bytes in any pieces, holds at most one frame.

    A stretch that is longer than a frame comes out cut to one byte more than the longest, which no frame has.
    """

    def __init__(self) -> None:
        self._held = bytearray()

    @property
    def held_bytes(self) -> int:
        """Bytes of a frame that has not ended yet."""
        return len(self._held)

    def feed(self, data: Iterable[int]) -> list[bytes]:
        """Takes the bytes that came and gives the stretches they completed, in order; empty ones are left out."""
        found: list[bytes] = []
        for byte in data:
            if byte != 0:
                if len(self._held) <= MAX_FRAME_BYTES - 2:
                    self._held.append(byte)
            elif self._held:
                found.append(bytes(self._held))
                self._held.clear()
        return found
