"""What the simulated system writes about itself: marks of every frame, on its own clock, in a file like a real one's.

It knows only what software can know. Between the sound at its microphone and `t_capture`, and between `t_first_play`
and the loudspeaker, time passes that no mark shows; what the system claims about these two need not be true.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rig.sim.noise import generator
from rig.sim.world import CAUSE_STAGES, CAUSE_SYSTEM_CLOCK, WorldSpec

if TYPE_CHECKING:
    from rig.sim.system import Passage, Start

LOUD, QUIET = 0.3, 0.004  # largest magnitudes of frames with a stimulus in them and without one
_HEARD = 0.05  # frames above this are searched for the beginning of a sound
_FRAMES = 1_000_000  # draws of frames are told from those of stimuli by this
_UNITS = {"ms": 1e-3, "ns": 1e-9, "s": 1.0}


class Diary:
    """Appends the marks of each start to `path`. `boot` is the identity of the host's clock."""

    def __init__(self, path: Path, spec: WorldSpec, seed: int, boot: str) -> None:
        self.path = path
        self._spec = spec
        self._seed = seed
        self._boot = boot

    def clock(self, start: Start) -> tuple[float, float]:
        """(offset in s, ppm) of the clock that this start stamps with: 0 where it is the host's own."""
        if self._spec.marks_clock == "host":
            return 0.0, 0.0
        rng = generator(self._seed, CAUSE_SYSTEM_CLOCK, start.number)
        offset_s, ppm = float(rng.uniform(-start.on_s, 3600.0)), float(rng.uniform(-40.0, 40.0))
        return offset_s, ppm if self._spec.marks_ppm is None else self._spec.marks_ppm

    def write(self, start: Start) -> None:
        """Writes everything that the system marked between the start's beginning and its end."""
        assert start.off_s is not None, "the system has stopped"
        lines = [self._header(start), *self._claims()]
        lines += [line for _, line in sorted(self._frames(start) + self._syncs(start), key=lambda entry: entry[0])]
        with open(self.path, "a", encoding="utf-8") as handle:
            handle.writelines(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)

    def _header(self, start: Start) -> dict[str, Any]:
        spec = self._spec
        own = spec.marks_clock != "host"
        header = {
            "marks": 1,
            "session_id": f"{start.run}-{start.number}",
            "clock": "performance.now" if own else "CLOCK_MONOTONIC",
            "unit": spec.marks_unit,
            "frame_ms": spec.frame_s * 1e3,
            "rate_hz": spec.rate_hz,
        }
        if not own:
            header["boot"] = self._boot
        if spec.marks_peak == "at":
            header["peak_at_u"] = self._whole(spec.marks_peak_u_s / _UNITS[spec.marks_unit])
        return header

    def _claims(self) -> list[dict[str, Any]]:
        claims = (
            ("input_latency", self._spec.capture_claimed_s, "stream.input_latency"),
            ("output_latency", self._spec.playback_claimed_s, "stream.output_latency"),
        )
        return [
            {"claim": name, "value": self._whole(value_s / _UNITS[self._spec.marks_unit]), "source": source}
            for name, value_s, source in claims
            if value_s is not None
        ]

    def _frames(self, start: Start) -> list[tuple[float, dict[str, Any]]]:
        """The two lines of each frame, with the true time of the last stamp in them."""
        spec = self._spec
        assert start.off_s is not None
        n = max(0, math.floor((start.off_s - start.on_s - start.frame_phase_s) / spec.frame_s))
        # Frame `seq` is complete at the software (seq + 1) frames after the phase.
        complete_s = start.on_s + start.frame_phase_s + spec.frame_s * (1.0 + np.arange(n))
        ends = self._ends(start, complete_s)
        onsets = {start.frame_of(p, spec.frame_s): p for p in start.passages}
        magnitudes = self._magnitudes(start, complete_s)
        rng = generator(self._seed, CAUSE_STAGES, _FRAMES + 1, start.number)
        found: list[tuple[float, dict[str, Any]]] = []
        for seq in range(n):
            capture_s, encode_s, send_s, packet_s, play_s = ends[seq]
            first: dict[str, Any] = {
                "seq": seq,
                "t_capture": self._stamp(start, capture_s),
                "t_encode_done": self._stamp(start, encode_s),
                "t_send_done": self._stamp(start, send_s),
            }
            if spec.marks_peak != "none":
                first["peak"] = round(float(magnitudes[seq] * rng.uniform(0.9, 1.0)), 4)
            within = int(rng.integers(0, 60))  # a loud frame in the middle of a sound is loud soon
            if spec.marks_peak == "at" and magnitudes[seq] > _HEARD:
                passage = onsets.get(seq)
                first["peak_at"] = within if passage is None else self._place(passage, rng)
            if send_s <= start.off_s:
                found.append((send_s, first))
            second = {"seq": seq, "t_first_packet": self._stamp(start, packet_s)}
            if packet_s <= start.off_s:
                if play_s <= start.off_s:
                    second["t_first_play"] = self._stamp(start, play_s)
                found.append((min(play_s, start.off_s), second))
        return found

    def _ends(self, start: Start, complete_s: np.ndarray) -> np.ndarray:
        """True times of the five marks of every frame, shape (n, 5): of stimuli as booked, of others as drawn."""
        spec, n = self._spec, len(complete_s)
        rng = generator(self._seed, CAUSE_STAGES, _FRAMES, start.number)
        jitter = np.exp(0.2 * rng.standard_normal((2, n)))
        wake_s = spec.capture_jitter_s * rng.exponential(size=n)
        network_s = np.maximum(spec.network_s + spec.network_jitter_s * (rng.gamma(2.0, 0.5, n) - 1.0), 0.0)
        stages = np.stack([wake_s, spec.encode_s * jitter[0], spec.send_s * jitter[1], network_s], axis=1)
        ends = np.empty((n, 5))
        ends[:, :4] = complete_s[:, None] + np.cumsum(stages, axis=1)
        # Playback is steady: a frame is played a set time after it was complete, whatever its way took.
        steady = [p for p in start.passages if p.seq is not None and 0 <= p.seq < n]
        spent_s = [p.played_s - complete_s[p.seq] for p in steady if p.seq is not None]
        ends[:, 4] = np.maximum(complete_s + (float(np.median(spent_s)) if spent_s else 0.08), ends[:, 3])
        for p in steady:
            assert p.seq is not None
            ends[p.seq] = p.marks_s
        return ends

    def _magnitudes(self, start: Start, complete_s: np.ndarray) -> np.ndarray:
        """The largest magnitude of each frame: loud where a stimulus is in it, from its beginning to its end."""
        loud = np.full(len(complete_s), QUIET)
        for p in start.passages:
            if p.seq is None:
                continue
            last = p.seq + math.ceil(max(0.0, p.tone.length_s - p.frame_fill_s) / self._spec.frame_s)
            loud[p.seq : last + 1] = LOUD
        return loud

    def _place(self, passage: Passage, rng: np.random.Generator) -> int:
        """The sample of its frame at which the stimulus begins, as well as the system finds it."""
        true_s = self._spec.frame_s - passage.frame_fill_s
        sample = (true_s + self._spec.marks_peak_u_s * float(rng.standard_normal())) * self._spec.rate_hz
        return min(max(0, round(sample)), round(self._spec.frame_s * self._spec.rate_hz) - 1)

    def _syncs(self, start: Start) -> list[tuple[float, dict[str, Any]]]:
        """Clock exchanges with the host over a local connection: short delays each way, now and then a long one."""
        spec = self._spec
        if not spec.marks_sync_hz or spec.marks_clock == "host":
            return []
        assert start.off_s is not None
        rng = generator(self._seed, CAUSE_SYSTEM_CLOCK, _FRAMES + start.number)
        at_s = np.arange(start.on_s + 0.3, start.off_s - 0.3, 1.0 / spec.marks_sync_hz)
        delays_s = spec.marks_sync_delay_s * (1.0 + rng.exponential(0.6, (len(at_s), 2)))
        delays_s += np.where(rng.uniform(size=(len(at_s), 2)) < 0.02, rng.uniform(0.0, 0.02, (len(at_s), 2)), 0.0)
        held_s = rng.uniform(5e-6, 5e-5, len(at_s))
        unit_s = _UNITS[spec.marks_unit]
        found = []
        for sent_s, (there_s, back_s), hold_s in zip(at_s.tolist(), delays_s.tolist(), held_s.tolist(), strict=True):
            received_s = sent_s + there_s
            answered_s = received_s + hold_s
            four = [
                self._stamp(start, sent_s),
                self._whole(received_s / unit_s),
                self._whole(answered_s / unit_s),
                self._stamp(start, answered_s + back_s),
            ]
            found.append((answered_s + back_s, {"sync": four}))
        return found

    def _stamp(self, start: Start, true_s: float) -> float | int:
        """What the system's clock shows at `true_s`, in the file's unit."""
        offset_s, ppm = self.clock(start)
        shown_s = offset_s + start.on_s + (true_s - start.on_s) * (1.0 + ppm * 1e-6)
        grid_s = self._spec.marks_resolution_s
        if grid_s:
            shown_s = math.floor(shown_s / grid_s) * grid_s
        return self._whole(shown_s / _UNITS[self._spec.marks_unit])

    def _whole(self, value: float) -> float | int:
        return round(value) if self._spec.marks_unit == "ns" else round(value, 6)
