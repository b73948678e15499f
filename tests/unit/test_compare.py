"""`rig compare`: the verdict's rule, what it refuses, and how seldom it sees a change that is not there."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from report_cases import FACTS, run_of

from rig.cli.main import main
from rig.errors import UsageError
from rig.report.render_json import render_json
from rig.report.summary import summarise
from rig.verdict.compare import Change, Verdict, compare
from rig.verdict.render import as_document, as_text
from rig.verdict.steadiness import growth

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs" / "comparison.schema.json").read_text(encoding="utf-8"))
)


def document(
    rng: np.random.Generator, median_s: float, start_sd_s: float = 2e-4, within_s: float = 5e-5, n: int = 3
) -> Any:
    """A measurement of n runs of 12 trials whose starts scatter."""
    runs = []
    for k in range(n):
        start_s = median_s + start_sd_s * rng.standard_normal()
        runs.append(run_of((start_s + within_s * rng.standard_normal(12)).tolist(), run=k + 1))
    return json.loads(render_json(summarise(runs, FACTS)))


def verdict(before: Any, after: Any, **more: Any) -> Verdict | None:
    found = compare(("a", before), ("b", after), more.get("changed"), more.get("allowed", ()))
    SCHEMA.validate(json.loads(json.dumps(as_document(found))))
    assert max(map(len, as_text(found).splitlines())) <= 80
    return found.verdict


def test_a_fall_and_a_rise_are_seen(rng: np.random.Generator) -> None:
    before, after = document(rng, 0.150), document(rng, 0.130)
    assert verdict(before, after) is Verdict.EFFECTIVE
    assert verdict(after, before) is Verdict.WORSE


def test_a_range_that_grew_is_no_success(rng: np.random.Generator) -> None:
    before = document(rng, 0.150, start_sd_s=1e-5)
    after = document(rng, 0.140, start_sd_s=1e-5, within_s=3e-3)
    assert verdict(before, after) is Verdict.UNSTEADY


def test_of_two_alike_a_change_is_seldom_seen(rng: np.random.Generator) -> None:
    seen = [verdict(document(rng, 0.150), document(rng, 0.150)) for _ in range(100)]
    wrong = {v: seen.count(v) for v in (Verdict.EFFECTIVE, Verdict.WORSE, Verdict.UNSTEADY)}
    # At most 2.5 % each by the intervals, 5 % by the deals: more than 5 and 12 of 100 is under 1 in 1000.
    assert wrong[Verdict.EFFECTIVE] <= 5, wrong
    assert wrong[Verdict.WORSE] <= 5, wrong
    assert wrong[Verdict.UNSTEADY] <= 12, wrong


def test_what_else_differs_is_refused_until_it_is_named(rng: np.random.Generator) -> None:
    before, after = document(rng, 0.150), document(rng, 0.130)
    before["environment"], after["environment"] = {"cpu_governor": "powersave"}, {"cpu_governor": "performance"}
    assert verdict(before, after) is None
    assert verdict(before, after, allowed=["cpu_governor"]) is Verdict.EFFECTIVE
    assert verdict(before, after, changed=Change("cpu_governor", "powersave", "performance")) is Verdict.EFFECTIVE
    assert verdict(before, after, changed=Change("another")) is None
    with pytest.raises(UsageError, match="powersave before the change"):
        verdict(after, before, changed=Change("cpu_governor", "powersave", "performance"))


def test_builds_and_claims(rng: np.random.Generator) -> None:
    before, after = document(rng, 0.150), document(rng, 0.130)
    before["build"], after["build"] = "41", "42"
    before["claimed_s"], after["claimed_s"] = {"input": 0.01}, {"input": 0.02}
    assert verdict(before, after) is None
    assert verdict(before, after, changed=Change("build", "41", "42")) is Verdict.EFFECTIVE


def test_too_few_runs_a_refusal_and_other_modes_have_no_verdict(rng: np.random.Generator) -> None:
    whole, two = document(rng, 0.150), document(rng, 0.130, n=2)
    assert verdict(whole, two) is None
    none, turn = copy.deepcopy(whole), copy.deepcopy(whole)
    none["latency_s"] = None
    assert verdict(whole, none) is None
    turn["mode"] = "turn"
    assert verdict(whole, turn) is None


def test_the_deals_of_three_and_three_runs() -> None:
    quiet, loud = [(-1e-3, 1e-3)] * 3, [(-9e-3, 9e-3)] * 3
    found = growth(quiet, 0.0, loud, 0.0)
    assert found.growth_s == pytest.approx(16e-3)
    assert found.share == pytest.approx(1 / 20)
    assert found.grew
    assert not growth(loud, 0.0, quiet, 0.0).grew
    assert not growth(quiet, 0.0, quiet, 0.0).grew
    assert growth(quiet[:2], 0.0, loud, 0.0).grew is None
    assert growth(quiet * 7, 0.0, loud * 7, 0.0).grew, "very many deals are sampled"


@pytest.mark.parametrize("text", ["", "a:", "a: 1", "a: ->", ": 1 -> 2"])
def test_half_a_change_is_a_usage_error(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", str(tmp_path), str(tmp_path), "--changed", text]) == 2
    assert "--changed" in capsys.readouterr().err


def test_what_is_no_measurement_is_refused(tmp_path: Path) -> None:
    """Sessions that were really measured are compared in tests/bench/test_experiment.py."""
    cut = tmp_path / "cut.json"
    cut.write_text('{"schema":"rig.measurement/1","latency_s":{}}')
    assert main(["compare", str(cut), str(cut)]) == 2
    assert main(["compare", str(tmp_path / "absent"), str(cut)]) == 2
