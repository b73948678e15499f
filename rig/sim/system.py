"""The system under test: when it runs, how late it is, and where the time goes; truth of every start and stimulus."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.diary import Diary
from rig.sim.noise import generator
from rig.sim.paths import Paths
from rig.sim.tones import Tone
from rig.sim.world import CAUSE_JITTER, CAUSE_STAGES, CAUSE_START, CAUSE_SUPPRESSOR, WorldSpec

STAGES = ("acoustic_in", "capture", "encode", "send", "network", "play", "output", "acoustic_out")


@dataclass(slots=True)
class Start:
    """One start of the system, from `on_s` to `off_s` (true seconds). `offset_s` is this start's own share of delay."""

    run: int
    number: int
    on_s: float
    offset_s: float
    frame_phase_s: float
    capture_s: float  # this start's capture buffer, and its output buffer
    output_s: float
    off_s: float | None = None
    passages: list[Passage] = field(default_factory=list)

    def running_at(self, true_s: float) -> bool:
        return self.on_s <= true_s and (self.off_s is None or true_s < self.off_s)

    def frame_of(self, passage: Passage, frame_s: float) -> int:
        """The frame, from 0, that holds the beginning of the stimulus."""
        complete_s = passage.captured_s - passage.wake_s
        return round((complete_s - self.on_s - self.frame_phase_s) / frame_s) - 1


@dataclass(slots=True)
class Passage:
    """One stimulus through the system. `latency_s` is mouth to ear along the first path, in true seconds."""

    tone: Tone
    start: Start
    latency_s: float
    latency_audio_s: float  # the same as the interface's clock counts it
    stage_s: dict[str, float]
    frame_fill_s: float  # the part of capture that is waiting for a frame to be complete
    wake_s: float = 0.0  # the part of capture in which the complete frame waits for the program
    hidden_in_s: float = 0.0  # capture without the frame's filling: what no mark shows
    hidden_out_s: float = 0.0  # output without the place in the frame, likewise
    seq: int | None = None  # the frame that carries its beginning; None: its stages do not fit into its latency
    eaten: str | None = None  # "whole" or "tail": what a suppressor took
    changed: bool = False  # the delay changed while the stimulus was being played

    @property
    def captured_s(self) -> float:
        """True time of `t_capture` of its frame."""
        return self.tone.start_s + self.stage_s["acoustic_in"] + self.stage_s["capture"]

    @property
    def marks_s(self) -> list[float]:
        """True times of the five marks of its frame."""
        at_s, times = self.captured_s, [self.captured_s]
        for name in ("encode", "send", "network", "play"):
            at_s += self.stage_s[name]
            times.append(at_s)
        return times

    @property
    def played_s(self) -> float:
        """True time of `t_first_play` of its frame."""
        return self.marks_s[-1]


