"""`rig validate`: a measurement against a budget, as a gate for CI."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rig.cli.options import Quiet, duration_s
from rig.errors import EXIT_OVER_LIMIT, BadInput, Refused, UsageError

MAX_BUDGET_BYTES = 1 << 20


def validate(
    source: Annotated[Path, typer.Argument(metavar="SESSION", help="session, recording, or document of --json")],
    budget: Annotated[Path, typer.Option("--budget", metavar="FILE", help="limits in a TOML file")],
    strict: Annotated[bool, typer.Option("--strict", help="fail where an interval reaches over its limit too")] = False,
    junit: Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="write the rows as JUnit XML")] = None,
    quiet: Quiet = False,
) -> None:
    """Check a measurement against limits. Exit 0: all hold; 3: one does not; 7: there is no valid figure."""
    from rig.cli.documents import whole_document_of
    from rig.cli.output import show
    from rig.rawfile import replace_text
    from rig.verdict.budget import check, limits_of
    from rig.verdict.budget_text import as_junit, as_text

    limits = limits_of(_toml(budget), budget.name, duration_s)
    if not source.exists():
        raise UsageError(f"{source} does not exist", "a session folder, a recording or a document", "check the path")
    document = whole_document_of(source, quiet)
    name = source.resolve().name
    if document["latency_s"] is None:
        raise Refused(f"{name} has no valid figure", "a measurement to check", f"rig analyze {source} says why")
    rows = check(document, limits, strict)
    if junit is not None:
        replace_text(junit, as_junit(name, rows))
    show(as_text(name, rows))
    if any(row.failed for row in rows):
        raise typer.Exit(EXIT_OVER_LIMIT)


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        with open(path, "rb") as handle:
            raw = handle.read(MAX_BUDGET_BYTES + 1)
    except OSError as error:
        raise BadInput(
            f"{path.name} cannot be read: {error.strerror or error}", "a TOML file with limits", "check the path"
        ) from error
    if len(raw) > MAX_BUDGET_BYTES:
        raise BadInput(f"{path.name} is over 1 MiB", "a budget of a few lines", "check the path")
    try:
        return tomllib.loads(raw.decode("utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise BadInput(f"{path.name}: {error}", "TOML text", "docs/comparing.md shows a budget") from error
