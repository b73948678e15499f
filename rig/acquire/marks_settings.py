"""Settings that rig has the system under test take over its marks connection, and the answer that it took them.

Without an answer nothing is known: a system that does not say so may run with other settings than those in the report.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
from typing import Any

from rig.domain.seams import HostTime, SystemUnderTest
from rig.domain.timebase import Instant
from rig.errors import BenchNotReady

WITHIN_S = 10.0
"""How long a system may take to connect and to answer. A page sends its marks four times a second."""

_MOST_SHOWN = 200


class Settings:
    """What is asked of the connected systems now. Lives on the endpoint's event loop, but for `asked`."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        """The message that is not answered yet; {} where there is none."""
        self._sockets: set[Any] = set()
        self._answer: asyncio.Future[dict[str, Any]] | None = None

    async def ask(self, settings: dict[str, Any], within_s: float) -> None:
        """Sends the settings and waits for the first answer. Raises BenchNotReady."""
        self._answer = asyncio.get_running_loop().create_future()
        self.asked = {"config": settings, "ack": secrets.token_hex(8)}
        try:
            for socket in list(self._sockets):
                await _send(socket, self.asked)
            answer = await asyncio.wait_for(self._answer, within_s)
        except TimeoutError as error:
            there = f"{len(self._sockets)} connections" if self._sockets else "no WebSocket is connected"
            raise BenchNotReady(
                f"the system under test did not say within {within_s:g} s that it took the settings ({there})",
                'a message {"ack":…} with what the message {"config":…} had, over its marks connection',
                "docs/experiments.md says how a system answers; rig.marks does it with on_config",
            ) from error
        finally:
            self.asked, self._answer = {}, None
        _check(settings, answer)

    async def joined(self, socket: Any) -> None:
        """A system has connected."""
        self._sockets.add(socket)
        if self.asked:
            await _send(socket, self.asked)

    def left(self, socket: Any) -> None:
        self._sockets.discard(socket)

    def heard(self, data: bytes) -> bool:
        """Takes a message where it is the answer that is waited for."""
        try:
            message = json.loads(data)
        except (ValueError, RecursionError):
            return False
        if not isinstance(message, dict) or self._answer is None or message.get("ack") != self.asked.get("ack"):
            return False
        if not self._answer.done():
            self._answer.set_result(message)
        return True


class ConfiguredSystem:
    """A system that is given settings after each start, before anything is played to it. `endpoint` has `configure`;
    `settle_s` is waited afterwards. `start` raises what both raise."""

    def __init__(
        self,
        system: SystemUnderTest,
        endpoint: Any,
        settings: dict[str, Any],
        time: HostTime,
        settle_s: float = 0.0,
        within_s: float = WITHIN_S,
    ) -> None:
        self._system = system
        self._endpoint = endpoint
        self._settings = settings
        self._time = time
        self._settle_s = settle_s
        self._within_s = within_s

    @property
    def can_stop(self) -> bool:
        return self._system.can_stop

    @property
    def ended_early(self) -> str | None:
        return self._system.ended_early

    def start(self, run: int) -> None:
        """Starts the system and has it take the settings."""
        self._system.start(run)
        self._endpoint.configure(self._settings, self._within_s)
        if self._settle_s > 0.0:
            now = self._time.now()
            self._time.sleep_until(Instant(now.timebase, now.seconds + self._settle_s))

    def stop(self) -> None:
        self._system.stop()


async def _send(socket: Any, message: dict[str, Any]) -> None:
    with contextlib.suppress(ConnectionError, RuntimeError):  # it has gone; another may answer
        await socket.send_str(json.dumps(message, ensure_ascii=False))


def _check(asked: dict[str, Any], answer: dict[str, Any]) -> None:
    why, taken = answer.get("why"), answer.get("config")
    if why is not None:
        raise BenchNotReady(
            f"the system under test did not take the settings: {str(why)[:_MOST_SHOWN]}",
            "settings that it knows, with values that it can have",
            "correct the plan, or the system",
        )
    if not isinstance(taken, dict):
        return
    for name, value in asked.items():
        if name in taken and taken[name] != value:
            raise BenchNotReady(
                f"the system under test took {name} {str(taken[name])[:_MOST_SHOWN]} where {value} was asked for",
                "the value that was asked for",
                "ask for a value that it can have",
            )
