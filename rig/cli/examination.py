"""The doctor's round: one thing after the other, each by the way that a measurement takes, and none ends the round."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from rig.acquire import wire
from rig.acquire.board import Link
from rig.acquire.chatter import Chatter
from rig.acquire.devices import DeviceInfo
from rig.acquire.link import SystemTime, list_ports, open_link, probe
from rig.acquire.portaudio import PortBackend
from rig.acquire.ports import candidates, choose_port
from rig.analyse.run import analyse_run
from rig.bench.listen import Heard, listen
from rig.cli.bench_choice import (
    BACKENDS,
    BenchOptions,
    ChosenBench,
    choose_bench,
    is_simulated,
    open_backend,
    real_kind,
)
from rig.cli.progress import Display
from rig.cli.record import MeasureOptions, record
from rig.doctor import audio as audio_checks
from rig.doctor import machine, sound
from rig.doctor.board import ImageFacts, board_findings, image_finding
from rig.doctor.finding import Finding, Status, failed, from_error, ok, warn
from rig.domain.records import BenchKind, ChannelRoles, StreamSpec
from rig.domain.seams import AudioBackend, HostTime
from rig.environment import environment
from rig.errors import MissingLibrary, PortNotFound, RigError, UsageError
from rig.session import open_session


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of `rig doctor`. `port` None: a board is examined where one is found, and missed by nobody."""

    device: str | None
    port: str | None
    backend: str
    rate_hz: int
    sut: str | None
    silent: bool
    roles: ChannelRoles
    quiet: bool

    @property
    def inputs(self) -> int:
        return max(2, self.roles.ref + 1, self.roles.ear + 1)


