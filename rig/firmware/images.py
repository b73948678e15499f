"""The images that come with rig, and what is known of them: `images/images.json` beside the files."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

from rig.errors import BenchNotReady
from rig.firmware.build import BOARDS, Image, build_emulator, build_image, find_sources

FOLDER = Path(__file__).parent / "images"
INDEX = "images.json"


@dataclass(frozen=True, slots=True)
class Prebuilt:
    """An image in the package. `table_hash` is that of the message table it was built with."""

    board: str
    path: Path
    sha256: str
    build: str
    compiler: str
    protocol_level: int
    table_hash: str
    flash_bytes: int
    ram_bytes: int


def prebuilt(board: str, folder: Path = FOLDER) -> Prebuilt:
    """The image for a board. Raises BenchNotReady when there is none, or its file is not what was built."""
    index = json.loads((folder / INDEX).read_text(encoding="utf-8"))
    if board not in index:
        raise BenchNotReady(f"there is no firmware for {board!r}", f"one of {', '.join(index)}", "name another board")
    facts = index[board]
    image = Prebuilt(board=board, path=folder / f"{board}.hex", **facts)
    actual = hashlib.sha256(image.path.read_bytes()).hexdigest()
    if actual != image.sha256:
        raise BenchNotReady(
            f"{image.path.name} has the hash {actual}", f"{image.sha256}, as it was built", "install rig anew"
        )
    return image


def emulator_command(board: str = BOARDS[0]) -> list[str]:
    """What starts the emulator with the image that comes with rig; the emulator is compiled when it is not there yet.

    Raises MissingLibrary where it cannot be compiled, BenchNotReady where its source is not at hand.
    """
    return [str(build_emulator(find_sources(), board=board)), str(prebuilt(board).path)]


def facts_of(image: Image, sources: Path) -> dict[str, str | int]:
    """What the index says of an image. The protocol is read from the header that it was built with."""
    header = (sources / "messages.h").read_text(encoding="ascii")
    level = re.search(r"#define RIG_PROTOCOL_LEVEL (\d+)u", header)
    table = re.search(r"#define RIG_TABLE_HASH 0x([0-9A-F]{8})ul", header)
    assert level is not None
    assert table is not None
    return {
        "sha256": image.sha256,
        "build": image.build,
        "compiler": image.compiler,
        "protocol_level": int(level[1]),
        "table_hash": table[1].lower(),
        "flash_bytes": image.flash_bytes,
        "ram_bytes": image.ram_bytes,
    }


def write_images(sources: Path, folder: Path = FOLDER) -> list[Image]:
    """Builds the image of every board into the folder, with the index."""
    images = [build_image(sources, board) for board in BOARDS]
    for image in images:
        (folder / f"{image.board}.hex").write_text(image.hex_text, encoding="ascii", newline="\n")
    index = {image.board: facts_of(image, sources) for image in images}
    (folder / INDEX).write_text(json.dumps(index, indent=2) + "\n", encoding="utf-8", newline="\n")
    return images


if __name__ == "__main__":
    write_images(find_sources())
