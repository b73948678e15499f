"""A calibration in the figure: what is known disappears from it, with its uncertainty; what does not fit is refused."""

from __future__ import annotations

import datetime
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rig.acquire.identity import identify
from rig.calibration.store import save
from rig.cli.main import main
from rig.domain.calibration import QUANTITIES, CalibrationRecord, DeviceIdentity

SOUND_M_S = 343.0
DAY = datetime.date(2026, 3, 2)
CROOKED = DeviceIdentity("simulated", "sim:crooked", "simulated", serial="seed 1")
VALUES = {
    "sample_clock": (17.0, 0.05),
    "channel_skew": (3.4, 0.002),
    "mouth_path": (0.13 / SOUND_M_S, 2e-6),
    "ear_path": (0.30 / SOUND_M_S, 2e-6),
}
MEASURE = ["measure", "--device", "sim:crooked", "--runs", "1", "--stimuli", "10", "--quiet", "--json"]


def record(quantity: str, device: DeviceIdentity = CROOKED) -> CalibrationRecord:
    value, u = VALUES[quantity]
    where = (("rate_hz", 48_000.0), ("reference_channel", 1.0), ("ear_channel", 2.0))
    return CalibrationRecord(
        QUANTITIES[quantity], value, u, "by hand, from the world's truth", DAY, 365, device, None, None, where
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for quantity in VALUES:
        save(tmp_path / "calibration", record(quantity))
    return tmp_path / "calibration"


def said(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> tuple[str, str]:
    capsys.readouterr()
    assert main(arguments) == code
    out, err = capsys.readouterr()
    return out, err


def document(capsys: pytest.CaptureFixture[str], arguments: list[str], code: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(said(capsys, arguments, code)[0])
    return found


def test_clock_skew_and_air_disappear(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = ["--out", str(tmp_path / "s")]
    text, _ = said(capsys, [*MEASURE, "--calibration", str(folder), *out])
    assert said(capsys, ["analyze", str(tmp_path / "s"), "--json", "--quiet"])[0] == text, "not the same, byte for byte"
    found = json.loads(text)
    truth = json.loads((tmp_path / "s" / "truth.json").read_text())
    true_s = next(s["latency_s"] for run in truth["runs"] for s in run["stimuli"]) - 0.43 / SOUND_M_S
    latency = found["latency_s"]
    assert abs(latency["median"] - true_s) < 0.2e-6
    assert latency["low"] < true_s < latency["high"]
    assert {c["name"] for c in found["corrections"]} >= {"sample clock rate", "channel skew"}
    assert len(found["corrections"]) == 4
    assert not any("no calibration" in c for c in found["caveats"])
    assert any("not calibrated: the mouth's loudspeaker" in c for c in found["caveats"])
    # Without it they are all there, and the interval is the wider.
    raw = document(capsys, ["analyze", str(tmp_path / "s"), "--json", "--quiet", "--calibration", "none"])
    bias_s = 17e-6 * 0.15 + 3.4 / 48_000 + 0.43 / SOUND_M_S
    assert raw["latency_s"]["median"] - latency["median"] == pytest.approx(bias_s, abs=0.1e-6)
    assert raw["corrections"] == []
    lines = {line["term"]: line["u_s"] for line in found["runs"][0]["budget"]}
    assert lines["sample clock rate"] == pytest.approx(0.05e-6 * 0.15, rel=0.02)
    assert lines["channel skew"] == pytest.approx(0.002 / 48_000, rel=1e-3)


def test_the_report_says_what_was_applied(tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [a for a in MEASURE if a != "--json"]
    out, _ = said(capsys, [*arguments, "--calibration", str(folder), "--verbose", "--out", str(tmp_path / "s")])
    assert "applied  channel skew: -0.07083" not in out  # no more digits than its uncertainty carries
    assert "applied  channel skew: -0.0708 +/- 0.0001 ms" in out
    assert "by sim-crooked-seed-1/channel_skew.2026-03-02" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    said(capsys, ["report", str(tmp_path / "s")])
    assert (tmp_path / "s-report.html").exists()


def test_another_devices_records_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "calibration"
    for quantity in VALUES:
        save(folder, record(quantity, replace(CROOKED, serial="seed 2")))
    found = document(capsys, [*MEASURE, "--calibration", str(folder), "--out", str(tmp_path / "a")])
    assert found["corrections"] == []
    assert any("no calibration is of this device" in c and "seed 2" in c for c in found["caveats"])
    _, err = said(capsys, [*MEASURE, "--calibration", str(folder / "sim-crooked-seed-2")], 5)
    assert "seed 2" in err
    needs = ["--needs", "channel_skew"]
    _, err = said(capsys, [*MEASURE, "--calibration", str(folder), *needs, "--out", str(tmp_path / "b")], 5)
    assert "the figure needs channel_skew" in err
    assert not (tmp_path / "b").exists(), "nothing is recorded where the figure cannot be had"


def test_what_is_missing_costs_a_caveat_or_the_figure(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    next(folder.glob("*/sample_clock*")).unlink()
    session = str(tmp_path / "s")
    found = document(capsys, [*MEASURE, "--calibration", str(folder), "--out", session])
    missing = next(c for c in found["caveats"] if "sample clock" in c)
    assert "not calibrated: error of the sample clock (no record)" in missing
    assert "0.0073" in missing or "0.0074" in missing, missing  # 1.96 x 25 ppm of 150 ms
    analyze = ["analyze", session, "--quiet", "--json"]
    said(capsys, [*analyze, "--needs", "channel_skew,mouth_path"])
    _, err = said(capsys, [*analyze, "--needs", "sample_clock"], 5)
    assert "the figure needs sample_clock" in err
    _, err = said(capsys, [*analyze, "--needs", "noise_floor"], 2)
    assert "enters no latency" in err
    said(capsys, [*analyze, "--needs", "colour"], 2)


def test_a_record_that_was_changed_in_a_session_is_refused(
    tmp_path: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said(capsys, [*MEASURE, "--calibration", str(folder), "--out", str(tmp_path / "s")])
    manifest = tmp_path / "s" / "manifest.json"
    text = manifest.read_text()
    assert "value_frames = 3.4" in text
    manifest.write_text(text.replace("value_frames = 3.4", "value_frames = 3.5"))
    _, err = said(capsys, ["analyze", str(tmp_path / "s")], 5)
    assert "is not what its hash says" in err


def test_a_broken_record_stops_the_measurement(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = next(folder.glob("*/channel_skew*"))
    path.write_text(path.read_text().replace("u_frames", "u_fraems"))
    _, err = said(capsys, [*MEASURE, "--calibration", str(folder)], 5)
    assert "channel_skew.2026-03-02.toml, line 5: u_fraems is no key of a record" in err
    _, err = said(capsys, [*MEASURE, "--calibration", str(folder / "nowhere")], 5)
    assert "does not exist" in err


def test_records_are_listed_and_shown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = said(capsys, ["calibrate", "list", "--calibration", str(folder)])
    assert "sim:crooked (simulated), serial seed 1" in out
    assert "+3.4000" in out
    assert max(len(line) for line in out.splitlines()) <= 80
    out, _ = said(capsys, ["calibrate", "show", "ear_path.2026-03-02", "--calibration", str(folder)])
    assert "0.8746 +/- 0.0039 ms" in out
    listed = json.loads(said(capsys, ["calibrate", "list", "--calibration", str(folder), "--json"])[0])
    assert {r["quantity"] for r in listed["records"]} == set(VALUES)
    files = [str(path) for path in folder.glob("*/*.toml")]
    assert said(capsys, ["calibrate", "check-file", *files])[0].count("\n") == 4
    _, err = said(capsys, ["calibrate", "show", "nothing", "--calibration", str(folder)], 5)
    assert "0 records are called" in err


def test_usb_ids_are_read_from_the_card(tmp_path: Path) -> None:
    usb = tmp_path / "devices" / "1-2"
    (usb / "1-2:1.0").mkdir(parents=True)
    for name, text in (("idVendor", "1234"), ("idProduct", "5678"), ("serial", "A1")):
        (usb / name).write_text(text + "\n")
    (tmp_path / "card3").mkdir()
    (tmp_path / "card3" / "device").symlink_to(usb / "1-2:1.0")
    found = identify("hardware", "Box: Audio (hw:3,0)", "ALSA", tmp_path)
    assert found == DeviceIdentity("hardware", "Box: Audio (hw:3,0)", "ALSA", "1234:5678", "A1")
    assert identify("hardware", "Box: Audio (hw:4,0)", "ALSA", tmp_path).usb is None
    assert identify("hardware", "pulse", "ALSA", tmp_path).usb is None
