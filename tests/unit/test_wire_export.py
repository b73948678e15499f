"""What is generated from the table: fresh documentation, and C that compiles and makes the same bytes."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rig.acquire import wire
from rig.acquire.wire import TABLE, TEXT_BYTES, Field, Message, MessageType, Value
from rig.acquire.wire_export import (
    BEGIN,
    END,
    generate_messages_h,
    generate_protocol_table,
    generated,
    with_fresh_table,
)

PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"
C_FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=undefined,address"]


def test_the_page_is_fresh() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_fresh_table(page), "docs/protocol.md is stale: python -m rig.acquire.wire_export"


def test_a_stale_page_is_noticed() -> None:
    page = f"before\n{BEGIN}\n| 0x02 | `pong` |\n{END}\nafter\n"
    fresh = with_fresh_table(page)
    assert fresh != page
    assert fresh.startswith("before\n")
    assert fresh.endswith("\nafter\n")
    assert generate_protocol_table() in fresh


def test_a_page_without_markers_is_refused() -> None:
    with pytest.raises(ValueError, match="begin"):
        with_fresh_table("# The board's protocol\n")


def test_the_table_shows_every_message_field_and_code() -> None:
    table = generate_protocol_table()
    for row in TABLE:
        assert f"`{row.name}`" in table
        for f in row.fields:
            assert f"`{f.name}` {f.type}: {f.meaning}" in table
    for name, meaning in wire.ERRORS.values():
        assert f"`{name}` | {meaning}" in table


def _drawn(row: MessageType, rng: np.random.Generator) -> Message:
    def value(f: Field) -> Value:
        if f.type == "text":
            return "".join(chr(c) for c in rng.integers(33, 127, int(rng.integers(0, TEXT_BYTES + 1))))
        if f.type == "u32[]":
            return tuple(int(v) for v in rng.integers(0, 2**32, int(rng.integers(0, wire.MAX_SPACINGS_A_FRAME + 1))))
        return int.from_bytes(rng.bytes(int(f.type[1:]) // 8), "little")

    return Message(row, int(rng.integers(256)), tuple(value(f) for f in row.fields))


def _c_value(f: Field, value: Value) -> str:
    if isinstance(value, tuple):
        numbers = ", ".join(f"{number}ul" for number in value) or "0"
        return f".n_{f.name} = {len(value)}, .{f.name} = {{{numbers}}}"
    if isinstance(value, str):
        padded = value.ljust(TEXT_BYTES, "\0")
        return f".{f.name} = {{{', '.join(str(ord(c)) for c in padded)}}}"
    return f".{f.name} = {value}ull"


def _c_block(msg: Message, number: int) -> str:
    name = f"rig_{msg.name}"
    if not msg.type.fields:
        return f"    show(body, {name}_put(body, {msg.seq}));\n"
    fields = ", ".join(_c_value(f, v) for f, v in zip(msg.type.fields, msg.values, strict=True))
    return (
        f"    struct {name} m{number} = {{{fields}}}, back{number};\n"
        f"    n_bytes = {name}_put(body, {msg.seq}, &m{number});\n    show(body, n_bytes);\n"
        f"    if (!{name}_get(body, n_bytes, &back{number})) return 1;\n"
        f"    memset(body, 0x55, sizeof body);\n"
        f"    show(body, {name}_put(body, {msg.seq}, &back{number}));\n"
        f"    if ({name}_get(body, (uint8_t)(n_bytes - 1), &back{number})) return 2;\n"
    )


@pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")
def test_c_packs_and_unpacks_every_message_as_python_does(tmp_path: Path, rng: np.random.Generator) -> None:
    messages = [_drawn(row, rng) for row in TABLE for _ in range(4)]
    blocks = "".join(_c_block(msg, number) for number, msg in enumerate(messages))
    (tmp_path / "messages.h").write_text(generate_messages_h(), encoding="ascii")
    (tmp_path / "main.c").write_text(
        '#include <stdio.h>\n#include "messages.h"\n#include "messages.h"\n'
        "static void show(const uint8_t *body, uint8_t n)\n"
        '{\n    while (n--)\n        printf("%02x", *body++);\n    puts("");\n}\n'
        f"int main(void)\n{{\n    uint8_t body[RIG_MAX_BODY_BYTES], n_bytes;\n{blocks}    return 0;\n}}\n",
        encoding="ascii",
    )
    subprocess.run(["gcc", *C_FLAGS, "-o", "main", "main.c"], cwd=tmp_path, check=True)
    shown = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout.split()
    expected = [line for msg in messages for line in [wire.pack(msg).hex()] * (2 if msg.type.fields else 1)]
    assert shown == expected


def test_the_header_names_the_hash_that_the_host_compares() -> None:
    assert f"#define RIG_TABLE_HASH 0x{wire.table_hash():08X}ul" in generate_messages_h()


def test_no_generated_file_is_stale() -> None:
    for path, text in generated(Path(__file__).parents[2]).items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run python -m rig.acquire.wire_export"
