"""The real serial port: pyserial on a pseudo-terminal."""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import serial
import serial.serialutil

from rig.acquire import wire
from rig.acquire.link import SerialPipe, SystemTime, is_port_failure, list_ports, open_link, use_error
from rig.domain.records import StimulusPlan
from rig.domain.timebase import Duration, Instant, Timebase
from rig.errors import LinkLost, PortDenied, PortNotFound, RigError
from rig.sim.clock import DriftingClock
from rig.sim.firmware import Firmware, Outgoing

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals here")

IDENTITY: dict[str, wire.Value] = {
    "protocol_level": wire.PROTOCOL_LEVEL,
    "table_hash": wire.table_hash(),
    "tick_hz": 2_000_000,
    "tone_hz": 31_250,
    "byte_ns": 0,
    "max_count": 128,
    "uid": 5,
    "board": "pty",
    "build": "1",
}


class Terminal:
    """A pseudo-terminal: `path` for the host, `master` for the board's side."""

    def __init__(self) -> None:
        self.master, self._slave = os.openpty()
        self.path = os.ttyname(self._slave)

    def hang_up(self) -> None:
        """The cable is pulled."""
        for descriptor in (self.master, self._slave):
            os.close(descriptor)
        self.master = self._slave = -1

    def close(self) -> None:
        if self.master >= 0:
            self.hang_up()


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    yield made
    made.close()


@pytest.fixture
def host() -> SystemTime:
    return SystemTime()


def soon(host: SystemTime, seconds: float) -> Instant:  # type: ignore[type-arg]
    return host.now().plus(Duration(seconds))


def test_the_system_time_runs_and_waits(host: SystemTime) -> None:
    start = host.now()
    host.sleep_until(start.plus(Duration(0.02)))
    assert 0.02 <= (host.now() - start).seconds < 0.5
    host.sleep_until(start)  # a moment that has passed
    with pytest.raises(TypeError, match="another clock"):
        host.sleep_until(Instant(Timebase("host", "elsewhere"), 0.0))


def test_bytes_pass_both_ways(terminal: Terminal, host: SystemTime) -> None:
    pipe = SerialPipe(terminal.path, host)
    pipe.write(b"\x00\x01\xff\n\r\x11\x13")
    assert os.read(terminal.master, 100) == b"\x00\x01\xff\n\r\x11\x13"  # no character means anything to the terminal
    os.write(terminal.master, b"\x00\x03\x04\x1a\xfe")
    assert pipe.read(100, soon(host, 1.0)) == b"\x00\x03\x04\x1a\xfe"
    os.write(terminal.master, b"abc")
    assert pipe.read(1, soon(host, 1.0)) == b"a"
    assert pipe.read(100, soon(host, 1.0)) == b"bc"
    pipe.close()


def test_a_read_ends_at_its_deadline(terminal: Terminal, host: SystemTime) -> None:
    pipe = SerialPipe(terminal.path, host)
    start_s = time.monotonic()
    assert pipe.read(10, soon(host, 0.05)) == b""
    assert 0.049 <= time.monotonic() - start_s < 0.5
    assert pipe.read(10, soon(host, -1.0)) == b""  # a deadline that has passed asks for what is there
    os.write(terminal.master, b"x")
    assert pipe.read(10, soon(host, -1.0)) == b"x"
    pipe.close()


def test_what_the_port_held_before_is_thrown_away(terminal: Terminal, host: SystemTime) -> None:
    os.write(terminal.master, b"left over")
    pipe = SerialPipe(terminal.path, host)
    assert pipe.read(10, soon(host, 0.02)) == b""
    pipe.close()


def test_a_port_is_opened_for_one_program_alone(terminal: Terminal, host: SystemTime) -> None:
    pipe = SerialPipe(terminal.path, host)
    with pytest.raises(PortDenied, match="open in another program"):
        SerialPipe(terminal.path, host)
    pipe.close()
    SerialPipe(terminal.path, host).close()


def test_dtr_is_asserted(terminal: Terminal, host: SystemTime) -> None:
    pipe = SerialPipe(terminal.path, host)
    assert pipe._serial.dtr is True  # a pseudo-terminal has no such line: this is what pyserial was told
    pipe.close()


