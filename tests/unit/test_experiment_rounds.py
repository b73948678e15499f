"""The table of an experiment: which verdict a round has, when it has none, and that a bench that drifted is seen."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
from report_cases import FACTS
from stage_cases import CALL, document_with_stages
from test_html import words_of

from rig.cli.experiment import exit_code
from rig.experiment.plan import Parameter, Plan, Round
from rig.experiment.render import as_json, as_text
from rig.experiment.rounds import Measured, Results, results
from rig.report.html.experiment import render_experiment
from rig.verdict.compare import Verdict
from rig.verdict.render import MEANING

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA, COMPARISON = (
    jsonschema.Draft202012Validator(json.loads((DOCS / f"{name}.schema.json").read_text(encoding="utf-8")))
    for name in ("experiment", "comparison")
)

PLAN = Plan(
    name="buffers",
    measure={"device": "USB Audio", "sut": "app --target {target}"},
    parameters=(Parameter("target", "command", 70),),
    rounds=(Round("target", 50, "play", ()), Round("target", 90, None, ())),
    shuffled=False,
    repeats_baseline=True,
    seed=1,
    allow=(),
)


def document(rng: np.random.Generator, target: int, **more: Any) -> Any:
    """A call with so much of play, whose record says how it was set."""
    facts = replace(FACTS, system=(("command", "app"), ("--target", "{target}"), ("target", str(target))))
    stages = {**CALL, "play": (target * 1e-3, 5e-4)}
    return document_with_stages(rng, stages, facts=facts, start_sd_s=1e-4, **more)


def table(plan: Plan, *documents: Any) -> Results:
    """The results of as many steps as there are documents, held to their schemas and to 80 columns."""
    measured = {k: d if isinstance(d, Measured) else Measured(d) for k, d in enumerate(documents) if d is not None}
    found = results(plan, "ab" * 32, measured)
    said = json.loads(json.dumps(as_json(found)))
    SCHEMA.validate(said)
    for r in said["rounds"]:
        for name in ("against_baseline", "against_baseline_again"):
            if r[name] is not None:
                COMPARISON.validate(r[name])
    assert max(map(len, as_text(found).splitlines())) <= 80
    named = [(f"m{k}", own.document) for k, own in measured.items() if own.document is not None]
    page = words_of(render_experiment(said, named, {v.value.replace(" ", "_"): m for v, m in MEANING.items()}))
    for r in found.rounds:
        assert (r.refused or r.verdict or "") in page
    return found


def test_each_round_has_its_verdict(rng: np.random.Generator) -> None:
    found = table(PLAN, document(rng, 70), document(rng, 50), document(rng, 90), document(rng, 70))
    assert [r.verdict for r in found.rounds] == [Verdict.EFFECTIVE, Verdict.WORSE]
    assert found.is_complete
    assert exit_code(found) == 3
    assert "none was seen" in as_text(found)
    text = " ".join(as_text(found).split())
    assert "target 70 -> 50 (for play)" in text
    assert "effective: the median fell" in text


def test_a_verdict_stands_only_where_it_holds_against_both_baselines(rng: np.random.Generator) -> None:
    """The bench became 20 ms faster by itself: against the first baseline the first round looks like a success."""
    drifted = table(PLAN, document(rng, 70), document(rng, 50), document(rng, 90), at(document(rng, 50), 70))
    first = drifted.rounds[0]
    assert first.before is not None
    assert first.before.verdict is Verdict.EFFECTIVE
    assert first.verdict is None
    assert "drifted" in (first.refused or "")
    assert drifted.rounds[1].verdict is Verdict.WORSE
    assert exit_code(drifted) == 7
    assert drifted.drift is not None
    assert drifted.drift.verdict is Verdict.EFFECTIVE
    assert "effective at the end" in as_text(drifted)
    unwatched = replace(PLAN, repeats_baseline=False)
    trusted = table(unwatched, document(rng, 70), document(rng, 50), document(rng, 90))
    assert trusted.rounds[0].verdict is Verdict.EFFECTIVE
    assert "not watched" in as_text(trusted)


def at(d: Any, target: int) -> Any:
    d["system"]["target"] = str(target)
    return d


def test_what_was_not_measured_is_no_verdict_and_says_why(rng: np.random.Generator) -> None:
    failed = Measured(error=("the system did not start", "a command", "run it by hand"))
    found = table(PLAN, document(rng, 70), failed, document(rng, 90))
    assert [r.verdict for r in found.rounds] == [None, None]
    assert found.rounds[0].refused == "the system did not start"
    assert found.rounds[1].refused == "the baseline at the end was not measured"
    assert not found.is_complete
    text = " ".join(as_text(found).split())
    assert "NOT COMPLETE" in text
    assert "remedy: run it by hand" in text
    nothing = table(PLAN)
    assert {r.refused for r in nothing.rounds} == {"not measured"}


def test_what_else_differs_is_listed_and_may_be_allowed(rng: np.random.Generator) -> None:
    documents = [document(rng, 70), document(rng, 50), document(rng, 90), document(rng, 70)]
    documents[1]["reconciliation"]["frame_s"] = 0.010
    found = table(PLAN, *documents)
    assert found.rounds[0].refused == "more differs than the one change"
    assert "frame_ms: 20 -> 10" in as_text(found)
    allowed = replace(PLAN, rounds=(replace(PLAN.rounds[0], allow=("frame_ms",)), PLAN.rounds[1]))
    assert table(allowed, *documents).rounds[0].verdict is Verdict.EFFECTIVE


def test_too_few_runs_and_many_rounds(rng: np.random.Generator) -> None:
    plan = replace(PLAN, rounds=tuple(Round("target", k, None, ()) for k in range(1, 13)), repeats_baseline=False)
    found = table(plan, document(rng, 70), *(document(rng, k, runs=1) for k in range(1, 13)))
    assert all("fewer than 3 runs" in (r.refused or "") for r in found.rounds)
    assert all(f"round {k}" in as_text(found) for k in range(1, 13))
