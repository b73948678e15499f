"""A headless Chromium over its debugging protocol: opens a page, evaluates in it, photographs it."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome")
DEADLINE_S = 60.0
DESK, PHONE = (900, 1200), (390, 844)

Json = dict[str, Any]


def chromium() -> str | None:
    """The browser's program; None where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Tab:
    """One page. `logged` holds every console error, exception and failed or forbidden request since it was opened."""

    def __init__(self, address: str) -> None:
        self._socket = websocket.create_connection(address, timeout=DEADLINE_S, suppress_origin=True)
        self._number = 0
        self.logged: list[str] = []
        self.requested: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Json:
        """One command and its answer. Raises AssertionError where the browser refuses it."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": parameters}))
        while True:
            message = self._receive()
            if message.get("id") == self._number:
                assert "error" not in message, message["error"]
                result: Json = message["result"]
                return result

    def open(self, path: Path, size: tuple[int, int] = DESK, scheme: str = "light") -> None:
        """Loads a file and waits until it is loaded."""
        width, height = size
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.call("Page.navigate", url=path.resolve().as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def evaluate(self, expression: str) -> Any:
        """The value of an expression in the page; promises are waited for."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def photograph(self, path: Path, height: int | None = None) -> None:
        """The whole page, or its first `height` pixels, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
        shot = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _receive(self) -> Json:
        message: Json = json.loads(self._socket.recv())
        method, facts = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.logged.append(str(facts["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and facts["type"] in ("error", "warning", "assert"):
            self.logged.append(str(facts["args"]))
        elif method == "Log.entryAdded":
            self.logged.append(str(facts["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requested.append(facts["request"]["url"])
        return message

    def close(self) -> None:
        self._socket.close()


@contextlib.contextmanager
def browser(program: str) -> Iterator[Tab]:
    """A browser of its own, with a profile that goes when it ends, and a blank tab in it."""
    with tempfile.TemporaryDirectory(prefix="rig-chromium-", ignore_cleanup_errors=True) as profile:
        command = [program, "--headless", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-port=0"]
        command += [f"--user-data-dir={profile}", "--no-first-run", "about:blank"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # the sandbox refuses to run as root
        process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        try:
            address = _address(process)
            yield _first_tab(address)
        finally:
            process.terminate()
            process.communicate()


def _address(process: subprocess.Popen[str]) -> str:
    """The debugging endpoint that the browser writes to stderr when it is ready."""
    said = []
    for line in process.stderr or ():
        said.append(line)
        found = re.search(r"ws://\S+", line)
        if found:
            return found[0]
    raise AssertionError("the browser ended before it listened:\n" + "".join(said))


def _first_tab(address: str) -> Tab:
    """The tab that the browser opened, by the identifier that its endpoint lists."""
    connection = websocket.create_connection(address, timeout=DEADLINE_S, suppress_origin=True)
    connection.send(json.dumps({"id": 1, "method": "Target.getTargets"}))
    while (answer := json.loads(connection.recv())).get("id") != 1:
        pass
    connection.close()
    page = next(t for t in answer["result"]["targetInfos"] if t["type"] == "page")
    return Tab(re.sub(r"/devtools/.*", f"/devtools/page/{page['targetId']}", address))
