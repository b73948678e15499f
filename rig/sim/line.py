"""A system under test that is a delay line with a law: each stimulus is rendered at once, exactly, by FFT."""

from __future__ import annotations

import math

import numpy as np

from rig.sim.bandlimited import Floats, converter, fast_length
from rig.sim.clock import DriftingClock
from rig.sim.paths import Paths, impulse_response
from rig.sim.scene import Scene
from rig.sim.system import SimSystem, Start
from rig.sim.tones import LEAD_FRAMES, Rendered, Tone

CROSSFADE_S = 0.0025
"""How long a jitter buffer takes to fade from the old delay to the new one."""

_TAIL_KEPT = 0.35  # of a stimulus that a suppressor cuts short


class LineSystem:
    """Renders the way through the system for every tone that arrives while it runs."""

    def __init__(self, scene: Scene, system: SimSystem, audio: DriftingClock, paths: Paths) -> None:
        self._scene = scene
        self._system = system
        self._audio = audio
        self._paths = paths
        self._waiting: list[Tone] = []
        self._sounding: list[tuple[Start, Rendered]] = []

    def told(self, tone: Tone) -> None:
        self._waiting.append(tone)

    def add_to(self, out: Floats, first: int) -> None:
        """Adds the system's sound in frames [first, first + len(out)) to `out`."""
        waiting = []
        for tone in self._waiting:
            # Whether the system runs is known once the sound has reached its microphone, and not before.
            at_frame = self._audio.reading(tone.start_s + self._paths.acoustic_in_s)
            if at_frame >= first + len(out):
                waiting.append(tone)
            else:
                self._render(tone, math.ceil(at_frame))
        self._waiting = waiting
        for start, rendered in self._sounding:
            if start.off_s is not None:
                rendered.last = math.ceil(self._audio.reading(start.off_s))
            rendered.add_to(out, first)
        self._sounding = [(s, r) for s, r in self._sounding if r.end > first + len(out)]

    def _render(self, tone: Tone, heard_from: int) -> None:
        start = self._system.start_at(tone.start_s + self._paths.acoustic_in_s)
        if start is None:
            return
        stem = tone if tone.undoes is None else tone.undoes  # a rest goes the way that its tone went
        jitter_s = self._system.jitter_s(stem)
        before_s = self._system.latency_s(start, tone.start_s, stepped=False) + jitter_s
        after_s = before_s + self._system.spec.step_s
        step_s = self._system.step_s(start)
        eaten = self._system.eaten(stem)
        if step_s is None:
            parts = [(before_s, False)]
        else:
            # Heard before the step: with the old delay; after it: with the new one. A stimulus may be in both.
            out_s = self._paths.acoustic_out_s
            old = tone.start_s + before_s - out_s < step_s
            new = tone.start_s + tone.length_s + after_s - out_s >= step_s
            parts = [(before_s, False)] * old + [(after_s, True)] * new
        if stem is tone and not tone.called_off:
            passage = self._system.passage(tone, start, parts[0][0])
            passage.eaten, passage.changed = eaten, len(parts) > 1
        for latency_s, stepped in parts:
            rendered = self._part(tone, stem, latency_s, eaten, step_s if len(parts) > 1 else None, stepped)
            rendered.first = heard_from
            self._sounding.append((start, rendered))

    def _part(
        self, tone: Tone, stem: Tone, latency_s: float, eaten: str | None, step_s: float | None, stepped: bool
    ) -> Rendered:
        """One stimulus with one delay, on the interface's grid."""
        spec = self._system.spec
        rate, _ = self._scene.grid(tone.start_s)
        arrival = self._audio.reading(tone.start_s + latency_s) + spec.channel_skew_s * rate
        base = math.floor(arrival) - LEAD_FRAMES
        stretched = rate * (1.0 + spec.slope_ppm * 1e-6)  # a delay that grows plays everything slower
        n_fft = fast_length(math.ceil(tone.length_s * rate) + 3 * LEAD_FRAMES + self._paths.tail_frames)
        spectrum = self._scene.electrical(tone, stretched, arrival - base, n_fft) * self._paths.to_microphone(n_fft)
        if eaten is not None or step_s is not None:
            played = impulse_response(spectrum * converter(n_fft), n_fft)
            # Time at which each sample leaves the loudspeaker, true seconds after the tone's own start.
            first_s = latency_s - self._paths.acoustic_out_s - (arrival - base) / rate
            played_s = tone.start_s + first_s + np.arange(n_fft) / rate
            if eaten is not None:
                played *= self._suppression(eaten, played_s - stem.start_s - latency_s, stem.length_s)
            if step_s is not None:
                fade = np.clip((played_s - step_s) / CROSSFADE_S + 0.5, 0.0, 1.0)
                played *= fade if stepped else 1.0 - fade
            spectrum = np.fft.rfft(played)
        return Rendered(base, impulse_response(spectrum * self._paths.to_ear(n_fft), n_fft), base)

    def _suppression(self, eaten: str, since_s: Floats, length_s: float) -> Floats:
        """The suppressor's gain against time since the stimulus began to be played."""
        floor = 10.0 ** (self._system.spec.eaten_db / 20.0)
        if eaten == "whole":
            return np.full(len(since_s), floor)
        closing = np.clip((since_s - _TAIL_KEPT * length_s) / (0.05 * length_s), 0.0, 1.0)
        return np.asarray(floor + (1.0 - floor) * (0.5 + 0.5 * np.cos(np.pi * closing)), dtype=np.float64)
