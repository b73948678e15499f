"""Which bench `--device`, `--port` and `--sut` mean. The one place where concrete backends are built."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rig.acquire.chatter import Chatter
from rig.acquire.identity import identify
from rig.acquire.marksfile import MarksFile
from rig.acquire.portaudio import PortBackend
from rig.domain.calibration import DeviceIdentity
from rig.domain.records import BenchKind
from rig.domain.seams import AudioBackend, BytePipe, HostTime, MarksSource, SystemUnderTest
from rig.errors import BenchNotReady, UsageError
from rig.virtual.bench import BENCH_VARIABLE, BOARD_LATE_S

if TYPE_CHECKING:
    from rig.sim.alive import Living

SIM = "sim"
EMULATED = "emulated"
DEFAULT_SCENARIO = "default"
BACKENDS = ("sounddevice", "pyaudio")


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What the command line says about the bench. `plays`: the interface has to play something itself. `sut_ready`: how
    the line begins by which the system says that it is ready. `world`: settings of a simulated one that differ from its
    scenario's. `environ`: variables set for the command of the system under test."""

    device: str
    port: str
    sut: str | None
    seed: int
    backend: str
    inputs: int
    plays: bool
    sut_ready: str | None = None
    marks: Path | None = None
    world: Mapping[str, Any] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)


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
    identity: DeviceIdentity
    marks: MarksSource | None = None
    board_late_s: float = 0.0  # at most so long after the board has fired is its sound on the recording


def is_listen(marks: str) -> bool:
    """Whether a --marks asks for the endpoint and names no file."""
    return marks == "listen" or marks.startswith("listen:")


def is_simulated(device: str) -> bool:
    """Whether a --device is the simulated bench, with a scenario or without."""
    return device.partition(":")[0] == SIM


def choose_bench(options: BenchOptions, chatter: Chatter | None = None) -> ChosenBench:
    """Builds the bench that the options name.

    `device` is `sim` or `sim:SCENARIO`, or what `choose_device` takes; `port` auto, none or a path, and for
    the simulated bench emulated too, or the path of an emulated board. Raises DeviceNotFound and DeviceAmbiguous for a
    device, PortNotFound and PortDenied for a port, MissingLibrary where a library or the emulator is missing, and
    UsageError where the options contradict each other.
    """
    if options.sut is None and options.sut_ready is not None:
        raise UsageError(
            "--sut-ready without --sut: there is no command whose output could be read",
            "--sut with the command that starts the system",
            "give --sut, or leave --sut-ready out",
        )
    if options.world and not is_simulated(options.device):
        raise UsageError(
            f"--set {next(iter(options.world))}: only a simulated world can be set",
            "--device sim or sim:SCENARIO",
            "leave --set out",
        )
    return _simulated(options) if is_simulated(options.device) else _real(options, chatter)


def open_backend(name: str, time: HostTime, plays: bool, chatter: Chatter | None) -> PortBackend:
    """The audio backend of that name. Raises UsageError for another one, MissingLibrary where its library is not."""
    if name == "sounddevice":
        from rig.acquire.audio_sounddevice import SounddeviceBackend

        return SounddeviceBackend(time, plays=plays, chatter=chatter)
    if name == "pyaudio":
        from rig.acquire.audio_pyaudio import PyaudioBackend

        return PyaudioBackend(time, plays=plays, chatter=chatter)
    raise UsageError(f"--backend {name}: there is no such backend", f"one of {', '.join(BACKENDS)}", "leave it out")


def real_kind() -> BenchKind:
    """Hardware, unless this program runs inside a virtual bench, which says so in the environment."""
    return BenchKind.VIRTUAL if os.environ.get(BENCH_VARIABLE) else BenchKind.HARDWARE


