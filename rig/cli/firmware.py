"""`rig firmware`: build the board's program, put it onto a board, see which one there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

firmware_app = typer.Typer(help="The board's firmware: build it, flash it, ask for it.", no_args_is_help=True)

Board = Annotated[str, typer.Option("--board", help="which part: atmega328p (Uno, Nano)")]


@firmware_app.command("build")
def build(
    board: Board = "atmega328p",
    out: Annotated[
        Path | None, typer.Option("--out", help="where to write the image; firmware/build/BOARD.hex")
    ] = None,
    sources: Annotated[Path | None, typer.Option("--sources", help="the folder firmware/ of a checkout")] = None,
) -> None:
    """Compile the firmware with avr-gcc and print what it takes."""
    from rig.firmware.build import BOARDS, MAX_FLASH_BYTES, MAX_RAM_BYTES, build_image, find_sources

    _check_board(board, BOARDS)
    folder = sources or find_sources()
    image = build_image(folder, board)
    path = out or folder / "build" / f"{board}.hex"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(image.hex_text, encoding="ascii", newline="\n")
    print(f"image     {path}")
    print(f"sha256    {image.sha256}")
    print(f"build     {image.build}, {image.compiler}")
    print(f"flash     {image.flash_bytes} of {MAX_FLASH_BYTES} bytes")
    print(f"RAM       {image.ram_bytes} of {MAX_RAM_BYTES} bytes")


@firmware_app.command("flash")
def flash(
    port: Annotated[str, typer.Option("--port", help="the board's serial port; auto: the only one there is")] = "auto",
    board: Board = "atmega328p",
    image: Annotated[Path | None, typer.Option("--image", help="another image than the one that came with rig")] = None,
    bootloader: Annotated[str, typer.Option("--bootloader", help="uno, nano or nano-old")] = "uno",
    programmer: Annotated[
        str | None,
        typer.Option("--programmer", help="avrdude's name of an ISP programmer; sets brown-out to 4.3 V too"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print avrdude's command and do nothing")] = False,
) -> None:
    """Put the firmware onto a board, through its bootloader or an ISP programmer."""
    import shlex

    from rig.firmware import flash as flashing
    from rig.firmware.images import prebuilt

    path = image or prebuilt(board).path
    command = (
        flashing.programmer_command(path, programmer, None if port == "auto" else port)
        if programmer
        else flashing.flash_command(path, _only_port() if port == "auto" else port, bootloader)
    )
    if dry_run:
        print(shlex.join(command))
        return
    flashing.flash(command)


@firmware_app.command("info")
def info(
    board: Board = "atmega328p",
    port: Annotated[str | None, typer.Option("--port", help="ask the board at this port too, or auto")] = None,
) -> None:
    """Show the image that came with rig and, with --port, the firmware on a board."""
    from rig.acquire import wire
    from rig.firmware.images import prebuilt

    image = prebuilt(board)
    print(f"image     {image.path}")
    print(f"sha256    {image.sha256}")
    print(f"build     {image.build}, {image.compiler}")
    print(f"protocol  level {image.protocol_level}, table {image.table_hash}")
    print(f"flash     {image.flash_bytes} bytes")
    print(f"RAM       {image.ram_bytes} bytes")
    if image.table_hash != f"{wire.table_hash():08x}":
        print(f"warning   rig speaks table {wire.table_hash():08x}: the image is older or newer than rig")
    if port is not None:
        _ask(port, image.build)


def _only_port() -> str:
    """The port to flash when there is only one: a board without the firmware cannot say which it is at."""
    from rig.acquire.link import list_ports
    from rig.acquire.ports import candidates
    from rig.errors import PortNotFound

    found = candidates(list_ports())
    if len(found) != 1:
        ports = ", ".join(port.label for port in found) or "none"
        raise PortNotFound(f"ports that may be a board's: {ports}", "exactly one, or its name", "give --port PATH")
    return found[0].path


def _ask(port: str, build: str) -> None:
    from rig.acquire.link import SystemTime, open_link

    link = open_link(port, SystemTime())
    try:
        board = link.identify()
        print()
        print(f"board     {board.board}, number {board.uid}")
        print(f"build     {board.build}, {'the same' if board.build == build else 'another than the image'}")
        print(f"protocol  level {board.protocol}, table {board.table_hash}")
        wrong = link.self_test()
        print(f"self-test {'; '.join(wrong) if wrong else 'passed'}")
    finally:
        link.safe()
        link.close()


def _check_board(board: str, known: tuple[str, ...]) -> None:
    from rig.errors import UsageError

    if board not in known:
        raise UsageError(f"the board {board!r}", f"one of {', '.join(known)}", "name a board that there is a port for")
