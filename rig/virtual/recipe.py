"""What a virtual bench is made of: files, servers in the order of their start, and what a program inside is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Server:
    """A program that belongs to a bench. `ready`: whether what comes after it may start."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    packages: str
    ready: Callable[[], bool]


class Recipe(Protocol):
    """One kind of bench in one folder."""

    @property
    def board_plays_on(self) -> str | None:
        """The sink on which a board's tone is heard; None: the bench has none."""
        ...

    def write_configuration(self) -> None:
        """Writes everything that servers and programs inside read. Raises MissingLibrary where a library is missing."""
        ...

    def servers(self, environ: dict[str, str]) -> list[Server]:
        """What is to run, in the order of the start; `environ` is the user's environment."""
        ...

    def client_environment(self) -> dict[str, str]:
        """What a program inside needs beside its own environment."""
        ...

    def complaint(self) -> str | None:
        """What of the bench could not be made though its servers run; None: all is there."""
        ...

    def roles(self) -> list[tuple[str, str]]:
        """What the bench's devices are and what they are called."""
        ...

    def sweep(self) -> None:
        """Removes what a server that was killed has left outside the folder."""
        ...
