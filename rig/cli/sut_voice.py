"""`rig sut voice-loop` and `rig sut echo-server`: a voice loop over a network that is as bad as asked for."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rig.cli.options import duration_s
from rig.errors import BadInput, UsageError

if TYPE_CHECKING:
    from rig.marks import Marks
    from rig.sut.voice.impair import Impairment
    from rig.sut.voice.settings import VoiceSettings

ServerDelay = Annotated[
    float | None, typer.Option("--server-delay", parser=duration_s, metavar="DURATION", help="of every packet: 30ms")
]
ServerJitter = Annotated[
    float | None,
    typer.Option("--server-jitter", parser=duration_s, metavar="DURATION", help="drawn evenly from 0 to this: 40ms"),
]
Loss = Annotated[float, typer.Option("--loss", help="share of the packets that is lost: 0.05")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="of jitter and loss")]


def echo_server(
    server_delay: ServerDelay = None,
    server_jitter: ServerJitter = None,
    loss: Loss = 0.0,
    seed: Seed = 1,
    host: Annotated[str, typer.Option("--host", help="where it listens")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0: a free one")] = 0,
    with_parent: Annotated[bool, typer.Option("--with-parent", help="end when its standard input ends")] = False,
) -> None:
    """Send back every message of a WebSocket, later, until told to end.

    Prints its address, and at the end what it counted, as JSON.
    """
    import asyncio
    import json

    from rig.sut.voice.echo_server import EchoServer

    impairment = _impairment(server_delay, server_jitter, loss, seed)
    server = EchoServer(impairment)

    async def serve() -> None:
        told = _told()
        if with_parent:
            asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _at_end_of_input, told)
        await server.serve(host, port, lambda address: print(address, flush=True), told.wait())

    asyncio.run(serve())
    print(json.dumps(server.counts.as_json()))


def _impairment(delay_s: float | None, jitter_s: float | None, loss: float, seed: int) -> Impairment:
    from rig.sut.voice.impair import Impairment

    impairment = Impairment(delay_s or 0.0, jitter_s or 0.0, loss, seed)
    impairment.check()
    return impairment


def _told() -> Any:
    """An event of the running loop that SIGTERM and SIGINT set."""
    import asyncio
    import signal

    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    return told


def _at_end_of_input(told: Any) -> None:
    import os

    if not os.read(sys.stdin.fileno(), 4096):
        told.set()


def voice_loop(
    backend: Annotated[str, typer.Option("--backend", help="sounddevice or pyaudio")] = "sounddevice",
    frame: Annotated[
        float | None, typer.Option("--frame", parser=duration_s, metavar="DURATION", help="10ms, 20ms, 40ms or 60ms")
    ] = None,
    codec: Annotated[str, typer.Option("--codec", help="opus or pcm")] = "opus",
    rate: Annotated[int, typer.Option("--rate", min=8000, max=48000, help="of what is coded, in Hz")] = 24000,
    jitter_buffer: Annotated[
        str, typer.Option("--jitter-buffer", metavar="none|fixed:DURATION|adaptive", help="puts packets into time")
    ] = "fixed:40ms",
    buffering: Annotated[
        str, typer.Option("--buffering", metavar="none|fixed:DURATION|adaptive", help="the player's queue")
    ] = "fixed:20ms",
    block: Annotated[int, typer.Option("--block", min=0, help="frames a callback; 0: PortAudio chooses")] = 480,
    device_rate: Annotated[int, typer.Option("--device-rate", min=8000, max=192_000, help="in Hz")] = 48000,
    latency: Annotated[str, typer.Option("--latency", help="low or high: what PortAudio is asked for")] = "low",
    microphone: Annotated[str | None, typer.Option("--microphone", help="a device's name; the default one")] = None,
    speaker: Annotated[str | None, typer.Option("--speaker", help="a device's name; the default one")] = None,
    server: Annotated[
        str | None, typer.Option("--server", metavar="URL", help="an echo server that runs; one of its own")
    ] = None,
    server_delay: ServerDelay = None,
    server_jitter: ServerJitter = None,
    loss: Loss = 0.0,
    seed: Seed = 1,
    hidden_capture: Annotated[
        float | None,
        typer.Option("--hidden-capture", parser=duration_s, metavar="DURATION", help="held back before t_capture"),
    ] = None,
    hidden_output: Annotated[
        float | None,
        typer.Option("--hidden-output", parser=duration_s, metavar="DURATION", help="held back behind t_first_play"),
    ] = None,
    marks: Annotated[
        str | None, typer.Option("--marks", metavar="FILE|URL", help="where marks go; RIG_MARKS where that is set")
    ] = None,
) -> None:
    """Carry the microphone to an echo server and back to the speaker, until told to end, with a mark at each step.

    Prints ready on stderr when the first frame is played and, at the end, what was claimed and counted, as JSON.
    """
    import asyncio
    import json

    from rig.sut.voice.client import VoiceLoop
    from rig.sut.voice.settings import VoiceSettings
    from rig.sut.voice.streams import DeviceSpec, open_streams

    settings = VoiceSettings(
        frame_s=0.02 if frame is None else frame,
        device_hz=device_rate,
        rate_hz=rate,
        codec=codec,
        jitter_buffer=choice("--jitter-buffer", jitter_buffer),
        buffering=choice("--buffering", buffering),
        hidden_capture_s=hidden_capture or 0.0,
        hidden_output_s=hidden_output or 0.0,
    )
    server_of_its_own = echo(server, server_delay, server_jitter, loss, seed)
    with ExitStack() as stack:
        streams = open_streams(backend, DeviceSpec(device_rate, block, latency, microphone, speaker))
        sink = marks_sink(marks)
        written = None if sink is None else stack.enter_context(_marks(sink, settings))
        loop = VoiceLoop(settings, streams, written)
        address = stack.enter_context(server_of_its_own)

        async def run() -> dict[str, Any]:
            return await loop.run(address, _told(), lambda: print("ready", file=sys.stderr, flush=True))

        report = asyncio.run(run())
    print(json.dumps({"backend": backend, "block_frames": block, **report}))


def choice(option: str, text: str) -> tuple[str, float | None]:
    """`fixed:60ms` to ("fixed", 0.06), `none` to ("none", None)."""
    kind, colon, duration = text.partition(":")
    if not colon:
        return kind, None
    try:
        return kind, duration_s(duration)
    except UsageError as error:
        raise UsageError(f"{option} {text}: {error.what}", error.expected, f"{option} {kind}:60ms") from error


def echo(
    server: str | None, delay_s: float | None, jitter_s: float | None, loss: float, seed: int
) -> AbstractContextManager[str]:
    """Gives the address of the echo server: the one that was named, or one started for as long as it is used."""
    from rig.sut.voice.own_server import OwnServer

    impairment = _impairment(delay_s, jitter_s, loss, seed)
    if server is None:
        options = {
            "--server-delay": f"{1e3 * impairment.delay_s:.6f}ms",
            "--server-jitter": f"{1e3 * impairment.jitter_s:.6f}ms",
            "--loss": str(loss),
            "--seed": str(seed),
        }
        words = [word for option in options.items() for word in option]
        # As the program `rig` does, wherever it is.
        start = [sys.executable, "-c", "from rig.cli.main import run; run()"]
        return OwnServer([*start, "sut", "echo-server", "--with-parent", *words])
    if impairment.delay_s or impairment.jitter_s or loss:
        raise UsageError(
            "--server names a server, and delay, jitter and loss are its own",
            "--server-delay, --server-jitter and --loss where --server is left out",
            "give them to rig sut echo-server",
        )
    if not server.startswith("ws://"):
        raise UsageError(
            f"--server {server}: no address of an echo server",
            "ws://HOST:PORT/echo",
            "as rig sut echo-server prints it",
        )
    return nullcontext(server)


def marks_sink(given: str | None) -> str | None:
    """Where marks go: what was asked for, else where the rig that started this one listens; None: nowhere."""
    import os

    return given or os.environ.get("RIG_MARKS") or None


def _marks(sink: str, settings: VoiceSettings) -> Marks:
    from rig.marks import Marks

    try:
        return Marks(sink, frame_ms=1e3 * settings.frame_s, rate_hz=settings.device_hz, peak_at_u_ms=0.3)
    except OSError as error:
        raise BadInput(
            f"{sink} cannot be written: {error.strerror or error}", "a file for the marks", "name another with --marks"
        ) from error
    except ValueError as error:
        raise UsageError(f"--marks {sink}: {error}", "a file, or http://HOST:PORT/marks", "name one") from error
