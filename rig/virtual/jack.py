"""The private JACK: a server on the dummy driver, which keeps time by itself, and the interface as a client of it.

Here the path is known to the frame: nothing resamples, nothing buffers but JACK's own period, and that is in both
channels (see jack_wires.py). The server waits for its clients (`--sync`), so that a busy computer makes time pass more
slowly in here but never puts a period of sound in another's place.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from rig.errors import MissingLibrary
from rig.virtual.jack_wires import CABLES, INTERFACE, MOUTH
from rig.virtual.recipe import Server

PACKAGES = "jackd2 libportaudio2"
PERIOD_FRAMES = 1024
"""Chosen: 21 ms for every client to be served, enough without real-time scheduling."""

RATE_HZ = 48000
_WAIT_MS = 1000  # for a client that was killed; the server stands still as long

_LEFT_IN = Path("/dev/shm")  # where jackd2 has its sockets and semaphores, whatever it is told

# ALSA with no card in it. PortAudio aborts where ALSA has no default device; this one is silent and goes nowhere.
_ALSA_CONF = """\
pcm.default { type null }
ctl.default { type hw card 0 }
"""


@dataclass(frozen=True, slots=True)
class JackBench:
    """The files of the private server, all inside `folder`."""

    folder: Path
    board_plays_on: str | None = None

    @property
    def server_name(self) -> str:
        """JACK tells servers apart by name, for the whole machine; this one follows from the folder."""
        return f"rig-{os.getuid()}-{zlib.crc32(os.fsencode(self.folder)):08x}"

    def write_configuration(self) -> None:
        if importlib.util.find_spec("jack") is None:
            raise MissingLibrary(
                "the library JACK-Client is not installed",
                "JACK-Client, which lays the cables",
                "pip install JACK-Client",
            )
        (self.folder / "home").mkdir(mode=0o700)
        (self.folder / "alsa.conf").write_text(_ALSA_CONF, encoding="ascii")

    def servers(self, environ: dict[str, str]) -> list[Server]:
        own = {
            "PATH": environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder / "home"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "PYTHONPATH": str(Path(__file__).parents[2]),
            **self.client_environment(),
        }
        jackd = ["jackd", "--name", self.server_name, "--no-realtime", "--sync", "--timeout", str(_WAIT_MS)]
        dummy = [
            "-d",
            "dummy",
            "--rate",
            str(RATE_HZ),
            "--period",
            str(PERIOD_FRAMES),
            "--capture",
            "0",
            "--playback",
            "0",
        ]
        cables = self.folder / "cables"
        wires = [sys.executable, "-m", "rig.virtual.jack_wires", str(cables)]
        return [
            Server("jackd", jackd + dummy, own, self.folder / "jackd.log", PACKAGES, self._socket.is_socket),
            Server("jack_wires", wires, own, self.folder / "wires.log", PACKAGES, cables.exists),
        ]

    def client_environment(self) -> dict[str, str]:
        """Also closes the ways to a sound server of the user's: ALSA has no card, PulseAudio no socket."""
        return {
            "JACK_DEFAULT_SERVER": self.server_name,
            "JACK_NO_START_SERVER": "1",
            "JACK_NO_AUDIO_RESERVATION": "1",
            "PULSE_SERVER": f"unix:{self.folder / 'no-pulse'}",
            "PIPEWIRE_REMOTE": str(self.folder / "no-pipewire"),
            "ALSA_CONFIG_PATH": str(self.folder / "alsa.conf"),
        }

    def complaint(self) -> str | None:
        """Nothing can be missing: the cables' process ends where it cannot lay them."""
        return None

    def roles(self) -> list[tuple[str, str]]:
        return [("interface", INTERFACE), ("mouth", f"{INTERFACE}:{MOUTH}"), ("ear", f"{INTERFACE}:{CABLES[1]}")]

    def sweep(self) -> None:
        """A server that was killed leaves its sockets and semaphores behind; their names hold the server's."""
        for left in _LEFT_IN.glob(f"jack_*{self.server_name}_*"):
            with contextlib.suppress(OSError):
                left.unlink()

    @property
    def _socket(self) -> Path:
        return _LEFT_IN / f"jack_{self.server_name}_{os.getuid()}_0"
