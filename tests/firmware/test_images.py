"""The images that come with rig are what the sources give, byte for byte, and keep to their limits."""

from __future__ import annotations

import json

import pytest

from rig.acquire import wire
from rig.errors import UsageError
from rig.firmware.build import (
    BOARDS,
    MAX_FLASH_BYTES,
    MAX_RAM_BYTES,
    NAMES,
    build_image,
    compiler_version,
    find_sources,
    part_of,
)
from rig.firmware.images import FOLDER, INDEX, facts_of, prebuilt


@pytest.mark.parametrize("board", BOARDS)
def test_an_image_is_what_the_sources_give(board: str) -> None:
    kept = prebuilt(board)
    version = compiler_version()
    if version is None:
        pytest.skip("avr-gcc is not installed")
    if version != kept.compiler:
        pytest.skip(f"built with {kept.compiler}, here is {version}")
    image = build_image(find_sources(), board)
    assert image.hex_text == kept.path.read_text(encoding="ascii"), "stale: python -m rig.firmware.images"
    assert json.loads((FOLDER / INDEX).read_text(encoding="utf-8"))[board] == facts_of(image, find_sources())


@pytest.mark.parametrize("board", BOARDS)
def test_an_image_speaks_the_protocol_of_this_rig_and_keeps_to_its_limits(board: str) -> None:
    image = prebuilt(board)
    assert image.table_hash == f"{wire.table_hash():08x}"
    assert image.protocol_level == wire.PROTOCOL_LEVEL
    assert 0 < image.flash_bytes <= MAX_FLASH_BYTES
    assert 0 < image.ram_bytes <= MAX_RAM_BYTES


def test_boards_go_by_their_part_or_by_what_is_printed_on_them() -> None:
    assert {part_of(name) for name in NAMES} == set(BOARDS) == {part_of(part) for part in BOARDS}
    with pytest.raises(UsageError, match="'bluepill'"):
        part_of("bluepill")
