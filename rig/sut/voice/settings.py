"""The knobs of a voice loop, checked together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rig.errors import UsageError

MOST_HIDDEN_S = 2.0
FRAMES_S = (0.01, 0.02, 0.04, 0.06)


@dataclass(frozen=True, slots=True)
class VoiceSettings:
    """`jitter_buffer` and `buffering` are (kind, target in seconds or None). The hidden delays lie where no mark sees
    them: before `t_capture`, and behind `t_first_play`."""

    frame_s: float = 0.02
    device_hz: int = 48000
    rate_hz: int = 24000
    codec: str = "opus"
    jitter_buffer: tuple[str, float | None] = ("fixed", 0.04)
    buffering: tuple[str, float | None] = ("fixed", 0.02)
    hidden_capture_s: float = 0.0
    hidden_output_s: float = 0.0

    @property
    def frame_samples(self) -> int:
        """Of a frame at the device's rate."""
        return round(self.frame_s * self.device_hz)

    def check(self) -> None:
        """Raises UsageError for what cannot be made. Coder, buffer and player check what is theirs."""
        if not any(abs(self.frame_s - f) < 1e-9 for f in FRAMES_S):
            raise UsageError(
                f"--frame {1e3 * self.frame_s:g}ms: no such frames",
                f"one of {', '.join(f'{1e3 * f:g}ms' for f in FRAMES_S)}",
                "--frame 20ms",
            )
        if abs(self.frame_samples - self.frame_s * self.device_hz) > 1e-6:
            raise UsageError(
                f"--device-rate {self.device_hz}: {1e3 * self.frame_s:g} ms are no whole number of samples",
                "a rate with whole frames",
                "--device-rate 48000",
            )
        for name, value_s in (("--hidden-capture", self.hidden_capture_s), ("--hidden-output", self.hidden_output_s)):
            if not 0.0 <= value_s <= MOST_HIDDEN_S:
                raise UsageError(f"{name} {value_s:g}s is too long", f"0 to {MOST_HIDDEN_S:g}s", f"{name} 40ms")

    def as_json(self) -> dict[str, Any]:
        """As it is written with the marks. What is hidden stays hidden: it is what the measurement has to find."""
        return {
            "frame_ms": 1e3 * self.frame_s,
            "device_rate_hz": self.device_hz,
            "rate_hz": self.rate_hz,
            "codec": self.codec,
            "jitter_buffer": _named(self.jitter_buffer),
            "buffering": _named(self.buffering),
        }


def _named(choice: tuple[str, float | None]) -> str:
    kind, target_s = choice
    return kind if target_s is None else f"{kind}:{1e3 * target_s:g}ms"
