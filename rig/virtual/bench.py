"""Up, down, status: the life of a virtual bench, whatever died or was left behind before."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from rig.domain.seams import HostTime
from rig.errors import BenchNotReady, UsageError
from rig.virtual import process
from rig.virtual.jack import JackBench
from rig.virtual.place import Place, State, base_folder, locked
from rig.virtual.pulse import PulseBench
from rig.virtual.recipe import Recipe

BENCH_VARIABLE = "RIG_VIRTUAL_BENCH"
"""Set in the environment of programs inside: the bench's kind."""

KINDS = ("pulse", "jack")
UP_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True)
class Standing:
    """A bench that is up: `environment` is what a program inside needs beside its own, `fresh` says that it was just
    made."""

    state: State
    environment: dict[str, str]
    fresh: bool


def up(kind: str, time: HostTime, environ: Mapping[str, str] = os.environ) -> Standing:
    """Makes the bench, or finds it: what stands and lives is left as it is, what died is cleared away first.

    Raises UsageError for a kind that there is not, MissingLibrary where the sound server is not installed, and
    BenchNotReady where it does not come up.
    """
    _check(kind)
    with locked(base_folder(dict(environ)), kind) as place:
        state = place.read()
        if state is not None and state.alive():
            return Standing(state, _environment(place, kind), fresh=False)
        _clear(place, kind, state, time)
        place.make_empty()
        started: list[process.Process] = []
        try:
            recipe = _recipe(place, kind)
            recipe.write_configuration()
            for server in recipe.servers(dict(environ)):
                one, child = process.start(server.name, server.command, server.environment, server.log, server.packages)
                started.append(one)
                process.wait_until(server.ready, child, server.name, server.log, UP_WITHIN_S, time)
            complaint = recipe.complaint()
            if complaint is not None:
                raise BenchNotReady(
                    f"the sound server lacks a part of the bench: {complaint}",
                    "a bench that is whole",
                    f"read the log in {place.folder}",
                )
        except BaseException:
            for each in reversed(started):
                process.stop(each, time)
            raise  # the folder stays: its log says why
        state = State(kind, tuple(started))
        place.write(state)
        return Standing(state, _environment(place, kind), fresh=True)


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
            return Standing(state, _environment(place, kind), fresh=False)
        dead = [] if state is None else [each.name for each in state.processes if not each.alive()]
        raise BenchNotReady(
            f"the virtual bench is not up: {', '.join(dead)} has ended" if dead else "the virtual bench is not up",
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


def _environment(place: Place, kind: str) -> dict[str, str]:
    return {BENCH_VARIABLE: kind, "JACK_NO_START_SERVER": "1", **_recipe(place, kind).client_environment()}


def _check(kind: str) -> None:
    if kind not in KINDS:
        raise UsageError(f"--kind {kind}: there is no such virtual bench", f"one of {', '.join(KINDS)}", "name one")
