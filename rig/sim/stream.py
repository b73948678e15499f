"""A system under test that processes a stream in frames: coder, telephone or denoiser, on its own sample clock.

Its microphone signal is rendered on its own clock's grid; what it plays is resampled onto the interface's grid, frame
group by frame group, with a windowed sinc whose position follows the two clocks (Taylor terms of the kernel up to the
third, so that even 100 ppm inside a group costs under 1e-4 at the top of the band).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from scipy import fft

from rig.errors import UsageError
from rig.sim.bandlimited import KERNEL_HALF, Floats, converter, fast_length, kernel
from rig.sim.clock import DriftingClock
from rig.sim.noise import FrameNoise
from rig.sim.paths import Paths, impulse_response
from rig.sim.scene import Scene
from rig.sim.system import SimSystem, Start
from rig.sim.tones import LEAD_FRAMES, Rendered, Tone

FRAME_SAMPLES = 960
"""20 ms at 48 kHz: what the system handles at a time."""

_MAX_GROUP = 4


class FrameProcessor(Protocol):
    """What the system does to its stream. `delay_samples` is its own delay, part of the latency."""

    delay_samples: float

    def process(self, frame: Floats) -> Floats:
        """One frame of FRAME_SAMPLES in, one out; keeps its state between frames."""
        ...


class StreamSystem:
    """Every start is a fresh processor on a stream that begins with it."""

    def __init__(
        self,
        scene: Scene,
        system: SimSystem,
        audio: DriftingClock,
        paths: Paths,
        clock: DriftingClock,
        make_processor: Callable[[], FrameProcessor],
        noise: FrameNoise,
    ) -> None:
        self.scene = scene
        self.system = system
        self.audio = audio
        self.paths = paths
        self.clock = clock
        self.noise = noise
        self.tones: list[Tone] = []
        self._make_processor = make_processor
        self._streams: list[_Stream] = []

    def told(self, tone: Tone) -> None:
        self.tones.append(tone)
        for stream in self._streams:
            stream.waiting.append(tone)

    def add_to(self, out: Floats, first: int) -> None:
        """Adds the system's sound in frames [first, first + len(out)) to `out`."""
        for start in self.system.starts[len(self._streams) :]:
            self._streams.append(_Stream(self, start, self._make_processor()))
        for stream in self._streams:
            stream.add_to(out, first)


