"""Up, down, status: the life of a virtual bench, whatever died or was left behind before."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.domain.seams import HostTime
from rig.errors import BenchNotReady, UsageError
from rig.virtual import process
from rig.virtual.jack import JackBench
from rig.virtual.place import Place, State, base_folder, locked
from rig.virtual.pulse import PulseBench
from rig.virtual.recipe import Recipe, Server

BENCH_VARIABLE = "RIG_VIRTUAL_BENCH"
"""Set in the environment of programs inside: the bench's kind."""

BOARD_VARIABLE = "RIG_VIRTUAL_BOARD"
"""And the path of its board's port, where it has one."""

BOARD_LATE_S = 2.0
"""At most so long after the pins of its board the tone is on channel 1, and at the mouth."""

KINDS = ("pulse", "jack")
UP_WITHIN_S = 10.0
BOARD = "board"
_BOARD_WITHIN_S = 30.0  # its emulator may have to be compiled first


@dataclass(frozen=True, slots=True)
class Standing:
    """A bench that is up: `environment` is what a program inside needs beside its own, `fresh` says that it was just
    made. `board` is the path of its board's port, where it has one, and `board_says` what the board told of itself."""

    state: State
    environment: dict[str, str]
    fresh: bool
    board: Path | None = None
    board_says: str = ""


def up(
    kind: str, time: HostTime, environ: Mapping[str, str] = os.environ, board: Sequence[str] | None = None
) -> Standing:
    """Makes the bench, or finds it: what stands and lives is left as it is, what died is cleared away first.

    `board` starts a board that appears at `--link PATH`, plays on `--play SINK`, and writes a line about itself to
    `--told FILE` once it does. It is put into a bench that has none.

    Raises UsageError for a kind that there is not, or one that a board cannot be put into; MissingLibrary where the
    sound server is not installed; and BenchNotReady where it does not come up.
    """
    _check(kind)
    with locked(base_folder(dict(environ)), kind) as place:
        recipe = _recipe(place, kind)
        wanted = [] if board is None else [_board_server(place, kind, board, environ)]
        state = place.read()
        if state is not None and state.alive():
            fresh, processes = False, state.processes
            wanted = [] if any(each.name == BOARD for each in processes) else wanted
        else:
            fresh, processes = True, ()
            _clear(place, kind, state, time)
            place.make_empty()
            recipe.write_configuration()
        started: list[process.Process] = []
        try:
            if fresh:
                started += _started(recipe.servers(dict(environ)), UP_WITHIN_S, time)
                complaint = recipe.complaint()
                if complaint is not None:
                    raise BenchNotReady(
                        f"the sound server lacks a part of the bench: {complaint}",
                        "a bench that is whole",
                        f"read the log in {place.folder}",
                    )
            started += _started(wanted, _BOARD_WITHIN_S, time)
        except BaseException:
            for each in reversed(started):
                process.stop(each, time)
            raise  # the folder stays: its log says why
        state = State(kind, (*processes, *started))
        place.write(state)
        return _standing(place, state, fresh=fresh)


def _started(servers: Sequence[Server], within_s: float, time: HostTime) -> list[process.Process]:
    """Starts them one after the other, each once the one before is ready; those before one that fails are stopped."""
    started: list[process.Process] = []
    try:
        for server in servers:
            one, child = process.start(server.name, server.command, server.environment, server.log, server.packages)
            started.append(one)
            process.wait_until(server.ready, child, server.name, server.log, within_s, time)
    except BaseException:
        for each in reversed(started):
            process.stop(each, time)
        raise
    return started


def _board_server(place: Place, kind: str, command: Sequence[str], environ: Mapping[str, str]) -> Server:
    sink = _recipe(place, kind).board_plays_on
    if sink is None:
        raise UsageError(
            "--board: this kind of bench has no place for a board",
            "the kind pulse",
            "leave --kind out; on JACK measure with --port none",
        )
    path, told = place.board, place.board_told
    own = [*command, "--link", str(path), "--play", sink, "--told", str(told)]
    inside = {**environ, **_inside(place, kind)}
    return Server(BOARD, own, inside, place.folder / "board.log", "pulseaudio-utils", told.is_file)


def down(kind: str, time: HostTime, environ: Mapping[str, str] = os.environ) -> bool:
    """Ends every process of the bench and removes its folder. False: there was none."""
    _check(kind)
    with locked(base_folder(dict(environ)), kind) as place:
        state = place.read()
        was_there = state is not None or place.folder.exists()
        _clear(place, kind, state, time)
        return was_there


def standing(kind: str, environ: Mapping[str, str] = os.environ) -> Standing:
    """The bench as it stands. Raises BenchNotReady where it does not."""
    _check(kind)
    with locked(base_folder(dict(environ)), kind) as place:
        state = place.read()
        if state is not None and state.alive():
            return _standing(place, state, fresh=False)
        dead = [] if state is None else [each.name for each in state.processes if not each.alive()]
        why = f": {', '.join(dead)} has ended" if dead else ""
        if BOARD in dead and (said := process.last_line(place.folder / "board.log")):
            why += f" ({said})"
        raise BenchNotReady(
            f"the virtual bench is not up{why}",
            "a bench made by rig virtual up, its processes running",
            "rig virtual up" if kind == KINDS[0] else f"rig virtual up --kind {kind}",
        )


def roles(kind: str) -> list[tuple[str, str]]:
    """What the bench's devices are and what they are called."""
    _check(kind)
    return _recipe(Place(Path()), kind).roles()


def _recipe(place: Place, kind: str) -> Recipe:
    return JackBench(place.folder) if kind == "jack" else PulseBench(place.folder)


def _clear(place: Place, kind: str, state: State | None, time: HostTime) -> None:
    for each in reversed(state.processes if state is not None else ()):
        process.stop(each, time)
    _recipe(place, kind).sweep()
    place.remove()


def _standing(place: Place, state: State, fresh: bool) -> Standing:
    inside = _inside(place, state.kind)
    if not any(each.name == BOARD for each in state.processes):
        return Standing(state, inside, fresh)
    inside[BOARD_VARIABLE] = str(place.board)
    return Standing(state, inside, fresh, place.board, process.last_line(place.board_told))


def _inside(place: Place, kind: str) -> dict[str, str]:
    return {BENCH_VARIABLE: kind, "JACK_NO_START_SERVER": "1", **_recipe(place, kind).client_environment()}


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise UsageError(f"--kind {kind}: there is no such virtual bench", f"one of {', '.join(KINDS)}", "name one")
