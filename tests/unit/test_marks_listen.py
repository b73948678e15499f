"""The endpoint for marks: what senders may do, how much, and that the reader reads what was kept."""

from __future__ import annotations

import http.client
import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rig.acquire import marks_listen
from rig.acquire.link import SystemTime
from rig.acquire.marks_listen import MarksListener, listen_address
from rig.errors import BenchNotReady, UsageError
from rig.marks import Marks
from rig.session.marks import read_marks

pytest.importorskip("aiohttp")


def header(name: str) -> str:
    return json.dumps({"marks": 1, "session_id": name, "clock": "performance.now", "unit": "ms"})


@pytest.fixture
def listener() -> Iterator[MarksListener]:
    made = MarksListener("127.0.0.1", 0, SystemTime())
    yield made
    made.close()


def post(
    listener: MarksListener, body: str, path: str = "/marks", headers: dict[str, str] | None = None
) -> tuple[int, dict[str, Any]]:
    where = urlsplit(listener.address)
    line = http.client.HTTPConnection("127.0.0.1", where.port or 0, timeout=10)
    try:
        line.request("POST", path, body.encode(), headers or {})
        answer = line.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        line.close()


def test_what_two_senders_write_in_turn_stays_apart(listener: MarksListener, tmp_path: Path) -> None:
    import websocket

    socket = websocket.create_connection(listener.address.replace("http", "ws"), timeout=10, suppress_origin=True)
    socket.send(header("page") + "\n" + '{"seq":1,"t_capture":100.5}')
    socket.send('{"ping":7.5,"unit":"ms"}')
    before_s = SystemTime().now().seconds
    sent, received, answered = json.loads(socket.recv())["pong"]
    assert sent == 7.5
    assert before_s - 5.0 < received * 1e-3 <= answered * 1e-3 <= SystemTime().now().seconds
    assert post(listener, header("worker") + '\n{"seq":1,"t_capture":900.5}\n') == (200, {})
    socket.send('{"seq":2,"t_capture":120.5}')
    socket.send(json.dumps({"sync": [sent, received, answered, 8.5]}))
    socket.send('{"ping":9,"unit":"ms"}')
    assert json.loads(socket.recv())["pong"][0] == 9  # what was sent before is kept now
    socket.close()
    path = tmp_path / "marks.jsonl"
    path.write_bytes(listener.collect(True))
    parts = {part.session_id: part for part in read_marks(path, strict=True).parts}
    assert [row.instants_s[0] for row in parts["page"].rows] == [0.1005, 0.1205]
    assert [row.instants_s[0] for row in parts["worker"].rows] == [0.9005]
    assert parts["page"].exchanges[0].host_received_s == pytest.approx(received * 1e-3)
    assert listener.collect(True) == b""


def test_a_run_that_was_collected_is_followed_by_a_header_again(listener: MarksListener) -> None:
    import websocket

    socket = websocket.create_connection(listener.address.replace("http", "ws"), timeout=10, suppress_origin=True)
    for seq in (1, 2):
        socket.send((header("s") + "\n" if seq == 1 else "") + f'{{"seq":{seq},"t_capture":5}}')
        socket.send('{"ping":1,"unit":"s"}')
        socket.recv()
        assert listener.collect(True).decode().splitlines() == [header("s"), f'{{"seq":{seq},"t_capture":5}}']
    socket.close()


def test_lines_without_a_header_are_refused(listener: MarksListener) -> None:
    status, said = post(listener, '{"seq":1,"t_capture":100.5}')
    assert status == 400
    assert "header" in said["why"]
    assert listener.collect(True) == b""


def test_size_and_rate_are_bounded(listener: MarksListener, monkeypatch: pytest.MonkeyPatch) -> None:
    assert post(listener, "x" * (marks_listen.MOST_MESSAGE_BYTES + 1))[0] == 413
    monkeypatch.setattr(marks_listen, "MOST_WAITING_BYTES", 1000)
    assert post(listener, header("s"))[0] == 200
    status, said = post(listener, header("s") + '\n{"event":"x"}' * 100)
    assert status == 400
    assert "not kept" in said["why"]
    assert b'"marks_lost", "n": 101' in listener.collect(True)


