"""One measurement of an experiment: from the plan and a step of it, through the bench, into its session."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rig.acquire.marks_settings import ConfiguredSystem
from rig.cli.bench_choice import DEFAULT_SCENARIO, BenchOptions, ChosenBench
from rig.cli.calibrated import CalibrationChoice, calibration_for, planned
from rig.cli.measure import check_mode
from rig.cli.options import check_channels, check_window, duration_s, one_of, split_stimulus
from rig.cli.progress import Display
from rig.cli.record import MeasureOptions, open_bench, record
from rig.cli.system_facts import system_facts
from rig.errors import BadInput
from rig.experiment.ledger import Ledger
from rig.experiment.plan import COMMAND, CONFIG, ENVIRONMENT, WORLD, Plan, Step
from rig.report.digits import plain
from rig.session.read import hash_file

RUNS, STIMULI = 3, 20

CHECKS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("spacing", "min_latency", "max_latency", "settle"), duration_s),
    "stimulus": split_stimulus,
    "lead_in": lambda text: one_of("lead_in", text, ("speech", "none")),
    "backend": lambda text: one_of("backend", text, ("sounddevice", "pyaudio")),
    "mode": check_mode,
    "needs": lambda text: CalibrationChoice.of("folder", text),
}
"""What a value of [measure] may be, as the options of `rig measure` have it."""


def check_world(device: str, settings: Mapping[str, Any]) -> None:
    """Raises UsageError for settings that no simulated world can have; builds none."""
    from rig.sim.scenarios import find_scenario
    from rig.sim.world import worldly

    find_scenario(device.partition(":")[2] or DEFAULT_SCENARIO).world(worldly(settings))


def played_sha256(plan: Plan) -> str | None:
    """Of the file that the stimulus is; None where none is played. Raises BadInput where it cannot be read."""
    path = split_stimulus(plan.measure.get("stimulus", "chirp"))[1]
    if path is None:
        return None
    try:
        return hash_file(Path(path))
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read: {error.strerror or error}",
            "the recording that is played",
            "check measure.stimulus",
        ) from error


def carry_out(plan: Plan, step: Step, ledger: Ledger, display: Display) -> None:
    """Measures one step into its session. Raises what a measurement raises; what was recorded until then is kept."""
    options = _options(plan, step, ledger)
    with open_bench(_bench(plan, step, options)) as bench:
        settings = plan.values(step, CONFIG)
        configured = _configured(bench, settings, plan) if settings else bench
        choice = CalibrationChoice.of(plan.measure.get("calibration"), plan.measure.get("needs"))
        record(options, configured, display, ledger.session(step), calibration_for(choice, planned(options, bench)))


def _options(plan: Plan, step: Step, ledger: Ledger) -> MeasureOptions:
    at = plan.measure
    kind, wav = split_stimulus(at.get("stimulus", "chirp"))
    ref, ear = at.get("ref", 1), at.get("ear", 2)
    check_channels(ref, ear)
    window = (_duration(at, "min_latency"), _duration(at, "max_latency"))
    check_window(*window)
    lead = at.get("lead_in", "none")
    facts = system_facts(
        at.get("sut"), plan.values(step, ENVIRONMENT), plan.values(step, CONFIG), plan.values(step, WORLD)
    )
    return MeasureOptions(
        # Each measurement draws its own: a start of the system is never the same twice, a simulated one neither.
        seed=plan.seed + step.position,
        rate_hz=at.get("rate", 48_000),
        runs=at.get("runs", RUNS),
        stimuli=at.get("stimuli", STIMULI),
        stimulus=kind,
        wav=wav,
        lead_in=None if lead == "none" else lead,
        ref=ref,
        ear=ear,
        min_latency_s=window[0],
        max_latency_s=window[1],
        limit_s=None,
        spacing_s=_duration(at, "spacing"),
        mode=at.get("mode", "call"),
        build=at.get("build"),
        blank=at.get("blank", True),
        out=ledger.session(step),
        system={**facts, **{name: plain(value) for name, value in plan.values(step, COMMAND).items()}},
        experiment=ledger.mark(step),
    )


def _bench(plan: Plan, step: Step, options: MeasureOptions) -> BenchOptions:
    at, port = plan.measure, plan.measure.get("port", "auto")
    sut: str | None = plan.measure.get("sut")
    for name, value in plan.values(step, COMMAND).items():
        assert sut is not None, "a value in the command has a command"
        sut = sut.replace("{" + name + "}", shlex.quote(_word(value)))
    return BenchOptions(
        device=at["device"],
        port=port,
        sut=sut,
        seed=options.seed,
        backend=at.get("backend", "sounddevice"),
        inputs=max(2, options.ref, options.ear),
        plays=port == "none" or options.lead_in is not None or options.wav is not None,
        sut_ready=at.get("sut_ready"),
        marks=Path(at["marks"]) if "marks" in at else None,
        world=plan.values(step, WORLD),
        environ={name: _word(value) for name, value in plan.values(step, ENVIRONMENT).items()},
    )


def _configured(bench: ChosenBench, settings: dict[str, Any], plan: Plan) -> ChosenBench:
    settle_s = _duration(plan.measure, "settle") or 0.0
    return replace(bench, system=ConfiguredSystem(bench.system, bench.marks, settings, bench.time, settle_s))


def _word(value: Any) -> str:
    """A value as a command and a variable take it: true and false as words, numbers as written."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _duration(at: Mapping[str, Any], key: str) -> float | None:
    return duration_s(at[key]) if key in at else None
