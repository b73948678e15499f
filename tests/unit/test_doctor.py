"""The doctor's findings: what each look says of a machine, a device, a board and a recording, and what to do."""

from __future__ import annotations

import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from scripted_portaudio import Row, ScriptedPyaudio, ScriptedSounddevice, Table

from rig.acquire.audio_pyaudio import PyaudioBackend
from rig.acquire.audio_sounddevice import SounddeviceBackend
from rig.acquire.link import SystemTime
from rig.acquire.portaudio import PortBackend
from rig.bench.listen import Heard
from rig.bench.meter import ChannelReading
from rig.doctor import audio, machine, sound
from rig.doctor.board import EXCHANGES, ImageFacts, board_findings, image_finding
from rig.doctor.finding import Finding, Status, document, fail, failed, lines, ok, warn
from rig.domain.records import (
    BoardIdentity,
    ChannelLevel,
    ChannelRoles,
    ClockExchange,
    Reason,
    RunAnalysis,
    Trial,
)
from rig.errors import BenchNotReady, LinkTimeout

TIME = SystemTime()
ROLES = ChannelRoles(0, 1)
Make = Callable[..., PortBackend]


# --- a finding ------------------------------------------------------------------------------------------------------


def test_what_is_not_well_has_a_remedy_and_what_is_well_has_none() -> None:
    with pytest.raises(ValueError, match="remedy"):
        Finding("x", Status.FAIL, "broken")
    with pytest.raises(ValueError, match="remedy"):
        Finding("x", Status.OK, "fine", "do something")


def test_lines_fit_the_terminal_and_count() -> None:
    findings = [ok("one", "well " * 40), warn("two", "so so " * 30, "mend it " * 30), fail("three", "bad", "act")]
    said = lines(findings, "X")
    assert max(len(line) for line in said) <= 80
    assert [line.split()[0] for line in said if line[:1].strip()][:3] == ["ok", "warn", "fail"]
    assert said[-1] == "not ready: 1 fail, 1 warn, 1 ok"
    assert any("remedy: act" in line for line in said)
    assert lines(findings[:2], "X")[-1] == "ready to measure: 0 fail, 1 warn, 1 ok"
    assert "--device NAME" in lines(findings[:1], None)[-1], "nothing was examined: that is not ready"
    assert "ready to measure" not in "\n".join(lines(findings[:1], None))


def test_the_document_has_every_finding() -> None:
    found = document([ok("one", "well"), fail("two", "bad", "act")], {"device": None})
    assert (found["schema"], found["ready"], found["device"]) == ("rig.doctor/1", False, None)
    assert found["findings"][1] == {"check": "two", "status": "fail", "text": "bad", "remedy": "act"}


# --- the machine ----------------------------------------------------------------------------------------------------


def listening(path: Path) -> socket.socket:
    path.parent.mkdir(parents=True, exist_ok=True)
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder with a path short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="rd", dir="/tmp") as folder:
        yield Path(folder)


def test_servers_that_answer_are_running_and_files_left_behind_are_not(place: Path) -> None:
    runtime = place / "r"
    environ = {"XDG_RUNTIME_DIR": str(runtime)}
    assert machine.sound_servers(environ, 7, place) == []
    with listening(runtime / "pulse" / "native"), listening(place / "dev" / "shm" / "jack_default_7_0"):
        assert machine.sound_servers(environ, 7, place) == ["PulseAudio", "JACK"]
        with listening(place / "run" / "user" / "7" / "pipewire-0"):
            assert machine.sound_servers(environ, 7, place) == ["PulseAudio", "PipeWire", "JACK"]
        assert machine.sound_servers({"PULSE_SERVER": f"unix:{runtime}/pulse/native"}, 8, place) == ["PulseAudio"]
    assert (runtime / "pulse" / "native").exists()
    assert machine.sound_servers(environ, 7, place) == [], "closed: nobody answers any more"
    assert machine.sound_servers({"PULSE_SERVER": "tcp:box"}, 7, place) == ["PulseAudio at tcp:box"]


def test_a_server_in_between_is_warned_of() -> None:
    assert machine.server_finding(["PipeWire"], "hardware", True).status is Status.WARN
    assert machine.server_finding(["PipeWire"], "hardware", False).status is Status.OK
    assert machine.server_finding(["PulseAudio"], "virtual", True).status is Status.OK
    assert "directly" in machine.server_finding([], "hardware", False).text


