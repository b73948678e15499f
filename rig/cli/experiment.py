"""`rig experiment`: a baseline and rounds of one change each, by a plan, and the table of what each change did."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rig.cli.options import AsJson, Quiet
from rig.errors import EXIT_INTERRUPTED, EXIT_OVER_LIMIT, BadInput, Refused, RigError, UsageError

if TYPE_CHECKING:
    from rig.experiment.ledger import Ledger
    from rig.experiment.plan import Plan, Step
    from rig.experiment.rounds import Measured, Results

FOLDER = "experiments"


def experiment(
    plan_file: Annotated[
        Path, typer.Argument(metavar="PLAN.toml", help="what to measure, and what each round changes")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="the experiment's folder  [default: experiments/PLAN]")
    ] = None,
    page: Annotated[bool, typer.Option("--report", help="also write an HTML page beside the folder")] = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Measure a baseline and rounds of one change each, and say what each change did.

    A stopped experiment goes on with the same command. Exit 0: every round has a verdict; 3: one of them is worse or
    less steady; 7: one has no verdict; the code of its error where one could not be measured.
    """
    from rig.cli.output import show
    from rig.cli.rounds import CHECKS, check_world, played_sha256
    from rig.experiment.ledger import open_ledger
    from rig.experiment.plan import steps_of
    from rig.experiment.planfile import MAX_BYTES, read_plan
    from rig.experiment.render import as_json as document_of
    from rig.experiment.render import as_text
    from rig.experiment.rounds import results
    from rig.strictjson import dump

    try:
        with open(plan_file, "rb") as handle:
            raw = handle.read(MAX_BYTES + 1)
    except OSError as error:
        raise BadInput(
            f"{plan_file.name} cannot be read: {error.strerror or error}", "a plan in TOML", "check the path"
        ) from error
    plan = read_plan(raw, plan_file.name, CHECKS, check_world)
    ledger = open_ledger(out or Path(FOLDER) / plan_file.stem, plan, played_sha256(plan))
    measured: dict[int, Measured] = {}
    code = 0
    for step in steps_of(plan):
        done, failed = _measure(plan, step, ledger, quiet)
        measured[step.position] = done
        code = code or failed
    found = results(plan, ledger.sha256, measured)
    show(dump(document_of(found), indent=1) + "\n" if as_json else as_text(found))
    if page:
        from rig.cli.experiment_page import write_experiment_page

        print(f"page written to {write_experiment_page(ledger.folder, found, None)}", file=sys.stderr)
    raise typer.Exit(code or exit_code(found))


def exit_code(found: Results) -> int:
    """The code of the table alone."""
    from rig.verdict.compare import Verdict

    verdicts = [r.verdict for r in found.rounds]
    if None in verdicts:
        return Refused.exit_code
    return EXIT_OVER_LIMIT if any(v in (Verdict.WORSE, Verdict.UNSTEADY) for v in verdicts) else 0


def _measure(plan: Plan, step: Step, ledger: Ledger, quiet: bool) -> tuple[Measured, int]:
    """The step's document, measured now unless it was before; and the exit code where it failed.

    The baseline's errors end the command: without it there is nothing to compare with."""
    from rig.cli.documents import whole_document_of
    from rig.cli.progress import open_display
    from rig.cli.rounds import carry_out
    from rig.experiment.plan import BASELINE
    from rig.experiment.rounds import Measured

    said = _words(plan, step)
    try:
        if ledger.is_done(step):
            _tell(f"{said}: measured before", quiet)
        else:
            aside = ledger.make_room(step)
            if aside is not None:
                _tell(f"{said}: what was cut short is kept in {aside.name}", quiet)
            _tell(said, quiet)
            with open_display(quiet) as display:
                carry_out(plan, step, ledger, display)
        document = whole_document_of(ledger.session(step), quiet)
        if step.kind == BASELINE:
            _check_baseline(plan, document, ledger.session(step))
    except KeyboardInterrupt:
        print("rig: stopped; the same command goes on with the rounds that are missing", file=sys.stderr)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    except RigError as error:
        if step.kind == BASELINE or (isinstance(error, UsageError) and not isinstance(error, BadInput)):
            raise
        from rig.cli.main import explain

        explain(error)
        return Measured(error=(error.what, error.expected, error.remedy)), error.exit_code
    return Measured(document), 0


def _check_baseline(plan: Plan, document: dict[str, object], session: Path) -> None:
    """Raises before the first round what would leave every round without a verdict."""
    from rig.verdict.compare import stage_called

    if document["latency_s"] is None:
        raise Refused("the baseline has no valid figure", "a baseline to compare with", f"rig analyze {session}")
    for change in plan.rounds:
        if change.stage is not None:
            if not document["stages"]:
                raise Refused(
                    f"the baseline has no stages, and a round is meant for {change.stage}",
                    "marks of the system under test",
                    "docs/reconcile.md says what they need; or leave stage out",
                )
            stage_called(change.stage, [document])


def _words(plan: Plan, step: Step) -> str:
    if step.round is None:
        return step.kind
    change = plan.rounds[step.round - 1]
    old = plan.parameter(change.name).value
    return f"round {step.round} of {len(plan.rounds)}: {change.name} {old} -> {change.to}"


def _tell(words: str, quiet: bool) -> None:
    if not quiet:
        print(words, file=sys.stderr)
