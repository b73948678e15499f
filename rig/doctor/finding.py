"""One line of the doctor: what was looked at, how it stands, and what to do where it does not stand well."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rig.errors import RigError

SCHEMA = "rig.doctor/1"
WIDTH = 80
_INDENT = 18


class Status(StrEnum):
    """OK: nothing to do. WARN: it can be measured, but know this. FAIL: it cannot be measured like this."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """`remedy` is None exactly when the status is OK."""

    check: str
    status: Status
    text: str
    remedy: str | None = None

    def __post_init__(self) -> None:
        if (self.remedy is None) != (self.status is Status.OK):
            raise ValueError(f"the finding {self.check!r} is {self.status} and its remedy {self.remedy!r}")


def ok(check: str, text: str) -> Finding:
    return Finding(check, Status.OK, text)


def warn(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, Status.WARN, text, remedy)


def fail(check: str, text: str, remedy: str) -> Finding:
    return Finding(check, Status.FAIL, text, remedy)


def from_error(check: str, error: RigError, status: Status = Status.FAIL) -> Finding:
    """An error that a measurement would end with."""
    return Finding(check, status, f"{error.what}; expected: {error.expected}", error.remedy)


def failed(findings: Sequence[Finding]) -> bool:
    return any(finding.status is Status.FAIL for finding in findings)


def lines(findings: Sequence[Finding], device: str | None) -> list[str]:
    """The findings as text for 80 columns, the count last. `device`: which one was examined."""
    out: list[str] = []
    for finding in findings:
        head = f"{finding.status:<5} {finding.check:<11} "
        for number, part in enumerate(finding.text.split("\n")):
            indent = head if number == 0 else " " * (_INDENT + 2)
            out += textwrap.wrap(
                part.strip(), WIDTH, initial_indent=indent, subsequent_indent=" " * _INDENT, break_on_hyphens=False
            )
        if finding.remedy is not None:
            indent = " " * _INDENT
            remedy = f"remedy: {finding.remedy}"
            out += textwrap.wrap(
                remedy, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ", break_on_hyphens=False
            )
    count = {status: sum(finding.status is status for finding in findings) for status in Status}
    total = f"{count[Status.FAIL]} fail, {count[Status.WARN]} warn, {count[Status.OK]} ok"
    end = "not ready" if count[Status.FAIL] else "nothing stands in the way" if device is None else "ready to measure"
    more = ["--device NAME has an interface examined too"] if device is None else []
    return [*out, "", f"{end}: {total}", *more]


def document(findings: Sequence[Finding], facts: dict[str, Any]) -> dict[str, Any]:
    """The findings as one JSON document, after `facts`."""
    return {
        "schema": SCHEMA,
        **facts,
        "ready": not failed(findings),
        "findings": [
            {"check": f.check, "status": f.status.value, "text": f.text, "remedy": f.remedy} for f in findings
        ],
    }
