"""PortAudio as its script says: a device table and streams below the backends, in the forms of both Python libraries.

What the two modules do is written after their documentation; nothing here knows rig. Samples of a stream are given by
the test, which calls `deliver` as PortAudio's thread would.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np


@dataclass
class Row:
    """One entry of the device table. `rates_hz` None: any rate. `busy`: PortAudio's text when it is opened."""

    name: str
    inputs: int = 2
    outputs: int = 2
    api: str = "ALSA"
    rates_hz: tuple[int, ...] | None = None
    default_rate_hz: float = 48000.0
    busy: str | None = None


@dataclass
class Table:
    """What PortAudio finds when it is initialised; `plugged` is read then, and only then."""

    plugged: list[Row]
    seen: list[Row] = field(default_factory=list)
    initialised: int = 0
    streams: list[ScriptedStream] = field(default_factory=list)
    granted_rate_hz: float | None = None  # another one than was asked for
    opens_as: str | None = None  # the name that the opened device turns out to have
    blocks_on_close: threading.Event | None = None  # a device that was pulled out: close waits for this
    chatter: str = ""  # what the C library writes to standard error at every opening
    loop: Loop | None = None  # where there is one, streams run by themselves, in real time

    def initialise(self) -> None:
        self.seen = list(self.plugged)
        self.initialised += 1

    @property
    def apis(self) -> list[str]:
        return list(dict.fromkeys(row.api for row in self.seen)) or ["ALSA"]


@dataclass
class ScriptedStream:
    """An open stream: `deliver` calls its callback with samples of shape (n, channels)."""

    table: Table
    asked: dict[str, Any]
    call: Callable[[np.ndarray, float, float, int], np.ndarray | None]
    started: bool = False
    closed: bool = False
    thread: threading.Thread | None = None

    def run(self) -> None:
        """What starting does: with a loop, blocks come by themselves from now on."""
        self.started = True
        if self.table.loop is not None:
            number = self.table.streams.index(self)
            self.thread = threading.Thread(target=self.table.loop.drive, args=(self, number), daemon=True)
            self.thread.start()

    def deliver(self, frames: np.ndarray, adc_s: float = 0.0, now_s: float = 0.0, flags: int = 0) -> np.ndarray | None:
        """One callback, with the flags of the class `Flags`; returns what it plays."""
        assert self.started, "no callback before the start"
        return self.call(np.asarray(frames, np.float32), adc_s, now_s, flags)

    def end(self) -> None:
        if self.table.blocks_on_close is not None:
            self.table.blocks_on_close.wait()
        self.closed = True
        if self.thread is not None:
            self.thread.join()


@dataclass
class Loop:
    """A cable from the output to channel 1, and a system that hands it to channel 2 after `delay_frames`.

    Stream number n (from 0) falls silent for good after `dies_after_s[n]`, as when the interface is pulled out.
    """

    delay_frames: int = 4800
    dies_after_s: dict[int, float] = field(default_factory=dict)
    rate_hz: int = 48000
    block: int = 480

    def drive(self, stream: ScriptedStream, number: int) -> None:
        rng = np.random.default_rng(number)
        begun_s, done = time.monotonic(), 0
        past = np.zeros(self.delay_frames + self.block, np.float32)
        played = np.zeros(self.block, np.float32)
        while not stream.closed and done < self.dies_after_s.get(number, 1e9) * self.rate_hz:
            past = np.concatenate([past[self.block :], played])
            heard = np.stack([played, 0.3 * past[: self.block]], axis=1)
            out = stream.deliver(heard + rng.normal(0.0, 1e-5, heard.shape))
            played = np.zeros(self.block, np.float32) if out is None else out[:, 0].copy()
            done += self.block
            time.sleep(max(0.0, begun_s + done / self.rate_hz - time.monotonic()))


class Flags:
    INPUT_UNDERFLOW, INPUT_OVERFLOW, OUTPUT_UNDERFLOW = 1, 2, 4


class PortAudioError(Exception):
    """As sounddevice raises it: text and code."""


