"""What can be turned in the pages, and in which unit the browser's own interfaces take it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rig.errors import UsageError

ENGINES = ("worklet", "script-processor", "buffers")
PLAYERS = ("element", "context")
HINTS = ("interactive", "balanced", "playback")

QUANTUM_FRAMES = 128
"""Web Audio works in blocks of this many frames, by definition."""

SCRIPT_BLOCKS = (256, 512, 1024, 2048, 4096, 8192, 16384)
"""The buffer sizes that createScriptProcessor takes, by its specification."""

_DEFAULT_BLOCK = 1024

OPUS_FRAMES_S = (0.01, 0.02, 0.04, 0.06)
LONGEST_TARGET_S = 4.0
"""The largest jitterBufferTarget that its specification allows."""


@dataclass(frozen=True, slots=True)
class Microphone:
    """Constraints of the track. Off by default: they change the signal and the latency."""

    echo_cancellation: bool = False
    noise_suppression: bool = False
    auto_gain: bool = False

    def for_page(self) -> dict[str, Any]:
        return {
            "echoCancellation": self.echo_cancellation,
            "noiseSuppression": self.noise_suppression,
            "autoGainControl": self.auto_gain,
        }


@dataclass(frozen=True, slots=True)
class Context:
    """Options of the AudioContext. None leaves the choice to the browser; `hint` is one of HINTS or seconds."""

    rate_hz: int | None = None
    hint: str | float | None = None

    def for_page(self) -> dict[str, Any]:
        asked = {"sampleRate": self.rate_hz, "latencyHint": self.hint}
        return {name: value for name, value in asked.items() if value is not None}


@dataclass(frozen=True, slots=True)
class WebAudio:
    """Microphone to speaker through one of ENGINES.

    `block_frames`: the buffer of a ScriptProcessor, or the frames that are scheduled as one buffer; None for worklet,
    which has no choice. `lead_s`: how far ahead of the context's time the first buffer is scheduled.
    """

    engine: str
    block_frames: int | None
    lead_s: float
    microphone: Microphone
    context: Context

    def for_page(self) -> dict[str, Any]:
        """Raises UsageError for what the browser would refuse."""
        if self.engine not in ENGINES:
            raise UsageError(
                f"--engine {self.engine}: there is no such engine", f"one of {', '.join(ENGINES)}", "name one"
            )
        block = self.block_frames
        if self.engine == "worklet" and block is not None:
            raise UsageError(
                f"--block {block} with the worklet, which always works in {QUANTUM_FRAMES} frames",
                "--block with script-processor or buffers",
                "leave --block out",
            )
        if self.engine != "worklet":
            block = _DEFAULT_BLOCK if block is None else block
            _check_block(self.engine, block)
        if self.engine != "buffers" and self.lead_s:
            raise UsageError(
                f"--lead with {self.engine}, which schedules nothing", "--lead with buffers", "leave --lead out"
            )
        return {
            "page": "web-audio",
            "engine": self.engine,
            "block": block,
            "lead": self.lead_s,
            "microphone": self.microphone.for_page(),
            "context": self.context.for_page(),
        }


def _check_block(engine: str, block: int) -> None:
    if engine == "script-processor" and block not in SCRIPT_BLOCKS:
        raise UsageError(
            f"--block {block}: a ScriptProcessor does not take it",
            f"one of {', '.join(map(str, SCRIPT_BLOCKS))}",
            "name one",
        )
    if engine == "buffers" and block % QUANTUM_FRAMES:
        raise UsageError(
            f"--block {block}: frames come in blocks of {QUANTUM_FRAMES}",
            f"a multiple of {QUANTUM_FRAMES}",
            f"--block {max(1, round(block / QUANTUM_FRAMES)) * QUANTUM_FRAMES}",
        )


@dataclass(frozen=True, slots=True)
class WebRtc:
    """A call of a page to itself. None leaves a knob untouched; `player` is one of PLAYERS."""

    player: str
    frame_s: float | None
    jitter_buffer_target_s: float | None
    playout_delay_hint_s: float | None
    microphone: Microphone
    context: Context

    def for_page(self) -> dict[str, Any]:
        """Raises UsageError for what the browser would refuse or ignore."""
        if self.player not in PLAYERS:
            raise UsageError(
                f"--player {self.player}: there is no such player", f"one of {', '.join(PLAYERS)}", "name one"
            )
        context = self.context.for_page()
        if self.player == "element" and context:
            raise UsageError(
                "--rate and --latency-hint belong to an AudioContext, and an audio element has none",
                "--player context with them",
                "add --player context, or leave them out",
            )
        if self.frame_s is not None and self.frame_s not in OPUS_FRAMES_S:
            raise UsageError(
                f"--frame {1e3 * self.frame_s:g}ms: Opus in WebRTC has no such frames",
                "one of 10ms, 20ms, 40ms, 60ms",
                "name one",
            )
        for name, value in (
            ("jitter-buffer-target", self.jitter_buffer_target_s),
            ("playout-delay-hint", self.playout_delay_hint_s),
        ):
            if value is not None and value > LONGEST_TARGET_S:
                raise UsageError(
                    f"--{name} {value:g}s is more than the browser takes",
                    f"{LONGEST_TARGET_S:g}s at most",
                    f"--{name} 200ms, for example",
                )
        target_s = self.jitter_buffer_target_s
        return {
            "page": "webrtc",
            "player": self.player,
            "ptime": None if self.frame_s is None else round(1e3 * self.frame_s),
            "jitterBufferTarget": None if target_s is None else 1e3 * target_s,  # in ms by its specification
            "playoutDelayHint": self.playout_delay_hint_s,  # the older one takes seconds
            "microphone": self.microphone.for_page(),
            "context": context,
        }