def _real(options: BenchOptions, chatter: Chatter | None) -> ChosenBench:
    if options.port == EMULATED:
        raise UsageError(
            "--port emulated: only the simulated bench brings an emulated board",
            "auto, none, or the path of a serial port",
            "rig measure --device sim --port emulated",
        )
    from rig.acquire.link import SerialPipe, SystemTime, list_ports, probe
    from rig.acquire.ports import choose_port
    from rig.acquire.process import CommandSystem, SelfRunningSystem

    time = SystemTime()
    audio = open_backend(options.backend, time, options.plays, chatter)
    chosen = audio.choose(options.device, options.inputs)
    pipe = None
    if options.port != "none":
        ports, port = list_ports(), options.port
        if port == "auto":
            port = choose_port(ports, lambda candidate: probe(candidate, time)).path
        pipe = SerialPipe(port, time, listed=port in {known.path for known in ports})
    marks: MarksSource | None = None
    told = dict(options.environ)
    if options.marks is not None and is_listen(str(options.marks)):
        from rig.acquire.marks_listen import MARKS_VARIABLE, MarksListener, listen_address

        marks = MarksListener(*listen_address(str(options.marks)), time)
        told[MARKS_VARIABLE] = marks.address
    elif options.marks is not None:
        marks = MarksFile(options.marks)
    system = (
        SelfRunningSystem() if options.sut is None else CommandSystem(options.sut, says=options.sut_ready, environ=told)
    )
    return ChosenBench(
        kind=real_kind(),
        device=chosen.name,
        scenario=None,
        audio=audio,
        pipe=pipe,
        system=system,
        time=time,
        truth=None,
        identity=identify(real_kind().value, chosen.name, chosen.host_api),
        marks=marks,
        board_late_s=BOARD_LATE_S if real_kind() is BenchKind.VIRTUAL and pipe is not None else 0.0,
    )


def _living(port: str) -> Living:
    """The emulated board that runs at a path, opened like a real one.

    Raises UsageError where none ever was, PortNotFound where it does not run any more.
    """
    from rig.acquire.link import SerialPipe, SystemTime
    from rig.sim.alive import Living, RealTime
    from rig.sim.pins import Pins

    time, pins = SystemTime(), Pins(port)  # first, so that nothing of what the board does is missed
    try:
        return Living(SerialPipe(port, time), pins, RealTime(time))
    except BaseException:
        pins.close()
        raise


def _simulated(options: BenchOptions) -> ChosenBench:
    _, colon, scenario = options.device.partition(":")
    if colon and not scenario:
        raise BenchNotReady(
            f"the device {options.device!r} names no scenario",
            "sim, or sim:SCENARIO",
            "rig sim list shows the scenarios",
        )
    if options.sut is not None:
        raise UsageError(
            "--sut: the simulated bench brings its own system under test",
            "no --sut with --device sim",
            "leave --sut out; --device sim:SCENARIO chooses another system",
        )
    if options.marks is not None and is_listen(str(options.marks)):
        raise UsageError(
            "--marks listen: a simulated system sends nothing over a network",
            "--marks FILE with --device sim",
            "--device sim:marks, which writes marks by itself",
        )
    from rig.sim.bench import build_bench
    from rig.sim.scenarios import find_scenario
    from rig.sim.world import worldly

    emulator, living = None, None
    if options.port == EMULATED:
        from rig.firmware.images import emulator_command

        emulator = emulator_command()
    elif options.port not in ("auto", "none"):
        find_scenario(scenario or DEFAULT_SCENARIO)  # before the port is opened, which resets the board
        living = _living(options.port)
    bench = build_bench(
        scenario or DEFAULT_SCENARIO, options.seed, emulator=emulator, living=living, **worldly(options.world)
    )
    marks = None
    if options.marks is not None or bench.spec.marks:
        # Without a file of the user's choice the simulated system still writes one, and rig reads it.
        folder = Path(tempfile.mkdtemp(prefix="rig-sim-")) if options.marks is None else options.marks.parent
        marks = MarksFile(options.marks or folder / "marks.jsonl")
        if options.marks is None:
            weakref.finalize(marks, shutil.rmtree, folder, True)
        bench.keep_diary(marks.path)
    return ChosenBench(
        kind=BenchKind.SIMULATED,
        device=f"{SIM}:{bench.scenario.name}",
        scenario=bench.scenario.name,
        audio=bench.audio,
        pipe=None if options.port == "none" else bench.pipe,
        system=bench.system,
        time=bench.time,
        truth=bench.truth,
        # The crystal of a simulated device is drawn with the world: another seed is another device.
        identity=DeviceIdentity(
            BenchKind.SIMULATED.value, f"{SIM}:{bench.scenario.name}", "simulated", serial=f"seed {options.seed}"
        ),
        marks=marks,
    )
