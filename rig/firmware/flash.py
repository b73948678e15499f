"""Puts an image onto a board, with avrdude."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from rig.errors import BenchNotReady, MissingLibrary, UsageError

PARTS = {"atmega328p": "m328p", "atmega32u4": "m32u4"}
"""avrdude's names."""

BOOTLOADERS = {
    "uno": ("atmega328p", "arduino", 115_200),
    "nano": ("atmega328p", "arduino", 115_200),
    "nano-old": ("atmega328p", "arduino", 57_600),
    "leonardo": ("atmega32u4", "avr109", 57_600),
}
"""Bootloaders by the board's name: the part, avrdude's name of what it speaks, its baud rate. Nanos sold before 2018,
and many clones, have the old one. Micro and Pro Micro have that of the Leonardo."""

NATIVE_USB = ("atmega32u4",)
"""Parts that are their own serial port: the bootloader appears at another one, when it is called."""

EXTENDED_FUSES = {"atmega328p": 0xFC, "atmega32u4": 0xC8}
"""Brown-out detection at 4.3 V. At 16 MHz the ATmega328P is specified from 3.8 V on and the ATmega32U4 from 4.5 V on;
boards are sold with 2.7 V and 2.6 V."""


def usual_bootloader(part: str) -> str:
    """The bootloader of most boards with a part."""
    return next(name for name, (its_part, _, _) in BOOTLOADERS.items() if its_part == part)


def check_bootloader(bootloader: str, part: str) -> None:
    """Raises UsageError for a bootloader that is not known, or that no board with this part has."""
    fitting = [name for name, (its_part, _, _) in BOOTLOADERS.items() if its_part == part]
    if bootloader not in fitting:
        raise UsageError(
            f"the bootloader {bootloader!r} for the part {part}",
            f"one of {', '.join(fitting)}",
            "name one, or another --board",
        )


def flash_command(image: Path, port: str, bootloader: str = "uno") -> list[str]:
    """avrdude's command for a board with a bootloader. Raises UsageError for a bootloader that is not known."""
    if bootloader not in BOOTLOADERS:
        raise UsageError(f"the bootloader {bootloader!r}", f"one of {', '.join(BOOTLOADERS)}", "name one of them")
    part, programmer, baud = BOOTLOADERS[bootloader]
    options = ["-c", programmer, "-P", port, "-b", str(baud), "-D"]
    return ["avrdude", "-p", PARTS[part], *options, "-U", f"flash:w:{image}:i"]


def programmer_command(image: Path, programmer: str, port: str | None = None, part: str = "atmega328p") -> list[str]:
    """avrdude's command for a programmer on the ISP pins, which can also set the brown-out level."""
    options = ["-c", programmer, *(["-P", port] if port else [])]
    fuse = f"efuse:w:0x{EXTENDED_FUSES[part]:02X}:m"
    return ["avrdude", "-p", PARTS[part], *options, "-U", fuse, "-U", f"flash:w:{image}:i"]


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
