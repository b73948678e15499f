"""The world as two recorded signals: a pure function of the frame number and of what happened until then."""

from __future__ import annotations

import bisect
import math
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from rig.domain.waveforms import BOARD_FULL_SCALE, BOARD_TONE_RATE_HZ, board_samples
from rig.sim.bandlimited import Floats, Spectrum, converter, fast_length, local_rate
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.noise import FrameNoise, generator
from rig.sim.paths import Paths, impulse_response
from rig.sim.tones import LEAD_FRAMES, Rendered, Tone
from rig.sim.world import CAUSE_EAR_NOISE, CAUSE_HUM, CAUSE_REF_NOISE, WorldSpec

PULSE_SAMPLES = 32
"""The board's pulse of 1 ms, in samples of its tone."""

SNR_AMPLITUDE = 0.5
"""Signal-to-noise ratios are those of a chirp at this amplitude; another level moves them by as much."""


class EarSystem(Protocol):
    """What carries tones from the mouth to the ear."""

    def told(self, tone: Tone) -> None: ...
    def add_to(self, out: Floats, first: int) -> None:
        """Adds what the system makes the ear hear in frames [first, first + len(out))."""
        ...


class Scene:
    """Tones in, two channels out. Frames are the interface's, counted since the world began."""

    def __init__(self, spec: WorldSpec, seed: int, time: VirtualTime, audio: DriftingClock, paths: Paths) -> None:
        self.spec = spec
        self.tones: list[Tone] = []
        self.drops: list[tuple[int, int]] = []  # (frame, count) that the driver will lose
        self._time = time
        self._audio = audio
        self._paths = paths
        self._seed = seed
        self._system: EarSystem | None = None
        self._silent: list[Tone] = []  # told of, not rendered yet
        self._reference: list[Rendered] = []
        self._ear: list[Rendered] = []
        self._n_stimuli = 0
        reference_rms = spec.reference_level * SNR_AMPLITUDE / math.sqrt(2.0)
        self._reference_noise = FrameNoise(seed, CAUSE_REF_NOISE, _sigma(reference_rms, spec.reference_snr_db))
        self._hum_phases = generator(seed, CAUSE_HUM).uniform(0.0, 2 * np.pi, 6)

    def attach(self, system: EarSystem) -> None:
        self._system = system

    def tone(self, start_s: float, samples: npt.NDArray[np.int8], rate_hz: float) -> Cancel:
        """The board will play `samples` from true time `start_s`; returns what cuts the tone off at a true time."""
        scaled = samples.astype(np.float64) / BOARD_FULL_SCALE
        start_s += self.spec.tone_after_pulse_s
        return self._tell(Tone(len(self.tones), start_s, scaled, rate_hz, True, self._time.now_s, "mcu"))

    def play(self, wave: npt.NDArray[np.float32], start_s: float, rate_hz: float) -> Cancel:
        """The interface's output will play `wave`; its converter is band-limited, and on the same clock."""
        samples = np.asarray(wave, dtype=np.float64)
        return self._tell(Tone(len(self.tones), start_s, samples, rate_hz, False, self._time.now_s, "interface"))

    def _tell(self, tone: Tone) -> Cancel:
        self.tones.append(tone)
        self._silent.append(tone)
        if self._system is not None:
            self._system.told(tone)
        drop = self._plan_drop(tone)

        def cancel(cut_s: float) -> None:
            if tone.cut_s is not None or cut_s >= tone.start_s + tone.length_s:
                return
            tone.cut_s = cut_s
            if drop is not None and drop[0] > self._audio.reading(cut_s) and drop in self.drops:
                self.drops.remove(drop)
            rest = tone.rest_after(cut_s, tone.index)
            if len(rest.samples):
                self._silent.append(rest)
                if self._system is not None:
                    self._system.told(rest)

        return cancel

    def _plan_drop(self, tone: Tone) -> tuple[int, int] | None:
        """Every n-th stimulus loses frames half way between its end (or start) and its arrival."""
        self._n_stimuli += 1
        every = self.spec.drop_every
        if every is None or self._n_stimuli % every:
            return None
        quiet_from_s = tone.start_s + (tone.length_s if tone.length_s < 0.8 * self.spec.latency_s else 0.0)
        middle_s = 0.5 * (quiet_from_s + tone.start_s + self.spec.latency_s)
        drop = (math.ceil(self._audio.reading(middle_s)), self.spec.drop_frames)
        bisect.insort(self.drops, drop)
        return drop

    def grid(self, true_s: float) -> tuple[float, float]:
        """The interface's clock around `true_s`: true frames per second and the (fractional) frame of that time."""
        frame = self._audio.reading(true_s)
        return local_rate(frame, self._audio.reading(true_s + 0.5), 0.5), frame

    def render(self, first: int, count: int) -> tuple[Floats, Floats]:
        """Channels reference and ear in frames [first, first + count), before gain limits and quantisation."""
        self._render_due(first + count)
        reference = self._reference_noise.read(first, count).copy()
        ear = self._ear_noise.read(first, count).copy()
        noises, limits = (reference, ear), (self.spec.reference_limit, self.spec.ear_limit)
        # An amplifier clips the sound before its own noise comes on top.
        sounds = [noise if limit is None else np.zeros(count) for noise, limit in zip(noises, limits, strict=True)]
        for rendered in self._reference:
            rendered.add_to(sounds[0], first)
        for rendered in self._ear:
            rendered.add_to(sounds[1], first)
        if self._system is not None:
            self._system.add_to(sounds[1], first)
        self._add_hum(sounds[1], first)
        for noise, sound, limit in zip(noises, sounds, limits, strict=True):
            if limit is not None:
                noise += np.clip(sound, -limit, limit)
        self._reference = [r for r in self._reference if r.end > first + count]
        self._ear = [r for r in self._ear if r.end > first + count]
        return reference, ear

    def _render_due(self, until: int) -> None:
        waiting = []
        for tone in self._silent:
            rate, frame = self.grid(tone.start_s)
            if frame - LEAD_FRAMES >= until:
                waiting.append(tone)
                continue
            self._render_tone(tone, rate, frame)
        self._silent = waiting

    def _render_tone(self, tone: Tone, rate: float, frame: float) -> None:
        base = math.floor(frame) - LEAD_FRAMES
        n_fft = fast_length(math.ceil(tone.length_s * rate) + 3 * LEAD_FRAMES + self._paths.tail_frames)
        spectrum = self.electrical(tone, rate, frame - base, n_fft)
        heard_from = math.ceil(self._audio.reading(tone.told_s))
        on_reference = self._pulse(tone, rate, frame - base, n_fft) if self.spec.pulse_on_reference else spectrum
        recorded = impulse_response(on_reference * self._paths.reference(n_fft), n_fft)
        self._reference.append(Rendered(base, recorded, heard_from))
        direct: Spectrum = spectrum * (self._paths.crosstalk_gain * converter(n_fft))
        if self.spec.leak_db is not None or self.spec.crosstalk_db is not None:
            if self.spec.leak_db is not None:
                late_frames = (self._paths.leak_s + self.spec.channel_skew_s) * rate
                whole = math.floor(late_frames)
                moved = self.electrical(tone, rate, frame - base + late_frames - whole, n_fft)
                leaked = impulse_response(moved * self._paths.leak(n_fft), n_fft)
                self._ear.append(Rendered(base + whole, leaked, heard_from))
            self._ear.append(Rendered(base, impulse_response(direct, n_fft), heard_from))

    def electrical(self, tone: Tone, rate: float, start_frame: float, n_fft: int) -> Spectrum:
        """What drives channel 1 and the mouth alike, on a grid of `rate` true frames per second."""
        spectrum = tone.spectrum(rate, start_frame, n_fft)
        return spectrum * self._paths.board_output(n_fft) if tone.held else spectrum

    def _pulse(self, tone: Tone, rate: float, start_frame: float, n_fft: int) -> Spectrum:
        """The pulse of a firing, at the pin of its own: no filter, no PWM. The interface makes none."""
        if tone.source != "mcu" or tone.undoes is not None:
            return np.zeros(n_fft // 2 + 1, dtype=np.complex128)
        high = Tone(tone.index, tone.start_s, np.ones(PULSE_SAMPLES), tone.rate_hz, True, tone.told_s, tone.source)
        return high.spectrum(rate, start_frame - self.spec.tone_after_pulse_s * rate, n_fft)

    @cached_property
    def ear_sigma(self) -> float:
        """RMS of the noise on the ear channel."""
        return _sigma(self._chirp_rms, self.spec.snr_db)

    @cached_property
    def _ear_noise(self) -> FrameNoise:
        return FrameNoise(self._seed, CAUSE_EAR_NOISE, self.ear_sigma, self.spec.noise_colour)

    @cached_property
    def _chirp_rms(self) -> float:
        """RMS over its own length of what a chirp at SNR_AMPLITUDE makes the ear hear through the system."""
        samples = board_samples("chirp", SNR_AMPLITUDE) / BOARD_FULL_SCALE
        tone = Tone(0, 0.0, samples, float(BOARD_TONE_RATE_HZ), True, 0.0, "mcu")
        n_fft = fast_length(math.ceil(tone.length_s * self.spec.rate_hz) + self._paths.tail_frames)
        path = self._paths.to_microphone(n_fft) * self._paths.to_ear(n_fft)
        heard = impulse_response(self.electrical(tone, self.spec.rate_hz, 0.0, n_fft) * path, n_fft)
        return math.sqrt(float(np.sum(heard**2)) / (tone.length_s * self.spec.rate_hz))

    def _add_hum(self, ear: Floats, first: int) -> None:
        if self.spec.dc:
            ear += self.spec.dc
        if self.spec.hum_db is None:
            return
        weights = np.array([1.0 / k**1.2 for k in range(1, 7)])
        weights *= self._chirp_rms * 10 ** (self.spec.hum_db / 20) * math.sqrt(2.0) / np.linalg.norm(weights)
        frames = np.arange(first, first + len(ear), dtype=np.float64)
        for k, (weight, phase) in enumerate(zip(weights, self._hum_phases, strict=True), start=1):
            ear += weight * np.sin(2 * np.pi * np.fmod(k * self.spec.hum_hz / self.spec.rate_hz * frames, 1.0) + phase)


def _sigma(rms: float, snr_db: float | None) -> float:
    return 0.0 if snr_db is None else rms * float(10.0 ** (-snr_db / 20.0))


class Cancel(Protocol):
    def __call__(self, cut_s: float, /) -> None: ...
