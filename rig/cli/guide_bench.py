"""The bench of a calibration: each recording is a session on disk, made by the runner that measurements use.

A real interface is wired by a person; the simulated one is wired anew for every recording (`rig/sim/wiring.py`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol

from rig.bench import BenchPlan, run_plan
from rig.bench.calibration import calibration_plan
from rig.cli.bench_choice import DEFAULT_SCENARIO, BenchOptions, ChosenBench, choose_bench, is_simulated
from rig.domain.calibration import DeviceIdentity
from rig.domain.records import BenchKind, ChannelRoles
from rig.domain.seams import ProgressSink
from rig.environment import environment
from rig.session import SessionWriter


@dataclass(frozen=True, slots=True)
class Wanted:
    """One recording of a step. `count` chirps, or `quiet_s` of silence where nothing is connected; None: as planned."""

    wiring: str
    count: int
    amplitude: float
    quiet_s: float | None = None
    distance_m: float | None = None  # of the ear's microphone from the mouth, where the step has one


@dataclass(frozen=True, slots=True)
class Sized:
    """What a ruler or a thermometer said, with its standard uncertainty in the same unit."""

    value: float
    u: float


class GuideBench(Protocol):
    """What a calibration is made on."""

    kind: BenchKind
    device: str
    identity: DeviceIdentity
    host_clock_u_ppm: float

    def record(self, wanted: Wanted, folder: Path, progress: ProgressSink) -> None:
        """Records into a new session in `folder`. Raises what the bench raises; what was recorded is kept."""
        ...

    def ruler(self, place: str) -> Sized | None:
        """The distance at `mouth`, `ear` or `air` in m; None: a person has to read it."""
        ...

    def thermometer(self) -> Sized | None:
        """Degrees Celsius; None: a person has to read it."""
        ...

    def put_right(self) -> None:
        """A mistake was told to whoever wires the bench."""
        ...


class RealBench:
    """An interface whose cables a person plugs."""

    def __init__(self, bench: ChosenBench, roles: ChannelRoles, rate_hz: int, seed: int, u_ppm: float) -> None:
        self._bench = bench
        self._roles = roles
        self._rate_hz = rate_hz
        self._seed = seed
        self.kind, self.device, self.identity = bench.kind, bench.device, bench.identity
        self.host_clock_u_ppm = u_ppm

    def record(self, wanted: Wanted, folder: Path, progress: ProgressSink) -> None:
        self._seed += 1
        _record(self._bench, wanted, self._roles, self._rate_hz, self._seed, folder, progress)

    def ruler(self, place: str) -> Sized | None:
        return None

    def thermometer(self) -> Sized | None:
        return None

    def put_right(self) -> None:
        """The person does it."""


class SimulatedBench:
    """A world that is wired for each recording as its step asks; `seed` is the device."""

    host_clock_u_ppm = 0.0
    """The host's clock is what the world's true time is."""

    def __init__(self, options: BenchOptions, roles: ChannelRoles, rate_hz: int) -> None:
        from rig.sim.scenarios import find_scenario

        _, _, scenario = options.device.partition(":")
        self._scenario = scenario or DEFAULT_SCENARIO
        self._spec = find_scenario(self._scenario).world()
        self._options = options
        self._roles = roles
        self._rate_hz = rate_hz
        self._made = 0
        self._mended: dict[str, Any] = {}
        self._true_m: float | None = None
        bench = choose_bench(options)
        self.kind, self.device, self.identity = bench.kind, bench.device, bench.identity

    def record(self, wanted: Wanted, folder: Path, progress: ProgressSink) -> None:
        from rig.sim.bench import build_bench
        from rig.sim.wiring import rewired

        distance_m = wanted.distance_m if self._true_m is None else self._true_m
        spec = replace(self._spec, **self._mended)
        world = build_bench(
            self._scenario,
            self._options.seed,
            **{**self._mended, **rewired(spec, wanted.wiring, distance_m), "rate_hz": self._rate_hz},
        )
        bench = ChosenBench(
            kind=BenchKind.SIMULATED,
            device=self.device,
            scenario=self._scenario,
            audio=world.audio,
            pipe=None,
            system=world.system,
            time=world.time,
            truth=world.truth,
            identity=self.identity,
        )
        self._made += 1
        _record(bench, wanted, self._roles, self._rate_hz, self._made, folder, progress)

    def ruler(self, place: str) -> Sized | None:
        from rig.sim.hand import RULER_U_M, read_ruler

        said_m, true_m = read_ruler(self._spec, self._options.seed, place)
        if place == "air":
            self._true_m = true_m
        return Sized(said_m, RULER_U_M)

    def thermometer(self) -> Sized | None:
        from rig.sim.hand import THERMOMETER_U_C, read_thermometer

        return Sized(read_thermometer(self._options.seed), THERMOMETER_U_C)

    def put_right(self) -> None:
        from rig.sim.hand import put_right

        self._mended = put_right(self._spec)


def _record(
    bench: ChosenBench,
    wanted: Wanted,
    roles: ChannelRoles,
    rate_hz: int,
    seed: int,
    folder: Path,
    progress: ProgressSink,
) -> None:
    plan = plan_of(wanted, bench.device, rate_hz, roles, seed)
    manifest = {
        "bench": bench.kind,
        "device": bench.device,
        "backend": bench.audio.name,
        "scenario": bench.scenario,
        "seed": seed,
        "mode": plan.mode,
        "roles": {"ref": roles.ref, "ear": roles.ear},
        "runs_planned": len(plan.stimuli),
        "options": {"step": wanted.wiring, "distance_m": wanted.distance_m},
        "started": None if bench.kind is BenchKind.SIMULATED else datetime.now(UTC).isoformat(timespec="milliseconds"),
        "host_clock": bench.time.timebase.identity,
        "started_host_s": bench.time.now().seconds,
        "environment": environment(),
    }
    writer = SessionWriter.create(folder, manifest, bench.time)
    writer.note(identity=asdict(bench.identity))
    run_plan(plan, bench.audio, None, bench.system, bench.time, writer, _with_truth(bench.truth, writer, progress))


def plan_of(wanted: Wanted, device: str, rate_hz: int, roles: ChannelRoles, seed: int) -> BenchPlan:
    """The plan of one recording."""
    plan = calibration_plan(wanted.wiring, device, rate_hz, roles, seed, wanted.count, wanted.amplitude)
    return plan if wanted.quiet_s is None else replace(plan, settle_s=wanted.quiet_s)


def _with_truth(
    truth: Callable[[], dict[str, Any]] | None, writer: SessionWriter, progress: ProgressSink
) -> ProgressSink:
    def told(event: str, facts: dict[str, object]) -> None:
        # As in a measurement: the truth must be on disk before the session is finished and hashed.
        if event == "run_done" and truth is not None:
            writer.write_truth(truth())
        progress(event, facts)

    return told


def open_guide_bench(
    device: str, ref: int, ear: int, *, rate_hz: int, seed: int, backend: str, stack: contextlib.ExitStack
) -> GuideBench:
    """The bench that a --device means; channels zero-based. Raises what `choose_bench` raises."""
    roles = ChannelRoles(ref, ear)
    options = BenchOptions(device, "none", None, seed, backend, max(2, ref + 1, ear + 1), plays=True)
    if is_simulated(device):
        return SimulatedBench(options, roles, rate_hz)
    from rig.acquire.hostclock import rate_u_ppm
    from rig.cli.quiet import quiet_libraries

    chatter = stack.enter_context(quiet_libraries())
    return RealBench(choose_bench(options, chatter), roles, rate_hz, seed, rate_u_ppm())
