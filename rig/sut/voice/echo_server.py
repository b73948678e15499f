"""A server that sends back what it is sent, later: the network and the other side of the reference systems.

One WebSocket is one call. Each message comes back as it is, after the delay that its fate gives it, or never. Imports
aiohttp, lazily: it is an extra.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from rig.errors import BenchNotReady, MissingLibrary
from rig.sut.voice.impair import Fate, Impairment
from rig.sut.voice.packets import MAX_PACKET_BYTES

PATH = "/echo"
MOST_CALLS = 16
MOST_WAITING = 4000
"""Messages of one call: 10 s of frames of 10 ms, and what a burst adds. What is more is dropped and counted."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(slots=True)
class EchoCounts:
    """Of all calls together."""

    calls: int = 0
    received: int = 0
    lost: int = 0
    sent: int = 0
    overflowed: int = 0

    def as_json(self) -> dict[str, int]:
        return asdict(self)


class EchoServer:
    """The server on one address. Raises MissingLibrary without aiohttp."""

    def __init__(self, impairment: Impairment) -> None:
        self.counts = EchoCounts()
        self._web = _library()
        self._impairment = impairment
        self._open = 0

    async def serve(self, host: str, port: int, ready: Callable[[str], None], until: Awaitable[object]) -> None:
        """Serves until `until` is done; `ready` is told the address first. Raises BenchNotReady where there is none."""
        web = self._web
        app = web.Application()
        app.router.add_get(PATH, self._call)
        runner = web.AppRunner(app, shutdown_timeout=1.0)
        await runner.setup()
        try:
            try:
                await web.TCPSite(runner, host, port).start()
            except (OSError, OverflowError) as error:
                raise BenchNotReady(
                    f"nothing can listen at {host}:{port}: {getattr(error, 'strerror', None) or error}",
                    "an address of this machine that no program holds",
                    "choose another --port, or leave it out",
                ) from error
            shown = f"[{host}]" if ":" in host else host
            ready(f"ws://{shown}:{runner.addresses[0][1]}{PATH}")
            await until
        finally:
            await runner.cleanup()

    async def _call(self, request: Any) -> Any:
        web = self._web
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).hostname not in _LOOPBACK:
            raise web.HTTPForbidden(text="pages of this machine only")
        if self._open >= MOST_CALLS:
            raise web.HTTPServiceUnavailable(text=f"more than {MOST_CALLS} calls")
        self._open += 1
        try:
            return await self._echo(request)
        finally:
            self._open -= 1

    async def _echo(self, request: Any) -> Any:
        socket = self._web.WebSocketResponse(max_msg_size=MAX_PACKET_BYTES, heartbeat=20.0, compress=False)
        await socket.prepare(request)
        self.counts.calls += 1
        fate = Fate(self._impairment)
        later = _Later(socket.send_bytes, self.counts)
        sender = asyncio.create_task(later.run())
        loop = asyncio.get_running_loop()
        try:
            async for message in socket:
                if not isinstance(message.data, bytes):
                    continue
                self.counts.received += 1
                delay_s = fate.next_delay_s()
                if delay_s is None:
                    self.counts.lost += 1
                else:
                    later.add(loop.time() + delay_s, message.data)
        finally:
            sender.cancel()
            with contextlib.suppress(asyncio.CancelledError, ConnectionError):
                await sender
        return socket


class _Later:
    """What waits for its time, earliest first."""

    def __init__(self, send: Callable[[bytes], Awaitable[None]], counts: EchoCounts) -> None:
        self._send = send
        self._counts = counts
        self._heap: list[tuple[float, int, bytes]] = []
        self._n = 0
        self._news = asyncio.Event()

    def add(self, due_s: float, data: bytes) -> None:
        if len(self._heap) >= MOST_WAITING:
            self._counts.overflowed += 1
            return
        self._n += 1  # of two with one time the one that came first
        heapq.heappush(self._heap, (due_s, self._n, data))
        self._news.set()

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._news.clear()
            while self._heap and self._heap[0][0] <= loop.time():
                _, _, data = heapq.heappop(self._heap)
                await self._send(data)
                self._counts.sent += 1
            wait_s = self._heap[0][0] - loop.time() if self._heap else None
            if wait_s is None or wait_s > 0.0:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._news.wait(), wait_s)


def _library() -> Any:
    try:
        from aiohttp import web
    except ImportError as error:
        raise MissingLibrary(
            f"aiohttp cannot be loaded: {error}", "the library aiohttp", "pip install aiohttp"
        ) from error
    return web
