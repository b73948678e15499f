"""What is made from the message table: the tables in docs/protocol.md, and the C headers of the firmware.

`python -m rig.acquire.wire_export` rewrites docs/protocol.md; a test fails when it is stale.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rig.acquire import wire
from rig.acquire.framing import MAX_BODY_BYTES, MAX_FRAME_BYTES
from rig.acquire.wire import ERRORS, KINDS, STATES, TABLE, Field, MessageType
from rig.domain import waveforms

BEGIN = "<!-- generated from rig/acquire/wire.py: begin -->"
END = "<!-- generated from rig/acquire/wire.py: end -->"

_C_TYPES = {"u8": "uint8_t", "u16": "uint16_t", "u32": "uint32_t", "u64": "uint64_t"}
_BYTES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8, "text": wire.TEXT_BYTES}


def generate_protocol_table() -> str:
    """The generated part of docs/protocol.md, in Markdown, without the markers around it."""
    parts = [
        f"Protocol level {wire.PROTOCOL_LEVEL}, table hash `0x{wire.table_hash():08X}`, {wire.BAUD_RATE} baud 8N1,"
        f" frames of up to {MAX_FRAME_BYTES} bytes.\n"
    ]
    for role, title in (("command", "Commands"), ("reply", "Replies"), ("event", "Events")):
        rows = []
        for row in (r for r in TABLE if r.role == role):
            named = f"`{row.name}`" + (f" → `{row.reply}`" if row.reply else "")
            fields = [f"`{f.name}` {f.type}: {f.meaning}" for f in row.fields]
            rows.append((f"0x{row.id:02X}", named, row.meaning, "<br>".join(fields) or "none"))
        parts += [f"### {title}\n", _markdown(("id", "message", "meaning", "fields"), rows)]
    parts += [
        "### Error codes\n",
        _markdown(("code", "name", "meaning"), [(c, f"`{n}`", m) for c, (n, m) in _errors()]),
    ]
    parts += ["### Stimulus kinds\n", _markdown(("number", "kind"), [(i, f"`{kind}`") for i, kind in enumerate(KINDS)])]
    parts += ["### States\n", _markdown(("number", "state"), [(i, f"`{state}`") for i, state in enumerate(STATES)])]
    return "\n".join(parts)


def _errors() -> Iterable[tuple[int, tuple[str, str]]]:
    return ERRORS.items()


def _markdown(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def with_fresh_table(page: str) -> str:
    """A page with everything between the markers generated anew. Raises ValueError where the markers are missing."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"the page has no {BEGIN} ... {END}")
    return f"{before}{BEGIN}\n\n{generate_protocol_table()}\n{END}{after}"


def generate_messages_h() -> str:
    """The C header of the protocol: ids, codes, and a struct, reader and writer per message. C99, no allocation."""
    out = [
        "/* Generated from rig/acquire/wire.py. Do not edit. */",
        "#ifndef RIG_MESSAGES_H\n#define RIG_MESSAGES_H\n",
        "#include <stdint.h>\n#include <string.h>\n",
        f"#define RIG_PROTOCOL_LEVEL {wire.PROTOCOL_LEVEL}u",
        f"#define RIG_TABLE_HASH 0x{wire.table_hash():08X}ul",
        f"#define RIG_BAUD_RATE {wire.BAUD_RATE}ul",
        f"#define RIG_MAX_FRAME_BYTES {MAX_FRAME_BYTES}u",
        f"#define RIG_MAX_BODY_BYTES {MAX_BODY_BYTES}u",
        f"#define RIG_MAX_SPACINGS {wire.MAX_SPACINGS_A_FRAME}u",
        f"#define RIG_TEXT_BYTES {wire.TEXT_BYTES}u",
        "",
        _c_enum("rig_message_id", ((f"RIG_ID_{row.name.upper()}", row.id) for row in TABLE)),
        _c_enum("rig_error_code", ((f"RIG_ERROR_{name.upper()}", code) for code, (name, _) in _errors())),
        _c_enum("rig_kind_number", ((f"RIG_KIND_{kind.upper().replace('-', '_')}", i) for i, kind in enumerate(KINDS))),
        _c_enum("rig_state_number", ((f"RIG_STATE_{state.upper()}", i) for i, state in enumerate(STATES))),
        _C_BYTES,
    ]
    out += [_c_message(row) for row in TABLE]
    out.append("#endif")
    return "\n".join(out) + "\n"


