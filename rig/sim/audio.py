"""The simulated interface and its driver: blocks in virtual time, a bounded ring, lost frames, claims."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from rig.domain.records import StreamGrant, StreamSpec
from rig.domain.seams import AudioBlock, AudioStream, Frames
from rig.domain.timebase import HostClock, Instant
from rig.errors import AudioLost, BenchNotReady
from rig.sim.clock import DriftingClock, VirtualTime
from rig.sim.noise import FrameNoise, generator
from rig.sim.scene import Scene
from rig.sim.world import CAUSE_HOST, CAUSE_SPARE_NOISE, WorldSpec

_WAKE_CHUNK = 1024


@dataclass(frozen=True, slots=True)
class LostFrames:
    """Frames that the driver lost: before `stream_frame` of the recording, at `world_frame` of the converter."""

    stream: int
    stream_frame: int
    world_frame: int
    count: int
    flagged: bool
    cause: str  # "fault" or "overflow"


@dataclass(slots=True)
class _Pending:
    """One block that the driver holds: the converter's frames it is made of, as (first, count)."""

    pieces: list[tuple[int, int]]
    arrived_s: float
    overflow: bool


class SimAudioBackend:
    """`AudioBackend` of the simulated world: one two-channel (or wider) interface."""

    name = "sim"

    def __init__(self, spec: WorldSpec, seed: int, time: VirtualTime, audio: DriftingClock, scene: Scene) -> None:
        self.spec = spec
        self.lost: list[LostFrames] = []
        self.opened: list[SimAudioStream] = []
        self.seed = seed
        self.time = time
        self.audio = audio
        self.scene = scene

    def devices(self) -> Sequence[dict[str, Any]]:
        return [
            {
                "name": "sim",
                "host_api": "simulated",
                "inputs": 2,
                "outputs": 2,
                "rates_hz": [self.spec.rate_hz],
                "default_rate_hz": self.spec.rate_hz,
            }
        ]

    def open(self, spec: StreamSpec) -> AudioStream:
        """Opens a stream that begins now. Raises BenchNotReady for a rate or a channel count that is not offered."""
        if spec.rate_hz != self.spec.rate_hz:
            raise BenchNotReady(
                f"the simulated interface does not run at {spec.rate_hz} Hz",
                f"{self.spec.rate_hz} Hz",
                f"ask for {self.spec.rate_hz} Hz",
            )
        if not 2 <= spec.channels <= 32:
            raise BenchNotReady(
                f"the simulated interface cannot record {spec.channels} channels",
                "2 to 32 channels",
                "ask for 2 channels: reference and ear",
            )
        stream = SimAudioStream(self, spec, len(self.opened))
        self.opened.append(stream)
        return stream


