"""Which bench `--device` and `--port` mean. The one place where concrete backends are built: real ones slot in here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rig.domain.records import BenchKind
from rig.domain.seams import AudioBackend, BytePipe, HostTime, SystemUnderTest
from rig.errors import BenchNotReady, UsageError

SIM = "sim"
EMULATED = "emulated"
DEFAULT_SCENARIO = "default"


@dataclass(frozen=True, slots=True)
class ChosenBench:
    """A bench behind the seams. `pipe` None: no board. `truth` None: nobody knows it."""

    kind: BenchKind
    device: str
    scenario: str | None
    audio: AudioBackend
    pipe: BytePipe | None
    system: SystemUnderTest
    time: HostTime
    truth: Callable[[], dict[str, Any]] | None


def choose_bench(device: str, port: str, sut: str | None, seed: int) -> ChosenBench:
    """Builds the bench that the options name.

    `device` is `sim` or `sim:SCENARIO`; `port` auto, none, emulated or a path; `sut` a command or None. Raises
    BenchNotReady for a device that this version cannot reach, MissingLibrary where the emulator cannot be built,
    DeviceNotFound for a scenario that does not exist, and UsageError where the options contradict each other.
    """
    name, colon, scenario = device.partition(":")
    if name != SIM or (colon and not scenario):
        raise BenchNotReady(
            f"the device {device!r} cannot be used: this version measures on the simulated bench only",
            "sim, or sim:SCENARIO (rig sim list shows the scenarios)",
            "record both channels with any recorder and give the file to rig analyze",
        )
    if port not in ("auto", "none", EMULATED):
        raise UsageError(
            f"--port {port}: the simulated bench brings its own board",
            "auto (the scripted board), emulated (the firmware itself) or none (the interface plays the stimulus)",
            "leave --port out",
        )
    if sut is not None:
        raise UsageError(
            "--sut: the simulated bench brings its own system under test",
            "no --sut with --device sim",
            "leave --sut out; --device sim:SCENARIO chooses another system",
        )
    from rig.sim.bench import build_bench

    emulator = None
    if port == EMULATED:
        from rig.firmware.images import emulator_command

        emulator = emulator_command()
    bench = build_bench(scenario or DEFAULT_SCENARIO, seed, emulator=emulator)
    return ChosenBench(
        kind=BenchKind.SIMULATED,
        device=f"{SIM}:{bench.scenario.name}",
        scenario=bench.scenario.name,
        audio=bench.audio,
        pipe=None if port == "none" else bench.pipe,
        system=bench.system,
        time=bench.time,
        truth=bench.truth,
    )
