"""Frames at the device's rate to payloads and back: 16-bit PCM, or Opus by libopus (PyAV, imported lazily)."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rig.errors import MissingLibrary, UsageError
from rig.sut.voice.resample import Resampler, library, packed

Samples = npt.NDArray[np.float32]

PCM, OPUS = "pcm", "opus"
OPUS_RATES_HZ = (8000, 12000, 16000, 24000, 48000)
OPUS_FRAMES_S = (0.01, 0.02, 0.04, 0.06)
DECODED_HZ = 48000
"""libopus's decoder gives this rate, whatever the coder was given."""

LOOKAHEAD_S = 312 / 48000
"""By which libopus delays what it codes outside its low-delay mode, at every rate (RFC 6716 and libopus: 6.5 ms)."""

BIT_RATE = 24_000


class Coder(Protocol):
    """One direction and back. `delay_s`: how much later sound comes out of decode(encode()) than it went in, frames
    aside: no mark shows it."""

    name: str
    delay_s: float

    def encode(self, frame: Samples) -> bytes:
        """A frame at the device's rate, shape (n,)."""
        ...

    def decode(self, payload: bytes) -> Samples:
        """A frame at the device's rate, shape (n,). Raises ValueError for a payload that is none."""
        ...


class PcmCoder:
    name = PCM

    def __init__(self, device_hz: int, rate_hz: int, frame_samples: int) -> None:
        self._down = Resampler(device_hz, rate_hz, frame_samples)
        self._up = Resampler(rate_hz, device_hz, self._down.out_samples)
        self.delay_s = self._down.delay_s + self._up.delay_s

    def encode(self, frame: Samples) -> bytes:
        wide = np.rint(np.clip(self._down.process(frame), -1.0, 1.0) * 32767.0)
        return bytes(wide.astype("<i2").tobytes())

    def decode(self, payload: bytes) -> Samples:
        if len(payload) != 2 * self._down.out_samples:
            raise ValueError(f"{len(payload)} bytes are no frame of {self._down.out_samples} samples")
        narrow = np.frombuffer(payload, dtype="<i2").astype(np.float32) / np.float32(32767.0)
        return self._up.process(narrow)


class OpusCoder:
    """One packet for each frame. Raises UsageError for what Opus cannot do, MissingLibrary without libopus."""

    name = OPUS

    def __init__(self, device_hz: int, rate_hz: int, frame_samples: int) -> None:
        frame_s = frame_samples / device_hz
        if rate_hz not in OPUS_RATES_HZ or not any(abs(frame_s - f) < 1e-9 for f in OPUS_FRAMES_S):
            raise UsageError(
                f"Opus takes no frames of {1e3 * frame_s:g} ms at {rate_hz} Hz",
                f"--rate {', '.join(map(str, OPUS_RATES_HZ))}; --frame 10ms, 20ms, 40ms, 60ms",
                "choose one of these, or --codec pcm",
            )
        self._av = library()
        self._rate_hz = rate_hz
        self._down = Resampler(device_hz, rate_hz, frame_samples)
        self._n_decoded = round(frame_s * DECODED_HZ)
        self._up = Resampler(DECODED_HZ, device_hz, self._n_decoded)
        self.delay_s = LOOKAHEAD_S + self._down.delay_s + self._up.delay_s
        self._encoder = self._codec("w", rate_hz)
        self._encoder.format = "flt"
        self._encoder.bit_rate = BIT_RATE
        self._encoder.options = {"application": "voip", "frame_duration": f"{1e3 * frame_s:g}"}
        self._decoder = self._codec("r", DECODED_HZ)
        self._n_in = 0

    def encode(self, frame: Samples) -> bytes:
        narrow = np.clip(self._down.process(frame), -1.0, 1.0)
        packets = self._encoder.encode(packed(self._av, narrow, self._rate_hz, self._n_in))
        self._n_in += len(narrow)
        return b"".join(bytes(packet) for packet in packets)

    def decode(self, payload: bytes) -> Samples:
        if not payload:  # to PyAV the end of the stream, after which nothing is decoded
            raise ValueError("no byte is no frame of Opus")
        try:
            frames = self._decoder.decode(self._av.Packet(payload))
        except (ValueError, OSError) as error:  # PyAV's errors are both
            raise ValueError(f"libopus cannot decode it: {error}") from error
        parts = [f.to_ndarray().reshape(-1) for f in frames]
        found = np.concatenate([np.zeros(0, np.float32), *(_floats(part) for part in parts)])
        if len(found) != self._n_decoded:
            raise ValueError(f"{len(found)} samples are no frame of {self._n_decoded}")
        return self._up.process(found)

    def _codec(self, mode: str, rate_hz: int) -> Any:
        try:
            codec = self._av.CodecContext.create("libopus", mode)
        except Exception as error:  # the class that PyAV raises for an unknown codec moved between its versions
            raise MissingLibrary(
                f"the installed PyAV has no libopus: {error}",
                "PyAV with libopus, as its wheels have it",
                "install the wheel: pip install --force-reinstall --only-binary :all: av",
            ) from error
        codec.sample_rate = rate_hz
        codec.layout = "mono"
        return codec


def _floats(samples: Any) -> Samples:
    scale = np.float32(32768.0 if samples.dtype == np.int16 else 1.0)
    return np.asarray(samples / scale, dtype=np.float32)


def make_coder(codec: str, device_hz: int, rate_hz: int, frame_samples: int) -> Coder:
    """Raises UsageError for a codec that there is not."""
    if codec == PCM:
        return PcmCoder(device_hz, rate_hz, frame_samples)
    if codec == OPUS:
        return OpusCoder(device_hz, rate_hz, frame_samples)
    raise UsageError(f"--codec {codec}: there is no such codec", f"{OPUS} or {PCM}", "name one")
