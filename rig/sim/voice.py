"""A paced board's voice: what its tone pin does, played on a sound server while it happens.

The pin is told of in cycles of the board, and sound is taken frame by frame by a server with a clock of its own. One
map joins the two. It is steered so slowly that over a run it is a straight line: what is played is the pin, on a
crystal that is some ppm off. All that waits in between is the same for every frame, and bounded.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from rig.domain.seams import HostTime
from rig.domain.timebase import Duration
from rig.errors import AudioLost
from rig.sim.emulator import SILENCE, Event
from rig.sim.pins import Pins
from rig.sim.pinsound import HALF, Coupling, Floats, PinSound

FULL = 256.0
"""PWM levels in full scale 1.0: a tone at the amplitude that rig asks for, half, peaks at -12 dBFS."""

LAG_S = 0.1
"""Between the pin and the server's taking it at the start, and kept so: what the board may be late, and more."""

MOST_LAG_S = 2.0
"""A server that is this far behind has stopped taking sound; one that is only busy says itself when it ran dry."""

SETTLE_S = 1.0
"""Silence is played for this long first: all that buffers is full then."""

_LOOK = Duration(0.005)
_LOOK_AT_S = 10.0  # the map is looked at this often, over all that was seen since
_STEER_S = 600.0  # and brought back within about this time: a lag of 1 ms moves the rate by 3 ppm


class SoundTaker(Protocol):
    """What takes frames at its own pace. It keeps some, and plays them without a break as long as there are any."""

    def offer(self, data: bytes) -> int:
        """How many of these bytes (float32, mono) it took; it never waits."""
        ...

    def complaint(self) -> str | None:
        """What has gone wrong: it ran dry, it ended; None: nothing has."""
        ...

    def waiting_s(self) -> float | None:
        """How long a sound that is taken now waits until it is played, where that is known."""
        ...


class FrameMap:
    """From host time, in s, to frames: a line that can be given another slope, and goes on from where it was."""

    def __init__(self, at_s: float, frame: float, rate_hz: float) -> None:
        self._at_s = at_s
        self._frame = frame
        self._nominal_hz = rate_hz
        self._rate_hz = rate_hz
        self._integral = 0.0

    def frame(self, at_s: Floats | float) -> Floats | float:
        return self._frame + (at_s - self._at_s) * self._rate_hz

    @property
    def ppm(self) -> float:
        """How much faster than nominal frames are counted."""
        return 1e6 * (self._rate_hz / self._nominal_hz - 1.0)

    def steer(self, known_s: float, over_s: float, too_far_s: float) -> None:
        """From `known_s` on, before which nothing changes, the slope that takes back a lag that was too large by
        `too_far_s` over the last `over_s`.

        A proportional and an integrating part, critically damped.
        """
        gain = 2.0 / _STEER_S
        self._integral += gain * gain / 4.0 * too_far_s * over_s
        self._frame = float(self.frame(known_s))
        self._at_s = known_s
        self._rate_hz = self._nominal_hz * (1.0 - gain * too_far_s - self._integral)