def _c_enum(name: str, members: Iterable[tuple[str, int]]) -> str:
    inside = "\n".join(f"    {member} = {value}," for member, value in members)
    return f"enum {name} {{\n{inside}\n}};\n"


_C_BYTES = """\
/* Little-endian, byte by byte: no alignment and no byte order of the machine comes into it. */
static inline uint64_t rig_get(const uint8_t *from, uint8_t n_bytes)
{
    uint64_t value = 0;
    while (n_bytes--)
        value = (value << 8) | from[n_bytes];
    return value;
}

static inline void rig_put(uint8_t *to, uint8_t n_bytes, uint64_t value)
{
    for (; n_bytes--; value >>= 8)
        *to++ = (uint8_t)value;
}
"""


def _c_message(row: MessageType) -> str:
    fixed = sum(_BYTES.get(f.type, 0) for f in row.fields)
    struct = "".join(f"    {_c_member(f)}\n" for f in row.fields)
    has_list = any(f.type == "u32[]" for f in row.fields)
    name = f"rig_{row.name}"
    head = f"/* {row.role} {row.name}: {row.meaning} */\n"
    if not row.fields:
        return head + (
            f"static inline uint8_t {name}_put(uint8_t *body, uint8_t seq)\n{{\n"
            f"    body[0] = RIG_ID_{row.name.upper()};\n    body[1] = seq;\n    return 2;\n}}\n"
        )
    put, get, at = [], [], 2
    for f in row.fields:
        put.append(_c_put(f, at))
        get.append(_c_get(f, at))
        at += _BYTES.get(f.type, 0)
    length = f"{at} + 4 * m->n_{row.fields[-1].name}" if has_list else str(at)
    wrong = (
        f"n_bytes < {at} || (n_bytes - {at}) % 4 != 0 || (n_bytes - {at}) / 4 > (int)RIG_MAX_SPACINGS"
        if has_list
        else f"n_bytes != {at}"
    )
    return (
        f"{head}struct {name} {{\n{struct}}};\n#define RIG_{row.name.upper()}_FIXED_BYTES {2 + fixed}u\n"
        f"static inline uint8_t {name}_put(uint8_t *body, uint8_t seq, const struct {name} *m)\n{{\n"
        f"    body[0] = RIG_ID_{row.name.upper()};\n    body[1] = seq;\n{''.join(put)}"
        f"    return (uint8_t)({length});\n}}\n"
        f"/* 1, or 0 when the body has another length; n_bytes counts id and sequence too. */\n"
        f"static inline uint8_t {name}_get(const uint8_t *body, uint8_t n_bytes, struct {name} *m)\n{{\n"
        f"    if ({wrong})\n        return 0;\n{''.join(get)}    return 1;\n}}\n"
    )


def _c_member(f: Field) -> str:
    if f.type == "text":
        return f"char {f.name}[RIG_TEXT_BYTES]; /* {f.meaning}; padded with 0 */"
    if f.type == "u32[]":
        return f"uint8_t n_{f.name};\n    uint32_t {f.name}[RIG_MAX_SPACINGS]; /* {f.meaning} */"
    return f"{_C_TYPES[f.type]} {f.name}; /* {f.meaning} */"


def _c_put(f: Field, at: int) -> str:
    if f.type == "text":
        return f"    memcpy(body + {at}, m->{f.name}, RIG_TEXT_BYTES);\n"
    if f.type == "u32[]":
        return (
            f"    for (uint8_t i = 0; i < m->n_{f.name}; i++)\n"
            f"        rig_put(body + {at} + 4 * i, 4, m->{f.name}[i]);\n"
        )
    return f"    rig_put(body + {at}, {_BYTES[f.type]}, m->{f.name});\n"


