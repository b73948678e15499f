"""The server of the pages: a few files out, settings out, marks and reports in. On loopback, behind a drawn path.

Everything that comes in is bounded, and what does not fit is answered with an error and dropped.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import IO, Any

FILES = {
    "": "text/html; charset=utf-8",
    "page.js": "text/javascript",
    "web-audio.js": "text/javascript",
    "webrtc.js": "text/javascript",
    "processors.js": "text/javascript",
    "rig-marks.js": "text/javascript",
}
"""Name in the address to its type. Nothing else is served; the empty name is the page itself."""

MAX_BODY_BYTES = 1 << 20
MAX_MARKS_BYTES = 192 << 20
"""Of one start. Three quarters of what rig marks reads, so that a file of many starts stays readable for a while."""
MAX_REPORT_BYTES = 16 << 10

Report = dict[str, Any]


class PageServer:
    """Serves one page with its settings. `heard` is called, in a thread of the server, with every report of the page:
    an object with `state` running or failed."""

    def __init__(self, settings: Report, marks: IO[bytes] | None, heard: Callable[[Report], None]) -> None:
        self._token = secrets.token_urlsafe(16)
        self._settings = json.dumps(settings | {"marks": marks is not None}).encode()
        self._marks = marks
        self._marks_bytes = 0
        self._lock = threading.Lock()
        self._heard = heard
        server = self

        class Handler(_Handler):
            owner = server

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.1,), daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Of the page."""
        return f"http://127.0.0.1:{self._http.server_address[1]}/{self._token}/"

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def get(self, path: str) -> tuple[bytes, str] | None:
        """(content, type) of what is at a path; None: nothing."""
        name = self._name(path)
        if name == "settings.json":
            return self._settings, "application/json"
        if name not in FILES:
            return None
        return files("rig.sut.browser").joinpath("static", name or "page.html").read_bytes(), FILES[name]

    def post(self, path: str, body: bytes) -> int:
        """The HTTP status for what the page has sent."""
        name = self._name(path)
        if name == "marks":
            return self._keep(body)
        if name != "report":
            return 404
        if len(body) > MAX_REPORT_BYTES:
            return 413
        try:
            report = json.loads(body)
        except (ValueError, RecursionError):
            return 400
        if not isinstance(report, dict) or report.get("state") not in ("running", "failed"):
            return 400
        self._heard(report)
        return 204

    def _keep(self, body: bytes) -> int:
        if not body.endswith(b"\n"):
            return 400  # lines that are whole, or none
        with self._lock:
            if self._marks is None:
                return 404
            if self._marks_bytes + len(body) > MAX_MARKS_BYTES:
                return 507
            self._marks_bytes += len(body)
            self._marks.write(body)
            self._marks.flush()
        return 204

    def _name(self, path: str) -> str | None:
        """What stands behind the token; None where it is not this server's."""
        start, _, name = path.removeprefix("/").partition("/")
        return name if secrets.compare_digest(start.encode(), self._token.encode()) else None


class _Handler(BaseHTTPRequestHandler):
    owner: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 60.0  # of a connection on which nothing comes

    def do_GET(self) -> None:
        found = self.owner.get(self.path)
        if found is None:
            self._answer(404)
        else:
            self._answer(200, *found)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not (length.isascii() and length.isdigit()) or int(length) > MAX_BODY_BYTES:
            self.close_connection = True  # its body stays unread
            self._answer(413)
            return
        self._answer(self.owner.post(self.path, self.rfile.read(int(length))))

    def _answer(self, status: int, content: bytes = b"", kind: str = "text/plain") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        # A page that is isolated has a clock of 5 us; any other one of 100 us.
        self.send_header("Cross-Origin-Opener-Policy", "same-origin")
        self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """The standard streams are not the server's."""
