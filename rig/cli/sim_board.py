"""`rig sim board`: the firmware on an emulated board in real time, heard on a sound server where that is asked for."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rig.sim.paced import PacedBoard

_HEARD_S = 2.0  # by then the delay is what it will be
_NICENESS = -11  # as PulseAudio takes it: sound that is late is no sound


def board(
    link: Annotated[
        Path | None, typer.Option("--link", metavar="PATH", help="where its port appears; a place of its own")
    ] = None,
    image: Annotated[
        Path | None, typer.Option("--image", metavar="FILE", help="another image than the one that came with rig")
    ] = None,
    ppm: Annotated[
        float, typer.Option("--ppm", min=-5000.0, max=5000.0, metavar="PPM", help="how fast its clock is")
    ] = 0.0,
    reset: Annotated[bool, typer.Option("--reset/--no-reset", help="opening the port resets it, as on an Uno")] = True,
    play: Annotated[
        str | None, typer.Option("--play", metavar="SINK", help="play its tone on this sink of PulseAudio")
    ] = None,
    told: Annotated[Path | None, typer.Option("--told", hidden=True, help="written once its tone can be heard")] = None,
) -> None:
    """Run the firmware on an emulated board in real time, until Ctrl-C.

    Prints the path of its port, which any program may open like a board's:
    rig measure --device sim --port PATH.
    """
    import signal

    from rig.errors import BadInput
    from rig.firmware.images import emulator_command
    from rig.sim.paced import PacedBoard

    command = emulator_command()
    if image is not None:
        if not image.is_file():
            raise BadInput(
                f"there is no image {image}", "a firmware image in Intel HEX", "rig firmware build makes one"
            )
        command[-1] = str(image)
    for ending in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, signal.default_int_handler)  # all of them clean up
    if play is not None:
        with contextlib.suppress(PermissionError):  # then it is one program among others
            os.setpriority(os.PRIO_PROCESS, 0, _NICENESS)
    running = PacedBoard(command, link, ppm=ppm, resets=reset)
    try:
        with running:
            print(running.path, flush=True)
            if play is not None:
                _sound(running, play, told)
            running.wait()
    except KeyboardInterrupt:
        pace = running.pace
        if pace is not None:
            print(
                f"rig: the board ran for {pace.ran_s:.1f} s, took {pace.cpu_s / pace.ran_s:.0%} of a processor"
                f" and was at most {pace.behind_s * 1e3:.1f} ms late",
                file=sys.stderr,
            )


def _sound(running: PacedBoard, sink: str, told: Path | None) -> None:
    """Plays the board until it ends. Raises AudioLost where its sound breaks off."""
    from rig.acquire.link import SystemTime
    from rig.sim.voice import Voice
    from rig.virtual.pacat import RATE_HZ, SinkPipe

    time = SystemTime()
    with running.pins() as pins, contextlib.closing(SinkPipe(sink)) as out:
        voice = Voice(pins, out, time, RATE_HZ)
        begun_s = time.now().seconds
        while not pins.ended:
            voice.turn()
            after_s = voice.after_pins_s
            if told is not None and after_s is not None and time.now().seconds > begun_s + _HEARD_S:
                partial = told.with_suffix(".partial")
                partial.write_text(f"heard about {after_s:.2f} s after its pins\n", encoding="ascii")
                partial.replace(told)
                told = None
