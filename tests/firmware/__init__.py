"""What the tests of the firmware share."""

from __future__ import annotations

import functools

import pytest

from rig.errors import MissingLibrary
from rig.firmware.images import emulator_command


@functools.cache
def _emulator(board: str) -> tuple[list[str], str]:
    try:
        return emulator_command(board), ""
    except MissingLibrary as error:
        return [], f"{error.what}; {error.remedy}"


def emulator_or_skip(board: str = "atmega328p") -> list[str]:
    """The command that starts an emulated board; without libsimavr the test is skipped with the reason."""
    command, why = _emulator(board)
    if not command:
        pytest.skip(why)
    return command
