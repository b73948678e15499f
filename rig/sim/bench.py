"""The simulated bench: one world, ready to be measured through the same seams as a real one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from rig.domain.seams import AudioBackend, BytePipe, SystemUnderTest
from rig.sim.alive import Living, LivingBoard
from rig.sim.audio import SimAudioBackend
from rig.sim.bandlimited import converter, delay, fast_length
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.diary import Diary
from rig.sim.emulated import EmulatedMcu
from rig.sim.line import LineSystem
from rig.sim.mcu import ScriptedMcu
from rig.sim.noise import FrameNoise, generator
from rig.sim.paths import Paths, impulse_response
from rig.sim.scenarios import Scenario, find_scenario
from rig.sim.scene import SNR_AMPLITUDE, EarSystem, Scene
from rig.sim.stream import FrameProcessor, StreamSystem
from rig.sim.system import Passage, SimSystem, Start
from rig.sim.tones import LEAD_FRAMES, Tone
from rig.sim.truth import DEFAULT_BAND_HZ, DEFAULT_TAPER, PathResponse, first_arrival_frames
from rig.sim.world import CAUSE_BOARD, CAUSE_CLOCKS, CAUSE_SYSTEM_NOISE, WorldSpec

TRUTH_SCHEMA = "rig.truth/1"

TICK_RATE_HZ = 2_000_000.0
"""The board's timer: 16 MHz / 8."""