def test_nodes_that_may_not_be_opened(tmp_path: Path) -> None:
    for name in ("controlC0", "pcmC0D0c", "seq", "timer"):
        (tmp_path / name).touch()
    nodes = machine.sound_nodes(tmp_path)
    assert nodes is not None
    assert [Path(node.path).name for node in nodes] == ["controlC0", "pcmC0D0c"]
    assert machine.sound_finding(nodes, "hardware", True).status is Status.OK
    closed = [machine.Node("/dev/snd/pcmC0D0c", usable=False), machine.Node("/dev/snd/controlC0", usable=False)]
    for needed, status in ((True, Status.FAIL), (False, Status.WARN)):
        finding = machine.sound_finding(closed, "hardware", needed)
        assert finding.status is status
        assert "/dev/snd/pcmC0D0c and 1 more" in finding.text
        assert "audio" in str(finding.remedy)
    assert machine.sound_nodes(tmp_path / "none") is None
    missing = machine.sound_finding(None, "hardware", True)
    assert missing.status is Status.WARN
    assert "nothing in /dev/snd" in missing.text
    assert machine.sound_finding(None, "virtual", True).status is Status.OK


def test_a_port_without_rights_names_the_group_or_the_login() -> None:
    fresh = machine.port_finding(machine.Node("/dev/ttyNOPE0", usable=False))
    assert fresh.status is Status.FAIL
    assert "dialout" in str(fresh.remedy)
    joined = machine.port_finding(machine.Node("/dev/ttyNOPE0", usable=False, joined=True))
    assert "log out and in again" in str(joined.remedy)
    assert "usermod" not in str(joined.remedy)
    assert machine.port_finding(machine.Node("/dev/ttyACM0", usable=True)).status is Status.OK


# --- audio ----------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["sounddevice", "pyaudio"])
def make(request: pytest.FixtureRequest) -> Make:
    def build(*rows: Row, **options: Any) -> PortBackend:
        table = Table(list(rows))
        if request.param == "sounddevice":
            return SounddeviceBackend(TIME, library=ScriptedSounddevice(table), **options)
        return PyaudioBackend(TIME, library=ScriptedPyaudio(table), **options)

    return build


def test_the_library_says_its_version(make: Make) -> None:
    backend = make(Row("USB Audio"), Row("pulse"))
    said = audio.library_finding(backend, backend.scan())
    assert said.status is Status.OK
    assert "V19.7.0-devel" in said.text
    assert "2 devices, through ALSA" in said.text
    assert "revision" not in said.text


@pytest.mark.parametrize(
    ("rows", "status", "named"),
    [
        ([Row("USB Audio"), Row("pulse", inputs=32)], Status.OK, "ALSA:USB Audio"),
        ([Row("Webcam", inputs=1), Row("pulse", inputs=32)], Status.WARN, "pulse"),
        ([Row("Monitor of Speaker"), Row("Webcam", inputs=1)], Status.FAIL, "none of 2 devices"),
        ([], Status.FAIL, "no audio devices at all"),
    ],
)
def test_devices_that_could_be_measured_with(make: Make, rows: list[Row], status: Status, named: str) -> None:
    finding = audio.devices_finding(make(*rows).scan())
    assert finding.status is status
    assert named in finding.text


def test_the_device_as_a_measurement_would_choose_it(make: Make) -> None:
    rows = [Row("USB Audio (hw:1,0)"), Row("Webcam", inputs=1), Row("pulse"), Row("Monitor of X")]
    for wanted, status, said in (
        ("USB Audio", Status.OK, "ALSA, index 0"),
        ("pulse", Status.WARN, "sound server"),
        ("Monitor of X", Status.WARN, "monitor"),
        ("Webcam", Status.FAIL, "offers 1 input"),
        ("Scarlett", Status.FAIL, "no audio device answers"),
    ):
        device, finding = audio.choose(make(*rows), wanted, 2)
        assert finding.status is status, finding
        assert said in finding.text
        assert (device is None) == (status is Status.FAIL)


def test_rates_that_a_device_takes(make: Make) -> None:
    for row, rate_hz, status, said in (
        (Row("USB Audio", rates_hz=(44100, 48000)), 48000, Status.OK, "44100, 48000"),
        (Row("USB Audio", rates_hz=(44100, 48000)), 96000, Status.FAIL, "does not take 96000 Hz, only 44100, 48000"),
        (Row("USB Audio", busy="Device unavailable"), 48000, Status.FAIL, "does not open"),
    ):
        backend = make(row)
        device, _ = audio.choose(backend, "USB Audio", 2)
        assert device is not None
        finding = audio.rates_finding(backend, device, 2, rate_hz)
        assert finding.status is status, finding
        assert said in finding.text
        assert rate_hz != 96000 or "--rate 48000" in str(finding.remedy)


