"""The simulated world in real time around the firmware itself: pseudo-terminal, pyserial and all."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path

import pytest

from firmware import emulator_or_skip
from rig.acquire.link import Link, SerialPipe, SystemTime, open_link
from rig.cli.main import main
from rig.domain.records import StimulusPlan
from rig.domain.timebase import Duration
from rig.errors import LinkLost
from rig.sim.alive import Living, LivingBoard, RealTime
from rig.sim.paced import PacedBoard

RUN = ["--runs", "1", "--stimuli", "4", "--json"]


def test_measure_runs_the_real_image_through_pyserial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "session"
    with PacedBoard(emulator_or_skip(), tmp_path / "board", ppm=3000.0) as board:
        assert main(["measure", "--device", "sim:quiet", "--port", str(board.path), *RUN, "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    report = json.loads(printed)
    truth = json.loads((out / "truth.json").read_text())
    assert truth["clocks"]["board_ppm"] == 3000.0
    (run,) = report["runs"]
    (start,) = [start for start in truth["runs"] if start["run"] == 1]
    for trial, stimulus in zip(run["trials"], start["stimuli"], strict=True):
        assert trial["latency_s"] == pytest.approx(stimulus["defined_latency_s"], abs=30e-6)
    assert run["clocks"]["n_pulses"] == 4
    assert run["clocks"]["margin_s"] > 0.0, "stamps of the image, times of this machine: they agree"
    assert main(["analyze", str(out), "--json"]) == 0
    assert capsys.readouterr().out == printed


def test_a_path_where_no_board_ever_was_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--device", "sim", "--port", str(tmp_path / "nothing"), *RUN]) == 2
    said = capsys.readouterr().err
    assert "no emulated board" in said
    assert "rig sim board" in said


def test_a_board_that_ends_in_a_run_is_a_lost_link(tmp_path: Path) -> None:
    out = tmp_path / "session"
    with PacedBoard(emulator_or_skip(), tmp_path / "board") as board:
        ending = threading.Timer(4.0, board.close)
        ending.start()
        code = main(["measure", "--device", "sim:quiet", "--port", str(board.path), *RUN, "--out", str(out)])
        ending.join()
    assert code == 6
    assert (out / "manifest.json").is_file()


def test_the_world_hears_what_the_board_plays_and_that_it_was_cut(tmp_path: Path) -> None:
    with PacedBoard(emulator_or_skip(), tmp_path / "board") as running:
        host = SystemTime()
        link = open_link(str(running.path), host)  # resets it; the next one to open it does so again
        link.close()
        pins = running.pins()
        cuts: list[float] = []
        tones: list[tuple[float, int]] = []

        def on_tone(start_s: float, samples: object, rate_hz: float) -> object:
            tones.append((start_s, round(rate_hz)))
            return cuts.append

        board = LivingBoard(Living(SerialPipe(str(running.path), host), pins, RealTime(host)), on_tone)  # type: ignore[arg-type]
        spoken = Link(board, host)
        spoken.identify()
        spoken.arm(StimulusPlan("chirp", 2, (0.5,), 0.5, "mcu"))
        spoken.fire()
        begun_s = host.now().seconds
        host.sleep_until(host.now().plus(Duration(0.3)))
        spoken.safe()
        board.settle(host.now().seconds)
        assert [rate for _, rate in tones] == [31250, 31250]
        assert begun_s < tones[0][0] < begun_s + 0.1
        assert len(cuts) == 1, "the first tone was over, the second had not begun"
        assert begun_s + 0.3 < cuts[0] < tones[1][0]
        running.close()
        time.sleep(0.1)
        with pytest.raises(LinkLost):
            board.settle(host.now().seconds)
        board.close()
