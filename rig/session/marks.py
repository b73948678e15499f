"""A file of marks to records: parts that share a clock, rows that may be used, and notes on what was left out.

Bounded and strict: a bad line costs itself alone, is counted and named. What cannot be true of any system (two units,
two kinds of clock, a clock that somebody sets) refuses the whole file: its other numbers would be as wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rig.domain.marks import Marks
from rig.errors import BadInput
from rig.session.marklines import BadLine, Header, read_line
from rig.session.markrows import PartBuilder, refuse_wall_clock

MAX_BYTES = 256 << 20
MAX_LINE_BYTES = 64 << 10
MAX_LINES = 3_000_000
_SHOWN = 5  # notes of one kind that are spelled out


def read_marks(path: Path, *, strict: bool = False) -> Marks:
    """Reads a file of marks. `strict`: a line that cannot be read refuses the file.

    Raises BadInput for a file that cannot be read, is too large, has no unit or mixes units or kinds of clock.
    """
    builders: list[PartBuilder] = []
    header: Header | None = None
    bad: list[str] = []
    n_bad = n_other = 0
    is_log = cut = False
    for number, raw, ended in _lines(path):
        problem = None
        try:
            items = read_line(raw)
        except BadLine as error:
            items, problem = [], str(error)
        if items is None:
            n_other += 1
            if not ended:
                cut = True
            elif len(bad) < _SHOWN and not is_log:
                bad.append(f"line {number}: neither JSON nor the log form [rt]")
            continue
        is_log = is_log or not raw.lstrip().removeprefix(b"\xef\xbb\xbf").startswith(b"{")
        for item in items:
            if isinstance(item, Header):
                refuse_wall_clock(item.clock, path.name, number)
                header = item
                continue
            if header is None:
                raise BadInput(
                    f"{path.name} line {number}: marks without a header: their unit is not known",
                    'first a line {"marks":1,"session_id":"…","clock":"…","unit":"ms"}',
                    "write the header with rig.marks or rig-marks.js, or put the line at the head of the file",
                )
            _builder(builders, header, number).take(item, number, path.name)
        if problem is not None:
            if not ended:
                cut = True
                continue
            n_bad += 1
            if len(bad) < _SHOWN:
                bad.append(f"line {number}: {problem}")
    if not is_log:
        n_bad += n_other
    parts = [part for builder in builders for part in builder.parts(path.name)]
    notes = [note for builder in builders for note in builder.notes]
    if n_bad:
        if strict:
            raise BadInput(
                f"{path.name}: {n_bad} lines cannot be read ({bad[0]})", "marks on every line", "mend the writer"
            )
        notes.append(f"{n_bad} lines of {path.name} cannot be read and are left out ({'; '.join(bad)})")
    if cut:
        notes.append(f"the last line of {path.name} is cut off: its writer was stopped")
    if not any(part.rows or part.claims or part.stats for part in parts):
        raise BadInput(
            f"{path.name} holds no marks",
            "lines with seq and t_… fields, or claims, after a header",
            "check that the system writes marks: docs/marks.md",
        )
    return Marks(tuple(parts), n_bad, tuple(dict.fromkeys(notes)))


def _builder(builders: list[PartBuilder], header: Header, line: int) -> PartBuilder:
    """The part that this header's marks belong to: the same start of the system on a clock that is surely the same."""
    for builder in reversed(builders):
        if builder.same_clock(header):
            return builder
    made = PartBuilder(header, line)
    twin = next((b for b in builders if b.header.session_id == header.session_id), None)
    if twin is not None and header.session_id is not None:
        made.notes.append(
            f"the marks from line {line} are of session {header.session_id} like earlier ones, but nothing ties their"
            " clocks together: they are not mixed (state origin for each context)"
        )
    builders.append(made)
    return made


def _lines(path: Path) -> Iterator[tuple[int, bytes, bool]]:
    """(number, line, it ended in a newline); blank lines are skipped."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise BadInput(
                f"{path.name} is larger than {MAX_BYTES >> 20} MiB",
                "the marks of one session",
                "cut the file to the session",
            )
        with open(path, "rb") as handle:
            number = 0
            while raw := handle.readline(MAX_LINE_BYTES + 1):
                number += 1
                if number > MAX_LINES:
                    raise BadInput(
                        f"{path.name} holds more than {MAX_LINES} lines",
                        "the marks of one session",
                        "cut the file to the session",
                    )
                if len(raw) > MAX_LINE_BYTES:
                    while (more := handle.readline(MAX_LINE_BYTES)) and not more.endswith(b"\n"):
                        pass
                    raw = b"{line too long\n"
                if raw.strip().removeprefix(b"\xef\xbb\xbf"):
                    yield number, raw, raw.endswith(b"\n")
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}",
            "a file of marks",
            "check the path and its permissions",
        ) from error
