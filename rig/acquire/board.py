"""The board as `StimulusLink`: identity, clock exchanges, plans and firings as records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rig.acquire import wire
from rig.acquire.dialogue import Answer, Dialogue, FrameSink, LinkCounts, mismatch
from rig.acquire.ticks import TickWidener
from rig.domain.records import ArmedStimulus, BoardIdentity, ClockExchange, StimulusFired, StimulusPlan
from rig.domain.seams import BytePipe, HostTime
from rig.domain.timebase import Duration, HostClock, Instant
from rig.domain.waveforms import amplitude_steps, board_samples
from rig.errors import LinkCorrupt, LinkLost, RigError, UsageError

HANDSHAKE_S = 6.0  # boards that reset when the port opens take up to 3 s to come up
COMMAND_S = 1.5  # for one command, all its tries together
TRY_S = 0.3  # an FTDI adapter takes 16 ms each way, a stalled host some tens more
SAFE_S = 1.0
OVERDUE_S = 0.5  # after its end, a firing without an event is asked for
PULSE_US = 1000

WIRE_SHARE = 0.99  # of a frame's time on the wire is surely spent: the board's clock, and so its baud rate, may be fast


@dataclass(frozen=True, slots=True)
class BoardStatus:
    """How the board is. `bad_frames` counts what it could not read since its reset, modulo 65536."""

    state: str
    count: int
    n_fired: int
    bad_frames: int


@dataclass(slots=True)
class _Plan:
    """The plan on the board: the ticks from start to start as granted, and what was heard of it."""

    spacing_ticks: tuple[int, ...]
    tone_ticks: int
    first_tick: int | None = None  # once fired
    reported: int = 0  # firings handed out so far; they are handed out in order
    patience_s: float = OVERDUE_S


class Link:
    """The board at the other end of a `BytePipe`. Every method may raise LinkTimeout, LinkCorrupt or LinkLost.

    `port` names the pipe in errors. `on_frame` is told of every frame, for the record. `handshake_s` is how long the
    first `identify` waits for a board that may still be booting.
    """

    def __init__(
        self,
        pipe: BytePipe,
        time: HostTime,
        on_frame: FrameSink | None = None,
        *,
        port: str | None = None,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        name = port or str(getattr(pipe, "name", type(pipe).__name__))
        baud = getattr(pipe, "baud", None)
        self._dialogue = Dialogue(pipe, time, f"{name} at {baud} baud" if baud else name, on_frame)
        self._pipe = pipe
        self._time = time
        self._handshake_s = handshake_s
        self._identity: BoardIdentity | None = None
        self._facts: wire.Message | None = None
        self._ticks: TickWidener | None = None
        self._plan: _Plan | None = None
        self.safe_error: RigError | None = None
        """Why the last `safe` could not be confirmed, or None."""

    @property
    def counts(self) -> LinkCounts:
        """What did not go smoothly so far."""
        return self._dialogue.counts

    def identify(self) -> BoardIdentity:
        """Asks who is there until a valid answer comes; what came before it is dropped and counted.

        Raises FirmwareMismatch, naming both values, when the board has another protocol level or message table.
        """
        first = self._identity is None
        reply = self._dialogue.ask("identify", self._handshake_s if first else COMMAND_S, TRY_S).message
        if first:
            self.counts.dropped_bytes = self._dialogue.bytes_seen - wire.frame_bytes("identity")
        if reply["protocol_level"] != wire.PROTOCOL_LEVEL or reply["table_hash"] != wire.table_hash():
            raise mismatch(self._dialogue.port, reply["protocol_level"], reply["table_hash"])
        if reply["tick_hz"] == 0 or reply["tone_hz"] == 0:
            raise self._nonsense("the board claims a timer or a tone of 0 Hz")
        identity = BoardIdentity(
            protocol=reply["protocol_level"],
            table_hash=f"{reply['table_hash']:08x}",
            tick_rate_hz=float(reply["tick_hz"]),
            board=reply.text("board"),
            build=reply.text("build"),
            uid=f"{reply['uid']:016x}",
        )
        if self._ticks is None:
            self._ticks = TickWidener(identity.tick_rate_hz)
        self._identity, self._facts = identity, reply
        return identity

    def exchange_clock(self) -> ClockExchange:
        """One ping. The host times have the frames' known time on the wire taken off already.

        So `host_sent_s` is the earliest time at which the ping's last byte can have reached the board, and
        `host_received_s` the latest at which the reply's first byte can have left it: bounds, not estimates.
        """
        facts, ticks = self._known()
        answer = self._dialogue.ask("ping", COMMAND_S, TRY_S)
        pong = answer.message
        sent_tick = ticks.fresh(pong["sent_tick"], answer.received_s)
        held_ticks = (pong["sent_tick"] - pong["received_tick"]) % 2**32
        if held_ticks > (answer.received_s - answer.sent_s + 0.01) * ticks.tick_rate_hz:
            raise self._nonsense(
                f"the board says it held a reply for {held_ticks} ticks, longer than the exchange took"
            )
        byte_s = WIRE_SHARE * facts["byte_ns"] * 1e-9
        return ClockExchange(
            host_sent_s=answer.sent_s + byte_s * wire.frame_bytes("ping"),
            mcu_received_tick=sent_tick - held_ticks,
            mcu_sent_tick=sent_tick,
            host_received_s=answer.received_s - byte_s * wire.frame_bytes("pong"),
        )

    def arm(self, plan: StimulusPlan) -> ArmedStimulus:
        """Sends the plan and returns what the board will really do: spacings and amplitude as it rounded them.

        Raises UsageError for a plan that no board can play, or that is too long or too tight for this one.
        """
        facts, ticks = self._known()
        _check(plan)
        asked = [round(spacing * ticks.tick_rate_hz) for spacing in plan.spacing_s]
        if asked and max(asked) >= 2**31:
            raise UsageError(
                f"a spacing of {max(plan.spacing_s):g} s",
                f"under {2**31 / ticks.tick_rate_hz:.0f} s, half a wrap of the board's counter",
                "use a shorter spacing",
            )
        self._plan = None
        granted: list[int] = []
        for at in range(0, len(asked), wire.MAX_SPACINGS_A_FRAME):
            part = tuple(asked[at : at + wire.MAX_SPACINGS_A_FRAME])
            loaded = self._ask("load", first_index=at, spacing_ticks=part).message
            if loaded["first_index"] != at or len(loaded.numbers("spacing_ticks")) != len(part):
                raise self._nonsense("the board confirms another part of the spacing list than it was sent")
            granted += loaded.numbers("spacing_ticks")
        armed = self._ask(
            "arm",
            kind=wire.KINDS.index(plan.kind),
            amplitude_256ths=amplitude_steps(plan.amplitude),
            count=plan.count,
            pulse_us=PULSE_US,
        ).message
        if armed["kind"] >= len(wire.KINDS) or armed["count"] != plan.count:
            raise self._nonsense("the board confirms another plan than it was sent")
        self._dialogue.events.clear()  # all of them of an earlier plan
        tone_ticks = round(armed["tone_samples"] * ticks.tick_rate_hz / facts["tone_hz"])
        self._plan = _Plan(tuple(granted), tone_ticks)
        kind = wire.KINDS[armed["kind"]]
        return ArmedStimulus(kind, armed["count"], armed["amplitude_256ths"] / 256.0, tuple(granted))

    def fire(self, at_tick: int | None = None) -> None:
        """Starts the armed plan: at once, or with the first sample at or after a tick, widened as in the stamps.

        Raises BenchNotReady when nothing is armed or a plan runs already, UsageError for a tick that is past or less
        than 20 ms ahead.
        """
        _, ticks = self._known()
        answer = self._ask("fire") if at_tick is None else self._ask("fire_at", first_tick=at_tick & 0xFFFFFFFF)
        if self._plan is not None:
            self._plan.first_tick = ticks.fresh(answer.message["first_tick"], answer.received_s)

    def poll(self, deadline: Instant[HostClock]) -> Sequence[StimulusFired]:
        """Waits for firings, at most until the deadline, and returns those that are new, in the order of their index.

        A firing whose event was lost is asked for, which may take a command's time beyond the deadline.
        """
        _, ticks = self._known()
        while True:
            fired = self._new_firings(ticks)
            if fired:
                return fired
            now = self._time.now()
            overdue_s = self._overdue_s(ticks)
            if overdue_s is not None and now.seconds >= overdue_s:
                self._recall_next()
                continue
            until = deadline if overdue_s is None or overdue_s > deadline.seconds else _at(now, overdue_s)
            if not self._dialogue.receive(until) and self._time.now().seconds >= deadline.seconds:
                return []

    def safe(self) -> None:
        """Stops everything. May be called at any time and any number of times; never raises an error."""
        self.safe_error = None
        try:
            self._dialogue.ask("safe", SAFE_S, SAFE_S / 4)
        except RigError as error:
            self.safe_error = error
        except Exception as error:  # whatever the pipe or the log does, the way out stays open
            self.safe_error = LinkLost(f"safe failed: {error}", "a board that confirms it", "switch the board off")
        self._plan = None  # the board has forgotten it too: what was not reported by now never will be

    def close(self) -> None:
        """Closes the pipe. Call `safe` first: the board plays on without a host."""
        self._pipe.close()

    def status(self) -> BoardStatus:
        """How the board is."""
        _, ticks = self._known()
        answer = self._ask("status")
        reply = answer.message
        ticks.fresh(reply["tick"], answer.received_s)
        state = wire.STATES[reply["state"]] if reply["state"] < len(wire.STATES) else f"state {reply['state']}"
        return BoardStatus(state, reply["count"], reply["n_fired"], reply["bad_frames"])

    def self_test(self) -> tuple[str, ...]:
        """Has the board make every tone in memory and compares it with ours; returns what is wrong, empty when well."""
        self._known()
        wrong: list[str] = []
        for number, kind in enumerate(wire.KINDS):
            reply = self._ask("self_test", kind=number).message
            ours = board_samples(kind, 1.0)
            if (reply["tone_samples"], reply["tone_crc"]) != (len(ours), wire.crc16(ours.tobytes())):
                wrong.append(f"{kind}: the board would play another tone than rig expects")
            for bit, part in enumerate(("memory", "timer")):
                if reply["failed_bits"] >> bit & 1 and f"{part} failed" not in wrong:
                    wrong.append(f"{part} failed")
        return tuple(wrong)

    def _ask(self, name: str, **fields: wire.Value) -> Answer:
        return self._dialogue.ask(name, COMMAND_S, TRY_S, **fields)

    def _known(self) -> tuple[wire.Message, TickWidener]:
        if self._facts is None or self._ticks is None:
            self.identify()
        assert self._facts is not None
        assert self._ticks is not None
        return self._facts, self._ticks

    def _nonsense(self, what: str) -> LinkCorrupt:
        return LinkCorrupt(
            f"{self._dialogue.port}: {what}",
            "answers that agree with the question",
            "reset the board and start again; if it stays, flash it: rig firmware flash",
        )

    def _new_firings(self, ticks: TickWidener) -> list[StimulusFired]:
        """Takes the events that follow on what was handed out; asks for those that a later event shows to be lost."""
        fired: list[StimulusFired] = []
        events = self._dialogue.events
        while events:
            event, read_s = events[0]
            plan = self._plan
            next_index = plan.reported if plan is not None else event["index"]
            if event["index"] > next_index:
                if not self._recall_next():
                    raise self._nonsense(f"firing {event['index']} is over, but {next_index} before it is not")
                continue
            events.pop(0)
            if event["index"] == next_index:
                tick = ticks.earlier(event["tick"], read_s)
                fired.append(StimulusFired(event["index"], tick, ticks.tick_rate_hz))
                if plan is not None:
                    plan.reported, plan.patience_s = next_index + 1, OVERDUE_S
        return fired

    def _overdue_s(self, ticks: TickWidener) -> float | None:
        """When, in host time, to ask for the next firing; None while nothing is to be expected."""
        plan = self._plan
        if plan is None or plan.first_tick is None or plan.reported > len(plan.spacing_ticks):
            return None
        due_tick = plan.first_tick + sum(plan.spacing_ticks[: plan.reported]) + plan.tone_ticks
        due_s = ticks.host_s(due_tick)
        return None if due_s is None else due_s + plan.patience_s

    def _recall_next(self) -> bool:
        """Asks for the next firing and puts the answer in front of the events; False if it is not over yet."""
        plan = self._plan
        assert plan is not None
        try:
            answer = self._ask("recall", index=plan.reported)
        except UsageError as error:
            raise LinkLost(
                f"{self._dialogue.port}: the board knows nothing of firing {plan.reported}: it restarted",
                "a board that keeps its plan",
                "check the board's supply and cable, then start the measurement again",
            ) from error
        recalled = answer.message
        if recalled["played_samples"] == 0:
            plan.patience_s += OVERDUE_S
            return False
        if recalled["index"] != plan.reported:
            raise self._nonsense(f"asked for firing {plan.reported}, the board tells of {recalled['index']}")
        self.counts.recalled_events += 1
        self._dialogue.events.insert(0, (recalled, answer.received_s))
        return True


def _at(now: Instant[HostClock], seconds: float) -> Instant[HostClock]:
    return now.plus(Duration(seconds - now.seconds))


def _check(plan: StimulusPlan) -> None:
    """Raises UsageError for a plan that does not make sense on any board."""
    if plan.kind not in wire.KINDS or plan.lead_in is not None:
        asked = plan.kind if plan.lead_in is None else f"a lead-in of {plan.lead_in}"
        raise UsageError(
            f"the board cannot play {asked}",
            f"one of {', '.join(wire.KINDS)}, without a lead-in",
            "play it through the interface's output: --port none",
        )
    try:
        amplitude_steps(plan.amplitude)
    except ValueError as error:
        raise UsageError(str(error), "an amplitude from 1/256 to 1 of full scale", "change the amplitude") from error
    if not 1 <= plan.count <= 0xFFFF or len(plan.spacing_s) != plan.count - 1:
        raise UsageError(
            f"a plan of {plan.count} stimuli with {len(plan.spacing_s)} spacings",
            "at least 1 stimulus and one spacing fewer than stimuli",
            "give one spacing for each pair of neighbours",
        )
    if not all(math.isfinite(s) and s > 0.0 for s in plan.spacing_s):
        raise UsageError("a spacing that is not a positive time", "spacings above 0 s", "change the plan")
