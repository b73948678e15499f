"""The firmware's core on this machine, under the address and undefined-behaviour sanitizers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rig.acquire import wire
from rig.acquire.wire import FrameDecoder, Message, encode, message
from rig.domain.waveforms import STIMULI, board_samples

HERE = Path(__file__).parent
FIRMWARE = HERE.parents[1] / "firmware"
COMMANDS = [row for row in wire.TABLE if row.role == "command"]
LONGEST_S = 20.0  # for what takes half a second


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    program = tmp_path_factory.mktemp("native") / "native"
    options = ["-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{FIRMWARE}"]
    options += ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    files = [HERE / "native.c", *(FIRMWARE / name for name in ("core.c", "frame.c", "stimulus.c"))]
    subprocess.run([compiler, *options, "-o", program, *files], check=True)
    return program


def on_the_line(native: Path, data: bytes) -> tuple[list[Message], int]:
    """What the board sends in answer to bytes, and how many plans it started. Fails on anything a sanitizer finds."""
    done = subprocess.run([native, "line"], input=data, capture_output=True, timeout=LONGEST_S)
    assert done.returncode == 0, done.stderr.decode(errors="replace")[-2000:]
    sent = FrameDecoder().feed(done.stdout)
    assert all(isinstance(item, Message) for item in sent), sent
    return [item for item in sent if isinstance(item, Message)], int(done.stderr)


# --- the tones ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", STIMULI)
def test_c_makes_the_samples_that_the_host_expects(native: Path, kind: str) -> None:
    for steps in (1, 2, 63, 64, 127, 128, 181, 254, 255, 256):
        number = str(wire.KINDS.index(kind))
        done = subprocess.run([native, "tone", number, str(steps)], capture_output=True, timeout=LONGEST_S)
        assert done.returncode == 0, done.stderr.decode()
        ours = board_samples(kind, steps / 256)
        np.testing.assert_array_equal(np.frombuffer(done.stdout, np.int8), ours, err_msg=f"{kind} at {steps}/256")


# --- the line -----------------------------------------------------------------------------------------------------


def draw_command(rng: np.random.Generator, seq: int) -> bytes:
    """A sound command frame: half of them a step towards a plan that plays, half with fields near a limit."""
    if rng.random() < 0.5:
        name = str(rng.choice(["load", "arm", "arm", "fire", "fire", "fire_at", "recall"]))
        plausible: dict[str, dict[str, wire.Value]] = {
            "load": {"first_index": 0, "spacing_ticks": (int(rng.integers(14_000, 30_000)),) * 3},
            "arm": {"kind": 2, "amplitude_256ths": 128, "count": int(rng.integers(1, 4)), "pulse_us": 1000},
            "fire_at": {"first_tick": int(rng.integers(4_000_000))},  # some of them past, some to come
            "recall": {"index": int(rng.integers(3))},
        }
        return encode(message(name, seq & 0xFF, **plausible.get(name, {})))
    row = COMMANDS[rng.integers(len(COMMANDS))]
    widths = {"u8": 1, "u16": 2, "u32": 4}
    fields: dict[str, wire.Value] = {}
    for spec in row.fields:
        if spec.type == "u32[]":
            n = int(rng.integers(0, wire.MAX_SPACINGS_A_FRAME + 1))
            fields[spec.name] = tuple(int(v) for v in rng.choice([0, 1, 9000, 300_000, 2**31 - 1, 2**32 - 1], n))
        else:
            most = 2 ** (8 * widths[spec.type]) - 1
            small = int(rng.integers(0, 6))
            fields[spec.name] = min(most, int(rng.choice([small, small, 128, 256, 257, most])))
    return encode(message(row.name, seq & 0xFF, **fields))


def mutate(rng: np.random.Generator, data: bytes) -> bytes:
    """The bytes with something wrong: bits, bytes lost or doubled, a cut, noise."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(out))) if out else 0
        what = rng.integers(5)
        if what == 0 and out:
            out[at] ^= 1 << int(rng.integers(8))
        elif what == 1 and out:
            del out[at]
        elif what == 2:
            out[at:at] = rng.bytes(int(rng.integers(1, 90)))
        elif what == 3:
            del out[at:]
        else:
            out[at:at] = bytes([rng.choice([0, 0, 1, 255])])
    return bytes(out)


def spaced(frame: bytes) -> bytes:
    """A frame and then a pause, in empty frames, long enough for its answer: 3 ms."""
    return frame + bytes(150)


def test_each_sound_command_gets_exactly_one_reply(native: Path, rng: np.random.Generator) -> None:
    n = 600
    sent = b"".join(spaced(draw_command(rng, k)) for k in range(n))
    heard, n_plans = on_the_line(native, sent)
    replies = [m for m in heard if m.type.role == "reply"]
    assert [m.seq for m in replies] == [k & 0xFF for k in range(n)]
    assert {m.name for m in replies} == {row.reply for row in COMMANDS} | {"error"}
    assert n_plans > 3


def test_noise_fires_nothing_and_gets_no_answer(native: Path, rng: np.random.Generator) -> None:
    noise = b"".join(rng.bytes(int(rng.integers(1, 200))) + bytes(int(rng.integers(0, 3))) for _ in range(800))
    assert on_the_line(native, noise) == ([], 0)


def test_damaged_commands_do_no_harm(native: Path, rng: np.random.Generator) -> None:
    # After each damaged one a sound one: it is answered, so nothing has got stuck.
    data, n = bytearray(), 700
    for k in range(n):
        data += spaced(mutate(rng, draw_command(rng, 255))) + spaced(encode(message("status", k % 200)))
    replies, _ = on_the_line(native, bytes(data))
    assert [m.seq for m in replies if m.name == "state" and m.seq != 255] == [k % 200 for k in range(n)]


def test_a_flood_of_commands_is_answered_or_counted(native: Path) -> None:
    # No pause at all: what comes while two wait is dropped, and the board says how many.
    n = 300
    flood = b"".join(encode(message("ping", k & 0x7F)) for k in range(n))
    replies, _ = on_the_line(native, flood + bytes(400) + encode(message("status", 200)))
    pongs = [m for m in replies if m.name == "pong"]
    assert replies[-1].name == "state"
    assert len(pongs) + replies[-1]["bad_frames"] == n
    assert len(pongs) >= 2


def test_every_bit_error_of_a_command_is_caught(native: Path) -> None:
    frame = encode(message("arm", 7, kind=1, amplitude_256ths=128, count=1, pulse_us=1000))
    data = bytearray()
    for bit in range(8, 8 * (len(frame) - 1)):  # the delimiters may turn into anything: they are tested above
        broken = bytearray(frame)
        broken[bit // 8] ^= 1 << bit % 8
        data += spaced(bytes(broken))
    assert on_the_line(native, bytes(data)) == ([], 0)
