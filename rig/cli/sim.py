"""`rig sim`: which simulated worlds there are, what is true of one, and the emulated board."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from rig.cli.sim_board import board

sim_app = typer.Typer(help="The simulated bench: scenarios, their truth, the emulated board.", no_args_is_help=True)
sim_app.command("board")(board)

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