class Examination:
    """Collects findings. `kind`, `device` and `port` say afterwards what was examined."""

    def __init__(self, wishes: Wishes, chatter: Chatter) -> None:
        if wishes.backend not in BACKENDS:
            raise UsageError(
                f"--backend {wishes.backend}: there is no such backend", f"one of {', '.join(BACKENDS)}", "leave it out"
            )
        self._wishes = wishes
        self._chatter = chatter
        self._findings: list[Finding] = []
        self._simulated = wishes.device is not None and is_simulated(wishes.device)
        self.kind = BenchKind.SIMULATED if self._simulated else real_kind()
        self.device: str | None = None
        self.port: str | None = None

    def run(self) -> list[Finding]:
        """Everything that can be looked at."""
        self._machine()
        if self._simulated:
            self._simulated_bench()
        else:
            self._real_bench()
        return self._findings

    # --- the machine ---

    def _machine(self) -> None:
        facts = environment()
        text = f"rig {facts['rig']}, Python {facts['python']}, {facts['os'] or facts['kernel'] or 'unknown system'}"
        if facts["on_battery"]:
            self._note(warn("machine", f"{text}; on battery", "plug it in: saving power makes audio come late"))
        else:
            self._note(ok("machine", text))

    def _image(self) -> ImageFacts | None:
        """The firmware that came with rig; None where it is no good."""
        from rig.firmware.build import BOARDS
        from rig.firmware.images import prebuilt

        held: list[ImageFacts] = []

        def read() -> ImageFacts:
            image = prebuilt(BOARDS[0])
            held.append(ImageFacts(image.board, image.build, image.sha256, image.table_hash))
            return held[0]

        self._note(image_finding(read, f"{wire.table_hash():08x}"))
        return held[0] if held else None

    # --- the simulated bench ---

    def _simulated_bench(self) -> None:
        wishes = self._wishes
        self._library(Status.WARN)
        image = self._image()
        try:
            bench = self._choose(wishes.port or "auto")
        except UsageError:
            raise
        except RigError as error:
            self._note(from_error("device", error))
            return
        self.device = bench.device
        self.port = None if bench.pipe is None else (wishes.port or "auto")
        self._note(ok("device", f"{bench.device}, a simulated bench: no hardware is looked at"))
        try:
            if bench.pipe is not None:
                self._note(*board_findings(Link(bench.pipe, bench.time), image))
            self._listen(bench.audio, bench.device, bench.time)
            if not wishes.silent and not self._has_failed("board", "stream"):
                self._play(bench)
        finally:
            if bench.pipe is not None:
                bench.pipe.close()

    # --- a real bench ---

    def _real_bench(self) -> None:
        wishes = self._wishes
        devices = self._library(Status.FAIL)
        self.port = self._board(self._image())
        backend = device = None
        if devices is not None and wishes.device is None:
            self._note(audio_checks.devices_finding(devices))
        elif devices is not None:
            plays = self.port is None and not wishes.silent
            backend = open_backend(wishes.backend, SystemTime(), plays, self._chatter)
            device = self._device(backend)
        self._linux(device)
        if backend is None or device is None:
            return
        self._note(audio_checks.rates_finding(backend, device, wishes.inputs, wishes.rate_hz))
        if failed(self._findings[-1:]):
            return
        heard = self._listen(backend, device.name, SystemTime())
        if heard is None or wishes.silent or self._has_failed("board", "port"):
            return
        try:
            self._play(self._choose(self.port or "none"))
        except RigError as error:
            self._note(from_error("stimulus", error))

    def _library(self, status: Status) -> list[DeviceInfo] | None:
        """The devices of the audio library; `status` is how bad it is where it is missing."""
        try:
            backend = open_backend(self._wishes.backend, SystemTime(), False, self._chatter)
            devices = backend.scan()
        except MissingLibrary as error:
            self._note(from_error("portaudio", error, status))
            return None
        except Exception as error:  # whatever the library raises while it starts: the round goes on
            remedy = "start the sound system, and see what another program says of it"
            self._note(Finding("portaudio", status, f"it does not start: {error}", remedy))
            return None
        self._note(audio_checks.library_finding(backend, devices))
        return devices

    def _device(self, backend: PortBackend) -> DeviceInfo | None:
        assert self._wishes.device is not None
        device, finding = audio_checks.choose(backend, self._wishes.device, self._wishes.inputs)
        self._note(finding)
        self.device = None if device is None else device.name
        return device

    def _linux(self, device: DeviceInfo | None) -> None:
        if not sys.platform.startswith("linux"):
            return
        servers = machine.sound_servers(os.environ, os.getuid())
        through = None if device is None else device.sound_server or device.host_api in ("PulseAudio", "JACK")
        self._note(machine.server_finding(servers, self.kind.value, through))
        needed = through is False and not servers
        self._note(machine.sound_finding(machine.sound_nodes(), self.kind.value, needed))

    def _board(self, image: ImageFacts | None) -> str | None:
        """The path of the board, after it was asked everything; None where there is none or none is wanted."""
        if self._wishes.port == "none":
            self._note(ok("board", "none is asked for: the interface plays the stimulus"))
            return None
        try:
            path = self._find_board()
            if path is None:
                return None
            link = open_link(path, SystemTime())
        except RigError as error:
            # Where no board was asked for, a port of somebody else's instrument is no fault.
            missed = self._wishes.port is None and isinstance(error, PortNotFound | MissingLibrary)
            self._note(from_error("board", error, Status.WARN if missed else Status.FAIL))
            return None
        try:
            self._note(*board_findings(link, image))
        finally:
            with contextlib.suppress(RigError):
                link.safe()
            link.close()
        return path

    def _find_board(self) -> str | None:
        """The port of the board, this user's right to it looked at. Raises what choosing it raises."""
        wanted = self._wishes.port
        ports = candidates(list_ports())
        if wanted is None and not ports:
            remedy = "measure with --port none: the interface plays the stimulus; or plug the board in"
            self._note(warn("board", "no serial port looks like a board's", remedy))
            return None
        paths = [port.path for port in ports] if wanted in (None, "auto") else [str(wanted)]
        nodes = [machine.look(Path(path)) for path in paths if Path(path).exists()]
        self._note(*(machine.port_finding(node) for node in nodes))
        if any(not node.usable for node in nodes):
            return None
        if wanted not in (None, "auto"):
            return wanted
        return choose_port(ports, lambda candidate: probe(candidate, SystemTime())).path

    # --- sound ---

    def _choose(self, port: str) -> ChosenBench:
        wishes = self._wishes
        assert wishes.device is not None
        plays = port == "none" and not wishes.silent
        options = BenchOptions(wishes.device, port, wishes.sut, 1, wishes.backend, wishes.inputs, plays)
        return choose_bench(options, self._chatter)

    def _listen(self, audio: AudioBackend, device: str, time: HostTime) -> Heard | None:
        """Listens while nothing is played; None where that fails."""
        wishes = self._wishes
        self._say(f"listening for {sound.LISTEN_S:.0f} s")
        try:
            stream = audio.open(StreamSpec(device, wishes.rate_hz, wishes.inputs))
            with closing(stream):
                heard, granted = listen(stream, time, sound.LISTEN_S), stream.granted
        except RigError as error:
            self._note(from_error("stream", error))
            return None
        self._note(sound.stream_finding(granted, heard), sound.losses_finding(heard, granted.rate_hz))
        self._note(*sound.quiet_findings(heard, wishes.roles, self.kind.value, judged_later=not wishes.silent))
        return heard

    def _play(self, bench: ChosenBench) -> None:
        """A small measurement into a folder that is thrown away: which channel hears the stimulus, and how loud."""
        wishes = self._wishes
        self._say(f"playing {sound.STIMULI} chirps")
        with tempfile.TemporaryDirectory(prefix="rig-doctor-") as folder:
            try:
                record(_small_plan(wishes), bench, Display(None), Path(folder) / "session")
            except RigError as error:
                self._note(from_error("stimulus", error))
                return
            with closing(open_session(Path(folder) / "session")) as session:
                source, hints = session.runs[0].source, session.runs[0].hints()
                run = analyse_run(source, wishes.roles, hints)
                swapped = None
                if not run.trials:
                    swapped = analyse_run(source, ChannelRoles(wishes.roles.ear, wishes.roles.ref), hints)
        finding = sound.reference_finding(run, swapped, wishes.roles, board=bench.pipe is not None)
        self._note(finding)
        if finding.status is not Status.FAIL:
            self._note(sound.ear_finding(run, wishes.roles, self.kind.value))

    # --- small things ---

    def _note(self, *findings: Finding) -> None:
        self._findings += findings

    def _has_failed(self, *checks: str) -> bool:
        return failed([finding for finding in self._findings if finding.check in checks])

    def _say(self, line: str) -> None:
        if not self._wishes.quiet and not self._simulated:
            print(f"rig doctor: {line}", file=sys.stderr, flush=True)


def _small_plan(wishes: Wishes) -> MeasureOptions:
    return MeasureOptions(
        seed=1,
        rate_hz=wishes.rate_hz,
        runs=1,
        stimuli=sound.STIMULI,
        stimulus="chirp",
        wav=None,
        lead_in=None,
        ref=wishes.roles.ref + 1,
        ear=wishes.roles.ear + 1,
        min_latency_s=None,
        max_latency_s=None,
        limit_s=None,
        spacing_s=None,
        mode="call",
        build=None,
        blank=False,
        out=None,
    )
