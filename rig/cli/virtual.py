"""`rig virtual`: a bench without a sound card. A private sound server, the system's devices and an interface on it."""

from __future__ import annotations

import os
import shlex
import sys
from typing import Annotated

import typer

from rig.cli.options import one_of

virtual_app = typer.Typer(
    help="The virtual bench: a private sound server with an interface, a mouth, a microphone, a speaker.",
    no_args_is_help=True,
)

BOARDS = ("uno",)
"""Those whose emulators keep pace with the real clock."""

Kind = Annotated[str, typer.Option("--kind", metavar="pulse|jack", help="which sound server: pulse or jack")]


@virtual_app.command("up")
def up(
    kind: Kind = "pulse",
    board: Annotated[
        str | None, typer.Option("--board", metavar="uno", help="also start this board, emulated, at the mouth")
    ] = None,
) -> None:
    """Start the bench, unless it is up, and print what to export to be inside: eval "$(rig virtual up)"."""
    from rig.acquire.link import SystemTime
    from rig.virtual import bench

    command = None
    if board is not None:
        from rig.firmware.images import emulator_command

        one_of("--board", board, BOARDS)
        emulator_command()  # compiled here where it is not there yet, so that what is missing is said here
        command = [sys.executable, "-c", "from rig.cli.main import run; run()", "sim", "board"]
    found = bench.up(kind, SystemTime(), board=command)
    inside = "rig virtual run" + ("" if kind == "pulse" else f" --kind {kind}")
    if found.board is not None:
        _say(f"its board is at {found.board}")
    _say(f"the virtual bench is {'up' if found.fresh else 'already up'}; in one line: {inside} -- COMMAND")
    for name, value in found.environment.items():
        print(f"export {name}={shlex.quote(value)}")


@virtual_app.command("down")
def down(kind: Kind = "pulse") -> None:
    """End the bench and remove everything of it."""
    from rig.acquire.link import SystemTime
    from rig.virtual import bench

    _say("the virtual bench is down" if bench.down(kind, SystemTime()) else "there was no virtual bench")


@virtual_app.command("status")
def status(kind: Kind = "pulse") -> None:
    """Say whether the bench is up and what it has. Exit code 4 where it is not."""
    from rig.virtual import bench

    found = bench.standing(kind)
    print(f"kind       {found.state.kind}")
    for each in found.state.processes:
        print(f"process    {each.name}, number {each.pid}")
    for role, name in bench.roles(kind):
        print(f"{role:<10} {name}")
    if found.board is not None:
        print(f"board      {found.board}")
        print(f"           {found.board_says}")


@virtual_app.command("run", context_settings={"allow_interspersed_args": False})
def run(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND...", help="a program and its arguments")],
    kind: Kind = "pulse",
) -> None:
    """Run a program with its default microphone and speaker inside; it ends with the program's own exit code."""
    from rig.errors import UsageError
    from rig.virtual import bench

    found = bench.standing(kind)
    sys.stdout.flush()
    try:
        # In its place, not below it: signals and the exit code need nobody to pass them on.
        os.execvpe(command[0], command, {**os.environ, **found.environment})
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{command[0]} cannot be run: {why}", "a program that this user may run", "run it by itself once"
        ) from error


def _say(line: str) -> None:
    print(line, file=sys.stderr)
