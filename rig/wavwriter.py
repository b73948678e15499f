"""A WAV file that is whole at every moment: 24-bit PCM, written block by block.

While it grows, the header says "length unknown" (0xFFFFFFFF), which rig and other readers take as "to the end of the
file"; closing writes the true sizes, as RF64 beyond 4 GiB (EBU Tech 3306, into a JUNK chunk kept free for it).
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from rig.domain.seams import Frames
from rig.rawfile import RawFile

_UNKNOWN = 0xFFFFFFFF
_SAMPLE_BYTES = 3
_HEADER_BYTES = 80  # RIFF 12, JUNK or ds64 36, fmt 24, data 8


class WavWriter:
    """Appends frames to `path`. Each block reaches the operating system before `write` returns.

    So a kill loses at most the block that was being written; a loss of power, what the disk had not stored.
    """

    def __init__(self, path: Path, rate_hz: int, n_channels: int) -> None:
        """Raises AcquisitionLost when the file cannot be made, or is there already."""
        self.path = path
        self.n_frames = 0
        self.non_finite = 0  # samples that were not numbers and were written as 0
        self._rate_hz = rate_hz
        self._n_channels = n_channels
        self._closed = False
        self._file = RawFile(path)
        self._file.write(self._header(data_bytes=None))

    def write(self, frames: Frames) -> None:
        """Appends frames of shape (n, n_channels), float32, full scale 1.0. Raises AcquisitionLost on a full disk."""
        if frames.ndim != 2 or frames.shape[1] != self._n_channels:
            raise ValueError(f"frames of shape {frames.shape} cannot go to a file of {self._n_channels} channels")
        packed, bad = encode_24(frames)
        self._file.write(packed)
        self.n_frames += frames.shape[0]
        self.non_finite += bad

    def close(self) -> None:
        """Writes the true sizes and closes; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        data_bytes = self.n_frames * self._n_channels * _SAMPLE_BYTES
        try:
            if data_bytes & 1:
                self._file.write(b"\0")
            self._file.write_at_start(self._header(data_bytes))
            self._file.sync()
        finally:
            self._file.close()

    def _header(self, data_bytes: int | None) -> bytes:
        align = self._n_channels * _SAMPLE_BYTES
        fmt = struct.pack(
            "<4sIHHIIHH", b"fmt ", 16, 1, self._n_channels, self._rate_hz, self._rate_hz * align, align, 24
        )
        riff_size = _UNKNOWN if data_bytes is None else _HEADER_BYTES - 8 + data_bytes + (data_bytes & 1)
        if data_bytes is None or riff_size < _UNKNOWN:
            spare = struct.pack("<4sI28x", b"JUNK", 28)
            riff, stated = b"RIFF", _UNKNOWN if data_bytes is None else data_bytes
        else:
            spare = struct.pack("<4sIQQQI", b"ds64", 28, riff_size, data_bytes, self.n_frames, 0)
            riff, riff_size, stated = b"RF64", _UNKNOWN, _UNKNOWN
        return struct.pack("<4sI4s", riff, riff_size, b"WAVE") + spare + fmt + struct.pack("<4sI", b"data", stated)


def encode_24(frames: Frames) -> tuple[bytes, int]:
    """Frames as packed 24-bit PCM, and how many samples were not finite (written as 0).

    A float32 that a converter of 24 bits or fewer gave comes back exactly; beyond full scale is clipped.
    """
    finite = np.isfinite(frames)
    bad = int(frames.size - np.count_nonzero(finite))
    clean = np.where(finite, frames, np.float32(0.0)) if bad else frames
    scaled = np.rint(np.clip(clean, -1.0, 1.0) * np.float32(2.0**23))
    whole = np.minimum(scaled, np.float32(2.0**23 - 1)).astype("<i4")
    return np.ascontiguousarray(whole).view(np.uint8).reshape(-1, 4)[:, :3].tobytes(), bad
