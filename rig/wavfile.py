"""WAV files byte by byte: the header of any recorder, intact or not, and PCM to float32.

Read here rather than through a library because a recorder that was killed leaves a header whose sizes are zero, stale
or "unknown", and the samples behind it are still evidence. Layout after Microsoft/IBM RIFF WAVE (1991),
WAVE_FORMAT_EXTENSIBLE (2001) and EBU Tech 3306 (RF64).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from rig.domain.seams import Frames
from rig.errors import BadInput

MAX_CHANNELS = 256
"""More than any interface has; a header that claims more is damaged."""

_MAX_CHUNKS = 1000  # before the samples; a real file has under ten
_UNKNOWN = 0xFFFFFFFF  # what a recorder writes that cannot know the length yet
_UNKNOWN_FROM = 0x7FFFF000 - 4096  # arecord, sox: the largest length that fits, less their header
_STALE_MIN_BYTES = 4096  # less than this behind the end is a tag, not samples

_FORMAT_NAMES = {
    0x0002: "Microsoft ADPCM",
    0x0006: "A-law",
    0x0007: "mu-law",
    0x0011: "IMA ADPCM",
    0x0031: "GSM 6.10",
    0x0050: "MPEG",
    0x0055: "MP3",
    0x0161: "Windows Media Audio",
    0x2000: "AC-3",
}
_SUBTYPE_TAIL = bytes.fromhex("000000001000800000aa00389b71")  # KSDATAFORMAT_SUBTYPE_*: tag, then this


@dataclass(frozen=True, slots=True)
class WavLayout:
    """Where the samples of a WAV file are and how they are coded."""

    rate_hz: int
    n_channels: int
    is_float: bool
    sample_bytes: int  # of the container: 2, 3, 4 or 8
    valid_bits: int  # that carry the sample; under 8 * sample_bytes for 24 bits in 32
    data_offset: int
    n_frames: int  # complete frames that are there
    missing_frames: int | None  # that the header promises beyond them; None where it promises none or cannot be told
    unfinished: bool  # the file ends before its samples do, or its recorder was stopped before it wrote the length
    length_note: str | None  # what is odd about the length, in words

    @property
    def frame_bytes(self) -> int:
        return self.sample_bytes * self.n_channels

    @property
    def full_scale(self) -> float | None:
        """The largest sample as float32 shows it; None for float formats."""
        if self.is_float:
            return None
        return float(np.float32((2 ** (self.valid_bits - 1) - 1) / 2 ** (self.valid_bits - 1)))


def read_layout(handle: BinaryIO, size: int, name: str) -> WavLayout:
    """Reads the header of an open WAV of `size` bytes. Raises BadInput, naming what is wrong with it."""
    head = _read_at(handle, 0, 12)
    if len(head) < 12 or head[:4] not in (b"RIFF", b"RF64", b"BW64") or head[8:12] != b"WAVE":
        raise BadInput(f"{name} is not a WAV file", "a RIFF or RF64 header", "give a WAV or FLAC file")
    wide_data: int | None = None  # the 64-bit length, from the ds64 chunk
    fmt: bytes | None = None
    position = 12
    for _ in range(_MAX_CHUNKS):
        chunk = _read_at(handle, position, 8)
        if len(chunk) < 8:
            break
        chunk_id, chunk_size = chunk[:4], struct.unpack("<I", chunk[4:])[0]
        body = position + 8
        if chunk_id == b"fmt ":
            fmt = _read_at(handle, body, min(chunk_size, 40))
        elif chunk_id == b"ds64":
            ds64 = _read_at(handle, body, 16)
            wide_data = struct.unpack("<Q", ds64[8:16])[0] if len(ds64) == 16 else None
        elif chunk_id == b"data":
            if fmt is None:
                raise BadInput(
                    f"{name} has samples but no description of them ('fmt ' chunk)", "a complete WAV header", _REMEDY
                )
            riff_size = struct.unpack("<I", head[4:8])[0]
            stated = wide_data if chunk_size == _UNKNOWN and wide_data is not None else chunk_size
            return _layout(handle, size, name, fmt, body, stated, riff_size)
        position = body + chunk_size + (chunk_size & 1)
    raise BadInput(
        f"{name} has a header but no samples", "a 'data' chunk with samples in it", "record again: nothing was kept"
    )


_REMEDY = "convert it, for example: ffmpeg -i FILE -c:a pcm_s24le NEW.wav"


def _layout(
    handle: BinaryIO, size: int, name: str, fmt: bytes, data_offset: int, stated: int, riff_size: int
) -> WavLayout:
    if len(fmt) < 16:
        raise BadInput(f"{name} has a 'fmt ' chunk of {len(fmt)} bytes", "at least 16 bytes", _REMEDY)
    tag, n_channels, rate_hz, _, block_align, bits = struct.unpack("<HHIIHH", fmt[:16])
    valid_bits = bits
    if tag == 0xFFFE:
        if len(fmt) < 40 or fmt[26:40] != _SUBTYPE_TAIL:
            raise BadInput(f"{name} is an extensible WAV of an unknown sub-format", "PCM or float samples", _REMEDY)
        valid_bits = struct.unpack("<H", fmt[18:20])[0] or bits
        tag = struct.unpack("<H", fmt[24:26])[0]
    sample_bytes = (bits + 7) // 8
    kind = _FORMAT_NAMES.get(tag, "unknown")
    if tag not in (1, 3):
        raise BadInput(f"{name} holds format tag 0x{tag:04x} ({kind})", "PCM (0x0001) or float (0x0003)", _REMEDY)
    widths = (4, 8) if tag == 3 else (2, 3, 4)
    if sample_bytes not in widths or (tag == 3 and bits % 32):
        what = "float" if tag == 3 else "PCM"
        raise BadInput(f"{name} holds {bits}-bit {what}", "PCM of 16, 24 or 32 bits, or float of 32 or 64", _REMEDY)
    if not 1 <= n_channels <= MAX_CHANNELS or block_align != sample_bytes * n_channels:
        raise BadInput(
            f"{name} has a damaged header: {n_channels} channels of {sample_bytes} bytes in frames of {block_align}",
            f"1 to {MAX_CHANNELS} channels whose bytes add up to the frame",
            _REMEDY,
        )
    if not 8 <= valid_bits <= 8 * sample_bytes:
        valid_bits = 8 * sample_bytes
    available = max(0, size - data_offset)
    held, note = _length(handle, data_offset, available, stated, riff_size)
    cut = note == _CUT
    return WavLayout(
        rate_hz=rate_hz,
        n_channels=n_channels,
        is_float=tag == 3,
        sample_bytes=sample_bytes,
        valid_bits=valid_bits,
        data_offset=data_offset,
        n_frames=held // block_align,
        missing_frames=stated // block_align - held // block_align if cut else None,
        unfinished=cut or note == _UNFINISHED,
        length_note=note,
    )


_CUT = "the file ends before its samples do"
_UNFINISHED = "the recorder never finished the header; read to the end of the file"
_UNSTATED = "the header does not state a length; read to the end of the file"


def _length(handle: BinaryIO, data_offset: int, available: int, stated: int, riff_size: int) -> tuple[int, str | None]:
    """Bytes of samples that are there, and a note where header and file disagree."""
    if _UNKNOWN_FROM <= stated <= _UNKNOWN and stated > available:
        return available, _UNSTATED
    if stated > available:
        return available, _CUT
    end = data_offset + available
    behind = data_offset + stated + (stated & 1)
    left = end - behind
    # A killed recorder leaves zero, or the length at its last update, with samples following. A whole file has nothing
    # there, or more chunks, which its RIFF size covers.
    stale_from = 1 if stated == 0 else _STALE_MIN_BYTES
    covered = stated > 0 and riff_size + 8 > behind
    if left >= stale_from and not covered and not _is_chunk(handle, behind, end):
        return available, _UNFINISHED
    return stated, None


def _is_chunk(handle: BinaryIO, position: int, end: int) -> bool:
    """Whether a RIFF chunk, or a tag that players append, stands at `position`."""
    head = _read_at(handle, position, 8)
    if len(head) < 8 or head[:3] in (b"ID3", b"TAG", b"APE"):
        return True
    return all(32 <= byte < 127 for byte in head[:4]) and position + 8 + int(struct.unpack("<I", head[4:])[0]) <= end


def _read_at(handle: BinaryIO, position: int, count: int) -> bytes:
    handle.seek(position)
    return handle.read(count)


def decode(raw: bytearray | bytes | memoryview, count: int, layout: WavLayout) -> Frames:
    """`count` frames from the start of `raw` as float32 of shape (count, n_channels), full scale 1.0."""
    n = count * layout.n_channels
    if layout.is_float:
        kind = "<f4" if layout.sample_bytes == 4 else "<f8"
        with np.errstate(over="ignore"):  # a double beyond float32 becomes infinite, and the caller refuses it
            flat = np.frombuffer(raw, kind, n).astype(np.float32)
    elif layout.sample_bytes == 3:
        flat = _decode_24(raw, n)
    else:
        bits = 8 * layout.sample_bytes
        flat = np.frombuffer(raw, f"<i{layout.sample_bytes}", n).astype(np.float32)
        flat *= np.float32(2.0 ** (1 - bits))
    return flat.reshape(count, layout.n_channels)


_CHUNK = 8192  # samples: the scratch integers stay in the first-level cache


def _decode_24(raw: bytearray | bytes | memoryview, n: int) -> npt.NDArray[np.float32]:
    packed = np.frombuffer(raw, np.uint8, 3 * n)
    flat = np.empty(n, np.float32)
    wide = np.zeros(_CHUNK, "<i4")
    wide_bytes = wide.view(np.uint8)
    for first in range(0, n, _CHUNK):
        m = min(_CHUNK, n - first)
        part = packed[3 * first : 3 * (first + m)]
        # Little-endian: the three bytes go to the top of the word, so that the sign needs no care.
        wide_bytes[1 : 4 * m : 4] = part[0::3]
        wide_bytes[2 : 4 * m : 4] = part[1::3]
        wide_bytes[3 : 4 * m : 4] = part[2::3]
        np.multiply(wide[:m], np.float32(2.0**-31), out=flat[first : first + m], dtype=np.float32, casting="unsafe")
    return flat
