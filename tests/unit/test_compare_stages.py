"""`rig compare` on measurements with stages: which verdict, when, and what else it looks at before it gives one."""

from __future__ import annotations

import copy
import json
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from stage_cases import CALL, document_with_stages

from rig.errors import UsageError
from rig.verdict.compare import Change, Comparison, Verdict, compare
from rig.verdict.render import as_document, as_text

SCHEMA = jsonschema.Draft202012Validator(
    json.loads((Path(__file__).parents[2] / "docs" / "comparison.schema.json").read_text(encoding="utf-8"))
)


def compared(before: Any, after: Any, stage: str | None = None, **more: Any) -> Comparison:
    found = compare(("a", before), ("b", after), more.get("changed"), more.get("allowed", ()), stage)
    SCHEMA.validate(json.loads(json.dumps(as_document(found))))
    assert max(map(len, as_text(found).splitlines())) <= 80
    return found


def shifted(**by_s: float) -> dict[str, tuple[float, float]]:
    """The stages of a call, some of them longer."""
    return {name: (at_s + by_s.get(name, 0.0), sd_s) for name, (at_s, sd_s) in CALL.items()}


def test_a_stage_that_fell_is_effective_even_where_the_total_cannot_tell(rng: np.random.Generator) -> None:
    """Starts differ by 2 ms in the network: 4 ms less of play do not show in the total of three runs."""
    before = document_with_stages(rng, wait="network", start_sd_s=2e-3)
    after = document_with_stages(rng, shifted(play=-4e-3), wait="network", start_sd_s=2e-3)
    named = compared(before, after, "play")
    assert named.verdict is Verdict.EFFECTIVE
    assert named.total is not None
    assert not named.total.fell
    assert compared(before, after).verdict is Verdict.NO_EFFECT, "of seven stages one falls by chance too often"
    assert compared(after, before, "play").verdict is Verdict.WORSE


def test_time_that_went_elsewhere_is_moved(rng: np.random.Generator) -> None:
    before, after = document_with_stages(rng), document_with_stages(rng, shifted(play=-5e-3, network=5e-3))
    for stage in (None, "play", "network", "network + server"):
        assert compared(before, after, stage).verdict is Verdict.MOVED, stage


def test_a_total_that_fell_elsewhere_is_no_effect_of_the_change(rng: np.random.Generator) -> None:
    found = compared(document_with_stages(rng), document_with_stages(rng, shifted(network=-5e-3)), "play")
    assert found.verdict is Verdict.NO_EFFECT
    assert any("play did not" in caveat for caveat in found.caveats)


def test_a_stage_that_fell_and_became_unsteady_is_no_success(rng: np.random.Generator) -> None:
    after = {**shifted(), "play": (0.060, 4e-3)}
    before, later = document_with_stages(rng), document_with_stages(rng, after)
    for stage in (None, "play"):
        assert compared(before, later, stage).verdict is Verdict.UNSTEADY, stage
    grown = {s.name: s.range_grew for s in compared(before, later).stages or ()}
    assert grown == {"capture": False, "frame_fill": False, "network": False, "play": True, "output": False}


def test_of_two_alike_a_stage_is_seldom_seen_to_change(rng: np.random.Generator) -> None:
    seen = Counter(
        compared(document_with_stages(rng, trials=6), document_with_stages(rng, trials=6), "play").verdict
        for _ in range(40)
    )
    # Each of effective, worse and moved at most 2.5 %, unsteady 5 % for the total and 5 % for the stage.
    assert max(seen[v] for v in (Verdict.EFFECTIVE, Verdict.WORSE, Verdict.MOVED)) <= 4, seen
    assert seen[Verdict.UNSTEADY] <= 11, seen


def test_a_stage_that_nobody_has_is_named_back(rng: np.random.Generator) -> None:
    before, after = document_with_stages(rng), document_with_stages(rng)
    with pytest.raises(UsageError, match="no stage is called 'playout'"):
        compared(before, after, "playout")
    after["stages"] = after["reconciliation"] = None
    found = compared(before, after, "play")
    assert (found.verdict, found.refused) == (None, "the stage play was not found on both sides")


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        (("reconciliation", "frame_s"), 0.010, "frame_ms"),
        (("plan", "wav_sha256"), "ab" * 32, "plan: wav_sha256"),
        (("plan", "stimulus"), "wav", "plan: stimulus"),
        (("asked", "rate_hz"), 44_100, "asked: rate_hz"),
        (("granted", "channels"), 4, "granted: channels"),
        (("granted", "block_frames"), 64, "granted: block_frames"),
        (("device",), "another", "device"),
        (("build",), "8f2c", "build"),
        (("environment", "power_profile"), "power-saver", "environment: power_profile"),
        (("system", "--buffer"), "128", "system: --buffer"),
        (("system", "$JITTER"), "fixed", "system: $JITTER"),
        (("config", "jitterBufferTarget"), "200", "config: jitterBufferTarget"),
        (("corrections",), [{"name": "skew", "calibration": "skew.2026-02-01"}], "corrections: skew"),
    ],
)
def test_what_else_differs_is_refused_and_listed(
    rng: np.random.Generator, path: tuple[str, ...], value: object, name: str
) -> None:
    before = document_with_stages(rng, trials=4)
    before["scenario"] = None  # as on a real bench: a simulated device is its scenario
    before["corrections"] = [{"name": "skew", "calibration": "skew.2026-01-05"}]
    before["config"] = {"latencyHint": "interactive"}
    after = copy.deepcopy(before)
    at = after
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    found = compared(before, after)
    assert (found.verdict, found.refused) == (None, "more differs than the one change")
    assert [one.name for one in found.apart] == [name]
    assert f"{name.rpartition(': ')[2]}: " in as_text(found)
    bare = name.rpartition(": ")[2].lstrip("-$")
    assert compared(before, after, changed=Change(bare)).verdict is Verdict.NO_EFFECT
    assert compared(before, after, allowed=[name]).verdict is Verdict.NO_EFFECT
