"""Transfer functions of the world between the board's pin and the two recorded channels.

Everything is evaluated on the interface's frequency grid, from exact delays, analogue filters and room responses, and
leaves out the pure delay of the first path, which the caller adds exactly (fractional frames). Signs: a delay is
positive when the output is later.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from scipy import fft, signal

from rig.sim.bandlimited import KERNEL_HALF, Floats, Spectrum, analogue, converter, delay, rc_lowpass
from rig.sim.noise import generator
from rig.sim.room import reflections
from rig.sim.world import CAUSE_ROOM_IN, CAUSE_ROOM_LEAK, CAUSE_ROOM_OUT, SPEED_OF_SOUND_M_S, WorldSpec

RC_CORNER_HZ = 15_900.0
"""The board's output filter: 1 kOhm and 10 nF. It lies before the split into channel 1 and the mouth, so it is in both
and has no part in the latency. The 31.25 kHz of the samples are held (zero order); the PWM carrier far above is not
modelled."""


class Paths:
    """The linear parts of one world. `rate_hz` is the interface's nominal rate; ppm do not matter for filters."""

    def __init__(self, spec: WorldSpec, seed: int) -> None:
        self.spec = spec
        self._seed = seed
        self._cache: dict[tuple[str, int], Spectrum] = {}

    @property
    def acoustic_in_s(self) -> float:
        return self.spec.mouth_distance_m / SPEED_OF_SOUND_M_S

    @property
    def acoustic_out_s(self) -> float:
        return self.spec.ear_distance_m / SPEED_OF_SOUND_M_S

    @property
    def leak_s(self) -> float:
        return self.spec.leak_distance_m / SPEED_OF_SOUND_M_S

    @cached_property
    def tail_frames(self) -> int:
        """Frames after a stimulus's end in which a path still sounds (rooms, echo, filters)."""
        seconds = 0.02 + (2.0 * self._room_length_s if self.spec.rt60_s else 0.0)
        if self.spec.speaker_band_hz or self.spec.mouth_band_hz or self.spec.telephone_band_hz:
            seconds += 0.03
        if self.spec.echo_db is not None:
            seconds += self.spec.echo_s
        return math.ceil(seconds * self.spec.rate_hz)

    def reference(self, n_fft: int) -> Spectrum:
        """Electrical signal to channel 1."""
        level = 0.0 if self.spec.reference_open else self.spec.reference_level
        return np.asarray(level * converter(n_fft), dtype=np.complex128)

    def board_output(self, n_fft: int) -> Spectrum:
        return rc_lowpass(RC_CORNER_HZ, n_fft, self.spec.rate_hz)

    def to_microphone(self, n_fft: int) -> Spectrum:
        """Electrical signal to the system's microphone, from the direct arrival on."""
        return self._cached("in", n_fft)

    def to_ear(self, n_fft: int) -> Spectrum:
        """What the system plays to the ear's converter, from the direct arrival on; the ear's level is in it."""
        return self._cached("out", n_fft)

    def leak(self, n_fft: int) -> Spectrum:
        """Electrical signal through the air to the ear, from its direct arrival on."""
        return self._cached("leak", n_fft)

    @property
    def ear_gain(self) -> float:
        """Gain of the first arrival, from the electrical signal to the ear channel, in a filter's passband."""
        return float(self.spec.reference_level * 10.0 ** (self.spec.ear_db / 20.0))

    @property
    def crosstalk_gain(self) -> float:
        db = self.spec.crosstalk_db
        return 0.0 if db is None else float(self.ear_gain * 10.0 ** (db / 20.0))

    def _cached(self, name: str, n_fft: int) -> Spectrum:
        if (name, n_fft) not in self._cache:
            build = {"in": self._build_in, "out": self._build_out, "leak": self._build_leak}[name]
            self._cache[name, n_fft] = build(n_fft)
        return self._cache[name, n_fft]

    @property
    def _room_length_s(self) -> float:
        return 0.6 * (self.spec.rt60_s or 0.0)  # the response is cut 36 dB down

    def _room(self, cause: int, distance_m: float) -> Floats:
        """The reflections as an impulse response that begins with the direct sound."""
        n_frames = math.ceil(self._room_length_s * self.spec.rate_hz) + 4 * KERNEL_HALF
        if self.spec.rt60_s is None:
            return np.zeros(n_frames)
        room = reflections(generator(self._seed, cause), distance_m, self.spec.rt60_s, self._room_length_s)
        return room.response(self.spec.rate_hz, n_frames)

    @cached_property
    def _room_in(self) -> Floats:
        return self._room(CAUSE_ROOM_IN, self.spec.mouth_distance_m)

    @cached_property
    def _room_out(self) -> Floats:
        return self._room(CAUSE_ROOM_OUT, self.spec.ear_distance_m)

    @cached_property
    def _room_leak(self) -> Floats:
        return self._room(CAUSE_ROOM_LEAK, self.spec.leak_distance_m)

    def _build_in(self, n_fft: int) -> Spectrum:
        response = _room_spectrum(self._room_in, n_fft)
        if self.spec.mouth_band_hz is not None:
            response *= transducer(self.spec.mouth_band_hz, 2, 2, n_fft, self.spec.rate_hz)
        if self.spec.telephone_band_hz is not None:
            response *= telephone(self.spec.telephone_band_hz, n_fft, self.spec.rate_hz)
        return response

    def _build_out(self, n_fft: int) -> Spectrum:
        spec = self.spec
        response = _room_spectrum(self._room_out, n_fft) * (spec.polarity * self.ear_gain)
        if spec.speaker_band_hz is not None:
            response *= transducer(spec.speaker_band_hz, 2, 4, n_fft, spec.rate_hz)
        if spec.echo_db is not None:
            response *= 1.0 + 10.0 ** (spec.echo_db / 20.0) * delay(n_fft, spec.echo_s * spec.rate_hz)
        return np.asarray(response * converter(n_fft), dtype=np.complex128)

    def _build_leak(self, n_fft: int) -> Spectrum:
        spec = self.spec
        if spec.leak_db is None:
            return np.zeros(n_fft // 2 + 1, dtype=np.complex128)
        response = _room_spectrum(self._room_leak, n_fft)
        if spec.mouth_band_hz is not None:
            response *= transducer(spec.mouth_band_hz, 2, 2, n_fft, spec.rate_hz)
        gain = self.ear_gain * 10.0 ** (spec.leak_db / 20.0)
        return np.asarray(response * gain * converter(n_fft), dtype=np.complex128)


def transducer(
    band_hz: tuple[float, float], high_pass_order: int, low_pass_order: int, n_fft: int, rate_hz: float
) -> Spectrum:
    """A loudspeaker as minimum-phase analogue Butterworth high pass and low pass; gain 1 inside the band."""
    high_pass = _butterworth(high_pass_order, [band_hz[0]], "high", n_fft, rate_hz)
    return high_pass * _butterworth(low_pass_order, [band_hz[1]], "low", n_fft, rate_hz)


def telephone(band_hz: tuple[float, float], n_fft: int, rate_hz: float) -> Spectrum:
    """A telephone's band pass: fourth-order analogue Butterworth, minimum phase."""
    return _butterworth(4, list(band_hz), "band", n_fft, rate_hz)


def _butterworth(order: int, edges_hz: list[float], kind: str, n_fft: int, rate_hz: float) -> Spectrum:
    edges = 2 * np.pi * np.array(edges_hz if len(edges_hz) > 1 else edges_hz[0])
    zeros, poles, gain = signal.butter(order, edges, kind, analog=True, output="zpk")
    return analogue(zeros, poles, float(gain), n_fft, rate_hz)


def _room_spectrum(response: Floats, n_fft: int) -> Spectrum:
    """Direct sound and reflections; what rings before frame 0 is wrapped to the end, whatever the length."""
    placed = np.zeros(n_fft)
    kept = min(len(response), n_fft) - KERNEL_HALF
    placed[:kept] = response[:kept]
    placed[n_fft - KERNEL_HALF :] = response[len(response) - KERNEL_HALF :]
    return np.asarray(1.0 + fft.rfft(placed), dtype=np.complex128)


def impulse_response(spectrum: Spectrum, n_fft: int) -> Floats:
    """Back to time; frames before 0 are wrapped to the end."""
    return np.asarray(fft.irfft(spectrum, n_fft), dtype=np.float64)
