"""Recording and playing through PyAudio. The one file that imports it.

Where it differs: it opens input and output with one number of channels, it cannot be asked for a latency (it takes the
device's lowest), and each callback has to hand over its output as a new `bytes`.
"""

from __future__ import annotations

import atexit
from types import ModuleType
from typing import Any

import numpy as np

from rig.acquire.capture import CaptureRing
from rig.acquire.chatter import Chatter
from rig.acquire.devices import DeviceInfo
from rig.acquire.portaudio import LibraryError, NativeStream, Opening, PortBackend, claimed
from rig.domain.seams import HostTime
from rig.errors import MissingLibrary

BLOCK_FRAMES = 1024
"""Where the plan asks for none: the lowest latency with small blocks overflows on a busy computer."""

_MOST_FRAMES = 1 << 16  # of one callback


class PyaudioBackend(PortBackend):
    """`AudioBackend` on PyAudio. `library` takes the place of the module, for tests below the backend."""

    name = "pyaudio"

    def __init__(
        self, host: HostTime, *, plays: bool = False, chatter: Chatter | None = None, library: Any = None
    ) -> None:
        """Raises MissingLibrary without PyAudio."""
        super().__init__(host, plays=plays, chatter=chatter)
        self._pa: Any = _pyaudio() if library is None else library
        self._session: Any = None  # one initialisation of PortAudio
        atexit.register(self._end)

    def version(self) -> str:
        return _text(self._pa.get_portaudio_version_text()).partition(", revision")[0]

    def list_anew(self) -> list[DeviceInfo]:
        self._end()
        self._session = self._pa.PyAudio()
        apis = [self._session.get_host_api_info_by_index(i) for i in range(self._session.get_host_api_count())]
        rows = [self._session.get_device_info_by_index(i) for i in range(self._session.get_device_count())]
        return [
            DeviceInfo(
                index=int(row["index"]),
                name=_text(row["name"]),
                host_api=_text(apis[row["hostApi"]]["name"]),
                inputs=int(row["maxInputChannels"]),
                outputs=int(row["maxOutputChannels"]),
                default_rate_hz=float(row["defaultSampleRate"]) or None,
                low_latency_claimed_s=claimed(float(row["defaultLowInputLatency"])),
                high_latency_claimed_s=claimed(float(row["defaultHighInputLatency"])),
            )
            for row in rows
        ]

    def accepts(self, opening: Opening) -> bool:
        out = opening.output
        asked: dict[str, Any] = {
            "input_device": opening.device.index,
            "input_channels": opening.inputs,
            "input_format": self._pa.paFloat32,
        }
        if out is not None:
            asked |= {
                "output_device": out.index,
                "output_channels": opening.inputs,
                "output_format": self._pa.paFloat32,
            }
        try:
            return bool(self._session.is_format_supported(opening.rate_hz, **asked))
        except (ValueError, OSError):
            return False

    def open_native(self, opening: Opening, ring: CaptureRing) -> NativeStream:
        try:
            return _Stream(self._pa, self._session, opening, ring)
        except (OSError, ValueError) as error:
            raise _library_error(error) from error

    def forget_exit(self) -> None:
        atexit.unregister(self._end)
        self._session = None

    def _end(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            session.terminate()


class _Stream(NativeStream):
    """A callback stream: input alone, or input and output together with as many channels."""

    def __init__(self, pa: Any, session: Any, opening: Opening, ring: CaptureRing) -> None:
        self._pa = pa
        self._ring = ring
        self._channels = opening.inputs
        self._begun = False
        self._out = None if opening.output is None else np.zeros((_MOST_FRAMES, opening.inputs), np.float32)
        asked: dict[str, Any] = {
            "rate": opening.rate_hz,
            "channels": opening.inputs,
            "format": pa.paFloat32,
            "input": True,
            "input_device_index": opening.device.index,
            "frames_per_buffer": opening.block_frames or BLOCK_FRAMES,
            "stream_callback": self._called,
            "start": False,
        }
        if opening.output is not None:
            asked |= {"output": True, "output_device_index": opening.output.index}
        self._stream = session.open(**asked)
        self.rate_hz = float(opening.rate_hz)  # PyAudio does not tell another one
        self.block_frames = opening.block_frames or BLOCK_FRAMES
        self.input_latency_claimed_s = claimed(float(self._stream.get_input_latency()))
        self.output_latency_claimed_s = (
            None if opening.output is None else claimed(float(self._stream.get_output_latency()))
        )
        self.device_name = _text(session.get_device_info_by_index(opening.device.index)["name"])

    def start(self) -> None:
        try:
            self._stream.start_stream()
        except OSError as error:
            raise _library_error(error) from error

    def close(self) -> None:
        self._stream.close()

    def _called(self, in_data: bytes | None, n: int, times: dict[str, float], status: int) -> tuple[bytes | None, int]:
        """PyAudio's callback: nothing may leave it but a return, and nothing may wait in it."""
        out = None if self._out is None else self._out[:n]
        try:
            starved_input = bool(status & self._pa.paInputUnderflow)
            # PortAudio hands out silence while the device has not begun: that is no recording yet.
            self._begun = (self._begun or not starved_input) and in_data is not None
            if self._begun and in_data is not None:
                lost = starved_input or bool(status & self._pa.paInputOverflow)
                if out is not None:
                    self._ring.fill(out)
                self._ring.heard(
                    np.frombuffer(in_data, np.float32).reshape(-1, self._channels),
                    claimed(times["input_buffer_adc_time"]),
                    claimed(times["current_time"]),
                    lost,
                    bool(status & self._pa.paOutputUnderflow),
                )
            elif out is not None:
                out.fill(0.0)
            return None if out is None else out.tobytes(), self._pa.paContinue
        except BaseException as error:
            self._ring.fail(error)
            return bytes(4 * self._channels * n), self._pa.paAbort


def _library_error(error: Exception) -> LibraryError:
    code = error.args[0] if error.args and isinstance(error.args[0], int) else getattr(error, "errno", None)
    text = str(error.args[-1] if error.args else error)
    return LibraryError(text, code if isinstance(code, int) else None)


def _text(name: Any) -> str:
    """PyAudio hands out the bytes of a name that it cannot decode."""
    return name.decode("utf-8", "replace") if isinstance(name, bytes) else str(name)


def _pyaudio() -> ModuleType:
    try:
        import pyaudio
    except ImportError as error:
        raise MissingLibrary(
            "PyAudio is not installed",
            "PyAudio, for --backend pyaudio",
            "apt install portaudio19-dev, then pip install pyaudio; or use the default backend, which is sounddevice",
        ) from error
    return pyaudio  # type: ignore[no-any-return]