# --- the board ------------------------------------------------------------------------------------------------------

IMAGE = ImageFacts("atmega328p", "abc", "0" * 64, "12345678")


class Board:
    """Answers as it was told to: a build, a round trip in s beside 1 ms in the board, faults of the self-test."""

    def __init__(self, build: str = "abc", trip_s: float = 0.002, wrong: tuple[str, ...] = ()) -> None:
        self.build, self.trip_s, self.wrong = build, trip_s, wrong

    def identify(self) -> BoardIdentity:
        return BoardIdentity(1, "12345678", 2e6, "atmega328p", self.build, "42")

    def exchange_clock(self) -> ClockExchange:
        return ClockExchange(10.0, 1_000_000, 1_002_000, 10.0 + 0.001 + self.trip_s)

    def self_test(self) -> tuple[str, ...]:
        return self.wrong


def statuses(findings: list[Finding]) -> dict[str, Status]:
    return {finding.check: finding.status for finding in findings}


def test_a_board_that_is_well() -> None:
    found = board_findings(Board(), IMAGE)
    assert statuses(found) == {"board": Status.OK, "self-test": Status.OK, "link": Status.OK}
    assert "2.0 ms" in found[2].text, "the time inside the board is not the link's"


def test_what_may_be_wrong_with_a_board() -> None:
    assert statuses(board_findings(Board(build="old"), IMAGE))["board"] is Status.WARN
    assert statuses(board_findings(Board(wrong=("chirp: another tone",)), IMAGE))["self-test"] is Status.FAIL
    slow = board_findings(Board(trip_s=0.016), IMAGE)[2]
    assert slow.status is Status.WARN
    assert "latency_timer" in str(slow.remedy)
    assert statuses(board_findings(Board(build="sim"), None))["board"] is Status.OK


def test_a_board_that_stops_answering_ends_its_part_alone() -> None:
    class Mute(Board):
        asked = 0

        def exchange_clock(self) -> ClockExchange:
            self.asked += 1
            if self.asked == EXCHANGES:
                raise LinkTimeout("it fell silent", "an answer", "look at the cable")
            return super().exchange_clock()

    (only,) = board_findings(Mute(), IMAGE)
    assert (only.check, only.status, only.remedy) == ("board", Status.FAIL, "look at the cable")


def test_the_image_that_came_with_rig() -> None:
    assert image_finding(lambda: IMAGE, "12345678").status is Status.OK
    assert "speaks table" in image_finding(lambda: IMAGE, "87654321").text

    def broken() -> ImageFacts:
        raise BenchNotReady("the hash is another", "the one it was built with", "install rig anew")

    def absent() -> ImageFacts:
        raise FileNotFoundError("images.json")

    for read in (broken, absent):
        finding = image_finding(read, "12345678")
        assert (finding.status, finding.remedy) == (Status.FAIL, "install rig anew")


# --- sound ----------------------------------------------------------------------------------------------------------


def heard(flagged: int | None = 0, unflagged: int = 0, **ear: Any) -> Heard:
    quiet: dict[str, Any] = {
        "peak_dbfs": -60.0,
        "rms_dbfs": -75.0,
        "dc": 0.0,
        "clipped_samples": 0,
        "digital_silence": False,
    }
    lost = 480 * ((flagged or 0) + unflagged)
    return Heard(
        5.0, 240_000, 0.1, flagged, unflagged, lost, (ChannelReading(**quiet), ChannelReading(**{**quiet, **ear}))
    )


@pytest.mark.parametrize(
    ("found", "status", "said"),
    [
        (heard(), Status.OK, "its driver flags none"),
        (heard(flagged=None), Status.OK, "its driver cannot tell"),
        (heard(flagged=1), Status.WARN, "1 flagged by the driver, 0 not, 10 ms in all"),
        (heard(flagged=None, unflagged=2), Status.WARN, "0 flagged by the driver, 2 not, 20 ms"),
        (heard(flagged=2, unflagged=1), Status.FAIL, "lost 3 times in 5.0 s"),
    ],
)
def test_losses(found: Heard, status: Status, said: str) -> None:
    finding = sound.losses_finding(found, 48000)
    assert finding.status is status
    assert said in finding.text


