"""Plays tones into a simulated world and records it, without the board's protocol and without rig's own bench."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from rig.domain.records import StreamSpec
from rig.domain.seams import AudioBlock, AudioStream
from rig.domain.timebase import Instant
from rig.domain.waveforms import BOARD_FULL_SCALE, BOARD_TONE_RATE_HZ, board_samples
from rig.sim.bench import SimBench

Floats = npt.NDArray[np.float64]


def open_stream(bench: SimBench, block_frames: int | None = None, channels: int = 2) -> AudioStream:
    return bench.audio.open(StreamSpec("sim", bench.spec.rate_hz, channels, block_frames))


def fire(
    bench: SimBench, starts_s: list[float], kind: str = "chirp", amplitude: float = 0.5, ppm: float | None = None
) -> None:
    """The board's tones at true times `starts_s`, with the rate error that the world's board has, or `ppm`."""
    off = bench.truth()["clocks"]["board_ppm"] if ppm is None else ppm
    for start_s in starts_s:
        bench.scene.tone(start_s, board_samples(kind, amplitude), BOARD_TONE_RATE_HZ * (1.0 + off * 1e-6))


def read_blocks(bench: SimBench, stream: AudioStream, until_s: float) -> list[AudioBlock]:
    blocks = []
    deadline = Instant(bench.time.timebase, until_s)
    while (block := stream.read(deadline)) is not None:
        blocks.append(block)
    return blocks


def read_frames(bench: SimBench, stream: AudioStream, until_s: float) -> Floats:
    blocks = read_blocks(bench, stream, until_s)
    return np.concatenate([b.frames for b in blocks]).astype(np.float64)


def record(
    bench: SimBench,
    starts_s: list[float],
    length_s: float,
    kind: str = "chirp",
    block_frames: int | None = None,
    amplitude: float = 0.5,
) -> Floats:
    """One run from now: the system starts, tones at `starts_s` (after now), `length_s` of recording; (n, 2)."""
    begin_s = bench.time.now_s
    bench.system.start(1)
    stream = open_stream(bench, block_frames)
    fire(bench, [begin_s + s for s in starts_s], kind, amplitude)
    frames = read_frames(bench, stream, begin_s + length_s)
    stream.close()
    bench.system.stop()
    return frames


def lag_frames(reference: Floats, ear: Floats, upsample: int = 16) -> float:
    """Lag of the largest |correlation|, by zero-padding the cross-spectrum: independent of rig's estimators.

    Resolution 1/upsample frame, then a parabola.
    """
    n = 1 << int(np.ceil(np.log2(len(reference) + len(ear))))
    cross = np.fft.rfft(ear, n) * np.conj(np.fft.rfft(reference, n))
    padded = np.zeros(n * upsample // 2 + 1, dtype=np.complex128)
    padded[: len(cross)] = cross
    correlation = np.abs(np.fft.irfft(padded, n * upsample))
    top = int(np.argmax(correlation[: len(ear) * upsample]))
    before, at, after = correlation[top - 1], correlation[top], correlation[top + 1]
    return float((top + 0.5 * (before - after) / (before - 2 * at + after)) / upsample)


def cut(frames: Floats, stimulus: dict[str, float], before: int = 240, after: int = 24_000) -> tuple[Floats, Floats]:
    """Reference (the stimulus alone) and ear (up to `after` frames later) around one stimulus of the truth."""
    first = int(stimulus["reference_frame"]) - before
    length = int(stimulus["length_s"] * 48_000) + 2 * before
    return frames[first : first + length, 0], frames[first : first + after, 1]


def db(power_ratio: float) -> float:
    return float(10.0 * np.log10(power_ratio))


__all__ = ["BOARD_FULL_SCALE", "cut", "db", "fire", "lag_frames", "open_stream", "read_blocks", "read_frames", "record"]
