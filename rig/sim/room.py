"""A shoebox room by the image method (Allen and Berkley 1979), relative to the direct path.

Flat wall absorption, the same on all six walls, from the wanted reverberation time (Eyring). Image positions are
jittered by a few centimetres, because exact mirror images of a shoebox add up to sweeping echoes no real room has.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rig.sim.bandlimited import Floats, place_impulses
from rig.sim.world import SPEED_OF_SOUND_M_S

ROOM_M = (4.8, 3.6, 2.6)


@dataclass(frozen=True, slots=True)
class Reflections:
    """Delays (seconds after the direct sound) and gains (relative to it) of every image but the source itself."""

    delay_s: Floats
    gain: Floats

    def response(self, rate_hz: float, n_frames: int) -> Floats:
        """The reflections as an impulse response; frame 0 is the arrival of the direct sound; shape (n_frames,)."""
        return place_impulses(self.delay_s * rate_hz, self.gain, n_frames)


def reflections(rng: np.random.Generator, distance_m: float, rt60_s: float, length_s: float) -> Reflections:
    """Reflections of a room with reverberation time `rt60_s` between two random points `distance_m` apart.

    Kept up to `length_s` after the direct sound.
    """
    size = np.array(ROOM_M)
    source = rng.uniform(0.25, 0.75, 3) * size
    while True:  # a direction in which the microphone is still inside the room
        direction = rng.standard_normal(3)
        microphone = source + direction / np.linalg.norm(direction) * distance_m
        if np.all(microphone > 0.3) and np.all(microphone < size - 0.3):
            break
    volume = float(np.prod(size))
    surface = 2.0 * float(size[0] * size[1] + size[1] * size[2] + size[0] * size[2])
    absorption = 1.0 - math.exp(-0.161 * volume / (surface * rt60_s))
    beta = math.sqrt(max(1.0 - absorption, 0.0))
    reach_m = (length_s * SPEED_OF_SOUND_M_S) + distance_m
    counts = [math.ceil(reach_m / (2.0 * s)) for s in ROOM_M]
    grids = np.meshgrid(*[np.arange(-n, n + 1) for n in counts], *[np.arange(2)] * 3, indexing="ij")
    n_index = np.stack([g.ravel() for g in grids[:3]], axis=1)
    mirror = np.stack([g.ravel() for g in grids[3:]], axis=1)
    images = 2 * n_index * size + (1 - 2 * mirror) * source
    bounces = np.sum(np.abs(n_index - mirror) + np.abs(n_index), axis=1)
    images = images + np.where(bounces[:, None] > 0, rng.uniform(-0.04, 0.04, images.shape), 0.0)
    path_m = np.linalg.norm(images - microphone, axis=1)
    keep = (bounces > 0) & (path_m > distance_m) & (path_m < reach_m)
    delay_s = (path_m[keep] - distance_m) / SPEED_OF_SOUND_M_S
    gain = beta ** bounces[keep] * distance_m / path_m[keep]
    order = np.argsort(delay_s, kind="stable")
    return Reflections(delay_s[order], gain[order])
