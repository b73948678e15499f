"""What the verbs share: durations with units, channel numbers, and the checks that no parser makes.

Imported for `rig --help`, so nothing here may import numpy or anything else that is slow.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

import typer

from rig.errors import UsageError

_DURATION = re.compile(r"([+-]?\d+(?:\.\d*)?|[+-]?\.\d+)\s*([A-Za-zµμ]*)")
_UNITS_S = {"us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0}

STIMULI = ("chirp", "chirp-nb", "click", "mls")
MAX_CHANNEL = 64


def duration_s(text: str) -> float:
    """`150ms`, `1.2s`, `80us` to seconds. Raises UsageError for a bare number, an unknown unit or a negative time."""
    found = _DURATION.fullmatch(text.strip())
    if found is None:
        raise UsageError(f"{text!r} is not a duration", "a number with its unit: 150ms or 1.2s", "write it with a unit")
    value, unit = float(found[1]), found[2]
    if not unit:
        raise UsageError(
            f"{text!r} has no unit",
            "a duration with its unit: 150ms or 1.2s",
            f"write {text.strip()}ms or {text.strip()}s, whichever is meant",
        )
    if unit not in _UNITS_S:
        raise UsageError(f"{text!r} has the unit {unit!r}", f"one of {', '.join(_UNITS_S)}", "write 150ms or 1.2s")
    if value < 0.0:
        raise UsageError(f"{text!r} is negative", "a duration of 0 or more, such as 150ms", "leave the minus sign out")
    return value * _UNITS_S[unit]


def check_channels(ref: int | None, ear: int | None) -> None:
    """Raises UsageError when both roles are given the same channel."""
    if ref is not None and ref == ear:
        raise UsageError(
            f"--ref and --ear both name channel {ref}",
            "two different channels: the stimulus on one, the ear on the other",
            "give the reference's channel with --ref and the ear's with --ear, counted from 1",
        )


def check_window(min_latency_s: float | None, max_latency_s: float | None) -> None:
    """Raises UsageError for a search window without width."""
    if min_latency_s is not None and max_latency_s is not None and min_latency_s >= max_latency_s:
        raise UsageError(
            f"--min-latency {min_latency_s * 1e3:g} ms is not below --max-latency {max_latency_s * 1e3:g} ms",
            "a window with room for the latency",
            "exchange the two, or leave one out",
        )
    if max_latency_s is not None and max_latency_s <= 0.0:
        raise UsageError(
            "--max-latency is 0", "a duration above 0", "leave it out to search as far as the spacing allows"
        )


def split_stimulus(text: str) -> tuple[str, str | None]:
    """`chirp` to ("chirp", None), `wav:talk.wav` to ("wav", "talk.wav"). Raises UsageError for another name."""
    kind, colon, path = text.partition(":")
    if kind == "wav" and colon and path:
        return kind, path
    if kind in STIMULI and not colon:
        return kind, None
    raise UsageError(
        f"no stimulus is called {text!r}",
        f"one of {', '.join(STIMULI)}, or wav:FILE with a recording of 0.5 to 10 s",
        "choose one of these; chirp is the default",
    )


def split_settings(texts: Sequence[str]) -> dict[str, str]:
    """`network_s=0.05` to {"network_s": "0.05"}. Raises UsageError for half of it, and for a name given twice."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = (part.strip() for part in text.partition("="))
        if not (name and equals and value) or name in found:
            raise UsageError(
                f"--set {text!r} is not understood" if name not in found else f"--set gives {name} twice",
                "NAME=VALUE, each name once: network_s=0.05",
                "rig sim show SCENARIO lists the settings of a world",
            )
        found[name] = value
    return found


def known_lines(texts: Sequence[str] | None) -> tuple[str, ...]:
    """What was given with --against, before anything is measured. Raises UsageError for a line that nobody knows."""
    if texts:
        from rig.report.references import lines_of

        lines_of(texts, duration_s)
    return tuple(texts or ())


def one_of(option: str, text: str, allowed: tuple[str, ...]) -> str:
    """`text` where it is allowed, else a UsageError that lists what is."""
    if text not in allowed:
        raise UsageError(
            f"{option} {text}: there is no such choice", f"one of {', '.join(allowed)}", "choose one of these"
        )
    return text


Ref = Annotated[
    int | None, typer.Option("--ref", min=1, max=MAX_CHANNEL, help="channel of the stimulus, from 1  [default: 1]")
]
Ear = Annotated[
    int | None, typer.Option("--ear", min=1, max=MAX_CHANNEL, help="channel of the ear, from 1  [default: 2]")
]
MinLatency = Annotated[
    float | None,
    typer.Option("--min-latency", parser=duration_s, metavar="DURATION", help="ignore what arrives earlier: 20ms"),
]
MaxLatency = Annotated[
    float | None,
    typer.Option("--max-latency", parser=duration_s, metavar="DURATION", help="search no further than this: 1.5s"),
]
Limit = Annotated[
    float | None,
    typer.Option("--limit", parser=duration_s, metavar="DURATION", help="exit 3 when the median is over this: 300ms"),
]
Against = Annotated[
    list[str] | None,
    typer.Option("--against", metavar="DURATION|g114|gpt-4o", help="show where the interval lies to it; repeatable"),
]
CalibrationFolder = Annotated[
    str | None, typer.Option("--calibration", metavar="DIR|none", help="correct by what is known of the device")
]
Needs = Annotated[
    str | None, typer.Option("--needs", metavar="QUANTITY,...", help="exit 5 unless these are calibrated")
]
Backend = Annotated[str, typer.Option("--backend", metavar="sounddevice|pyaudio", help="the library that records")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON document instead of text")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="add the uncertainty budget and every trial")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="no progress on stderr")]
