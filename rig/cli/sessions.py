"""`rig sessions`: what was measured, the baseline to compare with, and how it went over the builds."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from rig.cli.options import Quiet
from rig.errors import BadInput, RigError, UsageError

FOLDER = Path("sessions")


class ListUnlessTold(TyperGroup):
    """A group in which a folder or an option in the place of a verb means `list`."""

    def make_parser(self, ctx: Any) -> Any:
        parser = super().make_parser(ctx)
        parser.ignore_unknown_options = True  # they are those of list
        return parser

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands:
            args = ["list", *args]
        return super().resolve_command(ctx, args)


sessions_app = typer.Typer(cls=ListUnlessTold, invoke_without_command=True)

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="folder of sessions")]
Device = Annotated[str | None, typer.Option("--device", metavar="TEXT", help="only devices with this in their name")]
Since = Annotated[str | None, typer.Option("--since", metavar="DATE", help="only from this day or time on: 2026-01-31")]
Build = Annotated[str | None, typer.Option("--build", metavar="TEXT", help="only this build")]
Search = Annotated[
    list[str] | None, typer.Option("--search", metavar="TEXT", help="only with this in any of its texts; repeatable")
]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON document instead of text")]


@sessions_app.callback()
def sessions(context: typer.Context) -> None:
    """The sessions of a folder: list them, mark a baseline, see the trend.

    rig sessions [DIR] lists them; rig sessions list --help shows the filters.
    """
    if context.invoked_subcommand is None:
        list_sessions()


@sessions_app.command("list")
def list_sessions(
    folder: Folder = FOLDER,
    device: Device = None,
    since: Since = None,
    build: Build = None,
    search: Search = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """List the sessions of DIR, the newest first, with their figures."""
    from rig.cli.output import show
    from rig.shelf.baselines import read_baselines
    from rig.shelf.text import list_document, list_text

    wants = _filters(device, since, build, search)
    every = _rows(folder, quiet)
    marked = list(read_baselines(_home(folder)))
    rows = [row for row in every if wants.wants(row)]
    if as_json:
        show(_json(list_document(rows, every, marked)))
    elif not rows:
        show(f"no sessions in {folder}\n" if not every else f"none of the {len(every)} sessions in {folder} fits\n")
    else:
        left_out = f", {len(every) - len(rows)} more do not fit" if len(rows) < len(every) else ""
        sessions_word = "1 session" if len(rows) == 1 else f"{len(rows)} sessions"
        show(f"{sessions_word} in {folder}{left_out}\n\n{list_text(rows, every, marked, None)}")


@sessions_app.command("trend")
def trend(
    folder: Folder = FOLDER,
    device: Device = None,
    since: Since = None,
    build: Build = None,
    search: Search = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Plot the figures of DIR in the order of time, and compare the builds."""
    from rig.cli.output import show
    from rig.shelf.baselines import read_baselines
    from rig.shelf.text import trend_document, trend_text
    from rig.shelf.trend import trends

    wants = _filters(device, since, build, search)
    rows = [row for row in _rows(folder, quiet) if wants.wants(row)]
    marked = list(read_baselines(_home(folder)))
    found = trends(rows)
    without = sum(row.median_s is None for row in rows)
    if as_json:
        show(_json(trend_document(found, marked)))
        return
    note = f"{without} without a figure left out\n" if without else ""
    show((trend_text(found, marked, None) + note) if found else f"no session in {folder} with a figure fits\n")


@sessions_app.command("baseline")
def baseline(
    session: Annotated[Path, typer.Argument(metavar="SESSION", help="session folder")],
    remove: Annotated[bool, typer.Option("--remove", help="it is no baseline any more")] = False,
    quiet: Quiet = False,
) -> None:
    """Mark a session as the baseline of its kind of measurement (device, mode, stimulus).

    The mark is kept beside the session, in baselines.json, and not in it.
    """
    from rig.shelf.baselines import mark, unmark

    rows = _rows(session, quiet)
    if len(rows) != 1 or rows[0].folder != session:
        raise BadInput(f"{session} is no session", "the folder of one session", "rig sessions lists them")
    (unmark if remove else mark)(_home(session), rows[0])


def _rows(folder: Path, quiet: bool) -> list[Any]:
    """A row for each session, the newest first: kept results where there are, analysed now where not."""
    from rig.cli.results import open_cache
    from rig.shelf.rows import find_sessions, row_of

    cache = open_cache()
    rows = []
    for found in find_sessions(folder):
        document, problem = None, None
        if found.finished:
            key = None if cache is None else cache.key(found.folder)
            document = None if cache is None or key is None else cache.summary(key)
            if document is None:
                from rig.cli.documents import analysed

                try:
                    document = analysed(found.folder, quiet, cache, key)
                except RigError as error:
                    problem = error.what
        rows.append(row_of(found, document, problem))
    return sorted(rows, key=lambda row: row.at, reverse=True)


def _home(folder: Path) -> Path:
    """The folder that holds the sessions, where one session of it was named."""
    return folder.absolute().parent if (folder / "manifest.json").is_file() else folder


def _filters(device: str | None, since: str | None, build: str | None, search: Sequence[str] | None) -> Any:
    from rig.shelf.rows import Filters

    return Filters(device, build, None if since is None else _since(since), tuple(search or ()))


def _since(text: str) -> datetime:
    """A day or a time; of the machine's own zone where it names none."""
    try:
        return datetime.fromisoformat(text).astimezone()
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--since {text}: that is no date", "a day or a time: 2026-01-31 or 2026-01-31T14:00", "write it like this"
        ) from None


def _json(document: dict[str, Any]) -> str:
    import json

    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