class Voice:
    """Plays the board of `pins` on `out`, `rate_hz` frames a second. `turn` is to be called again and again.

    The pulse is not played: the tone is on both channels, and begins with it.
    """

    def __init__(self, pins: Pins, out: SoundTaker, time: HostTime, rate_hz: int) -> None:
        self._pins = pins
        self._out = out
        self._time = time
        self._rate_hz = rate_hz
        self._begun_s = time.now().seconds
        self._taken = 0  # frames, since the map was laid
        self._map: FrameMap | None = None
        self._sound = PinSound()
        self._coupling = Coupling(rate_hz)
        self._level = 0.0
        self._steps: list[tuple[float, float]] = []  # (host s, level) since the last turn
        self._waiting = b""
        self._lags: list[float] = []
        self._usual_lag_s: float | None = None
        self._steered_s = self._begun_s

    @property
    def after_pins_s(self) -> float | None:
        """How long after the pin a sound is played; None before it has settled, or where the server does not tell."""
        rest_s = self._out.waiting_s()
        if self._map is None or rest_s is None:
            return None
        return self._lag_s() + rest_s

    @property
    def ppm(self) -> float:
        return 0.0 if self._map is None else self._map.ppm

    def turn(self) -> None:
        """Hears the board, hands over what is known, and waits a moment.

        Raises AudioLost where the server ran out of sound, ended, or does not take any more: then what comes after is
        not where it belongs.
        """
        self._time.sleep_until(self._time.now().plus(_LOOK))
        self._hear()
        complaint = self._out.complaint()
        if complaint is not None:
            raise AudioLost(
                f"the sound of the emulated board broke off: {complaint}",
                "a sound server that always has something to play",
                "start the board again (rig virtual up --board) when the machine is less busy",
            )
        if self._map is None:
            self._settle()
            return
        known_s = self._known_s
        until = int(self._map.frame(known_s)) - HALF
        if self._steps:
            at_s, levels = np.array(self._steps).T
            self._steps.clear()
            self._sound.add(np.asarray(self._map.frame(at_s)), levels)
        fresh = self._coupling.through(self._sound.take(until))
        self._waiting += fresh.astype(np.float32).tobytes()
        self._hand_over()
        self._look(known_s)

    @property
    def _known_s(self) -> float:
        """Host time before which everything that the board did has been told."""
        return self._pins.clock.true_s(self._pins.told_until)

    def _lag_s(self) -> float:
        """How long ago it was on the pin what the server takes next."""
        assert self._map is not None
        return (float(self._map.frame(self._time.now().seconds)) - self._taken) / self._rate_hz

    def _hear(self) -> None:
        while events := self._pins.read(0.0):
            for event in events:
                self._note(event)

    def _note(self, event: Event) -> None:
        if event.kind != "pwm":
            return
        self._level = (event.value - SILENCE) / FULL
        if self._map is not None:
            self._steps.append((self._pins.clock.true_s(event.cycle), self._level))

    def _settle(self) -> None:
        if not self._waiting:
            self._waiting = bytes(4 * round(self._rate_hz * _LOOK.seconds))
        full = False
        while not full:
            took = self._out.offer(self._waiting)
            full = took < len(self._waiting)
            self._waiting = self._waiting[took:] or bytes(4 * round(self._rate_hz * _LOOK.seconds))
        now_s = self._time.now().seconds
        if now_s < self._begun_s + SETTLE_S:
            return
        self._waiting = self._waiting[: len(self._waiting) % 4]  # the rest of a frame that was taken in part
        rest = 1 if self._waiting else 0
        self._sound = PinSound(self._level)
        self._map = FrameMap(now_s - LAG_S, float(rest), self._rate_hz)
        self._taken = 0
        self._sound.next_frame = rest
        self._steered_s = now_s

    def _hand_over(self) -> None:
        assert self._map is not None
        took = self._out.offer(self._waiting) if self._waiting else 0
        self._taken += took // 4
        self._waiting = self._waiting[took:]
        if self._waiting:
            self._lags.append(self._lag_s())
            if self._lags[-1] > MOST_LAG_S:
                raise AudioLost(
                    f"the sound server has taken nothing of the emulated board for {self._lags[-1]:.1f} s",
                    "a sound server that runs",
                    "rig virtual down, then rig virtual up --board",
                )

    def _look(self, known_s: float) -> None:
        now_s = self._time.now().seconds
        over_s = now_s - self._steered_s
        if over_s < _LOOK_AT_S:
            return
        self._steered_s = now_s
        if self._lags and self._map is not None:
            lag_s = float(np.mean(self._lags))
            if self._usual_lag_s is None:
                self._usual_lag_s = lag_s
            self._map.steer(known_s, over_s, lag_s - self._usual_lag_s)
        self._lags.clear()
