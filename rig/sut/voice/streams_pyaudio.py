"""The voice loop's devices through PyAudio. Imports the library, lazily: it is an extra."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from rig.errors import BenchNotReady, MissingLibrary, UsageError
from rig.sut.voice.streams import DeviceSpec, Flags, Granted, Samples


class PyAudioStreams:
    """A stream in and a stream out of one channel, 32-bit floats.

    PyAudio has no setting for latency: it asks PortAudio for the device's low figure always. Nor does it say when a
    stream has ended by itself: its callbacks stop coming.
    """

    def __init__(self, spec: DeviceSpec) -> None:
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
        self.flags = Flags()
        self._library: Any = pyaudio
        self._spec = spec
        self._portaudio: Any = None
        self._streams: list[Any] = []

    def start(
        self, heard: Callable[[Samples], None], wanted: Callable[[int], Samples], ended: Callable[[], None]
    ) -> Granted:
        """Begins. Raises BenchNotReady where PortAudio does not, UsageError for a name that is not there."""
        flags, go_on = self.flags, self._library.paContinue

        def on_input(data: bytes, _frames: int, time: dict[str, float], status: int) -> tuple[None, int]:
            flags.input_flagged += bool(status)
            flags.input_age.add(time["input_buffer_adc_time"], time["current_time"])
            heard(np.frombuffer(data, dtype=np.float32))
            return None, go_on

        def on_output(_data: None, frames: int, time: dict[str, float], status: int) -> tuple[bytes, int]:
            flags.output_flagged += bool(status)
            flags.output_ahead.add(time["current_time"], time["output_buffer_dac_time"])
            return wanted(frames).tobytes(), go_on

        spec, library = self._spec, self._library
        self._portaudio = library.PyAudio()
        common = {
            "rate": spec.rate_hz,
            "channels": 1,
            "format": library.paFloat32,
            "frames_per_buffer": spec.block_frames,
            "start": False,
        }
        try:
            speaker = self._portaudio.open(
                output=True, output_device_index=self._index(spec.speaker), stream_callback=on_output, **common
            )
            self._streams.append(speaker)
            microphone = self._portaudio.open(
                input=True, input_device_index=self._index(spec.microphone), stream_callback=on_input, **common
            )
            self._streams.append(microphone)
            for stream in self._streams:
                stream.start_stream()
        except (OSError, ValueError) as error:
            raise BenchNotReady(
                f"microphone and speaker cannot be opened: {error}",
                f"devices that take 1 channel at {spec.rate_hz} Hz",
                "rig devices lists them; give --microphone and --speaker",
            ) from error
        return Granted(
            float(spec.rate_hz),
            microphone.get_input_latency(),
            speaker.get_output_latency(),
            "PyAudio get_input_latency, get_output_latency",
        )

    def stop(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            with contextlib.suppress(OSError):  # one that has ended already
                stream.close()
        if self._portaudio is not None:
            self._portaudio.terminate()
            self._portaudio = None

    def _index(self, name: str | None) -> int | None:
        """PyAudio knows devices by number alone; the first whose name is this one."""
        if name is None:
            return None
        for index in range(self._portaudio.get_device_count()):
            if self._portaudio.get_device_info_by_index(index)["name"] == name:
                return index
        raise UsageError(f"no audio device is called {name!r}", "the whole name of one", "rig devices lists them")
