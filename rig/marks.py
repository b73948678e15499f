"""For a system under test: writes marks, the times at which sound passed through its stages.

    from rig.marks import Marks

    with Marks("marks.jsonl", frame_ms=20, rate_hz=48000) as marks:
        marks.mark(seq, "t_capture")          # the frame is complete and in the program's hands
        marks.mark(seq, "t_encode_done")
        marks.mark(seq, "t_send_done")
        ...
        marks.mark(seq, "t_first_packet")     # at the receiver
        marks.mark(seq, "t_first_play")       # handed to the playback

The path may be the address of `rig measure --marks listen`, which is in RIG_MARKS of a system that rig starts:
`Marks(os.environ["RIG_MARKS"])`. Clock exchanges are sent along then.

This file needs nothing but Python: a copy of it is enough. A mark is appended to a queue; a thread of its own
writes the lines four times a second, so that no audio callback waits for a disk. docs/marks.md has the format.
"""

from __future__ import annotations

import http.client
import json
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

FIELDS = ("t_capture", "t_encode_done", "t_send_done", "t_first_packet", "t_first_play")
"""The instants of one frame, in the order in which they happen."""

MOST_WAITING = 100_000
"""Marks that may wait for the writer: half an hour of 20 ms frames. Beyond it the oldest are dropped and counted."""

_FLUSH_S = 0.25
_ANSWER_S = 2.0  # how long an address may take to answer
_PIECE_BYTES = 256 << 10


