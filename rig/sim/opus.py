"""A real Opus coder and decoder (libopus, through PyAV) as a frame processor."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from rig.errors import MissingLibrary
from rig.sim.bandlimited import Floats

RATE_HZ = 48_000
FRAME_SAMPLES = 960
LOOKAHEAD_SAMPLES = 312
"""Samples by which libopus delays its input at 48 kHz outside its low-delay mode (6.5 ms)."""


class OpusProcessor:
    """48 kHz mono, 20 ms frames, one packet each, continuous. Raises MissingLibrary without PyAV or libopus."""

    delay_samples = float(LOOKAHEAD_SAMPLES)

    def __init__(self, bit_rate: int = 24_000, application: str = "voip") -> None:
        self._av = _library()
        self._encoder = self._codec("w")
        self._encoder.bit_rate = bit_rate
        self._encoder.options = {"application": application, "frame_duration": "20"}
        self._decoder = self._codec("r")
        self._n_samples = 0
        self.n_bytes = 0

    def process(self, frame: Floats) -> Floats:
        """Codes and decodes one frame of 960 samples; the answer is LOOKAHEAD_SAMPLES late."""
        samples = np.clip(frame, -1.0, 1.0).astype(np.float32)[None, :]
        packed = self._av.AudioFrame.from_ndarray(samples, format="flt", layout="mono")
        packed.sample_rate = RATE_HZ
        packed.pts = self._n_samples
        packed.time_base = Fraction(1, RATE_HZ)
        self._n_samples += FRAME_SAMPLES
        decoded = []
        for packet in self._encoder.encode(packed):
            self.n_bytes += packet.size
            decoded += [self._floats(out) for out in self._decoder.decode(packet)]
        played = np.concatenate(decoded) if decoded else np.zeros(0)
        if len(played) != FRAME_SAMPLES:
            raise MissingLibrary(
                f"this libopus gave {len(played)} samples for a frame of {FRAME_SAMPLES}",
                "one decoded frame for each coded one",
                "install another version of the package av, for example: pip install 'av>=12'",
            )
        return np.asarray(played, dtype=np.float64)

    def _codec(self, mode: str) -> Any:
        try:
            codec = self._av.CodecContext.create("libopus", mode)
        except Exception as error:  # the class that PyAV raises for an unknown codec moved between its versions
            raise MissingLibrary(
                f"the installed PyAV has no libopus: {error}",
                "PyAV with libopus, as its wheels have it",
                "install the wheel: pip install --force-reinstall --only-binary :all: av",
            ) from error
        codec.sample_rate = RATE_HZ
        codec.layout = "mono"
        if mode == "w":
            codec.format = "flt"
        return codec

    @staticmethod
    def _floats(frame: Any) -> Floats:
        samples = frame.to_ndarray().reshape(-1)
        scale = 32768.0 if samples.dtype == np.int16 else 1.0
        return np.asarray(samples / scale, dtype=np.float64)


def _library() -> Any:
    try:
        import av
    except ImportError as error:
        raise MissingLibrary(
            "the scenario runs through a real Opus coder, and the package av is not installed",
            "PyAV 12 or later, which carries libopus",
            "install it: pip install 'rig-bench[sim]', or pip install av",
        ) from error
    return av
