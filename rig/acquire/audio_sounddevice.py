"""Recording and playing through sounddevice. The one file that imports it."""

from __future__ import annotations

import atexit
from types import ModuleType
from typing import Any

from rig.acquire.capture import CaptureRing
from rig.acquire.chatter import Chatter
from rig.acquire.devices import DeviceInfo
from rig.acquire.portaudio import LibraryError, NativeStream, Opening, PortBackend, claimed
from rig.domain.seams import HostTime
from rig.errors import MissingLibrary


class SounddeviceBackend(PortBackend):
    """`AudioBackend` on sounddevice. `library` takes the place of the module, for tests below the backend."""

    name = "sounddevice"

    def __init__(
        self, host: HostTime, *, plays: bool = False, chatter: Chatter | None = None, library: Any = None
    ) -> None:
        """Raises MissingLibrary without sounddevice or without PortAudio."""
        super().__init__(host, plays=plays, chatter=chatter)
        self._sd: Any = _sounddevice() if library is None else library

    def version(self) -> str:
        return str(self._sd.get_portaudio_version()[1]).partition(", revision")[0]

    def list_anew(self) -> list[DeviceInfo]:
        self._sd._terminate()
        self._sd._initialize()
        apis = self._sd.query_hostapis()
        return [
            DeviceInfo(
                index=index,
                name=str(row["name"]),
                host_api=str(apis[row["hostapi"]]["name"]),
                inputs=int(row["max_input_channels"]),
                outputs=int(row["max_output_channels"]),
                default_rate_hz=float(row["default_samplerate"]) or None,
                low_latency_claimed_s=claimed(float(row["default_low_input_latency"])),
                high_latency_claimed_s=claimed(float(row["default_high_input_latency"])),
            )
            for index, row in enumerate(self._sd.query_devices())
        ]

    def accepts(self, opening: Opening) -> bool:
        common = {"dtype": "float32", "samplerate": opening.rate_hz}
        try:
            self._sd.check_input_settings(device=opening.device.index, channels=opening.inputs, **common)
            if opening.output is not None:
                self._sd.check_output_settings(device=opening.output.index, channels=opening.outputs, **common)
        except self._sd.PortAudioError:
            return False
        return True

    def open_native(self, opening: Opening, ring: CaptureRing) -> NativeStream:
        try:
            return _Stream(self._sd, opening, ring)
        except (self._sd.PortAudioError, ValueError) as error:
            raise _library_error(error) from error

    def forget_exit(self) -> None:
        atexit.unregister(self._sd._exit_handler)


class _Stream(NativeStream):
    """A callback stream: input alone, or input and output together."""

    def __init__(self, sd: Any, opening: Opening, ring: CaptureRing) -> None:
        self._sd = sd
        self._ring = ring
        self._begun = False
        common: dict[str, Any] = {
            "samplerate": opening.rate_hz,
            "blocksize": opening.block_frames or 0,
            "dtype": "float32",
            "latency": opening.latency_s,
            "dither_off": True,
            "clip_off": True,
        }
        if opening.output is None:
            self._stream = sd.InputStream(
                device=opening.device.index, channels=opening.inputs, callback=self._hear, **common
            )
            latencies_s, indices = (self._stream.latency, 0.0), (self._stream.device,)
        else:
            self._stream = sd.Stream(
                device=(opening.device.index, opening.output.index),
                channels=(opening.inputs, opening.outputs),
                callback=self._hear_and_play,
                **common,
            )
            latencies_s, indices = self._stream.latency, self._stream.device
        self.rate_hz = float(self._stream.samplerate)
        self.block_frames = int(self._stream.blocksize) or None
        self.input_latency_claimed_s = claimed(float(latencies_s[0]))
        self.output_latency_claimed_s = claimed(float(latencies_s[1]))
        self.device_name = str(sd.query_devices(indices[0])["name"])

    def start(self) -> None:
        try:
            self._stream.start()
        except self._sd.PortAudioError as error:
            raise _library_error(error) from error

    def close(self) -> None:
        try:
            self._stream.abort(ignore_errors=True)
        finally:
            self._stream.close(ignore_errors=True)

    # Nothing may leave a callback but a return, and nothing may wait in it.

    def _hear(self, indata: Any, frames: int, times: Any, status: Any) -> None:
        try:
            # PortAudio hands out silence while the device has not begun: that is no recording yet.
            self._begun = self._begun or not status.input_underflow
            if self._begun:
                lost = status.input_overflow or status.input_underflow
                self._ring.heard(indata, claimed(times.inputBufferAdcTime), claimed(times.currentTime), lost, False)
        except BaseException as error:
            self._ring.fail(error)

    def _hear_and_play(self, indata: Any, outdata: Any, frames: int, times: Any, status: Any) -> None:
        try:
            self._begun = self._begun or not status.input_underflow
            if self._begun:
                lost, starved = status.input_overflow or status.input_underflow, status.output_underflow
                self._ring.fill(outdata)
                self._ring.heard(indata, claimed(times.inputBufferAdcTime), claimed(times.currentTime), lost, starved)
            else:
                outdata.fill(0.0)
        except BaseException as error:
            outdata.fill(0.0)
            self._ring.fail(error)


def _library_error(error: Exception) -> LibraryError:
    text, code = str(error.args[0] if error.args else error), None
    if len(error.args) > 1 and isinstance(error.args[1], int):
        code = error.args[1]
    return LibraryError(text, code)


def _sounddevice() -> ModuleType:
    try:
        import sounddevice
    except ImportError as error:
        raise MissingLibrary(
            "sounddevice is not installed", "sounddevice, which records", "pip install sounddevice"
        ) from error
    except OSError as error:  # the module is there, the library below it is not
        raise MissingLibrary(
            f"PortAudio cannot be loaded: {error}",
            "the PortAudio library, version 19",
            "on Debian and Ubuntu: apt install libportaudio2; elsewhere: the package portaudio",
        ) from error
    return sounddevice  # type: ignore[no-any-return]
