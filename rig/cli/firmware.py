"""`rig firmware`: build the board's program, put it onto a board, see which one there is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

firmware_app = typer.Typer(help="The board's firmware: build it, flash it, ask for it.", no_args_is_help=True)

Board = Annotated[
    str, typer.Option("--board", help="uno, nano, leonardo, micro, pro-micro; or the part: atmega328p, atmega32u4")
]


@firmware_app.command("build")
def build(
    board: Board = "uno",
    out: Annotated[Path | None, typer.Option("--out", help="where to write the image; firmware/build/PART.hex")] = None,
    sources: Annotated[Path | None, typer.Option("--sources", help="the folder firmware/ of a checkout")] = None,
) -> None:
    """Compile the firmware with avr-gcc and print what it takes."""
    from rig.firmware.build import MAX_FLASH_BYTES, MAX_RAM_BYTES, build_image, find_sources, part_of

    part = part_of(board)
    folder = sources or find_sources()
    image = build_image(folder, part)
    path = out or folder / "build" / f"{part}.hex"
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
    board: Board = "uno",
    image: Annotated[Path | None, typer.Option("--image", help="another image than the one that came with rig")] = None,
    bootloader: Annotated[
        str | None,
        typer.Option("--bootloader", help="uno, nano, nano-old or leonardo; by default the board's usual one"),
    ] = None,
    programmer: Annotated[
        str | None,
        typer.Option("--programmer", help="avrdude's name of an ISP programmer; sets brown-out to 4.3 V too"),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="print avrdude's command and do nothing")] = False,
) -> None:
    """Put the firmware onto a board, through its bootloader or an ISP programmer."""
    import shlex

    from rig.firmware import flash as flashing
    from rig.firmware.build import part_of
    from rig.firmware.images import prebuilt

    part = part_of(board)
    path = image or prebuilt(part).path
    if programmer:
        command = flashing.programmer_command(path, programmer, None if port == "auto" else port, part)
    else:
        name = bootloader or flashing.usual_bootloader(part)
        flashing.check_bootloader(name, part)
        at = _only_port(part in flashing.NATIVE_USB) if port == "auto" else port
        if part in flashing.NATIVE_USB:
            at = _call_bootloader(at, dry_run)
        command = flashing.flash_command(path, at, name)
    if dry_run:
        print(shlex.join(command))
        return
    flashing.flash(command)


@firmware_app.command("info")
def info(
    board: Board = "uno",
    port: Annotated[str | None, typer.Option("--port", help="ask the board at this port too, or auto")] = None,
) -> None:
    """Show the image that came with rig and, with --port, the firmware on a board."""
    from rig.acquire import wire
    from rig.firmware.build import part_of
    from rig.firmware.images import prebuilt

    image = prebuilt(part_of(board))
    print(f"image     {image.path}")
    print(f"sha256    {image.sha256}")
    print(f"build     {image.build}, {image.compiler}")
    print(f"protocol  level {image.protocol_level}, table {image.table_hash}")
    print(f"flash     {image.flash_bytes} bytes")
    print(f"RAM       {image.ram_bytes} bytes")
    if image.table_hash != f"{wire.table_hash():08x}":
        print(f"warning   rig speaks table {wire.table_hash():08x}: the image is older or newer than rig")
    if port is not None:
        _ask(port)


def _only_port(may_be_a_bootloader: bool) -> str:
    """The port to flash when there is only one: a board without the firmware cannot say which it is at."""
    from rig.acquire.link import list_ports
    from rig.acquire.ports import bootloaders, candidates
    from rig.errors import PortNotFound

    ports = list_ports()
    found = [*candidates(ports), *(bootloaders(ports) if may_be_a_bootloader else [])]
    if len(found) != 1:
        labels = ", ".join(port.label for port in found) or "none"
        raise PortNotFound(f"ports that may be a board's: {labels}", "exactly one, or its name", "give --port PATH")
    return found[0].path


def _ask(port: str) -> None:
    from rig.acquire.link import SystemTime, open_link
    from rig.firmware.build import BOARDS
    from rig.firmware.images import prebuilt

    link = open_link(port, SystemTime())
    try:
        board = link.identify()
        print()
        print(f"board     {board.board}, number {board.uid}")
        known = prebuilt(board.board).build if board.board in BOARDS else None
        print(f"build     {board.build}, {'that of the image' if board.build == known else 'another than the image'}")
        print(f"protocol  level {board.protocol}, table {board.table_hash}")
        wrong = link.self_test()
        print(f"self-test {'; '.join(wrong) if wrong else 'passed'}")
    finally:
        link.safe()
        link.close()


def _call_bootloader(port: str, dry_run: bool) -> str:
    """The port of the bootloader of the board at `port`. A dry run calls nothing and takes it to be the same."""
    from rig.acquire.bootloader import enter_bootloader
    from rig.acquire.link import SystemTime, list_ports, touch

    if dry_run:
        typer.echo(f"first {port} is opened at 1200 baud; its bootloader may appear at another port", err=True)
        return port
    return enter_bootloader(port, list_ports, touch, SystemTime())
