"""What the board does with a command: the armed plan, the firings, the stamps. Everything in the board's own ticks.

It knows the future of its own plan the moment it is fired, and tells the world at once when each tone will sound; the
events that report the firings are made for their time and are dropped when `safe` comes first.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.acquire import wire
from rig.acquire.wire import KINDS, STATES, BadFrame, Message, Received, StrangeFrame
from rig.domain.waveforms import BOARD_TONE_RATE_HZ, board_samples
from rig.sim.clock import DriftingClock

Cancel = Callable[[float], None]
"""Called with the true time (s) at which a tone told of before is cut off; before its start: it never sounds."""

OnTone = Callable[[float, npt.NDArray[np.int8], float], Cancel | None]
"""Called as (true_start_s, samples -127..127, tone_rate_hz_true) for every firing, as soon as the board is fired."""

FIRST_TONE_S = 0.020  # from fire to the first tone: the answer is out by then
SHORTEST_PAUSE_S = 0.002  # between two tones
LONGEST_HOLD_S = 0.002  # of a pong
LONGEST_PULSE_US = 20_000
HALF_RANGE = 1 << 31

_ERROR_CODES = {name: code for code, (name, _) in wire.ERRORS.items()}


@functools.lru_cache(maxsize=16)
def _tone(kind: str, amplitude_256ths: int) -> npt.NDArray[np.int8]:
    samples = board_samples(kind, amplitude_256ths / 256.0)
    samples.flags.writeable = False
    return samples


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A frame that the board wants to send from `ready_s` on. `make` gets the true time of its first byte; None: no
    longer wanted."""

    ready_s: float
    make: Callable[[float], Message | None]


def _now(ready_s: float, msg: Message) -> Outgoing:
    return Outgoing(ready_s, lambda _: msg)


@dataclass(slots=True)
class _Firing:
    tick: int
    start_s: float
    end_s: float
    played_samples: int
    cancel: Cancel | None
    cut: bool = False  # by safe, before its end


class _Refusal(Exception):
    def __init__(self, name: str, detail: int = 0) -> None:
        super().__init__(name)
        self.code = _ERROR_CODES[name]
        self.detail = detail


