"""The voice loop itself: microphone, frames, coder, WebSocket, jitter buffer, player, speaker, a mark at each step.

The callbacks of the two streams run in threads of the audio library; everything else runs in one asyncio loop. Imports
aiohttp, lazily: it is an extra.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np

from rig.errors import AudioLost, BenchNotReady, MissingLibrary
from rig.marks import Marks, onset
from rig.sut.delay import DelayLine
from rig.sut.voice.coding import make_coder
from rig.sut.voice.framing import Framer
from rig.sut.voice.jitter import parse
from rig.sut.voice.packets import MAX_PACKET_BYTES, Packet, pack
from rig.sut.voice.player import Player, Samples
from rig.sut.voice.receive import Receiver
from rig.sut.voice.settings import VoiceSettings
from rig.sut.voice.streams import Granted, VoiceStreams

AUDIBLE = 0.01
"""A frame whose largest sample is smaller has no beginning of a sound in it that a mark could point to."""

MOST_WAITING = 50
"""Frames between microphone and coder. What is more is dropped and counted: a loop that cannot keep up."""

SILENT_CALLBACKS_S = 3.0
"""Without a callback for so long a stream has died. PyAudio does not say so by itself."""

_SAMPLE_BYTES = 4
_ANSWER_S = 10.0


class VoiceLoop:
    """One start of the loop. `marks` None: nothing is stamped. Raises UsageError for knobs that do not fit."""

    def __init__(self, settings: VoiceSettings, streams: VoiceStreams, marks: Marks | None) -> None:
        settings.check()
        self._settings = settings
        self._streams = streams
        self._marks = marks
        frame = settings.frame_samples
        self._coder = make_coder(settings.codec, settings.device_hz, settings.rate_hz, frame)
        kind, target_s = settings.jitter_buffer
        player = Player(*settings.buffering, frame, settings.device_hz)
        self._receiver = Receiver(self._coder, parse(kind, settings.frame_s, target_s), player, frame)
        self._framer = Framer(frame)
        self._before = _line(settings.hidden_capture_s, settings.device_hz)
        self._behind = _line(settings.hidden_output_s, settings.device_hz)
        self._captured: asyncio.Queue[tuple[int, Samples]] = asyncio.Queue(MOST_WAITING)
        self._not_sent = 0
        self._stopping = False
        self._n_heard = self._n_wanted = 0
        self._granted: Granted | None = None
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, address: str, told: asyncio.Event, ready: Callable[[], None]) -> dict[str, Any]:
        """Runs until `told`; `ready` is called once the first frame has come back and is played. What was claimed and
        counted, ready for JSON.

        Raises BenchNotReady where server or devices do not open, AudioLost where they end before they are told to.
        """
        aiohttp = _library()
        self._loop = asyncio.get_running_loop()
        self._failed: asyncio.Future[None] = self._loop.create_future()
        self._playing = asyncio.Event()
        async with aiohttp.ClientSession() as session:
            try:
                socket = await asyncio.wait_for(
                    session.ws_connect(address, max_msg_size=MAX_PACKET_BYTES, compress=0), _ANSWER_S
                )
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                raise BenchNotReady(
                    f"the echo server does not answer at {address}: {error or type(error).__name__}",
                    "a WebSocket at that address",
                    "start one with rig sut echo-server, or leave --server out",
                ) from error
            tasks = [asyncio.create_task(job) for job in (self._send(socket), self._receive(socket), self._watch())]
            try:
                self._begin()
                await self._until(told, ready, tasks)
            finally:
                self._stopping = True
                self._streams.stop()
                if self._timer is not None:
                    self._timer.cancel()
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                    await asyncio.wait_for(socket.close(), 1.0)
        return self._report()

    async def _until(self, told: asyncio.Event, ready: Callable[[], None], tasks: list[asyncio.Task[None]]) -> None:
        ends = asyncio.create_task(told.wait())
        plays = asyncio.create_task(self._playing.wait())
        waited: set[asyncio.Future[Any]] = {ends, plays, self._failed, *tasks}
        try:
            while not ends.done():
                done, _ = await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
                waited -= done
                for each in done - {ends, plays}:
                    each.result()  # raises what ended it
                if plays in done:
                    ready()
        finally:
            ends.cancel()
            plays.cancel()

    # --- in the threads of the audio library

    def _heard(self, block: Samples) -> None:
        self._n_heard += 1
        for seq, frame in self._framer.push(_passed(self._before, block)):
            if self._marks is not None:
                self._marks.mark(seq, "t_capture")
            self._tell(self._take_in, seq, frame)

    def _wanted(self, n: int) -> Samples:
        self._n_wanted += 1
        taken = self._receiver.take(n)
        if self._marks is not None:
            for seq, _ in taken.begun:
                self._marks.mark(seq, "t_first_play")
        if taken.begun and not self._playing.is_set():
            self._tell(self._playing.set)
        return _passed(self._behind, taken.samples)

    def _ended(self) -> None:
        self._tell(self._fail, "the stream has stopped by itself")

    def _tell(self, what: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended, the stream not yet
            self._loop.call_soon_threadsafe(what, *arguments)

    # --- in the loop

    def _begin(self) -> None:
        granted = self._streams.start(self._heard, self._wanted, self._ended)
        self._granted = granted
        if self._marks is None:
            return
        for name, value_s in (("input_latency", granted.input_latency_s), ("output_latency", granted.output_latency_s)):
            if value_s is not None:
                self._marks.claim(name, value_s, granted.claimed_by)
        self._marks.config(**self._settings.as_json(), coder_delay_ms=round(1e3 * self._coder.delay_s, 3))

    def _take_in(self, seq: int, frame: Samples) -> None:
        if self._captured.full():
            self._not_sent += 1
            return
        self._captured.put_nowait((seq, frame))

    async def _send(self, socket: Any) -> None:
        while True:
            seq, frame = await self._captured.get()
            payload = self._coder.encode(frame)
            if self._marks is not None:
                self._marks.mark(seq, "t_encode_done")
            try:
                await socket.send_bytes(pack(Packet(seq, self._coder.name, payload)))
            except (ConnectionError, RuntimeError) as error:
                raise _server_lost() from error
            if self._marks is not None:
                self._marks.mark(seq, "t_send_done")
                self._say_where(seq, frame)

    def _say_where(self, seq: int, frame: Samples) -> None:
        """After the frame is on its way, so that looking at it delays nothing."""
        assert self._marks is not None
        peak = float(np.max(np.abs(frame)))
        if peak < AUDIBLE:
            self._marks.peak(seq, round(peak, 6))
            return
        peak, at = onset(frame.tolist())
        self._marks.peak(seq, round(peak, 6), at)

    async def _receive(self, socket: Any) -> None:
        async for message in socket:
            if not isinstance(message.data, bytes):
                continue
            now_ns = Marks.now()
            seq = self._receiver.packet(message.data, self._loop.time())
            if seq is not None and self._marks is not None:
                self._marks.mark(seq, "t_first_packet", now_ns)
            self._pump()
        raise _server_lost()

    def _pump(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        due_s = self._receiver.pump(self._loop.time())
        self._timer = None if due_s is None else self._loop.call_at(due_s, self._pump)

    async def _watch(self) -> None:
        seen = (-1, -1)
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), SILENT_CALLBACKS_S)
            now = (self._n_heard, self._n_wanted)
            for name, before, count in zip(("microphone", "speaker"), seen, now, strict=True):
                if before == count:
                    self._fail(f"no block of the {name} for {SILENT_CALLBACKS_S:g} s")
            seen = now

    def _fail(self, what: str) -> None:
        if not self._stopping and not self._failed.done():
            self._failed.set_exception(
                AudioLost(
                    what,
                    "microphone and speaker to be there until the end",
                    "see whether the sound server runs: rig virtual status, or pactl info",
                )
            )

    def _report(self) -> dict[str, Any]:
        granted = self._granted
        assert granted is not None
        return {
            **self._settings.as_json(),
            "coder_delay_s": self._coder.delay_s,
            "input_latency_s": granted.input_latency_s,
            "output_latency_s": granted.output_latency_s,
            **self._streams.flags.as_json(),
            "frames_not_sent": self._not_sent,
            **self._receiver.as_json(),
        }


def _line(delay_s: float, rate_hz: int) -> DelayLine:
    return DelayLine(round(delay_s * rate_hz) * _SAMPLE_BYTES)


def _passed(line: DelayLine, block: Samples) -> Samples:
    out = bytearray(_SAMPLE_BYTES * len(block))
    line.pass_on(block.tobytes(), out)
    return np.frombuffer(out, dtype=np.float32)


def _server_lost() -> AudioLost:
    return AudioLost("the echo server has gone", "a server until the end", "see what ended it")


def _library() -> Any:
    try:
        import aiohttp
    except ImportError as error:
        raise MissingLibrary(
            f"aiohttp cannot be loaded: {error}", "the library aiohttp", "pip install aiohttp"
        ) from error
    return aiohttp
