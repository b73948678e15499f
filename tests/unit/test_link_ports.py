"""Which port is the board's, and what is said when one cannot be opened."""

from __future__ import annotations

import errno
import os
import sys

import pytest

from rig.acquire.ports import PortInfo, choose_port, open_error
from rig.domain.records import BoardIdentity
from rig.errors import DeviceAmbiguous, FirmwareMismatch, LinkTimeout, PortDenied, PortNotFound, UsageError

UNO = (0x2341, 0x0043)
FIRST = PortInfo("/dev/ttyACM0", *UNO, serial_number="7573", location="1-2")
SECOND = PortInfo("/dev/ttyACM1", *UNO, serial_number="8a01", location="1-3")
STRANGER = PortInfo("/dev/ttyUSB9", 0x1234, 0x5678, serial_number="X")
BUILT_IN = PortInfo("/dev/ttyS0")


class Desk:
    """Ports, of which some have a board that answers; remembers which were written to."""

    def __init__(self, answers: dict[str, BoardIdentity | Exception]) -> None:
        self.answers = answers
        self.asked: list[str] = []

    def identify(self, port: PortInfo) -> BoardIdentity:
        self.asked.append(port.path)
        answer = self.answers.get(port.path, LinkTimeout("no answer to identify within 6.0 s", "an answer", "wait"))
        if isinstance(answer, Exception):
            raise answer
        return answer


def board(uid: str) -> BoardIdentity:
    return BoardIdentity(1, "a6d92c03", 2e6, "uno", "1", uid)


def test_of_two_ports_alike_the_one_that_answers_is_chosen() -> None:
    desk = Desk({SECOND.path: board("b")})
    assert choose_port([FIRST, SECOND], desk.identify) == SECOND
    assert desk.asked == [FIRST.path, SECOND.path]


def test_ports_of_other_devices_are_never_written_to() -> None:
    desk = Desk({FIRST.path: board("a"), STRANGER.path: board("s"), BUILT_IN.path: board("t")})
    assert choose_port([STRANGER, BUILT_IN, FIRST], desk.identify) == FIRST
    assert desk.asked == [FIRST.path]


def test_two_that_answer_are_refused_with_an_argument_for_each() -> None:
    desk = Desk({FIRST.path: board("a"), SECOND.path: board("b")})
    with pytest.raises(DeviceAmbiguous) as raised:
        choose_port([FIRST, SECOND], desk.identify)
    for fact in ("--port /dev/ttyACM0", "--port /dev/ttyACM1", "serial 7573", "serial 8a01", "at 1-2", "at 1-3"):
        assert fact in raised.value.what


def test_when_none_answers_those_that_were_tried_are_named_with_their_reasons() -> None:
    desk = Desk({SECOND.path: PortDenied("/dev/ttyACM1 is open in another program", "a free port", "close it")})
    with pytest.raises(PortNotFound) as raised:
        choose_port([FIRST, SECOND, STRANGER], desk.identify)
    assert "/dev/ttyACM0 (Arduino Uno R3, serial 7573, at 1-2): no answer" in raised.value.what
    assert "/dev/ttyACM1 is open in another program" in raised.value.what
    assert STRANGER.path not in raised.value.what


def test_a_board_with_other_firmware_is_named_when_it_is_the_only_one() -> None:
    other = FirmwareMismatch("the board speaks level 2", "level 1", "flash it")
    with pytest.raises(FirmwareMismatch, match="level 2"):
        choose_port([FIRST, SECOND], Desk({FIRST.path: other}).identify)
    assert choose_port([FIRST, SECOND], Desk({FIRST.path: other, SECOND.path: board("b")}).identify) == SECOND


def test_without_a_port_that_looks_like_a_board_those_that_exist_are_listed() -> None:
    with pytest.raises(PortNotFound, match=r"no port looks like a board; there are /dev/ttyUSB9 \(serial X\)"):
        choose_port([STRANGER], Desk({}).identify)
    with pytest.raises(PortNotFound, match="no serial ports at all"):
        choose_port([], Desk({}).identify)


def test_a_mistake_of_ours_is_not_taken_for_a_missing_board() -> None:
    with pytest.raises(UsageError):
        choose_port([FIRST], Desk({FIRST.path: UsageError("a", "b", "c")}).identify)


def test_no_permission_and_no_port_are_two_messages() -> None:
    denied = open_error("/dev/ttyACM0", errno.EACCES, "Permission denied", [FIRST])
    absent = open_error("/dev/ttyACM7", errno.ENOENT, "No such file or directory", [FIRST, SECOND])
    assert isinstance(denied, PortDenied)
    assert "no permission" in denied.what
    assert isinstance(absent, PortNotFound)
    assert "there are /dev/ttyACM0" in absent.what
    assert "/dev/ttyACM1" in absent.what


@pytest.mark.skipif(sys.platform != "linux", reason="groups of serial ports are a matter of Linux")
def test_the_remedy_for_missing_rights_names_the_group_that_owns_the_port(tmp_path: object) -> None:
    import grp
    import pwd

    path = str(tmp_path)
    group = next(g for g in grp.getgrall() if g.gr_gid != 0)
    if os.geteuid() == 0:
        os.chown(path, -1, group.gr_gid)
        remedy = open_error(path, errno.EACCES, "", []).remedy
        assert f"sudo usermod -aG {group.gr_name} " in remedy
        assert "log out and in again" in remedy
        os.chown(path, -1, 0)
        assert "udev rule" in open_error(path, errno.EACCES, "", []).remedy
    else:
        own = grp.getgrgid(os.stat(path).st_gid).gr_name
        assert (
            f"usermod -aG {own} {pwd.getpwuid(os.geteuid()).pw_name}" in open_error(path, errno.EACCES, "", []).remedy
        )


def test_the_remedy_for_missing_rights_names_dialout_where_the_port_cannot_be_looked_at() -> None:
    assert "dialout" in open_error("/dev/nowhere", errno.EACCES, "", []).remedy


def test_a_port_that_was_listed_and_is_gone_points_at_those_who_take_ports() -> None:
    gone = open_error("/dev/ttyACM0", errno.ENOENT, "No such file", [], listed=True)
    assert isinstance(gone, PortNotFound)
    assert "was there and went away" in gone.what
    assert "brltty" in gone.remedy
    assert "ModemManager" in gone.remedy


@pytest.mark.parametrize("code", [errno.EAGAIN, errno.EBUSY])
def test_a_port_in_use_elsewhere_is_said_to_be(code: int) -> None:
    busy = open_error("/dev/ttyACM0", code, "Resource temporarily unavailable", [FIRST])
    assert isinstance(busy, PortDenied)
    assert "open in another program" in busy.what


def test_what_is_no_serial_port_is_said_to_be_none() -> None:
    odd = open_error("/etc/hostname", errno.ENOTTY, "Inappropriate ioctl for device", [])
    assert isinstance(odd, PortNotFound)
    assert "cannot be opened as a serial port" in odd.what
