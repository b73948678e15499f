"""The devices of a voice loop, as the loop sees them: blocks that were heard, blocks that are wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from rig.errors import UsageError

Samples = npt.NDArray[np.float32]

BACKENDS = ("sounddevice", "pyaudio")
LATENCIES = ("low", "high")


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """What is asked for. `block_frames` 0 leaves the choice to PortAudio; a device None is the default one."""

    rate_hz: int
    block_frames: int
    latency: str = "low"
    microphone: str | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Granted:
    """What was granted, and claimed. A latency None is one that was not claimed."""

    rate_hz: float
    input_latency_s: float | None
    output_latency_s: float | None
    claimed_by: str


@dataclass(slots=True)
class Mean:
    """Of what every callback was told. A time of 0 is PortAudio's way of giving none: it is not added."""

    n: int = 0
    total_s: float = 0.0

    def add(self, first_s: float, then_s: float) -> None:
        if first_s and then_s:
            self.n += 1
            self.total_s += then_s - first_s

    @property
    def mean_s(self) -> float | None:
        return self.total_s / self.n if self.n else None


@dataclass(slots=True)
class Flags:
    """What the callbacks of one start were told: the blocks that PortAudio flagged (lost or missing samples), and how
    old a block's first sample was said to be, and how far ahead its playing."""

    input_flagged: int = 0
    output_flagged: int = 0
    input_age: Mean = field(default_factory=Mean)
    output_ahead: Mean = field(default_factory=Mean)

    def as_json(self) -> dict[str, Any]:
        return {
            "input_flagged": self.input_flagged,
            "output_flagged": self.output_flagged,
            "input_age_mean_s": self.input_age.mean_s,
            "output_ahead_mean_s": self.output_ahead.mean_s,
        }


class VoiceStreams(Protocol):
    """A stream in and a stream out, each with its own callback in a thread of the library's.

    `heard` is given each block of the microphone, shape (n,); `wanted` answers with the next n samples for the speaker;
    `ended` is called when either stops by itself.
    """

    flags: Flags

    def start(
        self, heard: Callable[[Samples], None], wanted: Callable[[int], Samples], ended: Callable[[], None]
    ) -> Granted:
        """Begins. Raises BenchNotReady where the devices do not open."""
        ...

    def stop(self) -> None:
        """Ends both; idempotent."""
        ...


def open_streams(backend: str, spec: DeviceSpec) -> VoiceStreams:
    """Raises UsageError for what cannot be asked, MissingLibrary without the library."""
    if backend not in BACKENDS:
        raise UsageError(f"--backend {backend}: there is no such backend", f"one of {', '.join(BACKENDS)}", "name one")
    if spec.latency not in LATENCIES:
        raise UsageError(
            f"--latency {spec.latency}: there is no such setting", f"one of {', '.join(LATENCIES)}", "name one"
        )
    if backend == "pyaudio":
        from rig.sut.voice.streams_pyaudio import PyAudioStreams

        return PyAudioStreams(spec)
    from rig.sut.voice.streams_sounddevice import SoundDeviceStreams

    return SoundDeviceStreams(spec)
