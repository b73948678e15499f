"""Settings over the marks connection: taken, refused, not answered; by WebSocket, rig.marks and JavaScript."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from rig.acquire.link import SystemTime
from rig.acquire.marks_listen import MarksListener
from rig.acquire.marks_settings import ConfiguredSystem
from rig.acquire.process import CommandSystem
from rig.errors import BenchNotReady
from rig.marks import Marks
from rig.session.marks import read_marks

pytest.importorskip("aiohttp")

ROOT = Path(__file__).parents[2]
WITHIN_S = 20.0


@pytest.fixture
def listener() -> Iterator[MarksListener]:
    made = MarksListener("127.0.0.1", 0, SystemTime())
    yield made
    made.close()


@pytest.fixture
def ask(listener: MarksListener) -> Iterator[Callable[[dict[str, Any]], Any]]:
    """Asks in a thread of its own; the future gives None or the error."""
    with ThreadPoolExecutor(1) as pool:
        yield lambda settings: pool.submit(listener.configure, settings, WITHIN_S)


def connect(listener: MarksListener) -> Any:
    import websocket

    return websocket.create_connection(listener.address.replace("http", "ws"), timeout=20, suppress_origin=True)


def test_a_connected_system_is_asked_and_answers(listener: MarksListener, ask: Callable[..., Any]) -> None:
    socket = connect(listener)
    asked = ask({"target": 200})
    message = json.loads(socket.recv())
    assert message["config"] == {"target": 200}
    socket.send(json.dumps({"ack": "another"}))  # no header, no marks: told so, and not taken for the answer
    assert "header" in json.loads(socket.recv())["why"]
    assert not asked.done()
    socket.send(json.dumps({"ack": message["ack"]}))
    assert asked.result(WITHIN_S) is None
    socket.close()
    assert listener.collect(True) == b"", "an answer is no mark"


def test_one_that_connects_later_is_asked_too(listener: MarksListener, ask: Callable[..., Any]) -> None:
    asked = ask({"target": 200})
    socket = connect(listener)
    socket.send(json.dumps({"ack": json.loads(socket.recv())["ack"], "config": {"target": 200, "more": 1}}))
    assert asked.result(WITHIN_S) is None
    socket.close()


@pytest.mark.parametrize(
    ("answer", "said"),
    [({"why": "no such knob"}, "no such knob"), ({"config": {"target": 100}}, "took target 100 where 200")],
)
def test_a_system_that_takes_other_settings_is_an_error(
    listener: MarksListener, ask: Callable[..., Any], answer: dict[str, Any], said: str
) -> None:
    socket = connect(listener)
    asked = ask({"target": 200})
    socket.send(json.dumps({"ack": json.loads(socket.recv())["ack"], **answer}))
    with pytest.raises(BenchNotReady, match=said):
        asked.result(WITHIN_S)
    socket.close()


def test_silence_is_an_error(listener: MarksListener) -> None:
    with pytest.raises(BenchNotReady, match="no WebSocket is connected"):
        listener.configure({"target": 200}, 0.05)
    socket = connect(listener)
    with pytest.raises(BenchNotReady, match="1 connections"):
        listener.configure({"target": 200}, 0.3)
    socket.close()


def test_rig_marks_takes_settings_and_writes_them_down(listener: MarksListener, tmp_path: Path) -> None:
    knobs: dict[str, Any] = {"target": 0}
    taken = threading.Event()

    def on_config(settings: dict[str, Any]) -> dict[str, Any]:
        if set(settings) - set(knobs):
            raise ValueError(f"no knob {sorted(set(settings) - set(knobs))[0]}")
        knobs.update(settings)
        taken.set()
        return knobs

    with Marks(listener.address, session_id="loop", on_config=on_config) as marks:
        marks.mark(1, "t_capture")
        listener.configure({"target": 200}, WITHIN_S)
        with pytest.raises(BenchNotReady, match="no knob nothing"):
            listener.configure({"nothing": 1}, WITHIN_S)
        marks.mark(2, "t_capture")
    assert taken.is_set()
    path = tmp_path / "marks.jsonl"
    path.write_bytes(listener.collect(True))
    (part,) = read_marks(path, strict=True).parts
    assert part.config == {"target": 200}


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_javascript_takes_settings(listener: MarksListener, ask: Callable[..., Any], tmp_path: Path) -> None:
    library = (ROOT / "js" / "rig-marks" / "rig-marks.js").as_uri()
    program = f"""
    import {{ Marks }} from {json.dumps(library)};
    let target = 0;
    const marks = new Marks({{ onConfig: (settings) => ({{ target: (target = settings.target) }}) }});
    marks.mark(1, "t_capture");
    while (!target) await marks.send({json.dumps(listener.address)});
    await marks.send({json.dumps(listener.address)});
    """
    (tmp_path / "run.mjs").write_text(program, encoding="utf-8")
    asked = ask({"target": 200})
    subprocess.run(["node", tmp_path / "run.mjs"], check=True, timeout=60)
    assert asked.result(WITHIN_S) is None
    path = tmp_path / "marks.jsonl"
    path.write_bytes(listener.collect(True))
    assert read_marks(path, strict=True).parts[0].config == {"target": 200}


def test_a_command_is_configured_after_each_start(listener: MarksListener, tmp_path: Path) -> None:
    program = tmp_path / "system.py"
    program.write_text(
        "import os, sys, time\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from rig.marks import Marks\n"
        "marks = Marks(os.environ['RIG_MARKS'], on_config=lambda settings: settings)\n"
        "print('ready', flush=True)\n"
        "time.sleep(60)\n",
        encoding="utf-8",
    )
    command = CommandSystem(f"{sys.executable} {program}", says="ready", environ={"RIG_MARKS": listener.address})
    system = ConfiguredSystem(command, listener, {"target": 200}, SystemTime(), settle_s=0.05, within_s=WITHIN_S)
    try:
        for run in (1, 2):
            system.start(run)
            assert system.can_stop
    finally:
        system.stop()
    assert system.ended_early is None
