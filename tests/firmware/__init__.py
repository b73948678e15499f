"""What the tests of the firmware share."""

from __future__ import annotations

import functools

import pytest

from rig.errors import MissingLibrary
from rig.firmware.images import emulator_command


@functools.cache
def _emulator() -> tuple[list[str], str]:
    try:
        return emulator_command(), ""
    except MissingLibrary as error:
        return [], f"{error.what}; {error.remedy}"


def emulator_or_skip() -> list[str]:
    """The command that starts the emulated board; without libsimavr the test is skipped with the reason."""
    command, why = _emulator()
    if not command:
        pytest.skip(why)
    return command
