"""Coders in the path to the ear: Opus by the real library, and an 8 kHz mu-law telephone leg."""

from __future__ import annotations

import numpy as np
from scipy.signal import resample_poly

from worlds import RATE_HZ
from worlds.stimuli import Samples

OPUS_DELAY = 312
"""Samples that Opus adds at 48 kHz besides its frame: the encoder's look-ahead of 6.5 ms."""

OPUS_FRAME = 960
"""Samples in a frame of 20 ms."""


def opus(ear: Samples, bitrate: int, application: str = "voip") -> Samples:
    """`ear` encoded and decoded in frames of 20 ms, OPUS_DELAY samples later, as a caller would hear it.

    The signal is coded at its own level: keep its peak between about 0.1 and 1.
    """
    import av  # heavy; only worlds with a codec need it

    encoder = av.CodecContext.create("libopus", "w")
    encoder.sample_rate = RATE_HZ
    encoder.layout = "mono"
    encoder.format = "flt"
    encoder.bit_rate = bitrate
    encoder.options = {"application": application, "frame_duration": "20", "vbr": "on"}
    decoder = av.CodecContext.create("libopus", "r")
    decoder.sample_rate = RATE_HZ
    decoder.layout = "mono"
    padded = np.concatenate([ear, np.zeros(-ear.size % OPUS_FRAME + 2 * OPUS_FRAME)]).astype(np.float32)
    packets = []
    for start in range(0, padded.size, OPUS_FRAME):
        frame = av.AudioFrame.from_ndarray(padded[None, start : start + OPUS_FRAME], format="flt", layout="mono")
        frame.sample_rate = RATE_HZ
        frame.pts = start
        packets += encoder.encode(frame)
    packets += encoder.encode(None)
    parts = []
    for packet in packets:
        parts += [_mono(frame) for frame in decoder.decode(packet)]
    heard = np.concatenate(parts)
    return np.asarray(heard[: ear.size], dtype=np.float64)


def _mono(frame: object) -> Samples:
    data = frame.to_ndarray()  # type: ignore[attr-defined]
    scale = 32768.0 if data.dtype == np.int16 else 1.0
    return np.asarray(data, dtype=np.float64).reshape(-1) / scale


def mu_law(ear: Samples) -> Samples:
    """Down to 8 kHz, 8-bit mu-law companding (mu = 255), and back up; linear-phase filters, no net delay."""
    narrow = np.clip(resample_poly(ear, 1, 6), -1.0, 1.0)
    pressed = np.sign(narrow) * np.log1p(255.0 * np.abs(narrow)) / np.log(256.0)
    coarse = np.round(pressed * 127.0) / 127.0
    opened = np.sign(coarse) * (256.0 ** np.abs(coarse) - 1.0) / 255.0
    return np.asarray(resample_poly(opened, 6, 1)[: ear.size])
