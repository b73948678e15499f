"""`rig sim`: which simulated worlds there are, what is true of one, and the emulated board."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

sim_app = typer.Typer(help="The simulated bench: scenarios, their truth, the emulated board.", no_args_is_help=True)

WIDTH = 80


@sim_app.command("list")
def list_scenarios() -> None:
    """List the scenarios of --device sim:SCENARIO."""
    from rig.sim.scenarios import SCENARIOS

    widest = max(len(name) for name in SCENARIOS)
    for name, scenario in SCENARIOS.items():
        first = f"{name:<{widest}}  "
        for line in textwrap.wrap(
            scenario.description, WIDTH, initial_indent=first, subsequent_indent=" " * len(first)
        ):
            print(line)


@sim_app.command("show")
def show(
    scenario: Annotated[str, typer.Argument(metavar="SCENARIO", help="a name from rig sim list")],
    seed: Annotated[int, typer.Option("--seed", min=0, help="which draw of it")] = 1,
) -> None:
    """Show what a scenario is, and what is true of it before anything has been played."""
    from rig.sim.bench import build_bench

    truth = build_bench(scenario, seed).truth()
    print(f"{truth['scenario']}: {truth['description']}")
    print(f"seed {truth['seed']}")
    for name in ("settings", "definition", "clocks", "device", "leak"):
        print(f"\n{name}")
        for line in _facts(truth.get(name)):
            print(f"  {line}")
    print("\nThe latency of each stimulus is drawn as it is played; rig measure writes it to")
    print("truth.json of the session.")


@sim_app.command("board")
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
    running = PacedBoard(command, link, ppm=ppm, resets=reset)
    try:
        with running:
            print(running.path, flush=True)
            running.wait()
    except KeyboardInterrupt:
        pace = running.pace
        if pace is not None:
            print(
                f"rig: the board ran for {pace.ran_s:.1f} s, took {pace.cpu_s / pace.ran_s:.0%} of a processor"
                f" and was at most {pace.behind_s * 1e3:.1f} ms late",
                file=sys.stderr,
            )


def _facts(value: Any) -> Iterator[str]:
    if value is None:
        yield "none"
        return
    widest = max(len(str(key)) for key in value)
    for key, item in value.items():
        if item is not None:
            yield f"{key:<{widest}}  {_plain(item)}"


def _plain(item: Any) -> str:
    if isinstance(item, float):
        return f"{item:.6g}"
    if isinstance(item, list | tuple):
        return " to ".join(_plain(part) for part in item) if len(item) == 2 else ", ".join(_plain(p) for p in item)
    return str(item)
