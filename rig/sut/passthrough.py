"""The first reference system: what comes in at the microphone goes out at the speaker, block by block, unchanged.

All of its latency is in the layers below it: sound server, drivers, converters. What PortAudio says of that latency is
gathered here, beside it never used: the stream's own figure, and the times that every callback is given.
"""

from __future__ import annotations

import signal
import threading
from dataclasses import dataclass
from typing import Any, Protocol

from rig.errors import AudioLost, UsageError

BACKENDS = ("sounddevice", "pyaudio")
LATENCIES = ("low", "high")
RATE_HZ = 48000


@dataclass(frozen=True, slots=True)
class PassthroughSpec:
    """What is asked for. `blocksize_frames` 0 leaves the choice to PortAudio; a device None is the default one."""

    blocksize_frames: int
    latency: str
    rate_hz: int
    microphone: str | None
    speaker: str | None


class CallbackTimes:
    """The spread between the times that PortAudio gives every callback: when its first sample was at the converter in,
    and when it will be at the converter out. Their difference is a claim of the whole path. Constant memory."""

    def __init__(self) -> None:
        self.n_callbacks = 0
        self.n_without_times = 0
        self.smallest_s: float | None = None
        self.largest_s: float | None = None
        self._sum_s = 0.0
        self.n_flagged = 0

    def add(self, adc_s: float, dac_s: float, flagged: bool) -> None:
        """One callback. A time of 0 is PortAudio's way of giving none."""
        self.n_callbacks += 1
        self.n_flagged += flagged
        if adc_s == 0.0 or dac_s == 0.0:
            self.n_without_times += 1
            return
        path_s = dac_s - adc_s
        self._sum_s += path_s
        self.smallest_s = path_s if self.smallest_s is None else min(self.smallest_s, path_s)
        self.largest_s = path_s if self.largest_s is None else max(self.largest_s, path_s)

    @property
    def mean_s(self) -> float | None:
        """The mean claim; None where no callback was given both times."""
        given = self.n_callbacks - self.n_without_times
        return self._sum_s / given if given else None


class Loop(Protocol):
    """A stream that passes blocks on. It calls `ended` when it stops by itself."""

    times: CallbackTimes

    def start(self, ended: threading.Event) -> dict[str, Any]:
        """Begins; returns what was granted and claimed: rate_hz, blocksize_frames, input_latency_s,
        output_latency_s."""
        ...

    def stop(self) -> None: ...


def open_loop(backend: str, spec: PassthroughSpec) -> Loop:
    """The loop on one of BACKENDS. Raises UsageError for what cannot be asked, BenchNotReady where no device opens,
    MissingLibrary without the library."""
    if backend not in BACKENDS:
        raise UsageError(f"--backend {backend}: there is no such backend", f"one of {', '.join(BACKENDS)}", "name one")
    if spec.latency not in LATENCIES:
        raise UsageError(
            f"--latency {spec.latency}: there is no such setting", f"one of {', '.join(LATENCIES)}", "name one"
        )
    if backend == "pyaudio":
        from rig.sut.loop_pyaudio import PyAudioLoop

        return PyAudioLoop(spec)
    from rig.sut.loop_sounddevice import SoundDeviceLoop

    return SoundDeviceLoop(spec)


def until_told(ended: threading.Event) -> None:
    """Returns at SIGTERM or SIGINT. Raises AudioLost when `ended` is set: the stream has stopped by itself."""
    told = threading.Event()

    def tell(*_: object) -> None:
        told.set()
        ended.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, tell)
    ended.wait()
    if not told.is_set():
        raise AudioLost(
            "the stream has stopped by itself",
            "microphone and speaker to be there until the end",
            "see whether the sound server runs: rig virtual status, or pactl info",
        )


def claims(loop: Loop, granted: dict[str, Any]) -> dict[str, Any]:
    """What PortAudio claimed over the whole of a run, ready for JSON. None where it claimed nothing."""
    times = loop.times
    return {
        **granted,
        "callbacks": times.n_callbacks,
        "callbacks_without_times": times.n_without_times,
        "callbacks_flagged": times.n_flagged,
        "adc_to_dac_mean_s": times.mean_s,
        "adc_to_dac_min_s": times.smallest_s,
        "adc_to_dac_max_s": times.largest_s,
    }
