"""What both PortAudio backends share: choosing and finding devices again, opening, closing, and what errors mean.

`audio_sounddevice.py` and `audio_pyaudio.py` add the calls of their library, and nothing else.
"""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rig.acquire.capture import CaptureRing
from rig.acquire.chatter import Chatter
from rig.acquire.devices import DeviceInfo, argument, choose_device, find_again, output_of, quoted
from rig.domain.records import StreamGrant, StreamSpec
from rig.domain.seams import AudioBlock, AudioStream, HostTime
from rig.domain.timebase import HostClock, Instant
from rig.errors import AudioLost, BenchNotReady, DeviceNotFound, RigError

LATENCY_S = 0.1
"""Asked of the device where the plan asks for none. The delay of the recording is no part of the figure, but a short
buffer overflows when the computer is busy."""

RATES_HZ = (8000, 11025, 16000, 22050, 32000, 44100, 48000, 88200, 96000, 176400, 192000)
CLOSE_S = 2.0  # a device that was pulled out may never answer to being closed

INVALID_RATE, INVALID_CHANNELS, UNAVAILABLE = -9997, -9998, -9985
"""PortAudio's error codes (portaudio.h) that have a remedy of their own."""


class NativeStream(ABC):
    """An open stream of a library: started, ended, and what it says of itself."""

    rate_hz: float
    block_frames: int | None
    input_latency_claimed_s: float | None
    output_latency_claimed_s: float | None
    device_name: str | None  # of the device that was really opened, where the library tells

    @abstractmethod
    def start(self) -> None: ...
    @abstractmethod
    def close(self) -> None:
        """Ends the stream at once and gives the device back. May hang when the device is gone."""
        ...


@dataclass(frozen=True, slots=True)
class Opening:
    """What a library is asked to open."""

    device: DeviceInfo
    output: DeviceInfo | None
    inputs: int
    outputs: int  # 0: it does not play
    rate_hz: int
    block_frames: int | None
    latency_s: float


class LibraryError(Exception):
    """An error of the library in its own words, with PortAudio's code where there is one."""

    def __init__(self, text: str, code: int | None) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


class PortStream:
    """`AudioStream` over a ring that a library's callback fills."""

    def __init__(self, native: NativeStream, ring: CaptureRing, granted: StreamGrant, on_hang: Callable[[], None]):
        self._native = native
        self._ring = ring
        self._granted = granted
        self._on_hang = on_hang
        self._closed = False

    @property
    def granted(self) -> StreamGrant:
        return self._granted

    def read(self, deadline: Instant[HostClock]) -> AudioBlock | None:
        """The next block, None when none comes before the deadline."""
        return self._ring.next_block(deadline)

    def play(self, wave: npt.NDArray[np.float32], at_frame: int) -> int:
        """Plays on all outputs; input and output frames of one callback count as the same frame."""
        return self._ring.play(wave, at_frame)

    def close(self) -> None:
        """Ends the stream. A device that does not let go within CLOSE_S is left behind, so that the command can end."""
        if self._closed:
            return
        self._closed = True
        closer = threading.Thread(target=self._native.close, name="close audio", daemon=True)
        closer.start()
        closer.join(CLOSE_S)
        if closer.is_alive():
            self._on_hang()


