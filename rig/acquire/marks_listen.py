"""An endpoint that the system under test sends its marks to while rig measures: HTTP POST or WebSocket, one port.

POST /marks takes lines, GET /marks a WebSocket whose text messages are lines. Each body and each connection begins with
a header. POST /ping, or a message {"ping":t1,"unit":"ms"}, is answered {"pong":[t1,t2,t3]}: t2 and t3 are host times of
receiving and sending, in that unit; the system adds its time of receiving and sends the four as a `sync` line.
Settings that rig asks the system to take go out as {"config":{…},"ack":"…"} on every WebSocket, and in the answers to
POST; the system answers with a message, or a POST /ack, that has the same `ack`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import json
import math
import secrets
import threading
from typing import Any
from urllib.parse import urlsplit

from rig.acquire.marks_settings import Settings
from rig.domain.seams import HostTime
from rig.errors import BenchNotReady, MissingLibrary, UsageError

LISTEN = "listen"
MARKS_VARIABLE = "RIG_MARKS"
"""Set in the environment of the system under test: the address that takes its marks."""

MOST_MESSAGE_BYTES = 1 << 20
MOST_WAITING_BYTES = 64 << 20
"""Of one run, in memory until the run ends. What comes beyond it is refused, and the sender told."""

MOST_CONNECTIONS = 32
MOST_BYTES_PER_S = 4 << 20
"""Of all senders together; a voice loop with frames of 10 ms sends 0.05 MiB each second."""

_LOOPBACK = ("127.0.0.1", "localhost", "::1")
_PER_S = {"ns": 1e9, "us": 1e6, "ms": 1e3, "s": 1.0}
_START_S = 10.0


def listen_address(text: str) -> tuple[str, int]:
    """(host, port) of `listen`, `listen:PORT` or `listen:HOST:PORT`; port 0 is a free one. Raises UsageError."""
    host, _, port = text.removeprefix(LISTEN).removeprefix(":").rpartition(":")
    if (port and not port.isdecimal()) or (port and int(port) > 65535) or (not port and text != LISTEN):
        raise UsageError(f"--marks {text}: no address", "listen, listen:PORT or listen:HOST:PORT", "give one of them")
    return host.strip("[]") or "127.0.0.1", int(port or 0)


class MarksListener:
    """`MarksSource` of the endpoint, listening from its making until `close`.

    Beyond loopback a token is asked for, and from a page of another site too; `address` carries it then. Raises
    BenchNotReady where the address cannot be had, MissingLibrary without aiohttp.
    """

    def __init__(self, host: str, port: int, time: HostTime) -> None:
        try:
            from aiohttp import web
        except ImportError as error:
            raise MissingLibrary(
                f"aiohttp cannot be loaded: {error}", "the library aiohttp", "pip install aiohttp"
            ) from error
        self._web: Any = web
        self._time = time
        self._open_to_all = host in _LOOPBACK
        self._token = secrets.token_urlsafe(16)
        self._lock = threading.Lock()
        self._kept: list[bytes] = []
        self._waiting = 0
        self._last: bytes | None = None  # the header that the lines kept last stand under
        self._allowance = float(MOST_BYTES_PER_S)
        self._allowed_s = time.now().seconds
        self._refused = 0
        self._settings = Settings()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rig-marks-listen", daemon=True)
        self._thread.start()
        try:
            given = asyncio.run_coroutine_threadsafe(self._begin(host, port), self._loop).result(_START_S)
        except (OSError, OverflowError) as error:
            self._end_loop()
            raise BenchNotReady(
                f"marks cannot be listened for at {host}:{port}: {getattr(error, 'strerror', None) or error}",
                "an address of this machine that no program holds",
                "choose another port: --marks listen:HOST:PORT, or --marks listen",
            ) from error
        shown = f"[{host}]" if ":" in host else host
        query = "" if self._open_to_all else f"?token={self._token}"
        self.address = f"http://{shown}:{given}/marks{query}"

    def collect(self, whole: bool) -> bytes:
        """The lines that came since the last call."""
        with self._lock:
            kept, self._kept, self._waiting, self._last = self._kept, [], 0, None
            refused, self._refused = self._refused, 0
        lost = json.dumps({"event": "marks_lost", "n": refused}).encode() + b"\n" if kept and refused else b""
        return b"".join(kept) + lost

    def configure(self, settings: dict[str, Any], within_s: float) -> None:
        """Has the system that is connected, or connects in time, take settings.

        Raises BenchNotReady where it does not say that it took them, says why not, or took others."""
        asyncio.run_coroutine_threadsafe(self._settings.ask(settings, within_s), self._loop).result()

    def close(self) -> None:
        """Ends the endpoint; idempotent."""
        if self._thread.is_alive():
            with contextlib.suppress(TimeoutError):
                asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result(_START_S)
            self._end_loop()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _begin(self, host: str, port: int) -> int:
        self._server = self._web.Server(self._answer, keepalive_timeout=15.0)
        self._runner = self._web.ServerRunner(self._server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = self._web.TCPSite(self._runner, host, port)
        try:
            await site.start()
        except (OSError, OverflowError):
            await self._runner.cleanup()
            raise
        return int(self._runner.addresses[0][1])

    async def _stop(self) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: Any) -> Any:
        if len(self._server.connections) > MOST_CONNECTIONS:
            return self._say(request, 503, {"why": f"more than {MOST_CONNECTIONS} connections"})
        if not self._trusted(request):
            return self._say(request, 403, {"why": "the token of RIG_MARKS is missing: ?token=…"})
        method, path = request.method, request.path
        if method == "OPTIONS":
            return self._say(request, 200, {})
        if method == "GET" and path == "/marks" and request.headers.get("Upgrade", "").lower() == "websocket":
            return await self._socket(request)
        if method != "POST" or path not in ("/marks", "/ping", "/ack"):
            return self._say(request, 404, {"why": "POST /marks, /ping or /ack, or a WebSocket at /marks"})
        received_s = self._time.now().seconds
        body = b""
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > MOST_MESSAGE_BYTES:
                return self._say(request, 413, {"why": f"more than {MOST_MESSAGE_BYTES} bytes: send smaller pieces"})
        if path == "/ping":
            pong = self._pong(body, received_s)
            if pong is None:
                return self._say(request, 400, {"why": 'not {"ping":t1,"unit":"ms"}'})
            return self._say(request, 200, {**pong, **self._settings.asked})
        if path == "/ack":
            taken = self._settings.heard(body)
            return self._say(request, 200 if taken else 400, {} if taken else {"why": "nothing was asked so"})
        why, _ = self._take(body, None)
        return self._say(request, 200 if why is None else 400, self._settings.asked if why is None else {"why": why})

    async def _socket(self, request: Any) -> Any:
        socket = self._web.WebSocketResponse(max_msg_size=MOST_MESSAGE_BYTES, heartbeat=20.0, compress=False)
        await socket.prepare(request)
        header: bytes | None = None
        await self._settings.joined(socket)
        async for message in socket:
            received_s = self._time.now().seconds
            if not isinstance(message.data, str):
                continue
            data = message.data.encode("utf-8", "replace")
            pong = self._pong(data, received_s) if data.startswith(b'{"ping"') else None
            if pong is not None:
                await socket.send_str(json.dumps(pong))
                continue
            if data.startswith(b'{"ack"') and self._settings.heard(data):
                continue
            why, header = self._take(data, header)
            if why is not None:
                await socket.send_str(json.dumps({"why": why}))
        self._settings.left(socket)
        return socket

    def _take(self, data: bytes, header: bytes | None) -> tuple[str | None, bytes | None]:
        """Keeps lines under their header; (why not, the header that holds from here on)."""
        lines = [line for line in data.splitlines() if line.strip()]
        kept: list[bytes] = []
        with self._lock:
            now_s = self._time.now().seconds
            gained = (now_s - self._allowed_s) * MOST_BYTES_PER_S
            self._allowance, self._allowed_s = min(float(MOST_BYTES_PER_S), self._allowance + gained), now_s
            if len(data) > self._allowance or self._waiting + len(data) > MOST_WAITING_BYTES:
                self._refused += len(lines)
                return "too much at once: these lines are not kept", header
            self._allowance -= len(data)
            under = self._last
            for line in lines:
                found = line if _is_header(line) else None
                header = found or header
                if header is None:
                    return "the first line must be a header: docs/marks.md", None
                if found is None and under != header:
                    kept.append(header)  # another sender's lines stand before these
                kept.append(line)
                under = header
            added = b"".join(line + b"\n" for line in kept)
            self._last = under
            self._kept.append(added)
            self._waiting += len(added)
        return None, header

    def _pong(self, body: bytes, received_s: float) -> dict[str, Any] | None:
        try:
            asked = json.loads(body)
            sent, per_s = asked["ping"], _PER_S[asked["unit"]]
            fine = isinstance(sent, int | float) and not isinstance(sent, bool) and math.isfinite(sent)
        except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
            return None
        return {"pong": [sent, received_s * per_s, self._time.now().seconds * per_s]} if fine else None

    def _trusted(self, request: Any) -> bool:
        given = request.query.get("token", "")
        if hmac.compare_digest(given.encode("utf-8", "replace"), self._token.encode()):
            return True
        # A page of another site can reach loopback too: its origin, or a name that it made point here, gives it away.
        origin = request.headers.get("Origin")
        local = origin is None or _host_of(origin) in _LOOPBACK
        return self._open_to_all and local and _host_of(f"//{request.headers.get('Host', '')}") in _LOOPBACK

    def _say(self, request: Any, status: int, facts: dict[str, Any]) -> Any:
        headers = {}
        if status != 403 and (origin := request.headers.get("Origin")):
            headers = {"Access-Control-Allow-Origin": origin, "Access-Control-Allow-Headers": "Content-Type"}
        return self._web.json_response(facts, status=status, headers=headers)


def _is_header(line: bytes) -> bool:
    if line.lstrip().startswith(b"{"):
        if b'"marks"' not in line:
            return False
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            return False
        return isinstance(value, dict) and "marks" in value
    return b"[rt]" in line and b"marks=" in line


def _host_of(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None
