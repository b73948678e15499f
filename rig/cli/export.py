"""`rig export`: what was measured, as tables, a trace or spans for other tools."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from rig.cli.options import Quiet, one_of
from rig.errors import BadInput, UsageError

FORMATS = ("csv", "parquet", "perfetto", "otlp")
FOLDER = "exports"
MANIFEST, EVENTS = "manifest.json", "events.jsonl"  # what a folder that is a session holds
TRACE = "trace.perfetto.json"
SPANS = "spans.otlp.json"


def export(
    sources: Annotated[
        list[Path],
        typer.Argument(metavar="SOURCE...", help="session folders, recordings, or documents of rig analyze --json"),
    ],
    to: Annotated[list[str], typer.Option("--to", metavar="|".join(FORMATS), help="format; may be given again")],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="folder for the files  [default: exports/NAME]")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write the trials and stages of measurements for other tools.

    The names of the files written are printed. The sessions themselves are not touched.
    """
    for name in to:
        one_of("--to", name, FORMATS)
    folders = _folders(sources, out)

    from rig.cli.documents import document_of

    for source, folder in zip(sources, folders, strict=True):
        _refuse_inside_a_session(folder)
        document = document_of(source, quiet)
        for path in write_exports(document, dict.fromkeys(to), folder, source.name):
            print(path)


def write_exports(document: dict[str, Any], formats: dict[str, None], folder: Path, name: str) -> list[Path]:
    """Writes the document in each format into `folder`, made where it is missing; returns the files written.

    Raises BadInput for a document that lacks what is exported (`name` is the source in the message), UsageError where
    the folder cannot be written."""
    from rig.export.otlp import otlp_spans
    from rig.export.parquet import write_parquet
    from rig.export.perfetto import perfetto_trace
    from rig.export.tables import tables_of, to_csv
    from rig.rawfile import replace_text

    written: dict[Path, Callable[[], None]] = {}

    def text(file: str, content: str) -> None:
        written[folder / file] = lambda: replace_text(folder / file, content)

    def parquet(table: Any, rows: list[Any]) -> None:
        path = folder / f"{table.name}.parquet"
        written[path] = lambda: write_parquet(table, rows, path)

    try:
        tables = tables_of(document)
        for kind in formats:
            if kind == "perfetto":
                text(TRACE, perfetto_trace(document))
            elif kind == "otlp":
                text(SPANS, otlp_spans(document))
            for table, rows in tables:
                if kind == "csv":
                    text(f"{table.name}.csv", to_csv(table, rows))
                elif kind == "parquet":
                    parquet(table, rows)
    except (KeyError, TypeError, AttributeError, ValueError, ZeroDivisionError, OverflowError) as error:
        raise BadInput(
            f"{name} is not a whole document of a measurement ({type(error).__name__}: {error})",
            "a document as rig analyze --json of this version writes it",
            "make it again from the session or the recording",
        ) from error
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be made: {error.strerror or error}",
            "a folder that this user may write",
            "choose another one with --out",
        ) from error
    for write in written.values():
        write()
    return list(written)


def _folders(sources: list[Path], out: Path | None) -> list[Path]:
    """Where each source goes: DIR for one, DIR/NAME for several. Raises UsageError where two would meet."""
    if out is not None and len(sources) == 1:
        return [out]
    names = [_name(source.resolve()) for source in sources]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(
            f"two of the sources are called {twice}",
            "sources with different names",
            "export them one by one with --out",
        )
    return [(out or Path(FOLDER)) / name for name in names]


def _name(source: Path) -> str:
    """The folder's name for a session, a file's without its ending for the rest."""
    folder = source.parent if source.name == MANIFEST else source
    return folder.name if folder.is_dir() else folder.stem


def _refuse_inside_a_session(folder: Path) -> None:
    for parent in (folder, *folder.resolve().parents):
        if (parent / MANIFEST).is_file() and (parent / EVENTS).is_file():
            raise UsageError(
                f"{folder} is inside the session {parent}",
                "a folder outside: a session is not changed after it was recorded",
                "choose another one with --out",
            )
