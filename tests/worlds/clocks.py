"""Worlds of clocks: a ceramic resonator, an interface's crystal, and a serial link that delays as real ones do.

Host time is the truth. The board's resonator is 5000 ppm off, warms up by 150 ppm, swings by 20 ppm and walks; the
interface is 50 ppm off and warms up by half a ppm. Links: "hs", a bus that is served at once; "cdc", full-speed USB,
served once a millisecond; "cdc+stall", the same with 3 % of the replies up to 16 ms late; "ftdiN", a bridge at
115200 baud that holds what it received for up to N ms. The host's scheduling adds lognormal jitter and rare stalls.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.domain.records import ClockExchange

Floats = npt.NDArray[np.float64]

TICK_RATE_HZ = 250_000.0
RATE_HZ = 48_000
STEP_S = 0.05  # of the tables that hold the clocks
BEFORE_S = 4.0
BAUD = 115_200.0
PING_BYTES, PONG_BYTES = 8, 16


@dataclass(frozen=True, slots=True)
class Clocks:
    """What each clock shows, against the truth, as tables read with straight lines between."""

    true_s: Floats
    mcu_s: Floats
    audio_s: Floats

    def mcu_at(self, true_s: Floats) -> Floats:
        return np.interp(true_s, self.true_s, self.mcu_s)

    def audio_at(self, true_s: Floats) -> Floats:
        return np.interp(true_s, self.true_s, self.audio_s)

    def true_of_mcu(self, mcu_s: Floats) -> Floats:
        return np.interp(mcu_s, self.mcu_s, self.true_s)

    def true_of_audio(self, audio_s: Floats) -> Floats:
        return np.interp(audio_s, self.audio_s, self.true_s)


@dataclass(frozen=True, slots=True)
class World:
    """One run from true time `start_s` on: its clocks, the exchanges as they happened (with the time on the wire),
    the pulses as stamped and as heard."""

    link: str
    clocks: Clocks
    start_s: float
    length_s: float
    exchanges: tuple[ClockExchange, ...]
    pulse_ticks: Floats
    heard_s: Floats

    @property
    def pulse_frames(self) -> Floats:
        return self.heard_s * RATE_HZ


def draw_clocks(rng: np.random.Generator, length_s: float, kind: str = "ceramic") -> Clocks:
    """Clocks for `length_s` and some seconds around it; `kind` of the board's: ceramic or crystal."""
    t = np.arange(-BEFORE_S, length_s + 8.0, STEP_S)
    walk = np.sqrt(STEP_S) * np.cumsum(rng.standard_normal((2, len(t))), axis=1)
    warm = 1.0 - np.exp(-np.maximum(t, 0.0) / 180.0)
    swing = np.sin(2.0 * np.pi * (t / 600.0 + rng.uniform()))
    off, rise, sway, step = (5000.0, 150.0, 20.0, 0.05) if kind == "ceramic" else (30.0, 1.0, 0.3, 0.003)
    sign = rng.choice([-1.0, 1.0])
    mcu_ppm = sign * off + rise * warm + sway * swing + step * walk[0]
    audio_ppm = sign * 50.0 + 0.5 * (1.0 - np.exp(-np.maximum(t, 0.0) / 300.0)) + 0.002 * walk[1]
    host0_s = rng.uniform(0.0, 1e6)

    def reading(start_s: float, ppm: Floats) -> Floats:
        return start_s + np.concatenate(([0.0], np.cumsum((1.0 + 1e-6 * ppm[:-1]) * STEP_S)))

    return Clocks(host0_s + t, reading(rng.uniform(10.0, 200.0), mcu_ppm), reading(rng.uniform(5.0, 9.0), audio_ppm))


