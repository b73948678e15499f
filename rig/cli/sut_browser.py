"""`rig sut browser` and `rig sut webrtc`: headless Chromium as a reference system."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rig.cli.options import duration_s
from rig.errors import UsageError

if TYPE_CHECKING:
    from rig.sut.browser.knobs import Context

EchoCancellation = Annotated[bool, typer.Option("--echo-cancellation/--no-echo-cancellation", help="of the microphone")]
NoiseSuppression = Annotated[bool, typer.Option("--noise-suppression/--no-noise-suppression", help="of the microphone")]
AutoGain = Annotated[bool, typer.Option("--auto-gain/--no-auto-gain", help="gain control of the microphone")]
Rate = Annotated[
    int | None, typer.Option("--rate", min=3000, max=768_000, help="of the AudioContext in Hz; the browser's choice")
]
Hint = Annotated[
    str | None,
    typer.Option(
        "--latency-hint", metavar="interactive|balanced|playback|DURATION", help="of the AudioContext: 100ms, say"
    ),
]
MarksTo = Annotated[
    Path | None, typer.Option("--marks", metavar="FILE", help="append what the page says of itself (rig marks FILE)")
]
Program = Annotated[
    str | None, typer.Option("--chromium", metavar="PROGRAM", help="which browser; the first that is found")
]


def browser(
    engine: Annotated[
        str, typer.Option("--engine", metavar="worklet|script-processor|buffers", help="what carries the sound")
    ] = "worklet",
    block: Annotated[
        int | None, typer.Option("--block", min=1, max=16384, help="frames of a ScriptProcessor or of one buffer")
    ] = None,
    lead: Annotated[
        float | None,
        typer.Option("--lead", parser=duration_s, metavar="DURATION", help="how far ahead buffers are scheduled: 20ms"),
    ] = None,
    rate: Rate = None,
    latency_hint: Hint = None,
    echo_cancellation: EchoCancellation = False,
    noise_suppression: NoiseSuppression = False,
    auto_gain: AutoGain = False,
    marks: MarksTo = None,
    chromium: Program = None,
) -> None:
    """Pass the microphone on to the speaker in a page, through Web Audio, until told to end.

    Prints ready on stderr when sound runs and, at the end, what the page was told of its latency, as JSON.
    """
    from rig.sut.browser.knobs import Microphone, WebAudio

    microphone = Microphone(echo_cancellation, noise_suppression, auto_gain)
    _run(WebAudio(engine, block, lead or 0.0, microphone, _context(rate, latency_hint)).for_page(), marks, chromium)


def webrtc(
    player: Annotated[
        str, typer.Option("--player", metavar="element|context", help="what plays the received track")
    ] = "element",
    frame: Annotated[
        float | None, typer.Option("--frame", parser=duration_s, metavar="DURATION", help="length of a packet: 20ms")
    ] = None,
    jitter_buffer_target: Annotated[
        float | None,
        typer.Option("--jitter-buffer-target", parser=duration_s, metavar="DURATION", help="of the receiver: 100ms"),
    ] = None,
    playout_delay_hint: Annotated[
        float | None,
        typer.Option("--playout-delay-hint", parser=duration_s, metavar="DURATION", help="its predecessor: 100ms"),
    ] = None,
    rate: Rate = None,
    latency_hint: Hint = None,
    echo_cancellation: EchoCancellation = False,
    noise_suppression: NoiseSuppression = False,
    auto_gain: AutoGain = False,
    marks: MarksTo = None,
    chromium: Program = None,
) -> None:
    """A WebRTC call of a page to itself, microphone to speaker, until told to end.

    Prints ready on stderr when sound runs and, at the end, what the page was told of its latency, as JSON.
    """
    from rig.sut.browser.knobs import Microphone, WebRtc

    microphone = Microphone(echo_cancellation, noise_suppression, auto_gain)
    context = _context(rate, latency_hint)
    knobs = WebRtc(player, frame, jitter_buffer_target, playout_delay_hint, microphone, context)
    _run(knobs.for_page(), marks, chromium)


def _context(rate_hz: int | None, hint: str | None) -> Context:
    from rig.sut.browser.knobs import HINTS, Context

    if hint is None or hint in HINTS:
        return Context(rate_hz, hint)
    try:
        return Context(rate_hz, duration_s(hint))
    except UsageError as error:
        raise UsageError(
            f"--latency-hint {hint}: there is no such hint", f"{', '.join(HINTS)}, or a duration", "100ms, for example"
        ) from error


def _run(settings: dict[str, Any], marks: Path | None, program: str | None) -> None:
    import json

    from rig.sut.browser.run import run_page

    def ready() -> None:
        print("ready", file=sys.stderr, flush=True)

    print(json.dumps(run_page(settings, program=program, marks=marks, ready=ready)))