def test_a_cable_that_is_pulled_is_a_lost_link(terminal: Terminal, host: SystemTime) -> None:
    pipe = SerialPipe(terminal.path, host)
    terminal.hang_up()
    with pytest.raises(LinkLost, match="disappeared or is open in another program"):
        pipe.read(10, soon(host, 0.5))
    with pytest.raises(LinkLost, match=terminal.path):
        pipe.write(b"x")
    pipe.close()
    with pytest.raises(LinkLost):
        pipe.read(10, soon(host, 0.1))


def test_a_port_that_is_not_there_or_no_port_is_said_to_be(tmp_path: Path, host: SystemTime) -> None:
    with pytest.raises(PortNotFound, match="there is no port /dev/ttyNOWHERE"):
        open_link("/dev/ttyNOWHERE", host)
    with pytest.raises(PortNotFound, match="went away"):
        SerialPipe("/dev/ttyNOWHERE", host, listed=True)
    plain = tmp_path / "plain"
    plain.write_text("not a port")
    with pytest.raises(PortNotFound, match="cannot be opened as a serial port"):
        SerialPipe(str(plain), host)
    with pytest.raises(PortNotFound):
        SerialPipe(str(tmp_path), host)


def test_ports_are_listed_in_order() -> None:
    paths = [port.path for port in list_ports()]
    assert paths == sorted(paths)


def test_every_exception_of_pyserial_is_translated() -> None:
    import termios

    modules = (serial, serial.serialutil)
    own = {
        thing
        for module in modules
        for thing in vars(module).values()
        if isinstance(thing, type) and issubclass(thing, Exception)
    }
    assert {serial.SerialException, serial.SerialTimeoutException} <= own
    for kind in [*own, termios.error, OSError]:
        error = kind(errno.EIO, "Input/output error") if kind is not serial.PortNotOpenError else kind()
        assert is_port_failure(error), kind
        assert isinstance(use_error("/dev/ttyACM0", error), RigError), kind
    assert not is_port_failure(KeyError("a bug of ours"))
    assert not is_port_failure(KeyboardInterrupt())


class BoardThread(threading.Thread):
    """The simulated firmware on the far side of a pseudo-terminal, in real time."""

    def __init__(self, terminal: Terminal) -> None:
        super().__init__(daemon=True)
        self._terminal = terminal
        self._stop_now = threading.Event()
        self.reset_s = time.monotonic()
        clock = DriftingClock(2e6, start=-2e6 * self.reset_s)
        self._firmware = Firmware(clock, np.random.default_rng(1), None, IDENTITY, 128)

    def run(self) -> None:
        decoder = wire.FrameDecoder()
        waiting: list[Outgoing] = []
        os.set_blocking(self._terminal.master, False)
        while not self._stop_now.is_set():
            try:
                data = os.read(self._terminal.master, 256)
            except BlockingIOError:
                data = b""
            for received in decoder.feed(data):
                waiting += self._firmware.handle(received, time.monotonic())
            waiting.sort(key=lambda outgoing: outgoing.ready_s)
            while waiting and waiting[0].ready_s <= time.monotonic():
                reply = waiting.pop(0).make(time.monotonic())
                if reply is not None:
                    os.write(self._terminal.master, wire.encode(reply))
            self._stop_now.wait(0.0005)

    def stop(self) -> None:
        self._stop_now.set()
        self.join()


def test_the_whole_link_runs_over_a_real_port(terminal: Terminal, host: SystemTime) -> None:
    board = BoardThread(terminal)
    board.start()
    try:
        link = open_link(terminal.path, host)
        assert link.identify().board == "pty"
        exchange = link.exchange_clock()
        # The board counts 2 MHz of the very clock that the host reads.
        assert exchange.host_sent_s - board.reset_s <= (exchange.mcu_received_tick + 1) / 2e6
        assert exchange.mcu_sent_tick / 2e6 <= exchange.host_received_s - board.reset_s
        assert link.self_test() == ()
        armed = link.arm(StimulusPlan("click", 3, (0.05, 0.0601), 0.5, "mcu"))
        link.fire()
        fired = [f for _ in range(3) for f in link.poll(soon(host, 2.0))]
        assert [f.index for f in fired] == [0, 1, 2]
        assert fired[1].tick - fired[0].tick == armed.spacing_ticks[0]
        link.safe()
        assert link.safe_error is None
        link.close()
    finally:
        board.stop()