def draw_world(
    rng: np.random.Generator,
    length_s: float,
    link: str,
    hold_s: float = 2e-3,
    kind: str = "ceramic",
    pings_hz: float = 10.0,
    pulse_every_s: float = 1.0,
) -> World:
    """A world of `length_s` with that link. Replies are held for up to `hold_s`, or sent at once where it is 0."""
    clocks = draw_clocks(rng, length_s, kind)
    start_s = float(clocks.true_s[0]) + BEFORE_S
    t1, t2, t3, t4 = _exchange(rng, length_s, link, hold_s, pings_hz)
    received = np.floor(clocks.mcu_at(start_s + t2) * TICK_RATE_HZ).astype(int)
    sent = np.floor(clocks.mcu_at(start_s + t3) * TICK_RATE_HZ).astype(int)
    exchanges = tuple(
        ClockExchange(a, b, c, d)
        for a, b, c, d in zip(
            (start_s + t1).tolist(), received.tolist(), sent.tolist(), (start_s + t4).tolist(), strict=True
        )
    )
    pulses = start_s + np.arange(0.5 * pulse_every_s, length_s, pulse_every_s)
    ticks = np.floor(clocks.mcu_at(pulses) * TICK_RATE_HZ)
    heard = clocks.audio_at(pulses) + rng.normal(0.0, 0.05 / RATE_HZ, len(pulses))
    return World(link, clocks, start_s, length_s, exchanges, ticks, heard)


def wire_time_s(link: str) -> tuple[float, float]:
    """What is known of the time on the wire, to the board and to the host."""
    return (10.0 * PING_BYTES / BAUD, 10.0 * PONG_BYTES / BAUD) if link.startswith("ftdi") else (0.0, 0.0)


def _exchange(
    rng: np.random.Generator, length_s: float, link: str, hold_s: float, pings_hz: float
) -> tuple[Floats, Floats, Floats, Floats]:
    """True times of host send, board receipt, board send and host receipt, from the beginning of the world."""
    n = int(length_s * pings_hz)
    t1 = np.sort(np.arange(n) / pings_hz + rng.uniform(0.0, 0.05, n))
    to_board_s, to_host_s = wire_time_s(link)
    held = 40e-6 + (rng.uniform(0.0, hold_s, n) if hold_s else rng.exponential(5e-6, n))
    if link.startswith("cdc"):
        phase = rng.uniform(0.0, 1e-3)
        t2 = _slot(t1 + 15e-6 + 0.5 * _late(rng, n), 1e-3, phase) + rng.uniform(20e-6, 80e-6, n)
        t3 = t2 + held
        t4 = _slot(t3 + 10e-6, 1e-3, phase) + rng.uniform(20e-6, 80e-6, n) + _late(rng, n)
        if link == "cdc+stall":
            t4 = t4 + (rng.random(n) < 0.03) * rng.uniform(0.0, 16e-3, n)
    elif link == "hs":
        t2 = t1 + 60e-6 + rng.gamma(2.0, 20e-6, n) + 0.5 * _late(rng, n)
        t3 = t2 + held
        t4 = t3 + 50e-6 + rng.gamma(2.0, 20e-6, n) + _late(rng, n)
    else:
        timer_s = 1e-3 * float(link.removeprefix("ftdi"))
        t2 = t1 + 200e-6 + to_board_s + 0.5 * _late(rng, n) + rng.uniform(0.0, 1e-3, n)
        t3 = t2 + held
        t4 = _slot(t3 + to_host_s, timer_s, rng.uniform(0.0, timer_s)) + rng.uniform(50e-6, 150e-6, n) + _late(rng, n)
    return t1, t2, t3, t4


def _slot(t: Floats, length_s: float, phase_s: float) -> Floats:
    return np.ceil((t - phase_s) / length_s) * length_s + phase_s


def _late(rng: np.random.Generator, n: int) -> Floats:
    """How late the host's program wakes: around 40 us, one time in 200 by 2 to 20 ms."""
    return rng.lognormal(np.log(40e-6), 0.6, n) + (rng.random(n) < 0.005) * rng.uniform(2e-3, 20e-3, n)
