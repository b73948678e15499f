"""`rig calibrate`: a person is led through it, every mistake is told in words, and what is written down is true."""

from __future__ import annotations

import io
import json
import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rig.calibration.store import load, load_file
from rig.cli.main import main
from rig.domain.calibration import Used
from rig.session import open_session
from rig.session.read import hash_file
from rig.sim.scenarios import find_scenario

CROOKED = find_scenario("crooked").world()
CALIBRATE = ["calibrate", "--device", "sim:crooked", "--yes", "--quiet"]
COVER = 1.96


class Terminal(io.StringIO):
    """Somebody who types these lines, and then goes away."""

    def isatty(self) -> bool:
        return True


def said(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(arguments) == code, capsys.readouterr().err
    out, err = capsys.readouterr()
    return out, err


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A calibration of sim:crooked, all of it, and its document."""
    place = tmp_path_factory.mktemp("calibrated")
    out = io.StringIO()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("sys.stdout", out)
        folders = ["--calibration", str(place / "calibration"), "--out", str(place / "sessions")]
        assert main([*CALIBRATE, "--json", *folders]) == 0
    return place, json.loads(out.getvalue())


def records(place: Path) -> dict[tuple[str, int | None], Used]:
    return {(used.record.quantity.name, used.record.channel): used for used in load(place / "calibration")}


def test_everything_is_found_and_true(done: tuple[Path, dict[str, Any]]) -> None:
    place, document = done
    assert document["schema"] == "rig.calibration/1"
    assert {entry["state"] for entry in document["quantities"]} == {"found"}
    found = records(place)
    assert len(found) == len(document["quantities"]) == 13
    truth = {
        ("channel_skew", None): CROOKED.channel_skew_s * CROOKED.rate_hz,
        ("sample_clock", None): CROOKED.audio_ppm,
        ("mouth_path", None): CROOKED.mouth_distance_m / 343.0,
        ("ear_path", None): CROOKED.ear_distance_m / 343.0,
        ("transducer", None): 0.0,
        ("clip_level", 1): 0.0,
        ("clip_level", 2): 0.0,
        ("polarity", 1): 1.0,
        ("polarity", 2): 1.0,
    }
    for key, true in truth.items():
        record = found[key].record
        assert true is not None
        # One draw of each: within 3.3 standard uncertainties, one in 1000 beyond. Coverage is measured elsewhere.
        assert abs(record.value - true) <= 3.3 * record.u, (key, record.value, record.u, true)


def test_every_record_is_of_a_session_that_is_there(done: tuple[Path, dict[str, Any]]) -> None:
    place, _ = done
    folders = sorted((place / "sessions").iterdir())
    steps = ["open", "open", "loop", "loop", "split", "split", "limit", "air", "air"]
    assert [folder.name.split("-")[1] for folder in folders] == steps
    evidence = {hash_file(folder / "manifest.json") for folder in folders}
    for (quantity, _), used in records(place).items():
        if quantity in ("mouth_path", "ear_path"):
            assert used.record.evidence is None, "a ruler leaves no recording"
        else:
            assert used.record.evidence in evidence
    for folder in folders:
        session = open_session(folder)
        assert session.mode == "calibrate"
        assert session.status == "complete"
        assert session.verify() == []
        session.close()


def test_what_is_known_is_left_out_and_what_is_named_supersedes(
    done: tuple[Path, dict[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = done
    folders = ["--calibration", str(place / "calibration")]
    before = {path: path.read_bytes() for path in (place / "calibration").rglob("*.toml")}
    out, _ = said(capsys, [*CALIBRATE, *folders, "--out", str(place / "again")])
    assert not (place / "again").exists(), "nothing was recorded"
    assert out.count(" known  -") == 13
    assert max(map(len, out.splitlines())) <= 80
    named = [*CALIBRATE, *folders, "--out", str(place / "named"), "--quantity", "channel_skew"]
    out, _ = said(capsys, named)
    old = next(path for path in before if path.name.startswith("channel_skew"))
    assert f"new  {old.stem}" in out
    assert all(path.read_bytes() == held for path, held in before.items()), "records are superseded, never changed"
    new = load_file(old.with_name(f"{old.stem}.2.toml"))
    one, two = load_file(old).record, new.record
    assert abs(one.value - two.value) <= 3.3 * math.hypot(one.u, two.u)


def test_a_measurement_is_corrected_by_it(
    done: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = done
    measure = ["measure", "--device", "sim:crooked", "--runs", "1", "--stimuli", "10", "--quiet", "--json"]
    needs = ["--needs", "channel_skew,sample_clock,mouth_path,ear_path,transducer"]
    folders = ["--calibration", str(place / "calibration"), "--out", str(tmp_path / "s")]
    found = json.loads(said(capsys, [*measure, *folders, *needs])[0])
    raw = json.loads(said(capsys, ["analyze", str(tmp_path / "s"), "--json", "--quiet", "--calibration", "none"])[0])
    true_s = CROOKED.latency_s - (CROOKED.mouth_distance_m + CROOKED.ear_distance_m) / 343.0
    latency = found["latency_s"]
    assert latency["low"] < true_s < latency["high"]
    assert not raw["latency_s"]["low"] < true_s < raw["latency_s"]["high"], "without it the figure is another"
    assert {c["name"] for c in found["corrections"]} >= {"channel skew", "sample clock rate"}
    assert len(found["corrections"]) == 5
    sources = {line["term"]: line["source"] for line in found["runs"][0]["budget"]}
    assert "sim-crooked-seed-1/channel_skew." in sources["channel skew"]
    assert "sim-crooked-seed-1/sample_clock." in sources["sample clock rate"]
    assert not any("not calibrated" in caveat for caveat in found["caveats"])


def test_a_check_says_whether_a_record_holds(
    done: tuple[Path, dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, _ = done
    check = ["calibrate", "check", "--yes", "--quiet"]
    out, _ = said(capsys, [*check, "--calibration", str(place / "calibration"), "--out", str(tmp_path / "a")])
    assert out.splitlines()[0] == "sim:crooked (simulated), serial seed 1: do the records hold?"
    assert out.count(" yes") == 3, out
    # The same records, one of them wrong by half a frame.
    wrong = tmp_path / "calibration"
    for used in records(place).values():
        off = 0.5 if used.record.quantity.name == "channel_skew" else 0.0
        text = used.text.replace(f"value_frames = {used.record.value}", f"value_frames = {used.record.value + off}")
        folder = wrong / used.id.split("/")[0]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{used.id.split('/')[1]}.toml").write_text(text)
    arguments = [*check, "--calibration", str(wrong), "--out", str(tmp_path / "b"), "--json"]
    out, err = said(capsys, arguments, 5)
    document = json.loads(out)
    verdicts = {(one["quantity"], one["channel"]): one for one in document["quantities"]}
    assert verdicts["channel_skew", None]["verdict"] == "no"
    assert verdicts["channel_skew", None]["difference"] == pytest.approx(-0.5, abs=0.01)
    assert verdicts["polarity", 1]["verdict"] == "yes"
    assert not document["holds"]
    assert "--quantity channel_skew supersedes it" in err
    # Another device has no record there.
    _, err = said(capsys, [*check, "--device", "sim:crooked", "--seed", "2", "--calibration", str(wrong)], 5)
    assert "serial seed 2" in err


MISTAKES = {
    "wrong-input": ("interface_loop", "the stimulus is on input 2, and not on input 1", "plug the cable into input 1"),
    "wrong-cable": ("channel_skew", "the stimulus is on input 1 alone", "take a Y-cable"),
    "no-cable": ("channel_skew", "input 1 hears nothing", "plug the cable into input 1"),
    "too-loud": ("interface_loop", "input 1 clips", "turn the gain of input 1 down"),
    "moving-mic": ("transducer", "changed while it was measured", "does not move"),
}


@pytest.mark.parametrize("scenario", MISTAKES)
def test_a_mistake_is_told_and_checked_again(
    scenario: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quantity, what, remedy = MISTAKES[scenario]
    names = "channel_skew,transducer" if quantity == "transducer" else quantity
    monkeypatch.setattr("sys.stdin", Terminal("\n" * 6))
    folders = ["--calibration", str(tmp_path / "c"), "--out", str(tmp_path / "s")]
    arguments = ["calibrate", "--device", f"sim:{scenario}", "--quantity", names, *folders]
    out, err = said(capsys, arguments)
    words = " ".join(err.split())
    assert words.count("NOT AS ASKED") == 1, err
    assert what in words
    assert remedy in words
    assert words.index("NOT AS ASKED") < words.index(f"{quantity}: +"), "told first, found after it was put right"
    assert max(map(len, err.splitlines())) <= 80
    assert f"{quantity} " in out


def test_a_mistake_with_nobody_there_ends_the_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folders = ["--calibration", str(tmp_path / "c"), "--out", str(tmp_path / "s")]
    arguments = ["calibrate", "--device", "sim:wrong-input", "--yes", "--quiet", *folders]
    out, _ = said(capsys, [*arguments, "--quantity", "interface_loop,mouth_path"], 4)
    assert "not found" in out
    assert "remedy: plug the cable into input 1" in " ".join(out.split())
    assert [used.record.quantity.name for used in load(tmp_path / "c")] == ["mouth_path"]


def test_a_person_may_leave_out_and_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = ["--calibration", str(tmp_path / "c"), "--out", str(tmp_path / "s")]
    arguments = ["calibrate", "--device", "sim:crooked", *folders]
    monkeypatch.setattr("sys.stdin", Terminal("s\nhm\n\nq\n"))
    out, err = said(capsys, arguments, 130)
    assert "noise_floor ch1: left out" in out
    assert "Enter, s or q" in err
    assert {used.record.quantity.name for used in load(tmp_path / "c")} == {"interface_loop", "crosstalk"}
    # It goes on where it was ended, and a terminal that is gone ends it too.
    monkeypatch.setattr("sys.stdin", Terminal(""))
    out, err = said(capsys, arguments, 130)
    assert "interface_loop" in out
    assert " known " in out


def test_without_a_terminal_it_wants_to_be_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("\n" * 20))
    folders = ["--calibration", str(tmp_path / "c"), "--out", str(tmp_path / "s")]
    _, err = said(capsys, ["calibrate", "--device", "sim:crooked", *folders], 2)
    assert "--yes" in err
    assert not (tmp_path / "s").exists()
    assert "--device NAME" in said(capsys, ["calibrate", "--yes"], 2)[1]
    assert "no quantity is called" in said(capsys, [*CALIBRATE, "--quantity", "colour"], 2)[1]
    assert "is no distance" in said(capsys, [*CALIBRATE, "--mouth-distance", "13"], 2)[1]


def test_an_aim_that_is_not_reached_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A computer whose clock nobody keeps: no recording, however long, tells the rate better than that.
    monkeypatch.setattr("rig.cli.guide_bench.SimulatedBench.host_clock_u_ppm", 25.0)
    folders = ["--calibration", str(tmp_path / "c"), "--out", str(tmp_path / "s")]
    out, _ = said(capsys, [*CALIBRATE, "--quantity", "sample_clock", *folders], 7)
    words = " ".join(out.split())
    assert "the rate of the computer's own clock is not known better" in words
    assert "systemd-timesyncd" in words
    (path,) = (tmp_path / "c").rglob("*.toml")
    held = tomllib.loads(path.read_text())
    assert held["u_ppm"] > 25.0
    assert held["conditions"]["host_clock_u_ppm"] == 25.0
    assert len(list((tmp_path / "s").iterdir())) == 2, "it did not record for longer where that does not help"
