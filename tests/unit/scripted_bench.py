"""A bench below the seams that does as its script says, in virtual time: every sample carries its own frame number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from rig.bench import BenchPlan, run_plan
from rig.domain.records import (
    ArmedStimulus,
    BenchKind,
    BoardIdentity,
    ChannelRoles,
    ClockExchange,
    StimulusFired,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
)
from rig.domain.seams import AudioBlock, AudioStream, Frames
from rig.domain.timebase import HostClock, Instant
from rig.errors import LinkTimeout, RigError
from rig.session import SessionWriter
from rig.sim.clock import VirtualTime

RATE_HZ = 48_000
BLOCK = 480
TICK_RATE_HZ = 1_000_000.0


def numbered(first: int, count: int, channels: int = 2) -> Frames:
    """Frames whose first channel is the frame number in steps of 2**-23, and whose second is its negative."""
    ramp = ((first + np.arange(count)) % 2**22 / 2.0**23).astype(np.float32)
    return np.stack([ramp if c % 2 == 0 else -ramp for c in range(channels)], axis=1)


@dataclass
class AudioScript:
    """What goes wrong, by block number. `dies_at`: no block from this one on. `raises_at`: raised in place of it."""

    channels: int = 2
    tells_overflow: bool = True
    overflow_at: frozenset[int] = frozenset()
    underflow_at: frozenset[int] = frozenset()
    late_from: dict[int, float] = field(
        default_factory=dict
    )  # block number to s: it and all after it are so much later
    lost_before: dict[int, int] = field(default_factory=dict)
    dies_at: dict[int, int] = field(default_factory=dict)  # stream number (0-based) to block number
    raises_at: dict[int, BaseException] = field(default_factory=dict)


class ScriptedAudio:
    """`AudioBackend`; `streams` are those opened so far."""

    name = "scripted"

    def __init__(self, time: VirtualTime, script: AudioScript) -> None:
        self.time, self.script = time, script
        self.streams: list[ScriptedStream] = []

    def devices(self) -> Sequence[dict[str, Any]]:
        return []

    def open(self, spec: StreamSpec) -> AudioStream:
        self.streams.append(ScriptedStream(self.time, self.script, spec, len(self.streams)))
        return self.streams[-1]


class ScriptedStream:
    def __init__(self, time: VirtualTime, script: AudioScript, spec: StreamSpec, number: int) -> None:
        self.time, self.script, self.number = time, script, number
        self.granted = StreamGrant(spec.device, "scripted", RATE_HZ, script.channels, BLOCK, 0.01, None)
        self.opened_s = time.now_s
        self.block, self.frame = 0, 1000  # a stream need not begin at frame 0
        self.closed = 0
        self.played: list[tuple[int, int]] = []  # (frame, length)

    def read(self, deadline: Instant[HostClock]) -> AudioBlock | None:
        if self.block in self.script.raises_at:
            raise self.script.raises_at[self.block]
        late_s = sum(late_s for block, late_s in self.script.late_from.items() if self.block >= block)
        lost = sum(frames for block, frames in self.script.lost_before.items() if self.block >= block)
        due_s = self.opened_s + ((self.block + 1) * BLOCK + lost) / RATE_HZ + late_s
        dead = self.block >= self.script.dies_at.get(self.number, 1 << 60)
        if dead or due_s > deadline.seconds:
            self.time.sleep_until(deadline)
            return None
        self.time.advance_to_ns(round(due_s * 1e9))
        self.frame += self.script.lost_before.get(self.block, 0)
        flag = self.block in self.script.overflow_at if self.script.tells_overflow else None
        samples = numbered(self.frame, BLOCK, self.script.channels)
        starved = self.block in self.script.underflow_at
        made = AudioBlock(self.frame, samples, flag, self.time.now(), due_s - 0.012, None, starved)
        self.block += 1
        self.frame += BLOCK
        return made

    def play(self, wave: npt.NDArray[np.float32], at_frame: int) -> int:
        given = at_frame + 7  # devices start on their own block
        self.played.append((given, len(wave)))
        return given

    def close(self) -> None:
        self.closed += 1


@dataclass
class LinkScript:
    loses_firings: frozenset[int] = frozenset()
    ping_fails: bool = False
    safe_fails: bool = False


class ScriptedLink:
    """`StimulusLink`: fires at the spacing armed, by a clock of 1 MHz, and counts how often it was made safe."""

    def __init__(self, time: VirtualTime, script: LinkScript) -> None:
        self.time, self.script = time, script
        self.safe_calls = 0
        self.pings = 0
        self.plan: StimulusPlan | None = None
        self.due_s: list[float] = []
        self.reported = 0

    def identify(self) -> BoardIdentity:
        return BoardIdentity(1, "0", TICK_RATE_HZ, "scripted", "0", "0")

    def exchange_clock(self) -> ClockExchange:
        sent_s = self.time.now_s
        self.time.advance_to_ns(self.time.now_ns + 2_000_000)
        self.pings += 1
        if self.script.ping_fails:
            raise LinkTimeout("no answer", "an answer", "look")
        return ClockExchange(sent_s, round(sent_s * 1e6) + 900, round(sent_s * 1e6) + 1100, self.time.now_s)

    def arm(self, plan: StimulusPlan) -> ArmedStimulus:
        self.plan = plan
        ticks = tuple(round(s * TICK_RATE_HZ) for s in plan.spacing_s)
        return ArmedStimulus(plan.kind, plan.count, plan.amplitude, ticks)

    def fire(self) -> None:
        assert self.plan is not None, "armed before it is fired"
        steps = np.concatenate(([0.0], np.cumsum(self.plan.spacing_s)))
        self.due_s, self.reported = [self.time.now_s + 0.003 + float(s) for s in steps], 0

    def poll(self, deadline: Instant[HostClock]) -> Sequence[StimulusFired]:
        out = []
        while self.reported < len(self.due_s) and self.due_s[self.reported] <= self.time.now_s:
            index = self.reported
            self.reported += 1
            if index not in self.script.loses_firings:
                out.append(StimulusFired(index, round(self.due_s[index] * TICK_RATE_HZ), TICK_RATE_HZ))
        return out * 2  # a board repeats what may have been lost

    def safe(self) -> None:
        self.safe_calls += 1
        self.due_s = []
        if self.script.safe_fails:
            raise LinkTimeout("no answer to stop", "an answer", "look")


class ScriptedSystem:
    def __init__(self, can_stop: bool = True) -> None:
        self.can_stop = can_stop
        self.ended_early: str | None = None
        self.calls: list[str] = []
        self.fails_at: dict[int, RigError] = {}

    def start(self, run: int) -> None:
        self.calls.append(f"start {run}")
        if run in self.fails_at:
            raise self.fails_at[run]

    def stop(self) -> None:
        self.calls.append("stop")


class ScriptedBench:
    """The parts together, and what was told to the progress display."""

    def __init__(
        self, folder: Path, audio: AudioScript | None = None, link: LinkScript | None = None, can_stop: bool = True
    ) -> None:
        self.folder = folder
        self.time = VirtualTime("scripted")
        self.audio = ScriptedAudio(self.time, audio or AudioScript())
        self.link = ScriptedLink(self.time, link or LinkScript())
        self.system = ScriptedSystem(can_stop)
        self.told: list[tuple[str, dict[str, Any]]] = []
        manifest = {"bench": BenchKind.SIMULATED, "mode": "call", "seed": 7, "roles": ChannelRoles(0, 1)}
        self.writer = SessionWriter.create(folder, manifest, self.time)

    def progress(self, event: str, facts: dict[str, Any]) -> None:
        self.told.append((event, {k: v for k, v in facts.items() if k != "frames"}))

    def run(self, plan: BenchPlan, with_link: bool = True) -> None:
        link = self.link if with_link else None
        run_plan(plan, self.audio, link, self.system, self.time, self.writer, self.progress)

    def heard(self, event: str) -> list[dict[str, Any]]:
        return [facts for kind, facts in self.told if kind == event]


def a_plan(runs: int = 2, count: int = 3, source: str = "mcu", **changes: Any) -> BenchPlan:
    stimuli = tuple(
        StimulusPlan("chirp", count, tuple(0.8 + 0.1 * k + 0.01 * run for k in range(count - 1)), 0.5, source)
        for run in range(runs)
    )
    settings: dict[str, Any] = {"settle_s": 0.2, "tail_s": 0.6, "response_s": 0.4, **changes}
    return BenchPlan(StreamSpec("scripted", RATE_HZ, 2), ChannelRoles(0, 1), stimuli, **settings)
