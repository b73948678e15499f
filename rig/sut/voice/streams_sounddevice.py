"""The voice loop's devices through python-sounddevice. Imports the library, lazily: PortAudio may be missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from rig.errors import BenchNotReady, MissingLibrary
from rig.sut.voice.streams import DeviceSpec, Flags, Granted, Samples


class SoundDeviceStreams:
    """A RawInputStream and a RawOutputStream of one channel, 32-bit floats."""

    def __init__(self, spec: DeviceSpec) -> None:
        try:
            import sounddevice
        except (ImportError, OSError) as error:  # OSError: the library is there and PortAudio is not
            raise MissingLibrary(
                f"sounddevice cannot be loaded: {error}",
                "the library sounddevice and PortAudio",
                "pip install sounddevice; on Debian also apt-get install libportaudio2",
            ) from error
        self.flags = Flags()
        self._library: Any = sounddevice
        self._spec = spec
        self._streams: list[Any] = []

    def start(
        self, heard: Callable[[Samples], None], wanted: Callable[[int], Samples], ended: Callable[[], None]
    ) -> Granted:
        """Begins. Raises BenchNotReady where PortAudio does not."""
        flags = self.flags

        def on_input(data: Any, _frames: int, time: Any, status: Any) -> None:
            flags.input_flagged += bool(status)
            flags.input_age.add(time.inputBufferAdcTime, time.currentTime)
            heard(np.frombuffer(data, dtype=np.float32))

        def on_output(data: Any, frames: int, time: Any, status: Any) -> None:
            flags.output_flagged += bool(status)
            flags.output_ahead.add(time.currentTime, time.outputBufferDacTime)
            data[:] = wanted(frames).tobytes()

        spec, library = self._spec, self._library
        common = {
            "samplerate": spec.rate_hz,
            "blocksize": spec.block_frames,
            "channels": 1,
            "dtype": "float32",
            "latency": spec.latency,
            "finished_callback": ended,
        }
        try:
            speaker = library.RawOutputStream(device=spec.speaker, callback=on_output, **common)
            self._streams.append(speaker)
            microphone = library.RawInputStream(device=spec.microphone, callback=on_input, **common)
            self._streams.append(microphone)
            for stream in self._streams:
                stream.start()
        except (library.PortAudioError, ValueError) as error:
            raise BenchNotReady(
                f"microphone and speaker cannot be opened: {error}",
                f"devices that take 1 channel at {spec.rate_hz} Hz",
                "rig devices lists them; give --microphone and --speaker",
            ) from error
        return Granted(microphone.samplerate, microphone.latency, speaker.latency, "sounddevice Stream.latency")

    def stop(self) -> None:
        streams, self._streams = self._streams, []
        for stream in streams:
            stream.abort(ignore_errors=True)
            stream.close(ignore_errors=True)
