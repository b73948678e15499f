"""Builds the firmware with avr-gcc and the emulator with the system's C compiler.

The same sources and the same compiler give the same image, byte for byte: nothing of the time, the place or the machine
goes into it. The build's name is a hash of the sources.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.errors import BenchNotReady, MissingLibrary, UsageError

BOARDS = ("atmega328p", "atmega32u4")
"""The boards that there is a port for, as the board names itself: by its part."""

NAMES = {
    "uno": "atmega328p",
    "nano": "atmega328p",
    "leonardo": "atmega32u4",
    "micro": "atmega32u4",
    "pro-micro": "atmega32u4",
}
"""What is printed on boards, and the part on them."""

CPU_HZ = 16_000_000
MAX_FLASH_BYTES = 12 * 1024
MAX_RAM_BYTES = 1024
WARNINGS = ("-Wall", "-Wextra", "-Werror")
AVR_PACKAGES = "apt-get install gcc-avr avr-libc"
EMULATOR_PACKAGES = "apt-get install gcc libc6-dev libsimavr-dev libelf-dev"

_COMMON = ("core.c", "frame.c", "stimulus.c")
_AVR = ("avr_board.h", "avr_ticks.h", "avr_timer1.h")
_PORTS = {
    "atmega328p": ("main_atmega328p.c", *_AVR),
    "atmega32u4": (
        *("main_atmega32u4.c", "usb.c", "usb.h", "usb_answer.h", "usb_descriptors.h", "avr_touch.h"),
        *_AVR,
    ),
}
_EMULATORS = {
    "atmega328p": ("emu.c", "emu_paced.c", "emu.h", "emu_part.c", "emu_part.h"),
    "atmega32u4": ("emu_atmega32u4.c", "emu_host.c", "emu_usb.c", "emu_usb.h", "emu_part.c", "emu_part.h"),
}
_OPTIMISED = {
    "atmega328p": "-O2",  # an interrupt a byte leaves little time: samples are made faster than they are played
    "atmega32u4": "-Os",  # USB takes its bytes in packets, and its code takes the room
}
_HEADERS = ("core.h", "frame.h", "messages.h", "player.h", "port.h", "stimulus.h", "tone.h")


@dataclass(frozen=True, slots=True)
class Image:
    """A firmware image in Intel HEX. `flash_bytes` and `ram_bytes` are what it occupies before it runs."""

    board: str
    hex_text: str
    build: str
    compiler: str
    flash_bytes: int
    ram_bytes: int

    @property
    def sha256(self) -> str:
        """Hash of the file."""
        return hashlib.sha256(self.hex_text.encode("ascii")).hexdigest()


def part_of(board: str) -> str:
    """The part on a board, named by the part or by what is printed on it. Raises UsageError for another name."""
    part = NAMES.get(board, board)
    if part not in BOARDS:
        known = ", ".join((*NAMES, *BOARDS))
        raise UsageError(f"the board {board!r}", f"one of {known}", "name a board that there is a port for")
    return part


def find_sources() -> Path:
    """The folder firmware/ of the checkout that rig runs from. Raises BenchNotReady in an installed package."""
    folder = Path(__file__).parents[2] / "firmware"
    if not (folder / "core.c").is_file():
        raise BenchNotReady(
            "the firmware's sources are not here: rig is installed as a package",
            "a checkout of the project, which has the folder firmware/",
            "use the images that came with rig (rig firmware info, rig firmware flash), or build in a checkout",
        )
    return folder


def build_name(sources: Path, board: str) -> str:
    """The name of a build: 12 hexadecimal digits of a SHA-256 of all that it is made from."""
    digest = hashlib.sha256()
    for name in sorted((*_COMMON, *_HEADERS, *_PORTS[board])):
        text = (sources / name).read_bytes()
        digest.update(f"{name} {len(text)}\n".encode("ascii") + text)
    return digest.hexdigest()[:12]


def compiler_version(compiler: str = "avr-gcc") -> str | None:
    """The first line of what a compiler says about itself, or None where there is none."""
    if shutil.which(compiler) is None:
        return None
    return _run([compiler, "--version"]).splitlines()[0]


def build_image(sources: Path, board: str) -> Image:
    """Compiles the firmware of a board.

    Raises MissingLibrary without avr-gcc, and BenchNotReady when it does not compile or is too big for its limits.
    """
    compiler = compiler_version()
    if compiler is None:
        raise MissingLibrary("avr-gcc is not installed", "avr-gcc and avr-libc", AVR_PACKAGES)
    build = build_name(sources, board)
    with tempfile.TemporaryDirectory() as scratch:
        elf, hexfile = f"{scratch}/rig.elf", f"{scratch}/rig.hex"
        options = [f"-mmcu={board}", f"-DF_CPU={CPU_HZ}ul", f'-DRIG_BUILD="{build}"', "-std=gnu11", *WARNINGS]
        options += [_OPTIMISED[board]]
        options += ["-ffunction-sections", "-fdata-sections", "-fno-ident", "-mrelax", "-Wl,--gc-sections"]
        files = [name for name in (*_COMMON, *_PORTS[board]) if name.endswith(".c")]
        _run(["avr-gcc", *options, "-o", elf, *files], sources)
        _run(["avr-objcopy", "-O", "ihex", "-R", ".eeprom", elf, hexfile])
        sizes = {name: int(size) for name, size in re.findall(r"^\.(\w+)\s+(\d+)", _run(["avr-size", "-A", elf]), re.M)}
        text = Path(hexfile).read_text(encoding="ascii").replace("\r\n", "\n")
    flash, ram = sizes["text"] + sizes.get("data", 0), sizes.get("data", 0) + sizes.get("bss", 0)
    if flash > MAX_FLASH_BYTES or ram > MAX_RAM_BYTES:
        raise BenchNotReady(
            f"the firmware takes {flash} bytes of flash and {ram} of RAM",
            f"at most {MAX_FLASH_BYTES} and {MAX_RAM_BYTES}",
            "make it smaller",
        )
    return Image(board, text, build, compiler, flash, ram)


def build_emulator(sources: Path, folder: Path | None = None, board: str = BOARDS[0]) -> Path:
    """The emulator's program for a board, compiled unless that was done before; by default into firmware/build.

    Raises MissingLibrary without a C compiler or libsimavr.
    """
    digest = hashlib.sha256(b"".join((sources / name).read_bytes() for name in _EMULATORS[board]))
    folder = (folder or sources / "build").resolve()
    program = folder / f"emu-{board}-{digest.hexdigest()[:12]}"
    if program.is_file():
        return program
    compiler = os.environ.get("CC", "cc")
    if shutil.which(compiler) is None:
        raise MissingLibrary(f"there is no C compiler {compiler!r}", "a C compiler and libsimavr", EMULATOR_PACKAGES)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        made = Path(scratch) / "emu"
        files = [name for name in _EMULATORS[board] if name.endswith(".c")]
        try:
            _run([compiler, "-std=gnu11", "-O2", *WARNINGS, "-o", str(made), *files, "-lsimavr", "-lelf"], sources)
        except BenchNotReady as error:
            raise MissingLibrary(
                f"the emulator cannot be built: {error.what}", "libsimavr and its headers", EMULATOR_PACKAGES
            ) from error
        made.replace(program)  # at once: others may be building the same
    return program


def _run(command: Sequence[str], folder: Path | None = None) -> str:
    """Output of a command. Raises BenchNotReady with what it complained about."""
    done = subprocess.run(list(command), cwd=folder, capture_output=True, text=True)
    if done.returncode:
        complaint = (done.stderr or done.stdout).strip()
        raise BenchNotReady(f"{command[0]} failed: {complaint}", "a build without complaints", "mend what it names")
    return done.stdout