class SimBench:
    """A world behind the seams: `audio`, `pipe`, `time`, `system`; and what is true of it: `truth()`."""

    def __init__(
        self,
        scenario: Scenario,
        seed: int,
        spec: WorldSpec,
        emulator: Sequence[str] | None = None,
        living: Living | None = None,
    ) -> None:
        """`emulator` starts an emulated board, which then takes the place of the scripted one; so does `living`, around
        which the world runs in real time."""
        self.scenario = scenario
        self.seed = seed
        self.spec = spec
        self._time = VirtualTime(f"sim:{scenario.name}:{seed}") if living is None else living.time
        self._audio_clock, self._board_clock, system_ppm = _clocks(spec, seed)
        if living is not None:
            self._board_clock = DriftingClock(TICK_RATE_HZ, living.pins.clock.ppm)
        self._paths = Paths(spec, seed)
        self._scene = Scene(spec, seed, self._time, self._audio_clock, self._paths)
        self._system = SimSystem(spec, seed, self._time, self._audio_clock, self._paths)
        self._line = _ear_system(self._scene, self._system, self._audio_clock, self._paths, system_ppm, seed)
        self._scene.attach(self._line)
        self._backend = SimAudioBackend(spec, seed, self._time, self._audio_clock, self._scene)
        board_rng = generator(seed, CAUSE_BOARD)
        self._mcu: BytePipe
        if living is not None:
            self._mcu = LivingBoard(living, self._scene.tone)
        elif emulator is not None:
            self._mcu = EmulatedMcu(self._time, self._board_clock, board_rng, self._scene.tone, emulator=emulator)
        else:
            self._mcu = ScriptedMcu(self._time, self._board_clock, board_rng, self._scene.tone)
        self._system_ppm = system_ppm

    @property
    def audio(self) -> AudioBackend:
        return self._backend

    @property
    def pipe(self) -> BytePipe:
        return self._mcu

    @property
    def time(self) -> VirtualTime:
        return self._time

    @property
    def system(self) -> SystemUnderTest:
        return self._system

    def keep_diary(self, path: Path) -> None:
        """Where the system is to append its marks; without it, it writes none."""
        self._system.diary = Diary(path, self.spec, self.seed, self._time.timebase.identity)

    @property
    def scene(self) -> Scene:
        """The physical world, for tests that play a tone without the board's protocol."""
        return self._scene

    def path_response(self, run: int, index: int, with_leak: bool = False) -> PathResponse:
        """The way from reference to ear for stimulus `index` (from 0) of run `run`.

        Of the system alone, or with the leak and the crosstalk too. Raises KeyError for a stimulus that did not pass.
        """
        for start in reversed(self._system.starts):
            if start.run == run and index < len(start.passages):
                return self._response(start.passages[index], with_leak)
        raise KeyError(f"no stimulus {index} passed through the system in run {run}")

    def _response(self, passage: Passage, with_leak: bool) -> PathResponse:
        spec, rate = self.spec, self.spec.rate_hz
        lag = (passage.latency_audio_s + spec.channel_skew_s) * rate
        sign, nominal = 1.0, spec.system not in ("line", "none")
        if not with_leak:
            return PathResponse(sign * self._excess_response, lag - LEAD_FRAMES, rate, nominal)
        n_fft = fast_length(math.ceil(lag) + self._paths.tail_frames + 3 * LEAD_FRAMES)
        path = self._paths.to_microphone(n_fft) * self._paths.to_ear(n_fft) * delay(n_fft, lag + LEAD_FRAMES)
        leak_lag = (self._paths.leak_s + spec.channel_skew_s) * rate
        path = path + self._paths.leak(n_fft) * delay(n_fft, leak_lag + LEAD_FRAMES)
        path = path + self._paths.crosstalk_gain * converter(n_fft) * delay(n_fft, LEAD_FRAMES)
        return PathResponse(impulse_response(path, n_fft) / spec.reference_level, -LEAD_FRAMES, rate, nominal)

    @cached_property
    def _excess_response(self) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Reference to ear without the pure delay; the direct arrival is at frame LEAD_FRAMES."""
        n_fft = fast_length(self._paths.tail_frames + 4 * LEAD_FRAMES)
        path = self._paths.to_microphone(n_fft) * self._paths.to_ear(n_fft) * delay(n_fft, LEAD_FRAMES)
        return impulse_response(path, n_fft) / self.spec.reference_level

    @cached_property
    def _excess_s(self) -> float | None:
        """What the definition adds to the pure delay of the first path, in seconds."""
        if self.spec.system == "none":
            return None
        return (first_arrival_frames(self._excess_response, self.spec.rate_hz) - LEAD_FRAMES) / self.spec.rate_hz

    def truth(self) -> dict[str, Any]:
        """Everything that is true of this world so far, ready for JSON. Seconds and frames; absent is None."""
        spec = self.spec
        heard = {id(p.tone) for start in self._system.starts for p in start.passages}
        return {
            "schema": TRUTH_SCHEMA,
            "scenario": self.scenario.name,
            "description": self.scenario.description,
            "seed": self.seed,
            "settings": asdict(spec),
            "definition": {"band_hz": list(DEFAULT_BAND_HZ), "taper": DEFAULT_TAPER, "excess_s": self._excess_s},
            "clocks": {
                "audio_ppm": self._audio_clock.ppm,
                "board_ppm": self._board_clock.ppm,
                "board_swing_ppm": spec.board_swing_ppm,
                "system_ppm": self._system_ppm,
            },
            "device": {
                "input_delay_s": spec.input_delay_s,
                "input_claimed_s": spec.input_claimed_s,
                "output_delay_s": spec.output_delay_s,
                "output_claimed_s": spec.output_claimed_s,
                "adc_claim_error_s": spec.adc_claim_error_s,
            },
            "ear_noise_rms": self._scene.ear_sigma,
            "leak": None
            if spec.leak_db is None
            else {"lag_s": self._paths.leak_s, "relative_db": spec.leak_db, "distance_m": spec.leak_distance_m},
            "streams": [
                {"stream": k, "first_frame_s": self._audio_clock.true_s(stream.first_world_frame)}
                for k, stream in enumerate(self._backend.opened)
            ],
            "lost_frames": [asdict(lost) for lost in self._backend.lost],
            "runs": [
                {
                    "run": start.run,
                    "on_s": start.on_s,
                    "off_s": start.off_s,
                    "offset_s": start.offset_s,
                    "marks_clock": self._marks_clock(start),
                    "stimuli": [self._stimulus(k, p) for k, p in enumerate(start.passages)],
                }
                for start in self._system.starts
            ],
            "unanswered": [
                self._fired(tone) for tone in self._scene.tones if id(tone) not in heard and not tone.called_off
            ],
        }

    def _marks_clock(self, start: Start) -> dict[str, float] | None:
        """How the clock of the marks stood to the host's at the start, and how fast it ran; None: no marks."""
        if self._system.diary is None:
            return None
        offset_s, ppm = self._system.diary.clock(start)
        return {"offset_s": offset_s, "ppm": ppm}

    def _stimulus(self, index: int, passage: Passage) -> dict[str, Any]:
        excess = self._excess_s
        skewed = passage.latency_audio_s + self.spec.channel_skew_s
        return {
            "index": index,
            **self._fired(passage.tone),
            "latency_s": passage.latency_s,
            "latency_audio_s": skewed,
            "defined_latency_s": None if excess is None else skewed + excess,
            "stage_s": passage.stage_s,
            "frame_fill_s": passage.frame_fill_s,
            "hidden_capture_s": passage.hidden_in_s,
            "hidden_output_s": passage.hidden_out_s,
            "seq": passage.seq,
            "eaten": passage.eaten,
            "delay_changed": passage.changed,
        }

    def _fired(self, tone: Tone) -> dict[str, Any]:
        frame = self._audio_clock.reading(tone.start_s)
        recording = [k for k, stream in enumerate(self._backend.opened) if stream.first_world_frame <= frame]
        origin = None
        if recording:  # frame 0 of the recording, and what was lost since, in frames of the world
            gone = [lost for lost in self._backend.lost if lost.stream == recording[-1] and lost.world_frame <= frame]
            origin = self._backend.opened[recording[-1]].first_world_frame + sum(lost.count for lost in gone)
        return {
            "start_s": tone.start_s,
            "length_s": tone.length_s,
            "stream": recording[-1] if recording else None,
            "reference_frame": None if origin is None else frame - origin,
            "source": tone.source,
            "cut_s": tone.cut_s,
        }


