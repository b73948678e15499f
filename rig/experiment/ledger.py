"""An experiment's folder: the plan it belongs to, and which of its measurements are there. A session says itself which
round of which plan it is, so that nothing else has to be kept up to date."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.errors import BadInput, UsageError
from rig.experiment.plan import Plan, Step, steps_of
from rig.rawfile import replace_text

SCHEMA = "rig.experiment-folder/1"
FILE = "experiment.json"
_MANIFEST = "manifest.json"


@dataclass(frozen=True, slots=True)
class Ledger:
    """The folder of an experiment, and the plan as it was when it began."""

    folder: Path
    sha256: str
    plan: dict[str, Any]

    def session(self, step: Step) -> Path:
        return self.folder / step.folder

    def is_done(self, step: Step) -> bool:
        """Whether the step's session is there and whole.

        Raises UsageError where its folder holds something else: nothing of the user's is moved or overwritten."""
        path = self.session(step)
        if not path.exists() or (path.is_dir() and not any(path.iterdir())):
            return False
        manifest: dict[str, Any] = {}
        with contextlib.suppress(BadInput):
            manifest = strictjson.read_object(path / _MANIFEST)
        if manifest.get("experiment") != self.mark(step):
            raise UsageError(
                f"{path} is not the session of this round",
                "a session of this plan and round, or no folder",
                "move it away, or choose another folder with --out",
            )
        return manifest.get("status") == "complete"

    def make_room(self, step: Step) -> Path | None:
        """Moves a session of the step that was cut short aside, and says where to; None where there was none."""
        path = self.session(step)
        if self.is_done(step) or not path.exists() or not any(path.iterdir()):
            return None
        number = 1
        while (aside := path.with_name(f"{path.name}.cut-{number}")).exists():
            number += 1
        try:
            path.rename(aside)
        except OSError as error:
            raise UsageError(
                f"{path} cannot be moved aside: {error.strerror or error}",
                "a folder that this user may write",
                "choose another one with --out",
            ) from error
        return aside

    def mark(self, step: Step) -> dict[str, Any]:
        """What a session says of itself: which step of which plan it is."""
        return {"plan_sha256": self.sha256, "position": step.position, "round": step.round, "kind": step.kind}


def open_ledger(folder: Path, plan: Plan, played_sha256: str | None) -> Ledger:
    """The experiment in the folder, begun now or before with the same plan.

    Raises UsageError for a folder with something else in it, or where the plan has changed since it began."""
    sha256 = plan.sha256(played_sha256)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        occupied = any(folder.iterdir())
    except OSError as error:
        raise UsageError(
            f"the folder {folder} cannot be made: {error.strerror or error}",
            "a folder for the experiment that this user may write",
            "choose another one with --out",
        ) from error
    if not (folder / FILE).exists():
        if occupied:
            raise UsageError(
                f"the folder {folder} is not empty, and holds no experiment",
                "a new or an empty folder, or that of this experiment",
                "choose another one with --out",
            )
        text = {"schema": SCHEMA, "plan_sha256": sha256, "plan": plan.as_json()}
        order = [{"position": s.position, "kind": s.kind, "round": s.round, "folder": s.folder} for s in steps_of(plan)]
        replace_text(folder / FILE, strictjson.dump({**text, "order": order}, indent=1) + "\n")
        return Ledger(folder, sha256, plan.as_json())
    begun = read_ledger(folder)
    if begun.sha256 != sha256:
        now, then = plan.as_json(), begun.plan
        keys = [key for key in now if now[key] != then.get(key)] or ["the file that is played"]
        raise UsageError(
            f"the plan is not the one that {folder} was begun with: {', '.join(keys)} differ",
            "the same plan: rounds of two plans make no table",
            "put the plan back as it was, or begin anew with --out FOLDER",
        )
    return begun


def read_ledger(folder: Path) -> Ledger:
    """The experiment that a folder holds. Raises BadInput where it holds none that can be read."""
    raw = strictjson.read_object(folder / FILE)
    sha256, plan = raw.get("plan_sha256"), raw.get("plan")
    if raw.get("schema") != SCHEMA or not isinstance(sha256, str) or not isinstance(plan, dict):
        raise BadInput(f"{FILE} is no experiment's of this version", SCHEMA, "run rig experiment with its plan anew")
    return Ledger(folder, sha256, plan)


def plan_of(ledger: Ledger) -> Plan:
    """The plan that a folder was begun with. Raises BadInput where its file was changed by hand."""
    from rig.experiment.plan import Parameter, Round

    p = ledger.plan
    try:
        return Plan(
            name=str(p["name"]),
            measure=dict(p["measure"]),
            parameters=tuple(Parameter(**one) for one in p["parameters"]),
            rounds=tuple(Round(**{**one, "allow": tuple(one["allow"])}) for one in p["rounds"]),
            shuffled=bool(p["shuffled"]),
            repeats_baseline=bool(p["repeats_baseline"]),
            seed=int(p["seed"]),
            allow=tuple(p["allow"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(
            f"{FILE} holds no whole plan ({type(error).__name__}: {error})", SCHEMA, "run rig experiment with its plan"
        ) from error