class SimSystem:
    """`SystemUnderTest` of the simulated world. Each `start` draws its own offset, the same for the same run number."""

    can_stop = True
    ended_early: str | None = None

    def __init__(self, spec: WorldSpec, seed: int, time: VirtualTime, audio: DriftingClock, paths: Paths) -> None:
        self.spec = spec
        self.starts: list[Start] = []
        self._seed = seed
        self._time = time
        self._audio = audio
        self._paths = paths
        self.diary: Diary | None = None

    def start(self, run: int) -> None:
        """Starts the system; one that runs is stopped first."""
        self.stop()
        rng = generator(self._seed, CAUSE_START, run)
        offset_s = rng.uniform(0.0, self.spec.start_spread_s) if self.spec.start_spread_s else 0.0
        if self.spec.start_step_s:
            offset_s = round(offset_s / self.spec.start_step_s) * self.spec.start_step_s
        phase_s = rng.uniform(0.0, self.spec.frame_s)
        capture_s = self.spec.capture_buffer_s + rng.uniform(0.0, 1.0) * self.spec.capture_start_spread_s
        output_s = self.spec.output_buffer_s + rng.uniform(0.0, 1.0) * self.spec.output_start_spread_s
        self.starts.append(
            Start(run, len(self.starts), self._time.now_s, offset_s, phase_s, float(capture_s), float(output_s))
        )

    def stop(self) -> None:
        """Mutes the system; idempotent. Where it keeps marks, those of the start that ends are written now."""
        if self.starts and self.starts[-1].off_s is None:
            self.starts[-1].off_s = self._time.now_s
            if self.diary is not None:
                self.diary.write(self.starts[-1])

    def start_at(self, true_s: float) -> Start | None:
        """The start whose system runs at `true_s`, None when it is muted or dead."""
        if self.spec.system == "none":
            return None
        return next((s for s in reversed(self.starts) if s.running_at(true_s)), None)

    def latency_s(self, start: Start, emitted_s: float, stepped: bool) -> float:
        """Mouth to ear, true seconds, of sound that leaves the mouth at `emitted_s`, before jitter."""
        latency_s = self.spec.latency_s + start.offset_s + (self.spec.step_s if stepped else 0.0)
        return latency_s + self.spec.slope_ppm * 1e-6 * (emitted_s - start.on_s)

    def step_s(self, start: Start) -> float | None:
        """True time at which this start's playback changes its delay, None when it does not."""
        return None if self.spec.step_at_s is None else start.on_s + self.spec.step_at_s

    def jitter_s(self, tone: Tone) -> float:
        if not self.spec.jitter_s:
            return 0.0
        return self.spec.jitter_s * float(generator(self._seed, CAUSE_JITTER, tone.index).standard_normal())

    def eaten(self, tone: Tone) -> str | None:
        """What a suppressor takes of this stimulus."""
        if not self.spec.eaten_share:
            return None
        draw = generator(self._seed, CAUSE_SUPPRESSOR, tone.index).uniform()
        if draw < self.spec.eaten_share:
            return "whole"
        return "tail" if draw < 1.5 * self.spec.eaten_share else None

    def passage(self, tone: Tone, start: Start, latency_s: float, algorithm_s: float = 0.0) -> Passage:
        """Books a stimulus's way through the system. `algorithm_s` is a coder's or filter's own delay (in encode)."""
        stages, fill_s, wake_s, fits = self._stages(tone, start, latency_s, algorithm_s)
        counted = self._audio.reading(tone.start_s + latency_s) - self._audio.reading(tone.start_s)
        booked = Passage(tone, start, latency_s, counted / self._audio.rate_hz, stages, fill_s, wake_s)
        booked.hidden_in_s = stages["capture"] - fill_s
        booked.hidden_out_s = stages["output"] - (self.spec.frame_s - fill_s)
        booked.seq = start.frame_of(booked, self.spec.frame_s) if fits else None
        start.passages.append(booked)
        return booked

    def _stages(
        self, tone: Tone, start: Start, latency_s: float, algorithm_s: float
    ) -> tuple[dict[str, float], float, float, bool]:
        """Stage lengths that add up to `latency_s`; of the capture, the frame's filling and its wait for the program;
        whether they fit. Where they do not, they are scaled."""
        spec, rng = self.spec, generator(self._seed, CAUSE_STAGES, tone.index)
        at_software_s = tone.start_s + self._paths.acoustic_in_s + start.capture_s
        frames = (at_software_s - start.on_s - start.frame_phase_s) / spec.frame_s
        fill_s = (math.floor(frames) + 1 - frames) * spec.frame_s
        jitter = np.exp(0.2 * rng.standard_normal(2))
        network_s = spec.network_s + spec.network_jitter_s * (float(rng.gamma(2.0, 0.5)) - 1.0)
        wake_s = spec.capture_jitter_s * float(rng.exponential())
        inside = {
            "capture": start.capture_s + fill_s + wake_s,
            "encode": spec.encode_s * float(jitter[0]) + algorithm_s,
            "send": spec.send_s * float(jitter[1]),
            "network": max(network_s, 0.0),
            "play": 0.0,
            # A sample that waited `fill_s` for its frame lies that far before the frame's end when it is played.
            "output": start.output_s + spec.frame_s - fill_s,
        }
        room_s = latency_s - self._paths.acoustic_in_s - self._paths.acoustic_out_s
        rest_s = room_s - sum(inside.values())
        if rest_s >= 0.0:
            inside["play"] = rest_s
        else:
            scale = max(room_s, 0.0) / sum(inside.values())
            inside = {name: value * scale for name, value in inside.items()}
            fill_s, wake_s = fill_s * scale, wake_s * scale
        ends = {"acoustic_in": self._paths.acoustic_in_s, "acoustic_out": self._paths.acoustic_out_s}
        return {name: {**inside, **ends}[name] for name in STAGES}, fill_s, wake_s, rest_s >= 0.0
