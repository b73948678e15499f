"""The command line: options, exit codes, what goes to which stream, and that measure and analyze say the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest

from rig import __version__
from rig.cli.main import main
from rig.cli.options import duration_s, split_stimulus
from rig.errors import UsageError

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
RIG = [sys.executable, "-c", "from rig.cli.main import run; run()"]
SMALL = ["--device", "sim:quiet", "--runs", "2", "--stimuli", "4", "--quiet"]


@dataclass(frozen=True)
class Said:
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


Capture = pytest.CaptureFixture[str]


def rig(capsys: Capture, *arguments: str | Path) -> Said:
    """Runs the command line in this process."""
    capsys.readouterr()
    code = main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return Said(code, out, err)


def complaint(said: Said, code: int) -> str:
    """Checks that a command ended in three lines on stderr and nothing else; gives the first."""
    assert said.code == code, said
    assert said.out == ""
    lines = said.err.splitlines()
    assert len(lines) == 3, said.err
    assert lines[0].startswith("rig: ")
    assert lines[1].startswith("  expected: ")
    assert lines[2].startswith("  remedy: ")
    assert all(len(line) > 14 for line in lines)
    return lines[0].removeprefix("rig: ")


# --- options --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("150ms", 0.15), ("1.2s", 1.2), ("80us", 80e-6), ("80µs", 80e-6), (" 3 s ", 3.0), ("0ms", 0.0), (".5s", 0.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("150", "no unit"),
        ("0.3", "no unit"),
        ("-5ms", "negative"),
        ("fast", "not a duration"),
        ("", "not a duration"),
        ("3h", "unit 'h'"),
        ("1e-3s", "not a duration"),
        ("1,2s", "not a duration"),
        ("nan s", "not a duration"),
    ],
)
def test_what_is_no_duration(text: str, what: str) -> None:
    with pytest.raises(UsageError, match=what) as caught:
        duration_s(text)
    assert "150ms" in caught.value.expected + caught.value.remedy


def test_stimuli() -> None:
    assert split_stimulus("chirp-nb") == ("chirp-nb", None)
    assert split_stimulus("wav:a:b.wav") == ("wav", "a:b.wav")
    for wrong in ("sweep", "wav", "wav:", "chirp:x", ""):
        with pytest.raises(UsageError, match="no stimulus is called"):
            split_stimulus(wrong)


@pytest.mark.parametrize(
    ("arguments", "code", "what"),
    [
        (["measure"], 2, "missing option"),
        (["measure", "--device", "sim", "--limit", "300"], 2, "'300' has no unit"),
        (["measure", "--device", "sim", "--max-latency", "1500"], 2, "'1500' has no unit"),
        (["measure", "--device", "sim", "--mode", "turn"], 2, "--mode turn is not in this version"),
        (["measure", "--device", "sim", "--mode", "x"], 2, "--mode x"),
        (["measure", "--device", "sim", "--stimulus", "sweep"], 2, "no stimulus is called 'sweep'"),
        (["measure", "--device", "sim", "--lead-in", "music"], 2, "--lead-in music"),
        (["measure", "--device", "sim", "--ref", "2"], 2, "--ref and --ear both name channel 2"),
        (["measure", "--device", "sim", "--ref", "0"], 2, "invalid value for '--ref'"),
        (["measure", "--device", "sim", "--runs", "0"], 2, "invalid value for '--runs'"),
        (["measure", "--device", "sim", "--min-latency", "1s", "--max-latency", "1ms"], 2, "--min-latency 1000 ms"),
        (["measure", "--device", "sim", "--port", "/dev/ttyACM0"], 2, "no emulated board at /dev/ttyACM0"),
        (["measure", "--device", "sim", "--sut", "sleep 1"], 2, "--sut"),
        (["measure", "--device", "sim", "--stimulus", "wav:absent.wav"], 2, "absent.wav does not exist"),
        (["measure", "--device", "sim", "--spacing", "50ms"], 2, "each sounds for 0.10 s"),
        (["measure", "--device", "USB Audio", "--port", "emulated"], 2, "only the simulated bench brings an emulated"),
        (["measure", "--device", "sim", "--sut-ready", "up"], 2, "--sut-ready without --sut"),
        (["measure", "--device", "USB Audio", "--backend", "alsa"], 2, "--backend alsa"),
        (["devices", "--backend", "alsa"], 2, "--backend alsa"),
        (["measure", "--device", "sim:nowhere"], 4, "no simulated scenario is called 'nowhere'"),
        (["measure", "--device", "sim:"], 4, "the device 'sim:' names no scenario"),
        (["analyze"], 2, "missing argument"),
        (["analyze", "x.wav", "--ref", "2", "--ear", "2"], 2, "--ref and --ear both name channel 2"),
        (["analyze", "x.wav", "--min-latency", "20"], 2, "'20' has no unit"),
        (["analyze", "x.wav", "--nonsense"], 2, "no such option"),
        (["sim", "show", "nowhere"], 4, "no simulated scenario is called 'nowhere'"),
        (["frobnicate"], 2, "no such command"),
    ],
)
def test_wrong_options_are_three_lines(
    arguments: list[str], code: int, what: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert what in complaint(rig(capsys, *arguments), code)
    assert list(tmp_path.iterdir()) == []  # nothing is recorded before the options are right


def test_version_and_help(capsys: Capture) -> None:
    assert rig(capsys, "version").out.strip() == __version__
    assert rig(capsys, "--version") == Said(0, __version__ + "\n", "")
    said = rig(capsys, "--help")
    assert said.code == 0
    for verb in ("measure", "analyze", "sim", "version"):
        assert verb in said.out
    nothing = rig(capsys)
    assert (nothing.code, nothing.out) == (2, "")
    assert "Usage: rig" in nothing.err


# --- measure and analyze --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A small session, and the text that `rig measure` printed for it."""
    folder = tmp_path_factory.mktemp("measured") / "session"
    done = subprocess.run(
        [*RIG, "measure", *SMALL, "--seed", "5", "--max-latency", "1s", "--out", str(folder)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder, done.stdout


def test_measure_is_right(session: tuple[Path, str], capsys: Capture) -> None:
    folder, text = session
    assert text.startswith("SIMULATED BENCH: scenario quiet, seed 5.")
    document = json.loads(rig(capsys, "analyze", folder, "--json").out)
    truth = json.loads((folder / "truth.json").read_text(encoding="utf-8"))
    played = [s["defined_latency_s"] for run in truth["runs"] for s in run["stimuli"]]
    assert len(played) == 8
    assert document["latency_s"]["n"] == 8
    assert document["latency_s"]["median"] == pytest.approx(sorted(played)[4], abs=20e-6)


def test_analyze_says_what_measure_said(session: tuple[Path, str], capsys: Capture) -> None:
    folder, text = session
    assert rig(capsys, "analyze", folder, "--quiet") == Said(0, text, "")
    assert rig(capsys, "analyze", folder / "manifest.json").out == text
    assert rig(capsys, "analyse", folder).out == text


def test_the_json_of_both_is_the_same_and_holds_to_its_schema(capsys: Capture, tmp_path: Path) -> None:
    first = rig(capsys, "measure", *SMALL, "--json", "--limit", "10ms", "--out", tmp_path / "a")
    assert first.code == 3
    again = rig(capsys, "analyze", tmp_path / "a", "--json", "--quiet")
    assert again == first
    (tmp_path / "a").rename(tmp_path / "elsewhere")
    assert rig(capsys, "analyze", tmp_path / "elsewhere", "--json").out == first.out
    assert rig(capsys, "analyze", tmp_path / "elsewhere", "--json", "--limit", "1s").code == 0
    schema = json.loads((ROOT / "docs" / "measurement.schema.json").read_text(encoding="utf-8"))
    document = json.loads(first.out)
    jsonschema.validate(document, schema)
    assert document["over_limit"] is True
    assert document["bench"] == "simulated"
    assert str(tmp_path) not in first.out
    assert rig(capsys, "measure", *SMALL, "--json", "--limit", "10ms", "--out", tmp_path / "b") == first


def test_measure_without_a_board_or_a_blank_run(capsys: Capture, tmp_path: Path) -> None:
    out = tmp_path / "s"
    said = rig(capsys, "measure", *SMALL, "--port", "none", "--no-blank", "--out", out, "--json")
    document = json.loads(said.out)
    assert said.code == 0, said.err
    assert document["plan"]["stimulus_source"] == "interface"
    assert document["blank"]["made"] is False
    assert not (out / "blank.wav").exists()
    assert any("no blank run (not asked for)" in caveat for caveat in document["caveats"])


def test_a_lead_in_is_played_by_the_interface(capsys: Capture, tmp_path: Path) -> None:
    arguments = ["--lead-in", "speech", "--no-blank", "--runs", "1", "--out", str(tmp_path / "s"), "--json"]
    said = rig(capsys, "measure", *SMALL, *arguments)
    assert said.code == 0, said.err
    assert json.loads(said.out)["plan"] | {"spacing_s": []} == {
        "runs": 1,
        "stimulus": "chirp",
        "stimuli": 4,
        "amplitude": 0.5,
        "stimulus_source": "interface",
        "lead_in": "speech",
        "wav": None,
        "wav_sha256": None,
        "spacing_s": [],
    }


def test_a_folder_that_holds_something_is_not_overwritten(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert "is not empty" in complaint(rig(capsys, "measure", *SMALL, "--out", tmp_path), 2)


def test_no_valid_figure_is_exit_7_with_a_report(capsys: Capture, tmp_path: Path) -> None:
    arguments = ["--device", "sim:dead-ear", "--runs", "1", "--stimuli", "4", "--quiet", "--out", str(tmp_path / "s")]
    said = rig(capsys, "measure", *arguments)
    assert said.code == 7
    assert "no valid measurement" in said.out
    assert "digital_silence" in said.out
    document = json.loads(rig(capsys, "analyze", tmp_path / "s", "--json").out)
    assert document["latency_s"] is None


def test_where_the_session_goes_by_itself(capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = rig(capsys, "measure", "--device", "sim:quiet", "--runs", "1", "--stimuli", "3", "--no-blank")
    assert said.code == 0
    (folder,) = (tmp_path / "sessions").iterdir()
    assert folder.name.endswith("-sim-quiet")
    assert said.err.splitlines()[-1] == f"session kept in {Path('sessions') / folder.name}"


def test_analyze_of_a_file(capsys: Capture) -> None:
    said = rig(capsys, "analyze", GOLDEN / "chromium-direct-click.flac", "--json", "--limit", "81.2ms")
    assert said.code == 3
    assert said.err == ""
    document = json.loads(said.out)
    assert document["source"] == "chromium-direct-click.flac"
    assert document["latency_s"]["median"] == pytest.approx(0.081271, abs=50e-6)
    assert str(ROOT) not in said.out


def test_no_colour_in_a_pipe_and_none_when_asked_not_to(session: tuple[Path, str]) -> None:
    assert "\x1b" not in session[1]


def test_verbose_adds_and_changes_nothing(session: tuple[Path, str], capsys: Capture) -> None:
    folder, text = session
    verbose = rig(capsys, "analyze", folder, "--verbose").out
    assert "trials of run 2" in verbose
    assert set(text.splitlines()) <= set(verbose.splitlines())


def test_sim_list_and_show(capsys: Capture) -> None:
    listed = rig(capsys, "sim", "list")
    names = [line.split()[0] for line in listed.out.splitlines() if not line.startswith(" ")]
    assert {"default", "quiet", "jitter-buffer-step", "leak"} <= set(names)
    shown = rig(capsys, "sim", "show", "quiet", "--seed", "3")
    assert shown.code == 0
    assert "latency_s" in shown.out
    assert "seed 3" in shown.out
    assert rig(capsys, "sim", "show", "quiet", "--seed", "4").out != shown.out
    assert max(len(line) for line in (listed.out + shown.out).splitlines()) <= 100


# --- the ways out ---------------------------------------------------------------------------------------------------


def test_ctrl_c_keeps_what_was_recorded_and_says_so(tmp_path: Path, capsys: Capture) -> None:
    folder = tmp_path / "s"
    command = [
        *RIG,
        "measure",
        "--device",
        "sim",
        "--runs",
        "900",
        "--stimuli",
        "20",
        "--no-blank",
        "--out",
        str(folder),
    ]
    # A shell that starts jobs in the background makes them deaf to SIGINT; the child must hear it.
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler) and None,
    )
    assert process.stderr is not None
    while "run 3 of 900" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert out == ""
    assert f"rig: stopped; what was recorded is kept: rig analyze {folder}" in err
    assert "Traceback" not in err
    said = rig(capsys, "analyze", folder, "--json")
    document = json.loads(said.out)
    assert document["cut_short"] == "stopped by hand"
    assert len(document["runs"]) >= 2


def test_a_fault_of_ours_is_a_traceback_and_exit_1(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("rig.cli.analyze.check_channels", broken)
    said = rig(capsys, "analyze", "x.wav")
    assert said.code == 1
    assert "RuntimeError: a bug" in said.err
    assert "fault of rig itself" in said.err


def test_a_reader_that_goes_away_is_no_crash(session: tuple[Path, str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*RIG, "analyze", str(session[0]), "--quiet"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )
    os.close(write)
    assert done.stderr == ""
    assert done.returncode == 1
