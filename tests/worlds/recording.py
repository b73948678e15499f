"""A two-channel recording of n stimuli with a known truth: what an interface would have written."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from worlds import RATE_HZ, codecs, interferers, oracle, paths, stimuli
from worlds.source import ArraySource
from worlds.stimuli import GUARD, Samples, Stimulus


@dataclass(frozen=True)
class Scene:
    """What happens. SNRs: stimulus power over its duration against noise power in 0 to 24 kHz.

    `snr_db` None: nothing of the stimulus reaches the ear. `latency_s` is the delay of the path's time zero,
    `spread_samples` its uniform spread from trial to trial (half-width), `steps_s` what is added to single trials.
    `overlap`: responses may come after the next stimulus (else the spacing is kept above the latency).
    `codec`: None, "opus:BITRATE" or "mu-law". `ppm`: interface clock error; `skew_s`: ear channel late by that much.
    """

    kind: str = "chirp"
    n: int = 10
    path: paths.Path = field(default_factory=paths.clean)
    latency_s: float = 0.15
    spread_samples: float = 0.5
    steps_s: tuple[float, ...] | None = None
    snr_db: float | None = 30.0
    interferer: str = "white"
    codec: str | None = None
    reference_snr_db: float = 50.0
    reference_peak: float = 0.5
    ear_gain: float = 0.3
    spacing_s: tuple[float, float] = (1.2, 2.2)
    lead_s: float = 1.0
    tail_s: float = 1.2
    ppm: float = 0.0
    skew_s: float = 0.0
    clip_s: float = 1.0
    overlap: bool = False


@dataclass(frozen=True)
class Recording:
    """`frames` (n, 2) float64, reference first. `onsets` in frames; `truth_s` per stimulus, true seconds, NaN if none.

    `arrival_s` is the same for the direct sound (the path's time zero). `sigma_ear`, `sigma_reference`: noise
    deviations per sample. `ear_scale` times the unit wave is what enters the path. `centre_s` is the median of the law
    that the truths of the trials were drawn from.
    """

    scene: Scene
    frames: npt.NDArray[np.float64]
    onsets: Samples
    truth_s: Samples
    arrival_s: Samples
    stimulus: Stimulus
    sigma_ear: float
    sigma_reference: float
    ear_scale: float
    centre_s: float = float("nan")

    def source(self, full_scale: float | None = 1.0 - 2.0**-23) -> ArraySource:
        """The recording as rounded by a 24-bit converter (or left as floats when `full_scale` is None)."""
        frames = self.frames if full_scale is None else np.round(self.frames * 2.0**23) / 2.0**23
        return ArraySource(frames, RATE_HZ, full_scale)

    def with_frames(self, frames: npt.NDArray[np.float64]) -> Recording:
        """The same truth with other samples."""
        return replace(self, frames=frames)


def build(scene: Scene, rng: np.random.Generator) -> Recording:
    """Draws a recording of the scene."""
    stimulus = stimuli.make(scene.kind, rng, scene.clip_s)
    longest_s = scene.latency_s + stimulus.n_active / RATE_HZ + (max(scene.steps_s) if scene.steps_s else 0.0)
    low_s = scene.spacing_s[0] if scene.overlap else max(scene.spacing_s[0], longest_s + 0.35)
    gaps_s = rng.uniform(low_s, low_s + scene.spacing_s[1] - scene.spacing_s[0], scene.n - 1)
    onsets = (scene.lead_s + np.concatenate([[0.0], np.cumsum(gaps_s)])) * RATE_HZ
    n_frames = int(onsets[-1] + (longest_s + scene.tail_s) * RATE_HZ)

    reference = np.zeros(n_frames)
    for onset in onsets:
        _add(reference, scene.reference_peak * stimulus.wave, GUARD, paths.clean(), onset)
    sigma_reference = scene.reference_peak * np.sqrt(stimulus.power) * 10 ** (-scene.reference_snr_db / 20)
    reference += sigma_reference * rng.standard_normal(n_frames)

    delay_s = scene.latency_s + rng.uniform(-1, 1, scene.n) * scene.spread_samples / RATE_HZ
    if scene.steps_s is not None:
        delay_s = delay_s + np.asarray(scene.steps_s)
    ear, scale, power = _ear(scene, stimulus, onsets, delay_s, n_frames, rng)
    noise, sigma_ear = _noise(scene, power, n_frames, rng)
    ear = ear + noise
    first = oracle.arrivals(scene.path, stimulus.band_hz).first if scene.snr_db is not None else np.nan
    coder_s = codecs.OPUS_DELAY / RATE_HZ if scene.codec and scene.codec.startswith("opus") else 0.0
    peak = float(np.max(np.abs(ear)))
    shrink = min(1.0, 0.9 / peak) if peak > 0 else 1.0
    return Recording(
        scene=scene,
        frames=np.stack([reference, shrink * ear], axis=1),
        onsets=onsets,
        truth_s=delay_s + coder_s + first / RATE_HZ,
        arrival_s=delay_s + coder_s + (0.0 if scene.snr_db is not None else np.nan),
        stimulus=stimulus,
        sigma_ear=shrink * sigma_ear,
        sigma_reference=sigma_reference,
        ear_scale=shrink * scale,
        centre_s=scene.latency_s + coder_s + first / RATE_HZ,
    )


def _add(buffer: Samples, wave: Samples, zero: int, path: paths.Path, position: float) -> None:
    """Adds `wave` through `path` so that its time zero falls on the fractional index `position`."""
    whole = int(np.floor(position))
    out, out_zero = paths.through(path, wave, zero, position - whole)
    start = whole - out_zero
    a, b = max(start, 0), min(start + out.size, buffer.size)
    if a < b:
        buffer[a:b] += out[a - start : b - start]


def _ear(
    scene: Scene, stimulus: Stimulus, onsets: Samples, delay_s: Samples, n_frames: int, rng: np.random.Generator
) -> tuple[Samples, float, float]:
    """The ear channel without noise, its scale against the unit wave, and its power during a stimulus."""
    ear = np.zeros(n_frames)
    scale = scene.reference_peak * scene.ear_gain
    if scene.snr_db is None:
        return ear, scale, scale**2 * stimulus.power
    late = delay_s * RATE_HZ * (1.0 + scene.ppm * 1e-6) + scene.skew_s * RATE_HZ
    for onset, delay in zip(onsets, late, strict=True):
        _add(ear, scale * stimulus.wave, GUARD, scene.path, onset + delay)
    power = float(np.sum(ear**2) / (scene.n * stimulus.n_active))
    if scene.codec is not None:
        level = 0.25 / float(np.max(np.abs(ear)))
        driven = level * ear + 3e-4 * rng.standard_normal(n_frames)
        if scene.codec == "mu-law":
            ear = codecs.mu_law(driven) / level
        elif scene.codec.startswith("opus:"):
            ear = codecs.opus(driven, int(scene.codec.split(":")[1])) / level
        else:
            raise ValueError(f"no coder is called {scene.codec!r}")
    return ear, scale, power


def _noise(scene: Scene, power: float, n_frames: int, rng: np.random.Generator) -> tuple[Samples, float]:
    """The interferer at the scene's SNR (0 dB against the silent stimulus when there is none) over a faint floor."""
    raw = interferers.make(scene.interferer, rng, n_frames)
    floor = 2e-6 * rng.standard_normal(n_frames)
    if scene.interferer == "dither":
        return raw, float(np.std(raw))
    sigma = np.sqrt(power) * 10 ** (-(scene.snr_db if scene.snr_db is not None else 0.0) / 20)
    return sigma * raw + floor, float(sigma)
