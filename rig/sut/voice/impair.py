"""A network made worse on purpose: which packets are lost and how long the others take, drawn from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass

from rig.errors import UsageError

LONGEST_S = 5.0


@dataclass(frozen=True, slots=True)
class Impairment:
    """A packet takes `delay_s` and a part of `jitter_s` that is drawn evenly; `loss`, 0 to 1, of them never arrive.

    Jitter longer than the spacing of the packets changes their order, as a network of datagrams does.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    seed: int = 1

    def check(self) -> None:
        """Raises UsageError for what cannot be done."""
        for name, value_s in (("--server-delay", self.delay_s), ("--server-jitter", self.jitter_s)):
            if not 0.0 <= value_s <= LONGEST_S:
                raise UsageError(
                    f"{name} {value_s:g}s is too long", f"0 to {LONGEST_S:g}s", f"{name} 100ms, for example"
                )
        if not 0.0 <= self.loss < 1.0:
            raise UsageError(
                f"--loss {self.loss:g} is no share that a call survives", "0 to less than 1: 0.05 is 5 %", "--loss 0.05"
            )


class Fate:
    """The fates of one connection's packets, in the order in which they come: the same for each start with a seed."""

    def __init__(self, impairment: Impairment) -> None:
        self._impairment = impairment
        self._draw = random.Random(impairment.seed)

    def next_delay_s(self) -> float | None:
        """How long the next packet takes; None: it is lost. Both draws are made always, so that the loss of a packet
        moves no other packet's delay."""
        loss, part = self._draw.random(), self._draw.random()
        if loss < self._impairment.loss:
            return None
        return self._impairment.delay_s + part * self._impairment.jitter_s
