"""The receiving half of the loop: packets into the jitter buffer, what is due decoded into the player's queue."""

from __future__ import annotations

import threading
from typing import Any

from rig.sut.voice.coding import Coder
from rig.sut.voice.conceal import Concealer
from rig.sut.voice.jitter import FRAME, JitterBuffer
from rig.sut.voice.packets import BadPacket, unpack
from rig.sut.voice.player import Player, Samples, Taken


class Receiver:
    """Told the time with every call. `packet` and `pump` are of one thread, `take` may be of another."""

    def __init__(self, coder: Coder, buffer: JitterBuffer, player: Player, frame_samples: int) -> None:
        self._coder = coder
        self._buffer = buffer
        self._player = player
        self._conceal = Concealer(frame_samples)
        self._lock = threading.Lock()
        self.bad_packets = 0

    def packet(self, data: bytes, now_s: float) -> int | None:
        """A message has come; the seq of the packet in it, None where it is none."""
        try:
            packet = unpack(data)
        except BadPacket:
            self.bad_packets += 1
            return None
        if packet.codec != self._coder.name:
            self.bad_packets += 1
            return None
        self._buffer.push(packet.seq, packet.payload, now_s)
        return packet.seq

    def pump(self, now_s: float) -> float | None:
        """Decodes what is due into the queue; when to call again at the latest, None: with the next packet."""
        for slot in self._buffer.release(now_s):
            seq, samples = None, None
            if slot.kind == FRAME and slot.payload is not None:
                seq, samples = slot.seq, self._decoded(slot.payload)
            if samples is None:
                seq, samples = None, self._conceal.made_up()
            else:
                self._conceal.heard(samples)
            with self._lock:
                self._player.add(seq, samples)
        return self._buffer.next_due_s()

    def take(self, n: int) -> Taken:
        """The next block for the device, shape (n,)."""
        with self._lock:
            return self._player.take(n)

    def _decoded(self, payload: bytes) -> Samples | None:
        try:
            return self._coder.decode(payload)
        except ValueError:
            self.bad_packets += 1
            return None

    def as_json(self) -> dict[str, Any]:
        with self._lock:
            queued = self._player.queued_samples
        return {
            "packets": self._buffer.counts.as_json(),
            "jitter_buffer_target_s": self._buffer.target_s,
            "concealed": {"repeated": self._conceal.repeated, "silent": self._conceal.silent},
            "player": self._player.counts.as_json(),
            "player_target_samples": self._player.target_samples,
            "player_queued_samples": queued,
            "bad_packets": self.bad_packets,
        }
