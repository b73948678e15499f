"""Question and answer with the board: one deadline for each command, retries, and replies paired by sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from rig.acquire import wire
from rig.acquire.wire import BadFrame, FrameDecoder, Message, Received, StrangeFrame, Value
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import Duration, HostClock, Instant
from rig.errors import BenchNotReady, FirmwareMismatch, LinkCorrupt, LinkTimeout, RigError, UsageError

FrameSink = Callable[[str, float, Message | bytes], None]
"""Receives (direction "tx" or "rx", host time in s, message) for every frame; bytes where there was no message."""

READ_BYTES = 256

_FLASH = "flash the firmware of this version: rig firmware flash"
_REFUSALS: dict[str, tuple[type[RigError], str, str]] = {
    "unknown_message": (FirmwareMismatch, "a board that knows this command", _FLASH),
    "bad_length": (FirmwareMismatch, "a board with the same fields in this command", _FLASH),
    "bad_value": (UsageError, "values that the board can play", "change the plan; docs/protocol.md has the ranges"),
    "plan_too_long": (UsageError, "a plan that fits the board's memory", "use fewer stimuli in a run, and more runs"),
    "spacing_too_short": (UsageError, "stimuli that end before the next one starts", "use a longer spacing"),
    "too_soon": (UsageError, "a tick that is 20 ms ahead or more", "fire later, or at once: without a tick"),
    "not_armed": (BenchNotReady, "an armed board", "arm it first; if it was, it restarted: check its supply"),
    "busy": (BenchNotReady, "a board that is not firing", "stop the plan that runs, or reset the board"),
    "plan_incomplete": (BenchNotReady, "a spacing list as long as the plan", "arm the board again"),
}


@dataclass(slots=True)
class LinkCounts:
    """What did not go smoothly. Nothing here spoils a measurement; a lot of it tells of a bad cable."""

    dropped_bytes: int = 0  # before the first valid reply: boot noise
    bad_frames: int = 0
    strange_frames: int = 0
    late_replies: int = 0  # replies that came after a retry or a deadline, and second replies
    retries: int = 0
    recalled_events: int = 0  # firings whose event was lost and asked for again


@dataclass(frozen=True, slots=True)
class Answer:
    """A reply, with the host times just before its command was written and just after the reply was read."""

    message: Message
    sent_s: float
    received_s: float


@dataclass(slots=True)
class _Open:
    """The command that waits for its reply."""

    name: str
    seq: int
    reply: Message | None = None
    received_s: float = 0.0
    other_level: tuple[int, int] | None = None  # level and hash in an identity that the table does not fit
    sent_s: float = field(default=0.0)


class Dialogue:
    """Commands and replies over a `BytePipe`; events are kept for whoever asks."""

    def __init__(self, pipe: BytePipe, time: HostTime, port: str, on_frame: FrameSink | None) -> None:
        self.port = port
        self.counts = LinkCounts()
        self.bytes_seen = 0
        self.events: list[tuple[Message, float]] = []  # with the host time at which each was read
        self._pipe = pipe
        self._time = time
        self._on_frame = on_frame
        self._decoder = FrameDecoder()
        self._seq = 0
        self._open: _Open | None = None

    def ask(self, name: str, total_s: float, try_s: float, **fields: Value) -> Answer:
        """Sends a command until its reply comes, every `try_s`, for `total_s` in all.

        A repeated command keeps its sequence, which makes it safe to repeat; but a ping is sent anew each time, since
        a reply to the first of two would be timed from the second. Raises LinkTimeout, LinkCorrupt when something
        came that could not be read, LinkLost from the pipe, and the error that fits an error reply.
        """
        started = self._time.now()
        deadline = started.plus(Duration(total_s))
        bytes_before, bad_before = self.bytes_seen, self.counts.bad_frames
        opened = self._send(name, None, fields)
        while True:
            now = self._time.now()
            if self._wait(opened, min(deadline.seconds, now.seconds + try_s)):
                return self._settle(opened)
            if self._time.now().seconds >= deadline.seconds:
                break
            self.counts.retries += 1
            opened = self._send(name, None if name == "ping" else opened, fields)
        self._open = None
        waited_s = self._time.now().since(started).seconds
        seen, bad = self.bytes_seen - bytes_before, self.counts.bad_frames - bad_before
        raise self._silence(name, waited_s, seen, bad)

    def receive(self, deadline: Instant[HostClock]) -> bool:
        """Takes in what comes before the deadline, at least one byte; False when nothing came."""
        data = self._pipe.read(READ_BYTES, deadline)
        if not data:
            return False
        read_s = self._time.now().seconds
        self.bytes_seen += len(data)
        for item in self._decoder.feed(data):
            self._take(item, read_s)
        return True

    def _send(self, name: str, repeated: _Open | None, fields: dict[str, Value]) -> _Open:
        if repeated is None:
            self._seq = (self._seq + 1) & 0xFF
            repeated = _Open(name, self._seq)
        command = wire.message(name, repeated.seq, **fields)
        data = wire.encode(command)
        repeated.sent_s = self._time.now().seconds
        self._open = repeated
        self._pipe.write(data)
        if self._on_frame is not None:
            self._on_frame("tx", repeated.sent_s, command)
        return repeated

    def _wait(self, opened: _Open, until_s: float) -> bool:
        while opened.reply is None and opened.other_level is None:
            now = self._time.now()
            if now.seconds >= until_s or not self.receive(now.plus(Duration(until_s - now.seconds))):
                break
        return opened.reply is not None or opened.other_level is not None

    def _take(self, item: Received, read_s: float) -> None:
        opened = self._open
        if isinstance(item, BadFrame):
            self.counts.bad_frames += 1
        elif isinstance(item, StrangeFrame):
            self.counts.strange_frames += 1
            body = item.body
            identity = len(body) >= 7 and body[0] == wire.BY_NAME["identity"].id
            if opened is not None and opened.name == "identify" and identity and body[1] == opened.seq:
                opened.other_level = (body[2], int.from_bytes(body[3:7], "little"))
        elif item.type.role == "event":
            self.events.append((item, read_s))
        elif opened is None or opened.reply is not None or not _answers(item, opened):
            self.counts.late_replies += 1
        else:
            opened.reply, opened.received_s = item, read_s
        if self._on_frame is not None:
            raw = item.raw if isinstance(item, BadFrame) else item.body if isinstance(item, StrangeFrame) else item
            self._on_frame("rx", read_s, raw)

    def _settle(self, opened: _Open) -> Answer:
        self._open = None
        if opened.other_level is not None:
            raise mismatch(self.port, *opened.other_level)
        assert opened.reply is not None
        if opened.reply.name == "error":
            raise self._refusal(opened.name, opened.reply)
        return Answer(opened.reply, opened.sent_s, opened.received_s)

    def _refusal(self, command: str, reply: Message) -> RigError:
        name, meaning = wire.ERRORS.get(reply["code"], (f"error {reply['code']}", "a code that rig does not know"))
        error, expected, remedy = _REFUSALS.get(name, (BenchNotReady, "a board that carries the command out", _FLASH))
        return error(
            f"{self.port}: the board refused {command}: {name}, {meaning} ({reply['detail']})", expected, remedy
        )

    def _silence(self, command: str, waited_s: float, seen: int, bad: int) -> RigError:
        what = f"{self.port}: no answer to {command} within {waited_s:.1f} s, {seen} bytes seen"
        if bad and command != "identify":
            return LinkCorrupt(
                f"{what}, {bad} damaged frames among them",
                "answers that arrive whole",
                "use a shorter cable or another USB port, away from strong currents; check the common ground",
            )
        return LinkTimeout(
            what,
            "an answer from a board that runs rig's firmware",
            "the board may still be booting or run other firmware: wait and repeat, then check with rig firmware info;"
            " check the cable and the port's name",
        )


def _answers(reply: Message, opened: _Open) -> bool:
    if reply.seq != opened.seq:
        return False
    if reply.name == "error":
        return reply["command"] == wire.BY_NAME[opened.name].id
    return reply.name == wire.BY_NAME[opened.name].reply


def mismatch(port: str, level: int, table_hash: int) -> FirmwareMismatch:
    """The error for a board of another protocol level or message table; names both values."""
    return FirmwareMismatch(
        f"{port}: the board speaks protocol level {level} with message table {table_hash:08x}",
        f"level {wire.PROTOCOL_LEVEL} with table {wire.table_hash():08x}",
        _FLASH,
    )
