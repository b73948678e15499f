"""The loop through python-sounddevice. Imports the library, lazily: PortAudio may be missing."""

from __future__ import annotations

import threading
from typing import Any

from rig.errors import BenchNotReady, MissingLibrary
from rig.sut.passthrough import CallbackTimes, PassthroughSpec


class SoundDeviceLoop:
    """One duplex stream of one channel, its callback copying input to output."""

    def __init__(self, spec: PassthroughSpec) -> None:
        try:
            import sounddevice
        except (ImportError, OSError) as error:  # OSError: the library is there and PortAudio is not
            raise MissingLibrary(
                f"sounddevice cannot be loaded: {error}",
                "the library sounddevice and PortAudio",
                "pip install sounddevice; on Debian also apt-get install libportaudio2",
            ) from error
        self.times = CallbackTimes()
        self._library = sounddevice
        self._spec = spec
        self._stream: Any = None

    def start(self, ended: threading.Event) -> dict[str, Any]:
        """Opens and begins. Raises BenchNotReady where PortAudio does not."""
        times = self.times

        def pass_on(indata: Any, outdata: Any, frames: int, time: Any, status: Any) -> None:
            outdata[:] = indata
            times.add(time.inputBufferAdcTime, time.outputBufferDacTime, bool(status))

        spec = self._spec
        try:
            self._stream = self._library.RawStream(
                samplerate=spec.rate_hz,
                blocksize=spec.blocksize_frames,
                device=(spec.microphone, spec.speaker),
                channels=1,
                dtype="float32",
                latency=spec.latency,
                callback=pass_on,
                finished_callback=ended.set,
            )
            self._stream.start()
        except (self._library.PortAudioError, ValueError) as error:
            raise BenchNotReady(
                f"microphone and speaker cannot be opened: {error}",
                f"devices that take 1 channel at {spec.rate_hz} Hz",
                "rig devices lists them; give --microphone and --speaker",
            ) from error
        latency_in_s, latency_out_s = self._stream.latency
        return {
            "rate_hz": self._stream.samplerate,
            "blocksize_frames": self._stream.blocksize,
            "input_latency_s": latency_in_s,
            "output_latency_s": latency_out_s,
        }

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.abort(ignore_errors=True)
            self._stream.close(ignore_errors=True)