class _Stream:
    """One start's stream from microphone to ear."""

    def __init__(self, world: StreamSystem, start: Start, processor: FrameProcessor) -> None:
        self._world = world
        self._start = start
        self._processor = processor
        self.waiting = list(world.tones)
        self._heard: list[Rendered] = []
        self._next = math.ceil(world.clock.reading(start.on_s + start.frame_phase_s))
        spec, paths = world.system.spec, world.paths
        self._algorithm_s = processor.delay_samples / world.clock.rate_hz
        slack_s = self._playout_s(start.on_s) - (FRAME_SAMPLES / world.clock.rate_hz + 0.003)
        if slack_s < 0.0:
            raise UsageError(
                f"the simulated {spec.system} system cannot be as fast as {spec.latency_s:g} s",
                f"a latency of at least {spec.latency_s - slack_s:.3f} s",
                "set a longer latency_s",
            )
        frame_s = FRAME_SAMPLES / world.clock.rate_hz
        self._group = min(_MAX_GROUP, 1 + int(slack_s / frame_s))
        n_out = paths.tail_frames + 2 * LEAD_FRAMES
        n_design = fast_length(2 * n_out)
        response = np.roll(impulse_response(paths.to_ear(n_design), n_design), LEAD_FRAMES)[:n_out]
        self._n_fft = fast_length(self._group * FRAME_SAMPLES + 2 * KERNEL_HALF + n_out)
        self._out_spectrum = fft.rfft(response, self._n_fft)
        self._sounding: list[Rendered] = []
        self._next_ear = self._ear_frame(self._next)

    def add_to(self, out: Floats, first: int) -> None:
        last = None if self._start.off_s is None else math.ceil(self._world.audio.reading(self._start.off_s))
        until = first + len(out)
        # Once muted, what would be processed is never heard.
        while self._next_ear - LEAD_FRAMES - KERNEL_HALF < (until if last is None else min(until, last)):
            self._process_group()
        for rendered in self._sounding:
            rendered.last = last
            rendered.add_to(out, first)
        self._sounding = [r for r in self._sounding if r.end > until]

    def _playout_s(self, true_s: float) -> float:
        """From a sample's place at the microphone to its place at the ear, without the processor's own delay."""
        latency_s = self._world.system.latency_s(self._start, true_s, stepped=False)
        return latency_s - self._world.paths.acoustic_in_s - self._algorithm_s

    def _ear_frame(self, sample: float) -> float:
        """Interface frame at which stream sample `sample` is heard (fractional)."""
        world = self._world
        true_s = world.clock.true_s(sample)
        skew = world.system.spec.channel_skew_s * world.audio.rate_hz
        return world.audio.reading(true_s + self._playout_s(true_s)) + skew

    def _process_group(self) -> None:
        first = self._next
        n = self._group * FRAME_SAMPLES
        self._render_due(first + n)
        heard = self._world.noise.read(first, n).copy()
        for rendered in self._heard:
            rendered.add_to(heard, first)
        self._heard = [r for r in self._heard if r.end > first + n]
        frames = heard.reshape(self._group, FRAME_SAMPLES)
        played = np.concatenate([self._processor.process(frame) for frame in frames])
        self._next = first + n
        # Sample k of the group is heard at `at + k + stretch[k]`: the clocks differ by parts per million.
        begin, end = self._next_ear, self._ear_frame(first + n)
        self._next_ear = end
        ratio = (end - begin) / n
        centre = 0.5 * (n - 1)
        stretch = (ratio - 1.0) * (np.arange(n) - centre)
        at = begin + ratio * centre - centre
        whole = math.floor(at)
        resampled = np.zeros(n + 2 * KERNEL_HALF)
        weight = played
        for order in range(4):
            resampled += fft_convolve(weight, kernel(at - whole, order))
            weight = weight * (-stretch) / (order + 1)
        sound = fft.irfft(fft.rfft(resampled, self._n_fft) * self._out_spectrum, self._n_fft)
        base = whole - KERNEL_HALF - LEAD_FRAMES
        self._sounding.append(Rendered(base, np.asarray(sound, dtype=np.float64), base))

    def _render_due(self, until: int) -> None:
        """Renders every tone that reaches the microphone before stream sample `until`."""
        world, waiting = self._world, []
        for tone in self.waiting:
            at_s = tone.start_s + world.paths.acoustic_in_s
            sample = world.clock.reading(at_s)
            if sample - LEAD_FRAMES >= until:
                waiting.append(tone)
                continue
            if self._start.off_s is not None and at_s >= self._start.off_s:
                continue
            rate = (world.clock.reading(at_s + 0.5) - sample) / 0.5
            base = math.floor(sample) - LEAD_FRAMES
            n_fft = fast_length(math.ceil(tone.length_s * rate) + 3 * LEAD_FRAMES + world.paths.tail_frames)
            spectrum = world.scene.electrical(tone, rate, sample - base, n_fft)
            spectrum = spectrum * world.paths.to_microphone(n_fft) * converter(n_fft)
            heard_from = max(math.ceil(world.clock.reading(tone.told_s)), base)
            self._heard.append(Rendered(base, impulse_response(spectrum, n_fft), heard_from))
            if tone.undoes is None and not tone.called_off and self._start.running_at(at_s):
                latency_s = world.system.latency_s(self._start, tone.start_s, stepped=False)
                world.system.passage(tone, self._start, latency_s, self._algorithm_s)
        self.waiting = waiting


def fft_convolve(samples: Floats, taps: Floats) -> Floats:
    """Full convolution, length n + m - 1."""
    n = len(samples) + len(taps) - 1
    size = fast_length(n)
    return np.asarray(fft.irfft(fft.rfft(samples, size) * fft.rfft(taps, size), size)[:n], dtype=np.float64)