def build_bench(
    scenario: str, seed: int, *, emulator: Sequence[str] | None = None, living: Living | None = None, **overrides: Any
) -> SimBench:
    """A world by the scenario's name, with any setting of `WorldSpec` overridden. The same seed is the same world.

    `emulator` is the command that starts an emulated board; `living` is one that runs already, and then the world runs
    in real time. Without them the board is the scripted one.

    Raises DeviceNotFound for an unknown scenario, UsageError for an override that does not exist or cannot be, and
    MissingLibrary where the scenario needs a coder that is not installed.
    """
    found = find_scenario(scenario)
    return SimBench(found, seed, found.world(overrides), emulator, living)


def _clocks(spec: WorldSpec, seed: int) -> tuple[DriftingClock, DriftingClock, float]:
    """The interface's clock, the board's clock, and how far the system's own clock is off in ppm."""
    rng = generator(seed, CAUSE_CLOCKS)
    audio_ppm = float(rng.uniform(-30.0, 30.0))
    board_ppm = float(rng.uniform(1000.0, 5000.0) * rng.choice([-1.0, 1.0]))
    system_ppm = float(rng.uniform(-30.0, 30.0))
    phase, start, board_start = rng.uniform(0.0, 2.0 * math.pi), rng.uniform(0.0, 1.0), rng.uniform(0.0, 1e5)
    audio = DriftingClock(spec.rate_hz, audio_ppm if spec.audio_ppm is None else spec.audio_ppm, start=float(start))
    board = DriftingClock(
        TICK_RATE_HZ,
        board_ppm if spec.board_ppm is None else spec.board_ppm,
        spec.board_swing_ppm,
        spec.board_swing_period_s,
        float(phase),
        float(math.floor(board_start)),
    )
    return audio, board, system_ppm if spec.system_ppm is None else spec.system_ppm


def _ear_system(
    scene: Scene, system: SimSystem, audio: DriftingClock, paths: Paths, system_ppm: float, seed: int
) -> EarSystem:
    spec = system.spec
    if spec.system in ("line", "none"):
        return LineSystem(scene, system, audio, paths)
    # The extra modules are read where they are needed: the coder's library may be absent.
    make: Callable[[], FrameProcessor]
    if spec.system == "opus":
        from rig.sim.opus import OpusProcessor

        make = partial(OpusProcessor, spec.opus_bit_rate)
    elif spec.system == "denoiser":
        from rig.sim.denoiser import DenoiserProcessor

        make = DenoiserProcessor
    else:
        from rig.sim.narrowband import NarrowbandProcessor

        make = NarrowbandProcessor
    make()  # what is missing is found out now, not in the middle of a measurement
    phase = float(generator(seed, CAUSE_CLOCKS, 1).uniform())
    clock = DriftingClock(spec.rate_hz, system_ppm, start=phase)
    chirp_rms = SNR_AMPLITUDE / math.sqrt(2.0)
    sigma = 0.0 if spec.system_noise_db is None else chirp_rms * 10.0 ** (spec.system_noise_db / 20.0)
    noise = FrameNoise(seed, CAUSE_SYSTEM_NOISE, sigma, "room")
    return StreamSystem(scene, system, audio, paths, clock, make, noise)