@pytest.mark.parametrize(
    ("ear", "bench", "later", "status"),
    [
        ({}, "hardware", True, Status.OK),
        ({"clipped_samples": 9}, "hardware", True, Status.FAIL),
        ({"rms_dbfs": -30.0}, "hardware", True, Status.WARN),
        ({"rms_dbfs": None, "digital_silence": True}, "hardware", True, Status.OK),
        ({"rms_dbfs": None, "digital_silence": True}, "hardware", False, Status.WARN),
        ({"rms_dbfs": None, "digital_silence": True}, "virtual", False, Status.OK),
    ],
)
def test_what_is_heard_while_nothing_plays(ear: dict[str, Any], bench: str, later: bool, status: Status) -> None:
    first, second = sound.quiet_findings(heard(**ear), ROLES, bench, later)
    assert (first.status, second.status) == (Status.OK, status)


def analysis(
    refusal: Reason | None = None,
    reasons: tuple[Reason | None, ...] = (None, None, None),
    reference: dict[str, Any] | None = None,
    ear: dict[str, Any] | None = None,
    reference_snr_db: float | None = 60.0,
) -> RunAnalysis:
    usual: dict[str, Any] = {
        "peak_dbfs": -12.0,
        "noise_dbfs": -75.0,
        "dc": 0.0,
        "hum_dbfs": None,
        "clipped_samples": 0,
        "digital_silence": False,
    }
    trials = tuple(
        Trial(
            k, 1000.0 * k, why is None, why, 0.1 if why is None else None, None, None, reference_snr_db=reference_snr_db
        )
        for k, why in enumerate(reasons)
    )
    levels = ChannelLevel(**{**usual, **(reference or {})}), ChannelLevel(**{**usual, **(ear or {})})
    return RunAnalysis(1, trials, refusal, None, "chirp", None, 48000, 480_000, levels)


NONE = analysis(reasons=())


@pytest.mark.parametrize(
    ("run", "swapped", "status", "said"),
    [
        (analysis(), None, Status.OK, "channel 1: 3 of 3 stimuli heard, peak -12.0 dBFS"),
        (analysis(refusal=Reason.SAME_SIGNAL), None, Status.FAIL, "carry the same signal"),
        (analysis(refusal=Reason.SWAPPED_CHANNELS), None, Status.FAIL, "comes on channel 2, not on channel 1"),
        (NONE, analysis(), Status.FAIL, "comes on channel 2, not on channel 1"),
        (NONE, NONE, Status.FAIL, "none of 3 stimuli is heard on channel 1"),
        (analysis(reasons=(), reference={"digital_silence": True}), NONE, Status.FAIL, "digitally silent"),
        (analysis(reasons=(Reason.WEAK_REFERENCE,) * 3, reference_snr_db=21.0), None, Status.FAIL, "stands 21 dB"),
        (analysis(reference={"clipped_samples": 90}), None, Status.FAIL, "clips (90 samples)"),
        (analysis(reference={"peak_dbfs": -1.0}), None, Status.WARN, "peak -1.0 dBFS"),
        (analysis(reference={"peak_dbfs": -40.0}), None, Status.WARN, "peak -40.0 dBFS"),
    ],
)
def test_the_reference(run: RunAnalysis, swapped: RunAnalysis | None, status: Status, said: str) -> None:
    finding = sound.reference_finding(run, swapped, ROLES, board=False)
    assert finding.status is status, finding
    assert said in finding.text


@pytest.mark.parametrize(
    ("run", "bench", "status", "said"),
    [
        (analysis(), "hardware", Status.OK, "3 of 3 stimuli come back"),
        (analysis(reasons=(Reason.NO_ARRIVAL,) * 3), "hardware", Status.WARN, "(no_arrival)"),
        (analysis(ear={"digital_silence": True}), "hardware", Status.FAIL, "digitally silent"),
        (analysis(ear={"digital_silence": True}), "virtual", Status.WARN, "digitally silent"),
        (analysis(ear={"clipped_samples": 5}, reasons=(Reason.CLIPPED,) * 3), "hardware", Status.FAIL, "clips"),
    ],
)
def test_the_ear(run: RunAnalysis, bench: str, status: Status, said: str) -> None:
    finding = sound.ear_finding(run, ROLES, bench)
    assert finding.status is status, finding
    assert said in finding.text
    assert "latency" not in finding.text, "three stimuli are no measurement"


def test_failed_means_any() -> None:
    assert not failed([ok("a", "b"), warn("c", "d", "e")])
    assert failed([ok("a", "b"), fail("c", "d", "e")])
