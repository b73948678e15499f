"""What a measurement does: the plan of its runs, the spacing of its stimuli, and the waves the interface plays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rig.domain.records import ChannelRoles, StimulusPlan, StreamSpec
from rig.domain.waveforms import STIMULI, ideal_waveform, speech_like
from rig.errors import UsageError
from rig.recording import open_recording

FRAME_S = 0.020
"""Voice systems send frames of 10 or 20 ms; stimuli are spread evenly over this."""

LEAD_IN_S = 1.2
LEAD_IN_GAP_S = 0.03
"""Speech-like sound before each stimulus, and the pause between: a neural noise suppressor opens, and stays open."""

BLANK_COUNT = 5
"""Stimuli in the blank run: enough for a leak to show itself, few enough to cost seconds."""

_WAV_MIN_S, _WAV_MAX_S = 0.5, 10.0
_BOARD_KINDS = ("click", "chirp", "chirp-nb", "mls")


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """A measurement: `stimuli` holds one plan per run. Times in s.

    `settle_s` passes after the stream opens and before the board is armed (interfaces begin with pops and zeros);
    `tail_s` is recorded after the end of the last stimulus; `response_s` after the end of a stimulus its response is
    taken to have passed, and progress is told. `ping_every_s` is the pause between clock exchanges.
    """

    stream: StreamSpec
    roles: ChannelRoles
    stimuli: tuple[StimulusPlan, ...]
    mode: str = "call"
    blank: bool = True
    settle_s: float = 0.5
    tail_s: float = 1.5
    response_s: float = 1.0
    ping_every_s: float = 0.25


def draw_spacing(seed: int, count: int, min_s: float, max_s: float) -> tuple[float, ...]:
    """Spacings (s, count - 1 of them) between `count` stimuli, each within min_s to max_s, deterministic in `seed`.

    The length is uniform; then each is moved by under 20 ms so that the stimuli, taken modulo 20 ms (and so 10), fall
    into `count` equal strata, one each, in random order: no frame phase is preferred, and nothing beats with frames.
    Where the range is narrower than 20 ms, the spacings are uniform alone. Raises UsageError for an empty range.
    """
    if count < 1 or not 0.0 < min_s <= max_s:
        raise UsageError(
            f"{count} stimuli {min_s:g} to {max_s:g} s apart",
            "at least one stimulus, and a spacing above 0 whose least is not over its most",
            "give the spacing as a range, the smaller first",
        )
    rng = np.random.default_rng(seed)
    if max_s - min_s < FRAME_S:
        return tuple(float(s) for s in rng.uniform(min_s, max_s, count - 1))
    strata = 1 + rng.permutation(count - 1)  # the first stimulus has stratum 0
    phases_s = FRAME_S * (strata + rng.uniform(0.0, 1.0, count - 1)) / count
    coarse_s = rng.uniform(min_s, max_s - FRAME_S, count - 1)
    spacing_s, at_s = [], FRAME_S * float(rng.uniform(0.0, 1.0)) / count
    for coarse, phase in zip(coarse_s, phases_s, strict=True):
        step = float(coarse + (phase - at_s - coarse) % FRAME_S)
        spacing_s.append(min(step, max_s))
        at_s += step
    return tuple(spacing_s)


def plan_runs(
    seed: int,
    runs: int,
    count: int,
    kind: str,
    *,
    min_spacing_s: float,
    max_spacing_s: float,
    amplitude: float,
    source: str,
    lead_in: str | None = None,
    wav: str | None = None,
) -> tuple[StimulusPlan, ...]:
    """One `StimulusPlan` per run, each with its own spacing drawn from `seed` and the run's number."""
    return tuple(
        StimulusPlan(
            kind=kind,
            count=count,
            spacing_s=draw_spacing(_run_seed(seed, run), count, min_spacing_s, max_spacing_s),
            amplitude=amplitude,
            source=source,
            lead_in=lead_in,
            wav=wav,
        )
        for run in range(1, runs + 1)
    )


def _run_seed(seed: int, run: int) -> int:
    return int(np.random.SeedSequence([seed, run]).generate_state(1)[0])


def blank_plan(plan: StimulusPlan) -> StimulusPlan:
    """The blank run's share of a run's plan."""
    count = min(plan.count, BLANK_COUNT)
    return StimulusPlan(
        plan.kind, count, plan.spacing_s[: count - 1], plan.amplitude, plan.source, plan.lead_in, plan.wav
    )