def _c_get(f: Field, at: int) -> str:
    if f.type == "text":
        return f"    memcpy(m->{f.name}, body + {at}, RIG_TEXT_BYTES);\n"
    if f.type == "u32[]":
        return (
            f"    m->n_{f.name} = (uint8_t)((n_bytes - {at}) / 4);\n"
            f"    for (uint8_t i = 0; i < m->n_{f.name}; i++)\n"
            f"        m->{f.name}[i] = (uint32_t)rig_get(body + {at} + 4 * i, 4);\n"
        )
    return f"    m->{f.name} = ({_C_TYPES[f.type]})rig_get(body + {at}, {_BYTES[f.type]});\n"


def generate_stimulus_h() -> str:
    """The C header of the tones: the sine and edge tables and the integers of each sweep that `board_samples` uses."""
    sweeps = []
    for kind in KINDS:
        if waveforms.STIMULI[kind].first_hz is None:
            continue
        w = waveforms.sweep_words(kind)
        sweeps.append(
            f"    {{{KINDS.index(kind)}, {w.n_samples}, {w.edge_samples}, {w.edge_step}ul,"
            f" {w.first_increment}ul, {w.increment_step}ul}}, /* {kind} */"
        )
    return "\n".join(
        [
            "/* Generated from rig/domain/waveforms.py. Do not edit. */",
            "#ifndef RIG_STIMULUS_H\n#define RIG_STIMULUS_H\n\n#include <stdint.h>\n",
            "#ifndef RIG_TABLE_MEMORY\n#define RIG_TABLE_MEMORY /* PROGMEM on an AVR */\n#endif\n",
            f"#define RIG_TONE_RATE_HZ {waveforms.BOARD_TONE_RATE_HZ}u",
            f"#define RIG_MLS_SEED {waveforms.MLS_SEED}u",
            f"#define RIG_MLS_TAPS 0x{waveforms.MLS_TAPS:03X}u",
            f"#define RIG_MLS_CHIPS {waveforms.MLS_CHIPS}u",
            f"#define RIG_MLS_CHIP_SAMPLES {waveforms.MLS_CHIP_SAMPLES}u",
            f"#define RIG_FULL_SCALE {waveforms.BOARD_FULL_SCALE}",
            f"#define RIG_N_SWEEPS {len(sweeps)}u\n",
            "struct rig_sweep {\n    uint8_t kind;\n    uint16_t n_samples;\n"
            "    uint16_t edge_samples;\n    uint32_t edge_step; /* 16.16 */\n"
            "    uint32_t first_increment; /* of the 32-bit phase */\n    uint32_t increment_step;\n};\n",
            "static const struct rig_sweep rig_sweeps[] RIG_TABLE_MEMORY = {\n" + "\n".join(sweeps) + "\n};\n",
            "static const int8_t rig_sine[256] RIG_TABLE_MEMORY = {\n" + _c_numbers(waveforms.SINE_TABLE) + "\n};\n",
            "static const uint8_t rig_edge[256] RIG_TABLE_MEMORY = {\n" + _c_numbers(waveforms.EDGE_TABLE) + "\n};\n",
            "#endif\n",
        ]
    )


def _c_numbers(numbers: Sequence[int]) -> str:
    rows = (numbers[i : i + 16] for i in range(0, len(numbers), 16))
    return ",\n".join("    " + ", ".join(str(n) for n in row) for row in rows)


def generated(root: Path) -> dict[Path, str]:
    """Every file of a checkout that is made from the table or the waveforms, as it should be."""
    page = root / "docs" / "protocol.md"
    return {
        page: with_fresh_table(page.read_text(encoding="utf-8")),
        root / "firmware" / "messages.h": generate_messages_h(),
        root / "firmware" / "stimulus.h": generate_stimulus_h(),
    }


if __name__ == "__main__":
    for path, text in generated(Path(__file__).parents[2]).items():
        path.write_text(text, encoding="utf-8")
