"""`python -m benchmarks.soak_capture WAY SECONDS BUSY_THREAD`: one recorder of numbered frames, and its account.

WAY is sounddevice or pyaudio, which are rig's own backends with their callback in Python, or rtmixer, whose callback is
compiled. All ask for rig's defaults: 48000 Hz, two channels, PortAudio's choice of block, 0.1 s of latency where the
library takes one. The account is one JSON object on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import numpy as np

from benchmarks.numbered import Counter
from rig.acquire.link import SystemTime
from rig.acquire.portaudio import LATENCY_S, PortBackend
from rig.bench.gapwatch import GapWatch
from rig.domain.records import StreamSpec
from rig.domain.timebase import Duration
from rig.virtual.pulse import INTERFACE

RATE_HZ = 48_000
EAR = 1
_RING_FRAMES = 1 << 20  # of rtmixer's ring: 21.8 s, as rig's own
_POLL_S = 0.01

CONFIRM_TRIED_S = (0.5, 1.0, 2.0, 3.0, 5.0)
"""Of the clock's watch: how long blocks must stay late until it says that something is missing."""


class Account:
    """What came, and what the recorder itself could say about losses: flags, jumps of its count, the clock."""

    def __init__(self) -> None:
        self.numbers = Counter()
        self.reports: list[int] = []  # frames of the recording before which something is said to be missing
        self.flagged = 0
        self.by_clock: dict[float, list[int]] = {after_s: [] for after_s in CONFIRM_TRIED_S}
        self._watches = {after_s: GapWatch(RATE_HZ, after_s) for after_s in CONFIRM_TRIED_S}

    def block(self, frames: Any, stream_end: int, arrived_s: float, flagged: bool) -> None:
        at = self.numbers.n_frames
        if flagged:
            self.flagged += 1
            self.reports.append(at)
        for after_s, watch in self._watches.items():
            self.by_clock[after_s] += [gap.frame for gap in watch.hear(at, stream_end, arrived_s)]
        self.numbers.feed(frames[:, EAR])


def rig_backend(name: str) -> PortBackend:
    if name == "pyaudio":
        from rig.acquire.audio_pyaudio import PyaudioBackend

        return PyaudioBackend(SystemTime())
    from rig.acquire.audio_sounddevice import SounddeviceBackend

    return SounddeviceBackend(SystemTime())


def through_rig(name: str, account: Account, done: Callable[[], bool]) -> dict[str, Any]:
    """rig's backend, ring and reader."""
    host = SystemTime()
    stream = rig_backend(name).open(StreamSpec(INTERFACE, RATE_HZ, 2))
    next_frame: int | None = None
    while not done():
        block = stream.read(host.now().plus(Duration(0.1)))
        if block is None:
            continue
        jumped = next_frame is not None and block.first_frame != next_frame
        next_frame = block.first_frame + len(block.frames)
        account.block(block.frames, next_frame, block.arrived.seconds, bool(block.overflow) or jumped)
    stream.close()
    return {"input_latency_claimed_s": stream.granted.input_latency_claimed_s}


def through_rtmixer(account: Account, done: Callable[[], bool]) -> dict[str, Any]:
    """A compiled callback into a ring, which this program empties every 10 ms."""
    import rtmixer

    stream = rtmixer.Recorder(
        device=INTERFACE, channels=2, samplerate=RATE_HZ, blocksize=0, latency=LATENCY_S, dither_off=True, clip_off=True
    )
    ring = rtmixer.RingBuffer(8, _RING_FRAMES)
    with stream:
        action = stream.record_ringbuffer(ring)
        taken, overflows = 0, 0
        while not done():
            time.sleep(_POLL_S)
            arrived_s = time.monotonic()
            frames = np.frombuffer(ring.read(), np.float32).reshape(-1, 2)
            if not len(frames):
                continue
            taken += len(frames)
            flagged = action.stats.input_overflows > overflows
            overflows = action.stats.input_overflows
            account.block(frames, taken, arrived_s, flagged)
        return {"input_latency_claimed_s": stream.latency, "blocks": action.stats.blocks}


def main() -> None:
    way, seconds, busy = sys.argv[1], float(sys.argv[2]), sys.argv[3] == "1"
    account = Account()
    ends_s = time.monotonic() + seconds
    if busy:
        threading.Thread(target=_count, daemon=True).start()

    def done() -> bool:
        return time.monotonic() >= ends_s

    facts = through_rtmixer(account, done) if way == "rtmixer" else through_rig(way, account, done)
    used = os.times()
    numbers = account.numbers
    print(
        json.dumps(
            {
                "way": way,
                "seconds": seconds,
                "n_frames": numbers.n_frames,
                "n_numbers": numbers.n_numbers,
                "n_starved": numbers.n_starved,
                "n_strange": numbers.n_strange,
                "losses": [asdict(loss) for loss in numbers.losses],
                "reports": account.reports,
                "by_clock": account.by_clock,
                "flagged": account.flagged,
                "cpu_s": None if busy else used.user + used.system,
                **facts,
            }
        ),
        flush=True,
    )
    os._exit(0)  # the busy thread would hold the interpreter's end up


def _count() -> None:
    number = 0
    while True:
        number += 1


if __name__ == "__main__":
    main()
