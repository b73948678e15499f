"""`rig sut`: reference systems to measure, started as any other system under test."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from rig.cli.sut_browser import browser, webrtc
from rig.cli.sut_voice import echo_server, voice_loop

sut_app = typer.Typer(help="Reference systems under test.", no_args_is_help=True)

sut_app.command("browser")(browser)
sut_app.command("webrtc")(webrtc)
sut_app.command("voice-loop")(voice_loop)
sut_app.command("echo-server")(echo_server)


@sut_app.callback()
def group() -> None:
    """Reference systems under test."""


@sut_app.command("passthrough")
def passthrough(
    backend: Annotated[str, typer.Option("--backend", help="sounddevice or pyaudio")] = "sounddevice",
    blocksize: Annotated[int, typer.Option("--blocksize", min=0, help="frames a block; 0: PortAudio chooses")] = 0,
    latency: Annotated[str, typer.Option("--latency", help="low or high: what PortAudio is asked for")] = "low",
    rate: Annotated[int, typer.Option("--rate", min=1, help="sample rate in Hz")] = 48000,
    microphone: Annotated[str | None, typer.Option("--microphone", help="a device's name; the default one")] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="a device's name; the default one")] = None,
) -> None:
    """Pass the microphone on to the speaker until told to end, then print what PortAudio claimed of it, as JSON."""
    import json
    import threading

    from rig.sut.passthrough import PassthroughSpec, claims, open_loop, until_told

    spec = PassthroughSpec(blocksize, latency, rate, microphone, speaker)
    loop = open_loop(backend, spec)
    ended = threading.Event()
    try:
        granted = loop.start(ended)
        print("ready", file=sys.stderr, flush=True)
        until_told(ended)
    finally:
        loop.stop()
    print(json.dumps({"backend": backend, "latency": latency, **claims(loop, granted)}))


@sut_app.command("delay")
def delay(
    frames: Annotated[int, typer.Option("--frames", min=0, help="how long sound is held back")],
    source: Annotated[str, typer.Option("--from", metavar="PORT", help="what it hears")] = "Virtual USB Audio:mouth",
    sink: Annotated[str, typer.Option("--to", metavar="PORT", help="where it plays")] = "Virtual USB Audio:in_2",
) -> None:
    """On JACK: pass sound on exactly so many frames later, until told to end."""
    import json
    import threading

    from rig.sut.delay import DelaySpec, JackDelay
    from rig.sut.passthrough import until_told

    line = JackDelay(DelaySpec(frames, source, sink))
    ended = threading.Event()
    try:
        line.start(ended)
        print("ready", file=sys.stderr, flush=True)
        until_told(ended)
        facts = line.facts()
    finally:
        line.stop()
    print(json.dumps(facts))