class SimAudioStream:
    """`AudioStream` of the simulated world. Reading waits in virtual time; what fell due meanwhile is kept in order."""

    def __init__(self, backend: SimAudioBackend, spec: StreamSpec, number: int) -> None:
        self._world = backend
        self._number = number
        self._block = spec.block_frames or backend.spec.block_frames
        claims = backend.spec
        self._granted = StreamGrant(
            device=spec.device,
            host_api="simulated",
            rate_hz=spec.rate_hz,
            channels=spec.channels,
            block_frames=self._block,
            input_latency_claimed_s=claims.input_claimed_s,
            output_latency_claimed_s=claims.output_claimed_s,
        )
        self.first_world_frame = math.ceil(backend.audio.reading(backend.time.now_s))
        self._next_world = self.first_world_frame  # converter frame that the next block begins with
        self._next_stream = 0  # frame of the recording that the next block delivered begins with
        self._made = 0  # frames put into blocks so far
        self._n_due = 0
        self._last_due_s = 0.0
        self._pending: deque[_Pending] = deque()
        self._overflowed = False
        self._closed = False
        self._drops_seen = sum(frame < self.first_world_frame for frame, _ in backend.scene.drops)
        self._wake: tuple[int, npt.NDArray[np.float64]] | None = None
        self._spare = [FrameNoise(backend.seed, CAUSE_SPARE_NOISE + 100 * k, 1e-4) for k in range(2, spec.channels)]

    @property
    def granted(self) -> StreamGrant:
        return self._granted

    def read(self, deadline: Instant[HostClock]) -> AudioBlock | None:
        """The next block; waits for it in virtual time, not past the deadline."""
        if self._closed:
            raise AudioLost("the audio stream is closed", "an open stream", "open the device again")
        self._collect(self._world.time.now_s)
        if not self._pending:
            due_s = self._next_due()[1]
            if due_s > deadline.seconds:
                self._world.time.sleep_until(deadline)
                return None
            self._world.time.advance_to_ns(math.ceil(due_s * 1e9))
            self._collect(self._world.time.now_s)
        return self._deliver(self._pending.popleft())

    def play(self, wave: npt.NDArray[np.float32], at_frame: int) -> int:
        """Plays mono `wave` near input frame `at_frame`, or as soon as the output buffer allows.

        Returns the frame asked of the driver in the end. The sound leaves the socket the true output delay later:
        what the recording shows is the truth, not this number.
        """
        if self._closed:
            raise AudioLost("the audio stream is closed", "an open stream", "open the device again")
        audio, now_s = self._world.audio, self._world.time.now_s
        lost = sum(gone.count for gone in self._world.lost if gone.stream == self._number)
        origin = self.first_world_frame + lost
        earliest = math.ceil(audio.reading(now_s)) + self._block
        world_frame = max(at_frame + origin, earliest)
        sounding_s = audio.true_s(world_frame) + self._world.spec.output_delay_s
        rate, _ = self._world.scene.grid(sounding_s)
        self._world.scene.play(np.array(wave, dtype=np.float32), sounding_s, rate)
        return world_frame - origin

    def close(self) -> None:
        """Ends the stream; idempotent."""
        self._closed = True
        self._pending.clear()

    def _next_due(self) -> tuple[list[tuple[int, int]], float, int | None]:
        """The block being filled: its pieces, when the program gets it, and the drop it skips (index), if any."""
        spec, drops = self._world.spec, self._world.scene.drops
        pieces, cursor, need, skipped = [], self._next_world, self._block, None
        drop = drops[self._drops_seen] if self._drops_seen < len(drops) else None
        if drop is not None and drop[0] < cursor + self._block:
            skipped = self._drops_seen
            # A flagged loss is a buffer that the driver had to throw away: it lies between two blocks.
            before = 0 if spec.drop_flagged else max(drop[0] - cursor, 0)
            if before:
                pieces.append((cursor, before))
            cursor += before + drop[1]
            need -= before
        pieces.append((cursor, need))
        full_s = self._world.audio.true_s(cursor + need)
        due_s = max(full_s + spec.input_delay_s + self._wake_delay_s(self._n_due), self._last_due_s)
        return pieces, due_s, skipped

    def _collect(self, now_s: float) -> None:
        """Moves every block that is due by `now_s` into the ring, or loses it when the ring is full."""
        capacity = max(2, int(self._world.spec.ring_s * self._world.spec.rate_hz / self._block))
        while True:
            pieces, due_s, skipped = self._next_due()
            if due_s > now_s:
                return
            self._n_due += 1
            self._last_due_s = due_s
            flagged = False
            if skipped is not None:
                _, count = self._world.scene.drops[skipped]
                self._drops_seen += 1
                flagged = self._world.spec.drop_flagged
                at_world = pieces[-1][0] - count
                at_stream = self._made + (pieces[0][1] if len(pieces) > 1 else 0)
                self._world.lost.append(LostFrames(self._number, at_stream, at_world, count, flagged, "fault"))
            last_first, last_count = pieces[-1]
            self._next_world = last_first + last_count
            if len(self._pending) >= capacity:
                self._world.lost.append(
                    LostFrames(self._number, self._made, pieces[0][0], self._block, True, "overflow")
                )
                self._overflowed = True
                continue
            self._pending.append(_Pending(pieces, due_s, flagged or self._overflowed))
            self._made += self._block
            self._overflowed = False

    def _wake_delay_s(self, index: int) -> float:
        """How late the host wakes for a block: log-normal around 40 us, one in 200 by 1 to 5 ms."""
        chunk = index // _WAKE_CHUNK
        if self._wake is None or self._wake[0] != chunk:
            rng = generator(self._world.seed, CAUSE_HOST, self._number, chunk)
            late = 40e-6 * np.exp(0.5 * rng.standard_normal(_WAKE_CHUNK))
            late += np.where(rng.uniform(size=_WAKE_CHUNK) < 0.005, rng.uniform(1e-3, 5e-3, _WAKE_CHUNK), 0.0)
            self._wake = (chunk, late)
        return float(self._wake[1][index % _WAKE_CHUNK])

    def _deliver(self, pending: _Pending) -> AudioBlock:
        parts = [self._convert(first, count) for first, count in pending.pieces]
        frames = parts[0] if len(parts) == 1 else np.concatenate(parts)
        first_frame = self._next_stream
        self._next_stream += len(frames)
        spec, time = self._world.spec, self._world.time
        sampled_s = self._world.audio.true_s(pending.pieces[0][0])
        return AudioBlock(
            first_frame=first_frame,
            frames=frames,
            overflow=pending.overflow,
            arrived=Instant(time.timebase, pending.arrived_s),
            adc_time_claimed_s=sampled_s + spec.adc_claim_error_s,
            now_claimed_s=pending.arrived_s,
        )

    def _convert(self, first: int, count: int) -> Frames:
        """Frames [first, first + count) as the converters give them: limits, word length, order of channels."""
        spec = self._world.spec
        reference, ear = self._world.scene.render(first, count)
        if spec.same_signal:
            reference = ear = 0.5 * (reference + ear)
        if spec.dead_ear:
            ear = np.zeros(count)
        channels = [ear, reference] if spec.swapped else [reference, ear]
        channels += [noise.read(first, count) for noise in self._spare]
        scale = 2.0 ** (spec.bits - 1)
        stepped = np.clip(np.rint(np.stack(channels, axis=1) * scale), -scale, scale - 1.0)
        return np.asarray(stepped / scale, dtype=np.float32)