@pytest.mark.parametrize("body", ["", "[]", '{"ping":true,"unit":"ms"}', '{"ping":1}', '{"ping":NaN,"unit":"s"}'])
def test_a_ping_that_says_no_time_is_refused(listener: MarksListener, body: str) -> None:
    assert post(listener, body, "/ping")[0] == 400


def test_pages_of_other_sites_need_the_token(listener: MarksListener) -> None:
    for headers in ({"Origin": "https://example.com"}, {"Origin": "null"}, {"Host": "example.com"}):
        assert post(listener, header("s"), headers=headers)[0] == 403
    assert post(listener, header("s"), headers={"Origin": "http://localhost:8000"})[0] == 200
    assert listener.collect(True).decode().count("marks") == 1


def test_beyond_loopback_a_token_is_asked_for() -> None:
    made = MarksListener("0.0.0.0", 0, SystemTime())
    try:
        assert post(made, header("s"))[0] == 403
        assert post(made, header("s"), "/marks?" + urlsplit(made.address).query)[0] == 200
        with pytest.raises(BenchNotReady, match="cannot be listened"):
            MarksListener("0.0.0.0", urlsplit(made.address).port or 0, SystemTime())
    finally:
        made.close()


def test_rig_marks_sends_to_it_with_clock_exchanges(listener: MarksListener, tmp_path: Path) -> None:
    with Marks(listener.address, session_id="loop") as marks:
        for seq in range(20_000):  # several pieces
            marks.mark(seq, "t_capture", 1_000_000_000 + 20_000_000 * seq)
    path = tmp_path / "marks.jsonl"
    path.write_bytes(listener.collect(True))
    (part,) = read_marks(path, strict=True).parts
    assert len(part.rows) == 20_000
    exchange = part.exchanges[0]  # both ends read the same clock here
    times = (exchange.sut_sent_s, exchange.host_received_s, exchange.host_sent_s, exchange.sut_received_s)
    assert times == tuple(sorted(times))


def test_what_is_sent_before_anybody_listens_arrives_later(listener: MarksListener, tmp_path: Path) -> None:
    port = urlsplit(listener.address).port or 0
    listener.close()
    with Marks(f"http://127.0.0.1:{port}/marks") as marks:
        marks.mark(1, "t_capture")
        marks.flush()
        again = MarksListener("127.0.0.1", port, SystemTime())
    try:
        assert b'"t_capture"' in again.collect(True)
    finally:
        again.close()
    with pytest.raises(ValueError, match="not to ftp"):
        Marks("ftp://127.0.0.1/marks")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_javascript_sends_to_it_with_clock_exchanges(listener: MarksListener, tmp_path: Path) -> None:
    library = (Path(__file__).parents[2] / "js" / "rig-marks" / "rig-marks.js").as_uri()
    program = f"""
    import {{ Marks }} from {json.dumps(library)};
    const marks = new Marks({{ sessionId: "page" }});
    for (let seq = 0; seq < 7000; seq += 1) marks.mark(seq, "t_capture", 1000.125 + 20 * seq);
    if (await marks.send("http://127.0.0.1:9/marks")) throw new Error("nobody answers there");
    for (let k = 0; k < 2; k += 1) {{
      if (!(await marks.send({json.dumps(listener.address)}))) throw new Error("not sent");
    }}
    """
    (tmp_path / "run.mjs").write_text(program, encoding="utf-8")
    subprocess.run(["node", tmp_path / "run.mjs"], check=True, timeout=60)
    path = tmp_path / "marks.jsonl"
    path.write_bytes(listener.collect(True))
    (part,) = read_marks(path, strict=True).parts
    assert len(part.rows) == 7000
    assert part.rows[6999].instants_s[0] == pytest.approx(140.980125)
    assert len(part.exchanges) == 2
    assert all(e.sut_sent_s < e.sut_received_s and e.host_received_s <= e.host_sent_s for e in part.exchanges)


def test_addresses() -> None:
    assert listen_address("listen") == ("127.0.0.1", 0)
    assert listen_address("listen:8765") == ("127.0.0.1", 8765)
    assert listen_address("listen:[::1]:8765") == ("::1", 8765)
    for wrong in ("listen:", "listen:x", "listen:127.0.0.1:99999", "listener"):
        with pytest.raises(UsageError):
            listen_address(wrong)