def boot_id() -> str | None:
    """Tells two boots of a machine apart: stamps of CLOCK_MONOTONIC with the same boot are of one clock. Linux only."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except (OSError, ValueError):
        return None


def onset(samples: Sequence[float]) -> tuple[float, int]:
    """(peak, peak_at) of a frame: largest magnitude, and the index of the first sample that reaches half of it.

    A simple finder: on a chirp it is late by up to half a millisecond, so state `peak_at_u` of 0.3 ms with it.
    """
    if not len(samples):
        raise ValueError("a frame has samples")
    peak = max(max(samples), -min(samples))
    half = 0.5 * peak
    return peak, next(k for k, value in enumerate(samples) if value >= half or value <= -half)


class Marks:
    """Marks of one start of the system, appended to a file. Times are nanoseconds of CLOCK_MONOTONIC.

    `path` may be an address, http://HOST:PORT/marks: nothing is lost while it does not answer, up to a bound, and
    `flush` and `close` wait for its answer, 2 s at most. Raises ValueError for an address of another kind.

    `session_id` tells two starts apart and is drawn where none is given. `rate_hz` of the frames is needed for
    `peak_at`, and `peak_at_u_ms` says how well that finds the first sample of a sound (standard uncertainty).

    `on_config` is called, in the writer's thread, with settings that an experiment wants the system to take (an address
    alone asks for any). It takes them and returns them as they are now, or raises ValueError with the reason why not.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        session_id: str | None = None,
        frame_ms: float | None = None,
        rate_hz: float | None = None,
        peak_at_u_ms: float | None = None,
        on_config: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
    ) -> None:
        self._queue: deque[tuple[int, str, Any] | str] = deque(maxlen=MOST_WAITING)
        self._taken = 0  # put into the queue so far, so that what fell out of it can be counted
        self._written = 0
        self._lock = threading.Lock()  # one writer at a time
        header: dict[str, Any] = {
            "marks": 1,
            "session_id": session_id or os.urandom(8).hex(),
            "clock": "CLOCK_MONOTONIC",
            "unit": "ns",
        }
        if (boot := boot_id()) is not None:
            header["boot"] = boot
        for name, value in (("frame_ms", frame_ms), ("rate_hz", rate_hz)):
            if value is not None:
                header[name] = value
        if peak_at_u_ms is not None:
            header["peak_at_u"] = round(peak_at_u_ms * 1e6)
        begins = json.dumps(header, allow_nan=False, separators=(",", ":")) + "\n"
        self._file = (
            _Sender(str(path), begins, self._configure if on_config else None)
            if "://" in str(path)
            else open(path, "a", encoding="utf-8")  # noqa: SIM115
        )
        self._on_config = on_config
        self._line(header)
        self.flush()  # before anything else, so that it cannot fall out of the queue
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="rig-marks", daemon=True)
        self._thread.start()

    now = staticmethod(time.monotonic_ns)

    def mark(self, seq: int, name: str, t_ns: int | None = None) -> None:
        """Stamps stage `name` (one of FIELDS) of frame `seq`, now or at `t_ns` of `now()`."""
        self._queue.append((seq, name, time.monotonic_ns() if t_ns is None else t_ns))
        self._taken += 1

    def peak(self, seq: int, peak: float, peak_at: int | None = None) -> None:
        """Says how loud frame `seq` is, and at which of its samples a sound begins (see `onset`)."""
        fields = {"seq": seq, "peak": peak}
        self._line(fields if peak_at is None else {**fields, "peak_at": peak_at})

    def claim(self, name: str, value_s: float, source: str) -> None:
        """What an interface claims: `input_latency`, `output_latency` or `base_latency`, and who says so."""
        self._line({"claim": name, "value": round(value_s * 1e9), "source": source})

    def config(self, **settings: Any) -> None:
        """Settings of the system that a later comparison must know."""
        self._line({"config": settings})

    def event(self, name: str, t_ns: int | None = None) -> None:
        """Something that happened once, for example `cold_start`."""
        self._line({"event": name, "t": time.monotonic_ns() if t_ns is None else t_ns})

    def interrupted(self, seq: int) -> None:
        """Frame `seq` was cut off: it counts as interrupted and enters no statistics."""
        self._line({"seq": seq, "interrupted": True})

    def flush(self) -> None:
        """Writes what waits."""
        with self._lock:
            lost = self._taken - self._written - len(self._queue)
            lines = []
            while self._queue:
                item = self._queue.popleft()
                self._written += 1
                lines.append(item if isinstance(item, str) else f'{{"seq":{item[0]},"{item[1]}":{item[2]}}}\n')
            if lost > 0:
                self._written += lost
                lines.append(json.dumps({"event": "marks_lost", "n": lost}) + "\n")
            self._file.write("".join(lines))
            self._file.flush()

    def close(self) -> None:
        """Writes what waits and closes the file; idempotent."""
        if self._file.closed:
            return
        self._stop.set()
        self._thread.join()
        self.flush()
        self._file.close()

    def _configure(self, settings: dict[str, Any]) -> dict[str, Any]:
        assert self._on_config is not None
        taken = self._on_config(settings)
        self.config(**taken)
        return taken

    def _line(self, value: dict[str, Any]) -> None:
        self._queue.append(json.dumps(value, allow_nan=False, separators=(",", ":")) + "\n")
        self._taken += 1

    def _run(self) -> None:
        while not self._stop.wait(_FLUSH_S):
            self.flush()

    def __enter__(self) -> Marks:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Sender:
    """Stands in the file's place: lines go to an address in pieces, the header before each, and a ping every second."""

    def __init__(
        self, address: str, header: str, configure: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    ) -> None:
        where = urlsplit(address)
        if where.scheme != "http" or not where.hostname:
            raise ValueError(f"marks go to a file or to http://HOST:PORT/marks, not to {address}")
        self.closed = False
        self._header = header.encode()
        query = f"?{where.query}" if where.query else ""
        self._path, self._ping_path, self._ack_path = (where.path or "/marks") + query, "/ping" + query, "/ack" + query
        self._configure = configure
        self._answered: str | None = None  # the last question after settings
        self._line = http.client.HTTPConnection(where.hostname, where.port, timeout=_ANSWER_S)
        self._waiting: deque[bytes] = deque()
        self._next_ping_ns = 0

    def write(self, text: str) -> None:
        for line in text.splitlines(keepends=True):
            if len(self._waiting) >= MOST_WAITING:
                self._lost()
            self._waiting.append(line.encode())

    def flush(self) -> None:
        """Sends what waits; what cannot be sent now waits on."""
        try:
            if time.monotonic_ns() >= self._next_ping_ns:
                self._next_ping_ns = time.monotonic_ns() + 1_000_000_000
                self._ping()
            while self._waiting:
                piece: list[bytes] = []
                size = len(self._header)
                for line in self._waiting:
                    size += len(line)
                    if piece and size > _PIECE_BYTES:
                        break
                    piece.append(line)
                # Kept or refused: the endpoint counts both.
                said = self._post(self._path, self._header + b"".join(piece))
                for _ in piece:
                    self._waiting.popleft()
                self._take_settings(said)
        except (OSError, http.client.HTTPException):
            self._line.close()

    def close(self) -> None:
        self.closed = True
        self._line.close()

    def _lost(self) -> None:
        """Half of what waits goes at once, the oldest, and is counted in a line of its own."""
        gone = len(self._waiting) // 2
        for _ in range(gone):
            self._waiting.popleft()
        self._waiting.append(b'{"event":"marks_lost","n":%d}\n' % gone)

    def _ping(self) -> None:
        sent = time.monotonic_ns()
        said = self._post(self._ping_path, b'{"ping":%d,"unit":"ns"}' % sent)
        received = time.monotonic_ns()
        try:
            _, t2, t3 = json.loads(said)["pong"]
        except (ValueError, KeyError, TypeError):
            return  # an endpoint that gives no time; the marks are taken without
        self._waiting.append(json.dumps({"sync": [sent, t2, t3, received]}).encode() + b"\n")
        self._take_settings(said)

    def _take_settings(self, said: bytes) -> None:
        """Settings may come with any answer; it is told which were taken, or why they were not."""
        if self._configure is None or b'"config"' not in said:
            return
        try:
            asked = json.loads(said)
            settings, ack = asked["config"], asked["ack"]
        except (ValueError, KeyError, TypeError):
            return
        if ack == self._answered:
            return
        self._answered = ack
        try:
            answer = {"ack": ack, "config": self._configure(settings)}
        except ValueError as error:
            answer = {"ack": ack, "why": str(error)}
        self._post(self._ack_path, json.dumps(answer).encode())

    def _post(self, path: str, body: bytes) -> bytes:
        self._line.request("POST", path, body)
        return self._line.getresponse().read()
