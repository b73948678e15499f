"""The page of an experiment, from its folder or from what `rig experiment` has just found."""

from __future__ import annotations

from pathlib import Path

from rig.cli.documents import whole_document_of
from rig.cli.page_file import page_path, write_page
from rig.experiment.ledger import FILE, plan_of, read_ledger
from rig.experiment.plan import AGAIN, steps_of
from rig.experiment.render import as_json
from rig.experiment.rounds import Measured, Results, results
from rig.report.html.experiment import render_experiment
from rig.verdict.render import MEANING


def is_experiment(folder: Path) -> bool:
    """Whether the folder is one that `rig experiment` made."""
    return (folder / FILE).is_file()


def results_of(folder: Path, quiet: bool) -> Results:
    """What the experiment in a folder has found so far. Raises BadInput where it cannot be read."""
    ledger = read_ledger(folder)
    plan = plan_of(ledger)
    done = [step for step in steps_of(plan) if ledger.is_done(step)]
    found = {step.position: Measured(whole_document_of(ledger.session(step), quiet)) for step in done}
    return results(plan, ledger.sha256, found)


def write_experiment_page(folder: Path, found: Results, out: Path | None) -> Path:
    """Writes the page beside the folder, or to `out`, and says where it is."""
    path = page_path(folder, out)
    steps = [("baseline", found.baseline), *((f"round {r.number}", r.measured) for r in found.rounds)]
    steps += [] if found.again is None else [(AGAIN, found.again)]
    named = [(name, own.document) for name, own in steps if own.document is not None]
    meanings = {verdict.value.replace(" ", "_"): words for verdict, words in MEANING.items()}
    write_page(path, render_experiment(as_json(found), named, meanings))
    return path