def check_plan(plan: BenchPlan, has_board: bool) -> None:
    """Raises UsageError for a plan that cannot be carried out."""
    if not plan.stimuli:
        raise UsageError("a plan of no runs", "at least one run", "give --runs 1 or more")
    for stimuli in plan.stimuli:
        if stimuli.count < 1 or len(stimuli.spacing_s) != stimuli.count - 1:
            raise UsageError(
                f"{stimuli.count} stimuli with {len(stimuli.spacing_s)} spacings",
                "one spacing fewer than stimuli",
                "draw the spacing for this count",
            )
        if stimuli.source == "mcu" and not has_board:
            raise UsageError(
                "the board is to play the stimulus, and there is none",
                "a board, or the interface as the source",
                "give --port, or --port none to play through the interface",
            )
        if stimuli.source == "mcu" and (stimuli.kind not in _BOARD_KINDS or stimuli.lead_in is not None):
            raise UsageError(
                f"the board cannot play {stimuli.lead_in + ' before ' if stimuli.lead_in else ''}{stimuli.kind}",
                f"one of {', '.join(_BOARD_KINDS)}, without a lead-in",
                "play it through the interface: --port none",
            )
        if stimuli.kind != "wav" and stimuli.kind not in STIMULI:
            raise UsageError(
                f"no stimulus is called {stimuli.kind!r}", f"one of {', '.join(STIMULI)}, wav", "choose one of these"
            )


def check_fits(plan: StimulusPlan, wave_s: float) -> None:
    """Raises UsageError when a wave of `wave_s` (lead-in included) would run into the next one."""
    if plan.spacing_s and min(plan.spacing_s) <= wave_s:
        raise UsageError(
            f"stimuli {min(plan.spacing_s):.2f} s apart, and each sounds for {wave_s:.2f} s",
            "a spacing longer than the stimulus with its lead-in",
            "space them further apart with --spacing",
        )


@dataclass(frozen=True, slots=True)
class Playback:
    """What the interface plays for one stimulus: the wave (mono, float32), and where in it the stimulus starts."""

    wave: npt.NDArray[np.float32]
    stimulus_at: int


def playback(plan: StimulusPlan, rate_hz: int, index: int) -> Playback:
    """The wave of stimulus `index` at `rate_hz`; the lead-in, where there is one, is another utterance each time."""
    if plan.kind == "wav":
        stimulus = _wav_samples(plan, rate_hz)
    else:
        stimulus = ideal_waveform(plan.kind, rate_hz, plan.amplitude)
    if plan.lead_in is None:
        return Playback(stimulus, 0)
    speech = np.float32(plan.amplitude) * speech_like(index + 1, LEAD_IN_S, rate_hz)
    pause = np.zeros(round(LEAD_IN_GAP_S * rate_hz), np.float32)
    return Playback(np.concatenate((speech, pause, stimulus)), len(speech) + len(pause))


def stimulus_length_s(plan: StimulusPlan) -> float:
    """How long the stimulus itself sounds, without its lead-in."""
    return _WAV_MAX_S if plan.kind == "wav" else STIMULI[plan.kind].duration_s


def _wav_samples(plan: StimulusPlan, rate_hz: int) -> npt.NDArray[np.float32]:
    """The first channel of the stimulus file, scaled so that its peak is the plan's amplitude."""
    if plan.wav is None:
        raise UsageError("a wav stimulus without a file", "--stimulus wav:FILE", "name the file")
    with open_recording(plan.wav, min_duration_s=_WAV_MIN_S, min_channels=1) as source:
        name = source.path.name
        if source.rate_hz != rate_hz:
            raise UsageError(
                f"the stimulus {name} has {source.rate_hz} Hz, the interface {rate_hz} Hz",
                "the interface's rate: rig does not resample a stimulus",
                f"ffmpeg -i FILE -ar {rate_hz} NEW.wav",
            )
        if source.n_frames > _WAV_MAX_S * rate_hz:
            raise UsageError(
                f"the stimulus {name} is {source.n_frames / rate_hz:.1f} s long",
                f"{_WAV_MIN_S:g} to {_WAV_MAX_S:g} s",
                "cut it: ffmpeg -i FILE -t 2 NEW.wav",
            )
        samples = source.read(0, source.n_frames)[:, 0].copy()
    peak = float(np.max(np.abs(samples)))
    if peak == 0.0:
        raise UsageError(f"the stimulus {name} is silent", "a sound on its first channel", "give another file")
    return samples * np.float32(plan.amplitude / peak)
