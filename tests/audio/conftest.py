"""The virtual bench for tests: a private sound server for each test, apart from any that the user may have up."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from virtual_shell import ROOT, Shell, need, need_library


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="rv", dir="/tmp") as folder:
        yield Path(folder)


@pytest.fixture
def shell(place: Path) -> Iterator[Shell]:
    """A user with a home and a runtime folder of their own, and no bench yet."""
    for name in ("home", "runtime"):
        (place / name).mkdir(mode=0o700)
    keep = {
        name: value for name, value in os.environ.items() if not name.startswith(("PULSE_", "ALSA_", "JACK_", "RIG_"))
    }
    own = {
        "HOME": str(place / "home"),
        "XDG_RUNTIME_DIR": str(place / "runtime"),
        "RIG_VIRTUAL_DIR": str(place / "v"),
        "PYTHONPATH": str(ROOT),
    }
    made = Shell(keep | own)
    try:
        yield made
    finally:
        made.down()


@pytest.fixture
def bench(shell: Shell) -> Shell:
    """A bench that is up."""
    need("pulseaudio")
    shell.up()
    return shell


@pytest.fixture
def jack_bench(shell: Shell) -> Shell:
    """A bench on JACK that is up."""
    need("jackd")
    need_library("jack")
    shell.up("jack")
    return shell