class ScriptedSounddevice:
    """Stands in for the module `sounddevice`."""

    PortAudioError = PortAudioError

    def __init__(self, table: Table) -> None:
        self.table = table
        table.initialise()

    def _terminate(self) -> None:
        self.table.seen = []

    def _initialize(self) -> None:
        self.table.initialise()

    def get_portaudio_version(self) -> tuple[int, str]:
        return 1246976, "PortAudio V19.7.0-devel, revision unknown"

    def _exit_handler(self) -> None:
        raise AssertionError("a hung stream must not be waited for at exit")

    def query_hostapis(self) -> tuple[dict[str, Any], ...]:
        return tuple({"name": api} for api in self.table.apis)

    def query_devices(self, index: int | None = None) -> Any:
        rows = [
            {
                "name": row.name,
                "hostapi": self.table.apis.index(row.api),
                "max_input_channels": row.inputs,
                "max_output_channels": row.outputs,
                "default_samplerate": row.default_rate_hz,
                "default_low_input_latency": 0.0087,
                "default_high_input_latency": 0.0348,
            }
            for row in self.table.seen
        ]
        if index is None:
            return rows
        return rows[index] if self.table.opens_as is None else {**rows[index], "name": self.table.opens_as}

    def _check(self, device: int, channels: int, samplerate: float, kind: str) -> Row:
        os.write(2, self.table.chatter.encode())
        row = self.table.seen[device]
        if row.busy is not None:
            raise PortAudioError(f"Error opening Stream: {row.busy}", -9985)
        if channels > getattr(row, kind):
            raise PortAudioError("Error opening Stream: Invalid number of channels [PaErrorCode -9998]", -9998)
        if row.rates_hz is not None and samplerate not in row.rates_hz:
            raise PortAudioError("Error opening Stream: Invalid sample rate [PaErrorCode -9997]", -9997)
        return row

    def check_input_settings(self, *, device: int, channels: int, dtype: str, samplerate: float) -> None:
        self._check(device, channels, samplerate, "inputs")

    def check_output_settings(self, *, device: int, channels: int, dtype: str, samplerate: float) -> None:
        self._check(device, channels, samplerate, "outputs")

    def InputStream(self, *, device: int, channels: int, callback: Any, **asked: Any) -> Any:  # noqa: N802
        self._check(device, channels, asked["samplerate"], "inputs")

        def call(frames: np.ndarray, adc_s: float, now_s: float, flags: int) -> None:
            callback(frames, len(frames), _times(adc_s, now_s), _status(flags))

        return self._stream({"device": device, "channels": channels, **asked}, call, 0.02, device)

    def Stream(self, *, device: Any, channels: Any, callback: Any, **asked: Any) -> Any:  # noqa: N802
        self._check(device[0], channels[0], asked["samplerate"], "inputs")
        self._check(device[1], channels[1], asked["samplerate"], "outputs")

        def call(frames: np.ndarray, adc_s: float, now_s: float, flags: int) -> np.ndarray:
            out = np.full((len(frames), channels[1]), np.nan, np.float32)
            callback(frames, out, len(frames), _times(adc_s, now_s), _status(flags))
            return out

        return self._stream({"device": device, "channels": channels, **asked}, call, (0.02, 0.03), device)

    def _stream(self, asked: dict[str, Any], call: Any, latency: Any, device: Any) -> Any:
        stream = ScriptedStream(self.table, asked, call)
        self.table.streams.append(stream)

        def start() -> None:
            stream.run()

        return SimpleNamespace(
            latency=latency,
            device=device,
            samplerate=self.table.granted_rate_hz or asked["samplerate"],
            blocksize=asked["blocksize"],
            start=start,
            abort=lambda ignore_errors: None,
            close=lambda ignore_errors: stream.end(),
        )


def _times(adc_s: float, now_s: float) -> Any:
    return SimpleNamespace(inputBufferAdcTime=adc_s, currentTime=now_s, outputBufferDacTime=0.0)


def _status(flags: int) -> Any:
    return SimpleNamespace(
        input_underflow=bool(flags & Flags.INPUT_UNDERFLOW),
        input_overflow=bool(flags & Flags.INPUT_OVERFLOW),
        output_underflow=bool(flags & Flags.OUTPUT_UNDERFLOW),
    )


class ScriptedPyaudio:
    """Stands in for the module `pyaudio`."""

    paFloat32 = 1  # noqa: N815
    paContinue, paAbort = 0, 2  # noqa: N815
    paInputUnderflow, paInputOverflow, paOutputUnderflow = 1, 2, 4  # noqa: N815

    def __init__(self, table: Table) -> None:
        self.table = table

    def get_portaudio_version_text(self) -> str:
        return "PortAudio V19.7.0-devel, revision unknown"

    def PyAudio(self) -> _Session:  # noqa: N802
        self.table.initialise()
        return _Session(self.table)


class _Session:
    def __init__(self, table: Table) -> None:
        self.table = table

    def terminate(self) -> None:
        self.table.seen = []

    def get_host_api_count(self) -> int:
        return len(self.table.apis)

    def get_host_api_info_by_index(self, index: int) -> dict[str, Any]:
        return {"name": self.table.apis[index]}

    def get_device_count(self) -> int:
        return len(self.table.seen)

    def get_device_info_by_index(self, index: int) -> dict[str, Any]:
        row = self.table.seen[index]
        return {
            "index": index,
            "name": row.name,
            "hostApi": self.table.apis.index(row.api),
            "maxInputChannels": row.inputs,
            "maxOutputChannels": row.outputs,
            "defaultSampleRate": row.default_rate_hz,
            "defaultLowInputLatency": 0.0087,
            "defaultHighInputLatency": 0.0348,
        }

    def is_format_supported(self, rate: float, *, input_device: int, input_channels: int, **_: Any) -> bool:
        row = self.table.seen[input_device]
        if row.busy is not None or (row.rates_hz is not None and rate not in row.rates_hz):
            raise ValueError("Invalid sample rate", -9997)
        return True

    def open(self, *, rate: int, channels: int, stream_callback: Any, **asked: Any) -> Any:
        os.write(2, self.table.chatter.encode())
        row = self.table.seen[asked["input_device_index"]]
        if row.busy is not None:
            raise OSError(-9985, row.busy)
        if row.rates_hz is not None and rate not in row.rates_hz:
            raise OSError(-9997, "Invalid sample rate")

        def call(frames: np.ndarray, adc_s: float, now_s: float, flags: int) -> np.ndarray | None:
            times = {"input_buffer_adc_time": adc_s, "current_time": now_s, "output_buffer_dac_time": 0.0}
            out, verdict = stream_callback(frames.tobytes(), len(frames), times, flags)
            assert verdict == 0 or out is not None
            return None if out is None else np.frombuffer(out, np.float32).reshape(-1, channels)

        stream = ScriptedStream(self.table, {"rate": rate, "channels": channels, **asked}, call)
        self.table.streams.append(stream)

        def start() -> None:
            stream.run()

        return SimpleNamespace(
            start_stream=start,
            close=stream.end,
            get_input_latency=lambda: 0.02,
            get_output_latency=lambda: 0.03,
        )
