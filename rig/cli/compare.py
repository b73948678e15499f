"""`rig compare`: one changed parameter, and the verdict on it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rig.cli.options import AsJson, Quiet
from rig.errors import EXIT_OVER_LIMIT, Refused, UsageError

if TYPE_CHECKING:
    from rig.verdict.compare import Change


def compare(
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="session, recording, or document of --json")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="the same, after the change")],
    changed: Annotated[
        str | None,
        typer.Option("--changed", metavar='"NAME: OLD -> NEW"', help="what was changed, for the report and the check"),
    ] = None,
    allow: Annotated[
        list[str] | None, typer.Option("--allow", metavar="NAME", help="a difference that does not matter; repeatable")
    ] = None,
    stage: Annotated[
        str | None, typer.Option("--stage", metavar="NAME", help="the stage that the change is meant for: play")
    ] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Say what one change did to the latency, or why nothing can be said.

    Exit 0: effective, moved or no effect; 3: worse, or less steady; 2: more differs than the change; 7: no verdict.
    """
    from rig.cli.documents import whole_document_of
    from rig.cli.output import show
    from rig.strictjson import dump
    from rig.verdict import compare as rule
    from rig.verdict.render import as_document, as_text, remedy

    change = None if changed is None else parse_change(changed)
    for source in (before, after):
        if not source.exists():
            raise UsageError(
                f"{source} does not exist", "a session folder, a recording or a document", "check the path"
            )
    named = [(_name(source), whole_document_of(source, quiet)) for source in (before, after)]
    if named[0][0] == named[1][0]:
        named = [(f"{name} ({word})", d) for (name, d), word in zip(named, ("before", "after"), strict=True)]
    found = rule.compare(named[0], named[1], change, allow or (), stage)
    show(dump(as_document(found), indent=1) + "\n" if as_json else as_text(found))
    if found.refused is not None:
        kind = UsageError if any(not one.why for one in found.apart) else Refused
        raise kind(f"no verdict: {found.refused}", "two measurements with one difference", remedy(found.refused))
    if found.verdict in (rule.Verdict.WORSE, rule.Verdict.UNSTEADY):
        raise typer.Exit(EXIT_OVER_LIMIT)


def parse_change(text: str) -> Change:
    """`"block: 256 -> 128"`, or a name alone. Raises UsageError for half of it."""
    from rig.verdict.compare import Change

    name, colon, values = text.partition(":")
    old, arrow, new = values.partition("->")
    if not name.strip() or (colon and not (arrow and old.strip() and new.strip())):
        raise UsageError(
            f"--changed {text!r} is not understood", '"NAME: OLD -> NEW", or a name alone', "write it so, in quotes"
        )
    return Change(name.strip(), old.strip() or None, new.strip() or None)


def _name(source: Path) -> str:
    source = source.resolve()
    return (source.parent if source.name == "manifest.json" else source).name
