"""The browser as a system under test, without a browser: what can be asked, and what its server takes."""

from __future__ import annotations

import http.client
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from rig.cli.main import main
from rig.sut.browser.knobs import Context, Microphone, WebAudio, WebRtc
from rig.sut.browser.server import FILES, MAX_BODY_BYTES, MAX_MARKS_BYTES, PageServer

ROOT = Path(__file__).parents[2]


class Page:
    """A client of one server, as the page is."""

    def __init__(self, marks: bool) -> None:
        self.file = io.BytesIO()
        self.heard: list[dict[str, Any]] = []
        self.server = PageServer({"page": "web-audio"}, self.file if marks else None, self.heard.append)
        self.at = urlsplit(self.server.address)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        line = http.client.HTTPConnection(self.at.hostname or "", self.at.port, timeout=10)
        try:
            line.request(method, path, body, headers)
            answer = line.getresponse()
            return answer.status, answer.read()
        finally:
            line.close()

    def post(self, name: str, body: bytes) -> int:
        return self.ask("POST", self.at.path + name, body)[0]


@pytest.fixture
def page() -> Iterator[Page]:
    made = Page(marks=True)
    yield made
    made.server.close()


def test_the_server_listens_on_loopback_alone(page: Page) -> None:
    assert page.at.hostname == "127.0.0.1"


@pytest.mark.parametrize("name", sorted(FILES))
def test_every_file_of_the_page_is_served(page: Page, name: str) -> None:
    status, content = page.ask("GET", page.at.path + name)
    assert status == 200
    assert content == (ROOT / "rig/sut/browser/static" / (name or "page.html")).read_bytes()


def test_the_page_writes_marks_with_the_library_that_users_copy() -> None:
    ours = (ROOT / "rig/sut/browser/static/rig-marks.js").read_bytes()
    assert ours == (ROOT / "js/rig-marks/rig-marks.js").read_bytes()


def test_settings_say_whether_marks_are_kept(page: Page) -> None:
    assert json.loads(page.ask("GET", page.at.path + "settings.json")[1]) == {"page": "web-audio", "marks": True}


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/page.js",
        "/wrong-token/page.js",
        "TOKEN../server.py",
        "TOKEN../../../errors.py",
        "TOKENstatic",
        "TOKEN%00",
    ],
)
def test_nothing_else_is_served(page: Page, path: str) -> None:
    assert page.ask("GET", path.replace("TOKEN", page.at.path))[0] == 404


def test_marks_go_to_the_file_as_they_come(page: Page) -> None:
    assert page.post("marks", b'{"marks":1}\n') == 204
    assert page.post("marks", b'{"seq":1}\n') == 204
    assert page.file.getvalue() == b'{"marks":1}\n{"seq":1}\n'


def test_half_a_line_of_marks_is_not_kept(page: Page) -> None:
    assert page.post("marks", b'{"marks":1}\n{"se') == 400
    assert page.file.getvalue() == b""


def test_what_is_too_large_is_dropped(page: Page) -> None:
    assert page.ask("POST", page.at.path + "marks", None, **{"Content-Length": str(MAX_BODY_BYTES + 1)})[0] == 413
    assert page.post("report", b'{"state":"running","x":"' + b"y" * 20000 + b'"}') == 413
    assert page.file.getvalue() == b""
    assert page.heard == []


def test_marks_have_an_end(page: Page) -> None:
    page.server._marks_bytes = MAX_MARKS_BYTES - 3
    assert page.post("marks", b"ab\n") == 204
    assert page.post("marks", b"c\n") == 507
    assert page.file.getvalue() == b"ab\n"


@pytest.mark.parametrize("length", ["", "-1", "x", "1e3", "²"])
def test_a_length_that_is_none_is_refused(page: Page, length: str) -> None:
    headers = {"Content-Length": length.encode().decode("latin-1")} if length else {}
    assert page.ask("POST", page.at.path + "marks", None, **headers)[0] in (400, 413)
    assert page.file.getvalue() == b""


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"state":"other"}', b"[" * 5000, b"\xff", b"null"])
def test_reports_that_are_none_are_refused(page: Page, body: bytes) -> None:
    assert page.post("report", body) == 400
    assert page.heard == []


def test_reports_are_heard(page: Page) -> None:
    assert page.post("report", b'{"state":"running","a":null}') == 204
    assert page.heard == [{"state": "running", "a": None}]


def test_without_a_file_no_marks_are_taken() -> None:
    page = Page(marks=False)
    try:
        assert page.post("marks", b"{}\n") == 404
        assert json.loads(page.ask("GET", page.at.path + "settings.json")[1])["marks"] is False
    finally:
        page.server.close()


def test_knobs_reach_the_page_in_the_units_of_the_browser() -> None:
    call = WebRtc("context", 0.04, 0.1, 2.5, Microphone(echo_cancellation=True), Context(24000, 0.05)).for_page()
    assert (call["jitterBufferTarget"], call["playoutDelayHint"], call["ptime"]) == (100.0, 2.5, 40)
    assert call["context"] == {"sampleRate": 24000, "latencyHint": 0.05}
    assert call["microphone"] == {"echoCancellation": True, "noiseSuppression": False, "autoGainControl": False}
    untouched = WebRtc("element", None, None, None, Microphone(), Context()).for_page()
    assert (untouched["jitterBufferTarget"], untouched["playoutDelayHint"], untouched["ptime"]) == (None, None, None)
    assert untouched["context"] == {}
    assert WebAudio("buffers", None, 0.0, Microphone(), Context()).for_page()["block"] % 128 == 0


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["browser", "--engine", "flash"], "--engine flash"),
        (["browser", "--block", "256"], "--block 256 with the worklet"),
        (["browser", "--engine", "script-processor", "--block", "300"], "a ScriptProcessor does not take it"),
        (["browser", "--engine", "buffers", "--block", "200"], "--block 200"),
        (["browser", "--lead", "20ms"], "--lead with worklet"),
        (["browser", "--engine", "buffers", "--lead", "20"], "'20' has no unit"),
        (["browser", "--latency-hint", "soon"], "--latency-hint soon"),
        (["webrtc", "--latency-hint", "playback"], "an audio element has none"),
        (["webrtc", "--rate", "48000"], "an audio element has none"),
        (["webrtc", "--player", "ear"], "--player ear"),
        (["webrtc", "--frame", "30ms"], "--frame 30ms"),
        (["webrtc", "--jitter-buffer-target", "5s"], "--jitter-buffer-target 5s"),
        (["webrtc", "--playout-delay-hint", "50"], "'50' has no unit"),
    ],
)
def test_what_the_browser_would_refuse_is_refused_before(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sut", *words, "--chromium", "no-such-browser"]) == 2
    assert what in capsys.readouterr().err


def test_a_missing_browser_names_its_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sut", "webrtc", "--chromium", "no-such-browser"]) == 4
    assert "apt-get install chromium" in capsys.readouterr().err
