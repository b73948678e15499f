"""The board on native USB as a host sees it: who it says it is, what it answers, and that no request upsets it."""

from __future__ import annotations

import struct

import numpy as np

from firmware.usb_board import MS, UID, UsbBoard
from rig.acquire import wire

DEVICE, CONFIGURATION, TEXT = 1, 2, 3


def request(kind: int, what: int, value: int = 0, index: int = 0, length: int = 0) -> bytes:
    """The eight bytes of a set-up packet: USB 2.0, table 9-2."""
    return struct.pack("<BBHHH", kind, what, value, index, length)


def describe(board: UsbBoard, kind: int, index: int = 0, length: int = 255) -> bytes:
    language = 0x0409 if kind == TEXT and index else 0
    how, answer = board.emulator.control(request(0x80, 6, kind << 8 | index, language, length))
    assert how == "ok"
    return answer


def text(board: UsbBoard, index: int) -> str:
    answer = describe(board, TEXT, index)
    assert answer[:2] == bytes([len(answer), TEXT])
    return answer[2:].decode("utf-16-le")


def test_it_is_a_serial_line_whose_number_is_that_of_the_board() -> None:
    with UsbBoard() as board:
        device = describe(board, DEVICE)
        assert len(device) == device[0] == 18
        vendor, product, release = struct.unpack_from("<HHH", device, 8)
        assert (vendor, product) == (0x2341, 0x8036)
        assert release >> 8 == wire.PROTOCOL_LEVEL
        assert text(board, device[14]) == "rig"
        assert text(board, device[15]) == "rig board"
        assert text(board, device[16]) == f"{UID:016x}"
        assert board.ask("identify")["uid"] == UID
        assert board.emulator.mistakes == []


def test_its_configuration_is_sound() -> None:
    with UsbBoard() as board:
        whole = describe(board, CONFIGURATION)
        assert len(whole) == struct.unpack_from("<H", whole, 2)[0]
        parts, at = [], 0
        while at < len(whole):
            parts.append(whole[at : at + whole[at]])
            at += whole[at]
        assert at == len(whole)
        interfaces = [part for part in parts if part[1] == 4]
        assert [part[2] for part in interfaces] == [0, 1]
        assert [tuple(part[5:8]) for part in interfaces] == [(2, 2, 0), (10, 0, 0)]
        endpoints = {part[2]: (part[3], struct.unpack_from("<H", part, 4)[0]) for part in parts if part[1] == 5}
        assert endpoints == {0x81: (3, 8), 0x02: (2, 64), 0x83: (2, 64)}
        assert sum(part[4] for part in interfaces) == len(endpoints)


def test_an_answer_is_as_long_as_was_asked_for_and_no_longer() -> None:
    with UsbBoard() as board:
        whole = describe(board, CONFIGURATION)
        for length in (1, 8, 9, 63, 64, 65, len(whole), 255):
            assert describe(board, CONFIGURATION, length=length) == whole[:length]
        assert board.emulator.control(request(0x80, 6, DEVICE << 8)) == ("ok", b"")


def test_a_line_coding_is_kept_and_told() -> None:
    with UsbBoard() as board:
        assert board.emulator.control(request(0xA1, 0x21, length=7)) == ("ok", struct.pack("<IBBB", 500_000, 0, 0, 8))
        coding = struct.pack("<IBBB", 57_600, 2, 1, 7)
        assert board.emulator.control(request(0x21, 0x20, length=7), coding)[0] == "ok"
        assert board.emulator.control(request(0xA1, 0x21, length=7)) == ("ok", coding)
        assert board.ask("ping").name == "pong"


def test_standard_requests_are_answered() -> None:
    with UsbBoard() as board:
        control = board.emulator.control
        assert control(request(0x80, 0, length=2)) == ("ok", b"\0\0")
        assert control(request(0x80, 8, length=1)) == ("ok", b"\1")
        assert control(request(0x81, 10, length=1)) == ("ok", b"\0")
        assert control(request(0x01, 11)) == ("ok", b"")


def test_a_halted_endpoint_goes_on_where_it_is_told_to() -> None:
    with UsbBoard() as board:
        control = board.emulator.control
        for endpoint in (0x02, 0x83):
            board.ask("ping")  # so that the toggles of the two ends are not 0 by chance
            assert control(request(0x02, 3, index=endpoint))[0] == "ok"
            assert control(request(0x82, 0, index=endpoint, length=2)) == ("ok", b"\1\0")
            assert control(request(0x02, 1, index=endpoint))[0] == "ok"
            assert control(request(0x82, 0, index=endpoint, length=2)) == ("ok", b"\0\0")
            assert board.ask("ping").name == "pong"
        assert board.emulator.mistakes == []


