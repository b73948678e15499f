"""`rig import`: marks out of a file that another tool wrote, and what that file does not say."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rig.errors import BadInput, Refused, UsageError

if TYPE_CHECKING:
    from rig.imports.found import Figure, Found, FoundPart


def import_marks(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="dump of chrome://webrtc-internals, or OTLP JSON; plain or gzip")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="write the marks into this new file  [default: none]")
    ] = None,
) -> None:
    """Read marks and claims out of a webrtc-internals dump or OTLP JSON, and say what is missing.

    The file that is written is read by rig marks and rig reconcile.
    """
    from rig import strictjson
    from rig.cli.output import show

    if out is not None and out.exists():
        raise UsageError(
            f"{out} is there already", "a new file: marks that a system wrote may be in it", "choose another --out"
        )
    found = read_file(file)
    lines = [line for part in found.parts for line in part.lines]
    text = describe(found)
    if out is not None and lines:
        try:
            out.write_text("".join(strictjson.dump(line) + "\n" for line in lines), encoding="utf-8")
        except OSError as error:
            raise UsageError(
                f"{out} cannot be written: {error.strerror or error}", "a new file", "choose another --out"
            ) from error
        text.append(f"marks written to {out}; rig marks checks them")
    elif lines:
        text.append(f"nothing is written: --out marks.jsonl writes {len(lines)} lines of marks")
    show("\n".join(text) + "\n")
    if not lines:
        raise Refused(
            f"nothing in {file.name} can be a mark or a claim",
            "statistics of audio, or spans of the stages",
            "see what is missing in the lines above",
        )


def read_file(file: Path) -> Found:
    """What a file holds, whichever of the formats it is in. Raises BadInput for all else."""
    from rig.imports.opened import documents
    from rig.imports.otlp import is_otlp, read_otlp
    from rig.imports.webrtc import is_dump, read_dump

    values = documents(file)
    if len(values) == 1 and is_dump(values[0]):
        return read_dump(values[0], file.name)
    if is_otlp(values):
        return read_otlp(values, file.name)
    raise BadInput(
        f"{file.name} is JSON, but neither of webrtc-internals nor of OTLP",
        "an object with PeerConnections, or with resourceSpans",
        "see docs/importing.md for how to save one",
    )


def describe(found: Found) -> list[str]:
    """The lines on what was found, in 80 columns."""
    lines = _wrapped(found.kind, "")
    for part in found.parts:
        lines += ["", *_wrapped(", ".join((part.name, *part.about)), "")]
        lines += _figures(part)
        lines += [line for note in part.notes for line in _wrapped(note, "  - ")]
        lines += [line for missing in part.missing for line in _wrapped(f"not there: {missing}", "  - ")]
    lines += ["", *(line for missing in found.missing for line in _wrapped(f"never there: {missing}", "  - "))]
    lines += [line for note in found.notes for line in _wrapped(note, "  - ")]
    return lines


def _figures(part: FoundPart) -> list[str]:
    from rig.report.digits import table

    if not part.figures:
        return []
    shown = [["mean", "least", "most", "n", "becomes"]]
    names = []
    for figure in part.figures:
        names.append(figure.source)
        shown.append([*_values(figure), str(figure.n), figure.becomes or "shown only"])
    # Names of statistics are long: each has a line of its own, its numbers below it.
    rows = table(shown, 4)
    lines = [rows[0]]
    for name, row in zip(names, rows[1:], strict=True):
        lines += [f"  {name}", row]
    return lines


def _values(figure: Figure) -> list[str]:
    values = (figure.mean, figure.low, figure.high)
    if figure.in_seconds:
        return [f"{1e3 * v:.2f} ms" for v in values]
    return [f"{v:.4f}" for v in values]


def _wrapped(text: str, mark: str) -> list[str]:
    from rig.report.digits import WIDTH

    return textwrap.wrap(text, WIDTH, initial_indent=mark, subsequent_indent=" " * len(mark), break_on_hyphens=False)
