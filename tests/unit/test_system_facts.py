"""What a session keeps of how the system under test was set: words of its command, settings of a world, no secrets."""

from __future__ import annotations

import json
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rig.cli.main import main
from rig.cli.system_facts import MOST_CHARACTERS, NOT_KEPT, system_facts
from rig.domain.marks import MarkPart, Marks
from rig.errors import UsageError
from rig.session.markruns import settings_said
from rig.sim.world import WorldSpec, with_overrides, worldly


@pytest.mark.parametrize(
    ("command", "facts"),
    [
        ("my-app", {"command": "my-app"}),
        ("my-app --buffer 256 -v", {"command": "my-app", "--buffer": "256", "-v": "yes"}),
        ("my-app --buffer=256 call", {"command": "my-app call", "--buffer": "256"}),
        ("rig sut webrtc --gain -3 --echo", {"command": "rig sut webrtc", "--gain": "-3", "--echo": "yes"}),
        ("app -x 1 -x 2 - -5", {"command": "app - -5", "-x": "1, 2"}),
        ("app --api-key abc --auth=x", {"command": "app", "--api-key": NOT_KEPT, "--auth": NOT_KEPT}),
        ("app --to ws://me:pw@host/", {"command": "app", "--to": "ws://host/"}),
    ],
)
def test_the_words_of_a_command(command: str, facts: dict[str, str]) -> None:
    assert system_facts(command) == facts


def test_other_ways_of_setting_a_system() -> None:
    found = system_facts(
        None, {"JITTER": "9" * 900, "MY_TOKEN": "x"}, {"target": 200, "dtx": True}, {"network_s": 0.05}
    )
    assert len(found.pop("$JITTER")) == MOST_CHARACTERS
    assert found == {"$MY_TOKEN": NOT_KEPT, "config target": "200", "config dtx": "yes", "world network_s": "0.05"}
    with pytest.raises(UsageError, match="cannot be read"):
        system_facts("app 'half")


def test_what_a_system_says_of_itself_and_changes_on_the_way() -> None:
    parts = [MarkPart(None, "c", None, None, None, (), config={"target": t, "mode": "fixed"}) for t in (0, 200, 0)]
    assert settings_said(Marks(tuple(parts), 0, ())) == (("mode", "fixed"), ("target", "0, 200"))


@pytest.mark.parametrize(
    ("name", "given", "value"),
    [
        ("network_s", "0.05", 0.05),
        ("network_s", 1, 1.0),
        ("polarity", "-1", -1),
        ("marks", "true", True),
        ("marks_clock", "own", "own"),
        ("snr_db", "none", None),
        ("mouth_band_hz", "300,3400", (300.0, 3400.0)),
        ("mouth_band_hz", [300, 3400], (300.0, 3400.0)),
    ],
)
def test_settings_of_a_world_from_text_and_from_a_file(name: str, given: Any, value: Any) -> None:
    found = worldly({name: given})
    assert found == {name: value}
    assert type(found[name]) is type(value)
    assert getattr(with_overrides(WorldSpec(), found), name) == value


@pytest.mark.parametrize(
    "setting",
    [
        *("network_s=soon", "network_s=nan", "network_s=1e999", "network_s=none", "network_s=-0.1", "frame_s=0"),
        *("polarity=1.5", "marks=perhaps", "mouth_band_hz=300", "nowhere=1", "network_s", "=1", "network_s="),
    ],
)
def test_a_setting_that_cannot_be(setting: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["measure", "--device", "sim", "--set", setting, "--out", str(tmp_path / "s"), "-q"]) == 2
    assert capsys.readouterr().out == ""
    assert not (tmp_path / "s").exists()


def test_a_session_keeps_its_world_and_the_file_that_was_played(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talk = tmp_path / "talk.wav"
    with wave.open(str(talk), "wb") as handle:
        handle.setparams((1, 2, 48_000, 0, "NONE", ""))
        sweep = 0.5 * np.sin(2e3 * np.cumsum(np.linspace(0.2, 1.5, 24_000)) / 2400.0)
        handle.writeframes((32_767 * sweep).astype("<i2").tobytes())
    words = [
        "measure",
        "--device",
        "sim:quiet",
        "--port",
        "none",
        "--stimulus",
        f"wav:{talk}",
        "--set",
        "latency_s=0.12",
    ]
    code = main([*words, "--runs", "1", "--stimuli", "3", "--no-blank", "--json", "-q", "--out", str(tmp_path / "s")])
    said = json.loads(capsys.readouterr().out)
    assert code == 0
    assert said["latency_s"]["median"] == pytest.approx(0.12, abs=2e-4)
    assert said["system"] == {"world latency_s": "0.12"}
    assert said["plan"]["wav"] == "talk.wav"
    assert len(said["plan"]["wav_sha256"]) == 64
    assert main(["measure", "--device", "none", "--set", "latency_s=0.1", "-q"]) == 2