class Firmware:
    """The state machine of the board. `handle` is called with frames in the order of their arrival."""

    def __init__(
        self,
        clock: DriftingClock,
        rng: np.random.Generator,
        on_tone: OnTone | None,
        identity: dict[str, wire.Value],
        max_count: int,
    ) -> None:
        self._clock = clock
        self._rng = rng
        self._on_tone = on_tone
        self._identity = identity
        self._max_count = max_count
        self._ticks_a_sample = round(clock.rate_hz / BOARD_TONE_RATE_HZ)
        self._sample_phase = int(rng.integers(self._ticks_a_sample))
        self._bad_frames = 0
        self._loaded: list[int] = []
        self._armed: Message | None = None
        self._firings: list[_Firing] = []
        self._fire_seq: int | None = None

    def handle(self, received: Received, at_s: float) -> list[Outgoing]:
        """What the board sends in answer to a frame whose last byte arrived at true time `at_s`."""
        if isinstance(received, BadFrame):
            self._bad_frames += 1
            return []
        ready_s = at_s + float(self._rng.uniform(20e-6, 60e-6))
        try:
            if isinstance(received, StrangeFrame) or received.type.role != "command":
                raise self._strange(received)
            if received.name == "ping":
                return self._ping(received, at_s, ready_s)
            if received.name in ("fire", "fire_at"):
                return self._fire(received, ready_s)
            answers = {
                "identify": self._identify,
                "load": self._load,
                "arm": self._arm,
                "safe": self._safe,
                "status": self._status,
                "recall": self._recall,
                "self_test": self._self_test,
            }
            earlier, fields = answers[received.name](received, ready_s)
            assert received.type.reply is not None
            reply = wire.message(received.type.reply, received.seq, **fields)
        except _Refusal as refusal:
            earlier = []
            id, seq = (
                (received.body[0], received.body[1]) if isinstance(received, StrangeFrame) else self._key(received)
            )
            reply = wire.message("error", seq, command=id, code=refusal.code, detail=refusal.detail)
        return [*earlier, _now(ready_s, reply)]

    @staticmethod
    def _key(received: Message) -> tuple[int, int]:
        return received.type.id, received.seq

    @staticmethod
    def _strange(received: StrangeFrame | Message) -> _Refusal:
        id = received.body[0] if isinstance(received, StrangeFrame) else received.type.id
        row = wire.BY_ID.get(id)
        if row is None or row.role != "command":
            return _Refusal("unknown_message", id)
        return _Refusal("bad_length", len(received.body) - 2 if isinstance(received, StrangeFrame) else 0)

    def _tick(self, true_s: float) -> int:
        return math.floor(self._clock.reading(true_s))

    def _wire_tick(self, true_s: float) -> int:
        return self._tick(true_s) & 0xFFFFFFFF

    def _state(self, at_s: float) -> int:
        if self._firings:
            return STATES.index("firing" if at_s < self._firings[-1].end_s else "done")
        return STATES.index("armed" if self._armed else "idle")

    def _refuse_while_firing(self, at_s: float) -> None:
        if self._state(at_s) == STATES.index("firing"):
            raise _Refusal("busy", self._state(at_s))

    def _identify(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        return [], self._identity

    def _ping(self, command: Message, at_s: float, ready_s: float) -> list[Outgoing]:
        received_tick = self._wire_tick(at_s)
        held_s = float(self._rng.uniform(0.0, LONGEST_HOLD_S))

        def pong(start_s: float) -> Message:
            sent_tick = self._wire_tick(start_s)
            return wire.message("pong", command.seq, received_tick=received_tick, sent_tick=sent_tick)

        return [Outgoing(ready_s + held_s, pong)]

    def _load(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        self._refuse_while_firing(at_s)
        first, asked = command["first_index"], command.numbers("spacing_ticks")
        if first > len(self._loaded):
            raise _Refusal("bad_value", 0)
        if first + len(asked) > self._max_count - 1:
            raise _Refusal("plan_too_long", self._max_count)
        if not asked or max(asked) >= HALF_RANGE:
            raise _Refusal("bad_value", 1)
        step = self._ticks_a_sample
        held = tuple(max(1, (ticks + step // 2) // step) * step for ticks in asked)
        self._loaded[first:] = held
        self._armed, self._firings = None, []
        return [], {"first_index": first, "spacing_ticks": held}

    def _arm(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        self._refuse_while_firing(at_s)
        if command["kind"] >= len(KINDS):
            raise _Refusal("bad_value", 0)
        if not 1 <= command["amplitude_256ths"] <= 256:
            raise _Refusal("bad_value", 1)
        if command["count"] > self._max_count:
            raise _Refusal("plan_too_long", self._max_count)
        if command["count"] < 1:
            raise _Refusal("bad_value", 2)
        if command["pulse_us"] > LONGEST_PULSE_US:
            raise _Refusal("bad_value", 3)
        if command["count"] - 1 > len(self._loaded):
            raise _Refusal("plan_incomplete", len(self._loaded))
        n_samples = len(_tone(KINDS[command["kind"]], 256))
        shortest = n_samples * self._ticks_a_sample + SHORTEST_PAUSE_S * self._clock.rate_hz
        for position, spacing in enumerate(self._loaded[: command["count"] - 1]):
            if spacing < shortest:
                raise _Refusal("spacing_too_short", position)
        self._armed, self._firings = command, []
        sample_us = 1e6 / BOARD_TONE_RATE_HZ
        fields = command.as_dict()
        fields["pulse_us"] = math.ceil(command["pulse_us"] / sample_us) * round(sample_us)
        return [], {**fields, "tone_samples": n_samples}

    def _fire(self, command: Message, ready_s: float) -> list[Outgoing]:
        events: list[Outgoing] = []
        if not (self._firings and command.seq == self._fire_seq):  # the same fire again is only answered again
            self._refuse_while_firing(ready_s)
            if self._armed is None or self._firings:
                raise _Refusal("not_armed", self._state(ready_s))
            self._fire_seq = command.seq
            events = self._start(self._armed, ready_s, self._first_tick(command, ready_s))
        assert command.type.reply is not None
        reply = wire.message(command.type.reply, command.seq, first_tick=self._firings[0].tick & 0xFFFFFFFF)
        return [_now(ready_s, reply), *events]

    def _first_tick(self, command: Message, at_s: float) -> int:
        """The tick that the plan is to start at, or soon after."""
        soonest = self._tick(at_s + FIRST_TONE_S)
        if command.name == "fire":
            return soonest
        ahead = (command["first_tick"] - soonest) & 0xFFFFFFFF
        if ahead >= HALF_RANGE:
            raise _Refusal("too_soon", self._wire_tick(at_s))
        return soonest + ahead

    def _start(self, plan: Message, at_s: float, tick: int) -> list[Outgoing]:
        step = self._ticks_a_sample
        tick = -(-(tick - self._sample_phase) // step) * step + self._sample_phase
        tone = _tone(KINDS[plan["kind"]], plan["amplitude_256ths"])
        for spacing in [*self._loaded[: plan["count"] - 1], 0]:
            start_s, end_s = self._clock.true_s(tick), self._clock.true_s(tick + step * len(tone))
            cancel = self._on_tone(start_s, tone, len(tone) / (end_s - start_s)) if self._on_tone else None
            self._firings.append(_Firing(tick, start_s, end_s, len(tone), cancel))
            tick += spacing
        self._loaded = []  # the stamps of the firings take its place in memory
        firings = self._firings

        def event(index: int) -> Outgoing:
            def make(_: float) -> Message | None:
                return None if firings[index].cut else self._event(firings, index)

            return Outgoing(firings[index].end_s + 50e-6, make)

        return [event(index) for index in range(len(firings))]

    @classmethod
    def _event(cls, firings: list[_Firing], index: int) -> Message:
        return wire.message("fired", index & 0xFF, **cls._report(firings, index))

    @staticmethod
    def _report(firings: list[_Firing], index: int) -> dict[str, wire.Value]:
        firing = firings[index]
        return {
            "index": index,
            "tick": firing.tick & 0xFFFFFFFF,
            "played_samples": firing.played_samples,
            "done": int(firing.cut or index == len(firings) - 1),
        }

    def _safe(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        firing = self._state(at_s) == STATES.index("firing")
        n_fired = self._n_fired(at_s)
        cut: list[Outgoing] = []
        for index, tone in enumerate(self._firings):
            if tone.end_s <= at_s:
                continue
            if tone.cancel is not None:
                tone.cancel(at_s)
            tone.cut = True
            if tone.start_s < at_s:
                tone.played_samples = (self._tick(at_s) - tone.tick) // self._ticks_a_sample
                cut.append(_now(at_s, self._event(self._firings, index)))
        self._loaded, self._armed, self._firings = [], None, []
        return cut, {"n_fired": n_fired, "was_firing": int(firing)}

    def _n_fired(self, at_s: float) -> int:
        return sum(f.start_s <= at_s for f in self._firings)

    def _status(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        return [], {
            "state": self._state(at_s),
            "count": self._armed["count"] if self._armed else 0,
            "n_fired": self._n_fired(at_s),
            "bad_frames": self._bad_frames & 0xFFFF,
            "tick": self._wire_tick(at_s),
        }

    def _recall(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        index = command["index"]
        if index >= len(self._firings):
            raise _Refusal("bad_value", 0)
        if self._firings[index].end_s > at_s:
            return [], {"index": index, "tick": 0, "played_samples": 0, "done": 0}
        return [], self._report(self._firings, index)

    def _self_test(self, command: Message, at_s: float) -> tuple[list[Outgoing], dict[str, wire.Value]]:
        self._refuse_while_firing(at_s)
        if command["kind"] >= len(KINDS):
            raise _Refusal("bad_value", 0)
        tone = _tone(KINDS[command["kind"]], 256)
        return [], {
            "kind": command["kind"],
            "tone_samples": len(tone),
            "tone_crc": wire.crc16(tone.tobytes()),
            "failed_bits": 0,
        }
