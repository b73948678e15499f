"""The board: whether it answers, runs the firmware that came with rig, passes its self-test, and how long it takes."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rig.doctor.finding import Finding, fail, from_error, ok, warn
from rig.domain.records import BoardIdentity, ClockExchange
from rig.errors import RigError

EXCHANGES = 10
SLOW_S = 0.010
"""Serial time is no part of the figure, but a clock is known no better than an exchange is short. An FTDI adapter holds
answers back for 16 ms until it is told not to."""


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What is known of the image that came with rig for one kind of board."""

    board: str
    build: str
    sha256: str
    table_hash: str


class AskedBoard(Protocol):
    """The part of `rig.acquire.board.Link` that is asked here."""

    def identify(self) -> BoardIdentity: ...
    def exchange_clock(self) -> ClockExchange: ...
    def self_test(self) -> tuple[str, ...]: ...


def image_finding(read: Callable[[], ImageFacts], table_hash: str) -> Finding:
    """Whether the image that came with rig is whole and speaks this rig's language (`table_hash`)."""
    try:
        image = read()
    except RigError as error:
        return from_error("firmware", error)
    except (OSError, ValueError, KeyError) as error:
        return fail("firmware", f"the image that came with rig cannot be read: {error}", "install rig anew")
    if image.table_hash != table_hash:
        return fail(
            "firmware",
            f"the image that came with rig speaks table {image.table_hash}, rig speaks {table_hash}",
            "install rig anew, or build the image with rig firmware build",
        )
    return ok("firmware", f"image {image.build} for {image.board}, SHA-256 {image.sha256[:12]}, as it was built")


def board_findings(board: AskedBoard, image: ImageFacts | None) -> list[Finding]:
    """Who answers, with which firmware, how its self-test ends and how long an exchange takes."""
    try:
        who = board.identify()
        found = [_build_finding(who, image)]
        wrong = board.self_test()
        found.append(
            fail(
                "self-test", "; ".join(wrong), "flash it anew with rig firmware flash; if it stays, take another board"
            )
            if wrong
            else ok("self-test", "passed: every tone is the one that rig expects")
        )
        found.append(_exchange_finding([board.exchange_clock() for _ in range(EXCHANGES)], who.tick_rate_hz))
    except RigError as error:
        return [from_error("board", error)]
    return found


def _build_finding(who: BoardIdentity, image: ImageFacts | None) -> Finding:
    text = f"{who.board}, number {who.uid}, build {who.build}"
    if image is None or image.board != who.board:
        return ok("board", f"{text}; no image of this kind came with rig to compare it with")
    if image.build == who.build:
        return ok("board", f"{text}, as the image")
    return warn(
        "board",
        f"{text}; the image that came with rig is build {image.build}. It speaks the same language",
        "rig firmware flash puts the newer one on",
    )


def _exchange_finding(exchanges: list[ClockExchange], tick_rate_hz: float) -> Finding:
    trips_s = [
        e.host_received_s - e.host_sent_s - (e.mcu_sent_tick - e.mcu_received_tick) / tick_rate_hz for e in exchanges
    ]
    middle_s, worst_s = statistics.median(trips_s), max(trips_s)
    text = f"an exchange takes {middle_s * 1e3:.1f} ms beside the wire and the board, {worst_s * 1e3:.1f} ms at most"
    if middle_s > SLOW_S:
        return warn(
            "link",
            f"{text}. No latency depends on it, but clocks are compared less well",
            "with an FTDI adapter on Linux: echo 1 as root into /sys/bus/usb-serial/devices/ttyUSB0/latency_timer (its"
            " port's name); elsewhere set the adapter's latency timer to 1 ms; no hub in between",
        )
    return ok("link", text)
