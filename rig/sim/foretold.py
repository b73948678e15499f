"""What the board has said that it will play, held against what it then played.

The simulated world must know a tone before it begins, and an emulated board plays it sample by sample. So the world is
told what the board announces in its replies, and every change of the PWM level is compared with that announcement:
another level, or one that is more than a tick early or late, is a fault that ends the session.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.acquire.wire import KINDS, Message
from rig.domain.waveforms import board_samples
from rig.sim.emulator import CYCLES_A_SAMPLE, CYCLES_A_TICK, SILENCE, Event

PATIENCE_CYCLES = 1_600_000  # 0.1 s, within which the answer to safe must explain a tone that was cut off


@dataclass(frozen=True, slots=True)
class ForetoldTone:
    """A tone that will sound. `first_cycle` is the CPU cycle of its first sample."""

    first_cycle: int
    samples: npt.NDArray[np.int8]

    @property
    def end_cycle(self) -> int:
        return self.first_cycle + CYCLES_A_SAMPLE * len(self.samples)


def level_changes(tone: ForetoldTone) -> list[tuple[int, int]]:
    """(cycle, PWM level) wherever the level changes, from silence through the tone back to silence."""
    levels = [*(tone.samples.astype(int) + SILENCE), SILENCE]
    changes, level = list[tuple[int, int]](), SILENCE
    for k, wanted in enumerate(levels):
        if wanted != level:
            changes.append((tone.first_cycle + CYCLES_A_SAMPLE * k, int(wanted)))
            level = int(wanted)
    return changes


class Foretold:
    """Follows the board's frames and its PWM. `to_cycle` gives the CPU cycle of a tick of 32 bits.

    `told` is called with the tones of a plan when it is fired, `cut` with the cycle at which one was cut off.
    """

    def __init__(
        self,
        to_cycle: Callable[[int], int],
        told: Callable[[Sequence[ForetoldTone]], None],
        cut: Callable[[int], None],
    ) -> None:
        self._to_cycle = to_cycle
        self._told = told
        self._cut = cut
        self._spacing: list[int] = []
        self._armed: Message | None = None
        self._first_tick: int | None = None
        self._expected: deque[tuple[int, int]] = deque()
        self._level = SILENCE
        self._silenced: int | None = None  # the level fell silent in the middle of a tone; safe must explain it

    def heard(self, message: Message, cycle: int) -> None:
        """A frame that the board sent; `cycle` is when its last byte began."""
        if message.name == "loaded":
            self._spacing[message["first_index"] :] = message.numbers("spacing_ticks")
            self._armed, self._first_tick = None, None
        elif message.name == "armed":
            self._armed, self._first_tick = message, None
        elif message.name in ("firing", "firing_at"):
            self._fired(message["first_tick"])
        elif message.name == "safed":
            self._cut(cycle if self._silenced is None else self._silenced)
            self._expected.clear()
            self._silenced = None
            self._spacing, self._armed, self._first_tick = [], None, None

    def played(self, event: Event) -> None:
        """The PWM level changed. Raises RuntimeError when it should not have, or to another level."""
        wanted = self._expected[0] if self._expected else None
        if wanted is not None and wanted[1] == event.value and abs(wanted[0] - event.cycle) <= CYCLES_A_TICK:
            if self._silenced is None:
                self._level = self._expected.popleft()[1]
                return
        elif wanted is not None and event.value == SILENCE and self._silenced is None:
            self._silenced, self._level = event.cycle, SILENCE
            return
        raise RuntimeError(f"the board played level {event.value} at cycle {event.cycle}, announced was {wanted}")

    def late(self, cycle: int) -> None:
        """Nothing more comes from before `cycle`. Raises RuntimeError when something should have."""
        if not self._expected or self._expected[0][0] + CYCLES_A_TICK >= cycle:
            return
        if self._silenced is None and self._level == SILENCE:
            self._silenced = self._expected[0][0]  # cut off while its level was that of silence: nothing changed
        if self._silenced is None or self._silenced + PATIENCE_CYCLES < cycle:
            raise RuntimeError(f"the board did not play {self._expected[0]}; it is cycle {cycle} now")

    def _fired(self, first_tick: int) -> None:
        armed = self._armed
        if armed is None or self._first_tick == first_tick:  # the same again is only an answer
            return
        self._first_tick = first_tick
        samples = board_samples(KINDS[armed["kind"]], armed["amplitude_256ths"] / 256.0)
        tick, tones = first_tick, list[ForetoldTone]()
        for spacing in [*self._spacing[: armed["count"] - 1], 0]:
            tones.append(ForetoldTone(self._to_cycle(first_tick) + CYCLES_A_TICK * (tick - first_tick), samples))
            tick += spacing
        for tone in tones:
            self._expected.extend(level_changes(tone))
        self._spacing = []
        self._told(tones)