def test_what_it_does_not_know_is_refused_and_changes_nothing() -> None:
    strange = [
        request(0x80, 6, 0x0600, length=10),  # a device qualifier: it knows full speed alone
        request(0x80, 6, 0x0304, 0x0409, 255),  # a text that is not there
        request(0x00, 9, 2),  # a configuration that is not there
        request(0x01, 11, 1),  # an alternative that is not there
        request(0x02, 3, index=0x87),  # an endpoint that is not there
        request(0x82, 0, index=0x85, length=2),
        request(0x00, 3, 1),  # remote wake-up
        request(0x21, 0x20, length=6),  # a line coding of another length
        request(0x21, 0x7F),
        request(0xC0, 0x01, length=8),  # a vendor's
    ]
    with UsbBoard() as board:
        for setup in strange:
            assert board.emulator.control(setup) == ("stall", b""), setup.hex()
            assert board.ask("ping").name == "pong"
        assert board.emulator.mistakes == []


def test_no_request_hangs_it_or_fires_anything(rng: np.random.Generator) -> None:
    with UsbBoard() as board:
        for _ in range(300):
            kind = int(rng.choice([0x00, 0x01, 0x02, 0x80, 0x81, 0x82, 0x21, 0xA1, 0x40, 0xC0, int(rng.integers(256))]))
            what = int(rng.choice([*range(13), 0x20, 0x21, 0x22, 0x23, int(rng.integers(256))]))
            if (kind & 0x60, what) in ((0x00, 5), (0x00, 9), (0x20, 0x22)):
                continue  # the host has done with address and configuration, and holds the port
            data = rng.bytes(int(rng.integers(1, 65))) if not kind & 0x80 and rng.random() < 0.5 else b""
            length = len(data) if not kind & 0x80 else int(rng.integers(256))
            setup = request(kind, what, int(rng.integers(0x400)), int(rng.integers(4)), length)
            board.emulator.control(setup, data)
        for endpoint in (0x02, 0x83):  # one of them may have been halted
            assert board.emulator.control(request(0x02, 1, index=endpoint))[0] == "ok"
        assert board.ask("identify")["uid"] == UID
        state = board.ask("status")
        assert (wire.STATES[state["state"]], state["n_fired"]) == ("idle", 0)
        assert board.edges(1) == []


# --- the port ------------------------------------------------------------------------------------------------------


def boot_keys(board: UsbBoard) -> list[int]:
    return [event.cycle for event in board.events if event.kind == "bootkey"]


def test_opened_and_closed_at_1200_baud_it_goes_to_its_bootloader() -> None:
    with UsbBoard(open=False) as board:
        for baud, n_keys in ((9600, 0), (1201, 0), (1200, 1)):
            board.emulator.open(baud)
            board.run(30)
            assert len(boot_keys(board)) == 0
            board.emulator.close_port()
            board.run(200)
            assert len(boot_keys(board)) == n_keys
        assert [event.kind for event in board.events if event.kind in ("bootkey", "reset")] == ["bootkey", "reset"]


def test_a_watchdog_reset_by_itself_does_not_ask_for_the_bootloader() -> None:
    with UsbBoard() as board:
        board.emulator.hang()
        board.run(1000)
        assert len([event for event in board.events if event.kind == "reset"]) == 1
        assert boot_keys(board) == []
        assert board.ask("identify")["uid"] == UID  # the host has found it again


def test_closing_the_port_stops_what_plays_and_forgets_the_plan() -> None:
    with UsbBoard() as board:
        first, second = board.fire("chirp", 400_000)
        board.run((first - board.cycle) / MS + 20)
        board.emulator.close_port()
        board.run(600)
        assert len(board.edges(1)) == 1
        played = [event for event in board.events if event.kind == "pwm" and first <= event.cycle]
        assert played[-1].value == 128
        assert played[-1].cycle < first + 40 * MS
        assert second < board.cycle
        n_heard = len(board.heard)
        board.emulator.open(500_000)
        board.run(50)
        assert len(board.heard) == n_heard  # nothing of the time before
        assert wire.STATES[board.ask("status")["state"]] == "idle"
        assert board.emulator.mistakes == []


def test_pulling_the_plug_stops_what_plays() -> None:
    with UsbBoard() as board:
        first, second = board.fire("chirp", 400_000)
        board.run((first - board.cycle) / MS + 20)
        board.emulator.plug(False)
        board.run((second - board.cycle) / MS + 100)
        played = [event for event in board.events if event.kind == "pwm" and first <= event.cycle]
        assert played[-1].value == 128
        assert played[-1].cycle < first + 30 * MS
        assert len(board.edges(1)) == 1
        board.emulator.plug(True)
        board.run(400)
        assert wire.STATES[board.ask("status")["state"]] == "idle"


def test_nothing_is_lost_when_the_host_writes_more_than_it_can_take() -> None:
    # The bus holds back what the board has no room for: no command is dropped, none is counted as damaged.
    with UsbBoard() as board:
        n = 200
        board.write(b"".join(board.command("status") for _ in range(n)))
        board.run(400)
        states = [message for message in board.heard if message.name == "state"]
        assert [message.seq for message in states] == [(k + 1) % 256 for k in range(n)]
        assert states[-1]["bad_frames"] == 0
        assert board.emulator.mistakes == []
