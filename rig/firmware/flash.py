"""Puts an image onto a board, with avrdude."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from rig.errors import BenchNotReady, MissingLibrary, UsageError

BOOTLOADERS = {"uno": 115_200, "nano": 115_200, "nano-old": 57_600}
"""Boards by the name of their bootloader, with its baud rate. Nanos sold before 2018, and many clones, have the old."""

EXTENDED_FUSE = 0xFC
"""Brown-out detection at 4.3 V: at 16 MHz the part is specified from 3.8 V on. Boards are sold with 2.7 V."""


def flash_command(image: Path, port: str, bootloader: str = "uno") -> list[str]:
    """avrdude's command for a board with a bootloader. Raises UsageError for a bootloader that is not known."""
    if bootloader not in BOOTLOADERS:
        raise UsageError(f"the bootloader {bootloader!r}", f"one of {', '.join(BOOTLOADERS)}", "name one of them")
    options = ["-c", "arduino", "-P", port, "-b", str(BOOTLOADERS[bootloader]), "-D"]
    return ["avrdude", "-p", "m328p", *options, "-U", f"flash:w:{image}:i"]


def programmer_command(image: Path, programmer: str, port: str | None = None) -> list[str]:
    """avrdude's command for a programmer on the ISP pins, which can also set the brown-out level."""
    options = ["-c", programmer, *(["-P", port] if port else [])]
    fuse = f"efuse:w:0x{EXTENDED_FUSE:02X}:m"
    return ["avrdude", "-p", "m328p", *options, "-U", fuse, "-U", f"flash:w:{image}:i"]


def flash(command: list[str]) -> None:
    """Runs avrdude; it speaks to the terminal itself. Raises MissingLibrary without it, BenchNotReady when it fails."""
    if shutil.which(command[0]) is None:
        raise MissingLibrary(
            "avrdude is not installed", "avrdude, which writes to the board", "apt-get install avrdude"
        )
    code = subprocess.run(command).returncode
    if code:
        raise BenchNotReady(
            f"avrdude ended with code {code}; its lines above say why",
            "an image on the board",
            "check the port and the bootloader (--bootloader nano-old for older Nanos), close what else uses the port",
        )
