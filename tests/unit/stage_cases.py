"""Measurements with stages, built from values: the latency is the sum of the stages, and the table is rig's own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from report_cases import FACTS, run_of

from rig.domain.report import MeasurementFacts, Report
from rig.domain.stages import BY_RIG, BY_SOFTWARE, CAPTURE, FILL, OUTPUT, RunStages, StageSample
from rig.report.render_json import render_json
from rig.report.stages import stage_table_of
from rig.report.summary import summarise

CALL: dict[str, tuple[float, float]] = {
    CAPTURE: (0.012, 2e-5),
    FILL: (0.020, 0.0),
    "network": (0.018, 5e-4),
    "play": (0.070, 5e-4),
    OUTPUT: (0.030, 2e-5),
}
"""Median and spread from trial to trial of each stage, s."""

CLAIMS_S = {CAPTURE: 0.005, OUTPUT: 0.0125}
HALF_WIDTH_S = 2e-4


def report_with_stages(
    rng: np.random.Generator,
    stages: Mapping[str, tuple[float, float]] = CALL,
    *,
    start_sd_s: float = 2e-4,
    runs: int = 3,
    trials: int = 12,
    facts: MeasurementFacts = FACTS,
    wait: str = "play",
) -> Report:
    """A report of `runs` starts; `start_sd_s` is how much the stage `wait` differs from start to start."""
    analyses, found = [], []
    for k in range(runs):
        start_s = start_sd_s * rng.standard_normal()
        values = {name: at_s + sd_s * rng.standard_normal(trials) for name, (at_s, sd_s) in stages.items()}
        values[wait] = values[wait] + start_s
        analysis = run_of(np.sum(list(values.values()), axis=0), run=k + 1)
        analyses.append(analysis)
        indices = tuple(t.index for t in analysis.trials)
        samples = tuple(_sample(name, tuple(map(float, own)), indices) for name, own in values.items())
        found.append(
            RunStages(
                run=k + 1,
                samples=samples,
                carriers=tuple((t, 10 * t) for t in indices),
                missing=(),
                residuals_s=(0.0,) * trials,
                hidden=replace(samples[0], name="capture + output", half_width_s=0.0, u_common_s=0.0),
                tie="boot",
                no_split_because=None,
                half_width_s=HALF_WIDTH_S,
                resolution_s=None,
                frame_s=0.020,
                fillings_s=(0.007,) * trials,
            )
        )
    return summarise(analyses, facts, stage_table_of(found, analyses))


def document_with_stages(
    rng: np.random.Generator, stages: Mapping[str, tuple[float, float]] = CALL, **more: Any
) -> Any:
    """The JSON document of such a report."""
    return json.loads(render_json(report_with_stages(rng, stages, **more)))


def _sample(name: str, values_s: tuple[float, ...], trials: tuple[int, ...]) -> StageSample:
    if name not in CLAIMS_S:
        return StageSample(name, BY_SOFTWARE, values_s, trials)
    bound = {"u_common_s": HALF_WIDTH_S / 3**0.5, "half_width_s": HALF_WIDTH_S}
    claim = {"claimed_s": CLAIMS_S[name], "claimed_by": f"stream.{name}"}
    return StageSample(name, BY_RIG, values_s, trials, **bound, **claim)  # type: ignore[arg-type]
