"""The loop through PyAudio. Imports the library, lazily: it is an extra."""

from __future__ import annotations

import threading
from typing import Any

from rig.errors import BenchNotReady, MissingLibrary, UsageError
from rig.sut.passthrough import CallbackTimes, PassthroughSpec


class PyAudioLoop:
    """One duplex stream of one channel, its callback handing the bytes that came in back out.

    PyAudio has no setting for latency: it asks PortAudio for the device's low figure always.
    """

    def __init__(self, spec: PassthroughSpec) -> None:
        if spec.latency != "low":
            raise UsageError(
                f"--latency {spec.latency} with PyAudio, which cannot ask for it",
                "low: PyAudio always asks for the device's low latency",
                "--backend sounddevice, or --latency low",
            )
        try:
            import pyaudio
        except ImportError as error:
            raise MissingLibrary(
                f"PyAudio cannot be loaded: {error}",
                "the library PyAudio and PortAudio",
                "pip install pyaudio; on Debian first apt-get install portaudio19-dev gcc python3-dev",
            ) from error
        self.times = CallbackTimes()
        self._library = pyaudio
        self._spec = spec
        self._portaudio: Any = None
        self._stream: Any = None

    def start(self, ended: threading.Event) -> dict[str, Any]:
        """Opens and begins. Raises BenchNotReady where PortAudio does not, UsageError for a name that is not there."""
        times = self.times
        go_on = self._library.paContinue

        def pass_on(in_data: bytes, _count: int, time: dict[str, float], status: int) -> tuple[bytes, int]:
            times.add(time["input_buffer_adc_time"], time["output_buffer_dac_time"], bool(status))
            return in_data, go_on

        spec = self._spec
        self._portaudio = self._library.PyAudio()
        try:
            self._stream = self._portaudio.open(
                rate=spec.rate_hz,
                channels=1,
                format=self._library.paFloat32,
                input=True,
                output=True,
                input_device_index=self._index(spec.microphone),
                output_device_index=self._index(spec.speaker),
                frames_per_buffer=spec.blocksize_frames,
                stream_callback=pass_on,
            )
        except (OSError, ValueError) as error:
            self._portaudio.terminate()
            raise BenchNotReady(
                f"microphone and speaker cannot be opened: {error}",
                f"devices that take 1 channel at {spec.rate_hz} Hz",
                "rig devices lists them; give --microphone and --speaker",
            ) from error
        return {
            "rate_hz": float(spec.rate_hz),
            "blocksize_frames": spec.blocksize_frames,
            "input_latency_s": self._stream.get_input_latency(),
            "output_latency_s": self._stream.get_output_latency(),
        }

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._portaudio.terminate()

    def _index(self, name: str | None) -> int | None:
        """PyAudio knows devices by number alone; the first whose name is this one."""
        if name is None:
            return None
        for index in range(self._portaudio.get_device_count()):
            if self._portaudio.get_device_info_by_index(index)["name"] == name:
                return index
        self._portaudio.terminate()
        raise UsageError(f"no audio device is called {name!r}", "the whole name of one", "rig devices lists them")