class PortBackend(ABC):
    """`AudioBackend` on PortAudio. `plays`: streams are opened with outputs too. `chatter` explains what fails."""

    name: str

    def __init__(self, host: HostTime, *, plays: bool = False, chatter: Chatter | None = None) -> None:
        self._host = host
        self._plays = plays
        self._chatter = chatter
        self._known: dict[str, DeviceInfo] = {}
        self._opened: set[str] = set()
        self._hung = False
        self._listed: Sequence[DeviceInfo] = ()

    @abstractmethod
    def version(self) -> str:
        """PortAudio's version in its own words."""
        ...

    @abstractmethod
    def list_anew(self) -> list[DeviceInfo]:
        """The devices there are now: PortAudio lists once, so the library is ended and begun again."""
        ...

    @abstractmethod
    def accepts(self, opening: Opening) -> bool:
        """Whether the device would open like this."""
        ...

    @abstractmethod
    def open_native(self, opening: Opening, ring: CaptureRing) -> NativeStream:
        """Opens, without starting, a stream whose callback feeds `ring`. Raises LibraryError."""
        ...

    @abstractmethod
    def forget_exit(self) -> None:
        """A stream hangs: the library must not wait for it when the program ends."""
        ...

    def scan(self) -> list[DeviceInfo]:
        """The devices there are now."""
        if self._hung:
            raise AudioLost(
                "the sound system does not let go of a stream", "a device that closes when asked to", "start rig again"
            )
        self._listed = self.list_anew()
        return list(self._listed)

    def devices(self) -> Sequence[dict[str, Any]]:
        return [asdict(device) for device in self.scan()]

    def choose(self, wanted: str, inputs: int) -> DeviceInfo:
        """The device that `wanted` names (see `choose_device`); from then on its full name means it, too."""
        device = choose_device(self.scan(), wanted, inputs, 1 if self._plays else 0)
        self._known[wanted] = self._known[device.name] = device
        return device

    def open(self, spec: StreamSpec) -> AudioStream:
        """Opens and starts a stream.

        Raises DeviceNotFound and DeviceAmbiguous as `choose` does, BenchNotReady where the device will not open as
        asked, and AudioLost where one that was open before has gone.
        """
        if spec.device not in self._known:
            self.choose(spec.device, spec.channels)
        opening = self._opening(spec, self._find(spec.device))
        device = opening.device
        ring = CaptureRing(spec.channels, spec.rate_hz, self._host)
        mark = 0 if self._chatter is None else self._chatter.mark()
        try:
            native = self.open_native(opening, ring)
        except LibraryError as error:
            raise self._open_error(opening, error, mark) from error
        granted = StreamGrant(
            device=device.name,
            host_api=device.host_api,
            rate_hz=round(native.rate_hz),
            channels=spec.channels,
            block_frames=native.block_frames,
            input_latency_claimed_s=native.input_latency_claimed_s,
            output_latency_claimed_s=native.output_latency_claimed_s,
        )
        stream = PortStream(native, ring, granted, self._hang)
        try:
            self._check(granted, spec, native.device_name, device)
            native.start()
        except LibraryError as error:
            stream.close()
            raise self._open_error(opening, error, mark) from error
        except BaseException:
            stream.close()
            raise
        self._opened.add(device.name)
        return stream

    def rates_hz(self, device: DeviceInfo, inputs: int) -> list[int]:
        """The usual rates that the device accepts without conversion by us; it is opened once for each."""
        probe = StreamSpec(device.name, 0, inputs)
        return [rate for rate in RATES_HZ if self.accepts(self._opening(probe, device, rate))]

    def _opening(self, spec: StreamSpec, device: DeviceInfo, rate_hz: int | None = None) -> Opening:
        output = output_of(self._listed, device, 1) if self._plays else None
        return Opening(
            device=device,
            output=output,
            inputs=spec.channels,
            outputs=0 if output is None else min(2, output.outputs),
            rate_hz=spec.rate_hz if rate_hz is None else rate_hz,
            block_frames=spec.block_frames,
            latency_s=LATENCY_S if spec.latency_s is None else spec.latency_s,
        )

    def _find(self, wanted: str) -> DeviceInfo:
        """The chosen device by its present index."""
        known = self._known[wanted]
        found = find_again(self.scan(), known)
        if found is None:
            if known.name in self._opened:
                raise _gone(known.name, "is not there any more")
            raise DeviceNotFound(
                f"{known.name} was there and went away", "a device that stays", "check its cable, then rig devices"
            )
        return found

    def _check(self, granted: StreamGrant, spec: StreamSpec, opened: str | None, device: DeviceInfo) -> None:
        if opened is not None and opened != device.name:
            raise BenchNotReady(
                f"{device.name} was asked for and {opened} was opened: the list of devices has just changed",
                "the device that was chosen",
                "measure again",
            )
        if granted.rate_hz != spec.rate_hz:
            raise BenchNotReady(
                f"{device.name} was asked for {spec.rate_hz} Hz and runs at {granted.rate_hz} Hz",
                f"{spec.rate_hz} Hz",
                f"ask for what it gives: --rate {granted.rate_hz}",
            )

    def _open_error(self, opening: Opening, error: LibraryError, mark: int) -> RigError:
        device = opening.device
        said = "" if self._chatter is None else self._chatter.since(mark)
        words = f"{error.text} {said}".casefold()
        detail = error.text + (f" ({said})" if said else "")
        if error.code == INVALID_RATE:
            takes = self.rates_hz(device, opening.inputs)
            if takes and opening.rate_hz not in takes:
                listed = ", ".join(str(rate) for rate in takes)
                return BenchNotReady(
                    f"{device.name} does not take {opening.rate_hz} Hz",
                    f"one of {listed} Hz",
                    f"ask for one of these: --rate {48000 if 48000 in takes else takes[-1]}; a device that resamples"
                    " would add delay that nobody measures",
                )
        if error.code == UNAVAILABLE or "busy" in words:
            return BenchNotReady(
                f"{device.name} is in use by another program: {detail}",
                "a device that is free",
                "close the program that holds it; on Linux fuser -v /dev/snd/* names it, often a sound server",
            )
        if error.code == INVALID_CHANNELS:
            return BenchNotReady(
                f"{device.name} does not open with {opening.inputs} inputs"
                + (f" and {opening.outputs} outputs" if opening.outputs else "")
                + f": {detail}",
                "a device that gives as many channels as it lists",
                f"rig devices shows what it lists; name another one than {quoted(argument(self._listed, device))}",
            )
        return BenchNotReady(
            f"{device.name} cannot be opened: {detail}",
            "a device that opens",
            "close what else uses it, plug it in again, then rig devices",
        )

    def _hang(self) -> None:
        self._hung = True
        self.forget_exit()


def claimed(seconds: float) -> float | None:
    """A time that a driver gave; 0.0 is what host APIs give that have none."""
    return seconds if seconds != 0.0 and math.isfinite(seconds) else None


def _gone(name: str, how: str) -> AudioLost:
    return AudioLost(
        f"{name} {how}",
        "an interface that stays until the last run is over",
        "check its cable, plug it in again, then measure again",
    )
