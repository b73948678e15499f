"""The private PulseAudio: its configuration, how it is started, and what a program must be told to find it.

One null sink of two channels is the interface; it has one clock, and its monitor is what the interface records. The
mouth plays onto its left channel, the system's loudspeaker onto its right one, and the system's microphone hears the
left one. Sound needs no time from the mouth to the microphone, nor from the loudspeaker to channel 2: all latency that
is measured here is that of the system and of the sound server below it.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path

from rig.virtual.recipe import Server

INTERFACE = "Virtual USB Audio"
MOUTH = "Virtual Mouth"
SPEAKER = "Virtual System Speaker"
MICROPHONE = "Virtual System Microphone"

PACKAGES = "pulseaudio libasound2-plugins"

_DAEMON_CONF = """\
# Nobody's configuration but this bench's.
exit-idle-time = -1
default-sample-rate = 48000
alternate-sample-rate = 48000
default-sample-format = float32le
flat-volumes = no
"""

# Without an autospawned server a program that finds none fails at once, instead of reaching another one.
_CLIENT_CONF = """\
autospawn = no
"""

# norewinds: what has been recorded from the monitor is never taken back. The socket comes last, so that a program
# that can connect finds everything in its place.
_SCRIPT = """\
.fail
load-module module-null-sink sink_name=interface rate=48000 channels=2 channel_map=front-left,front-right \
format=float32le norewinds=1 sink_properties="device.description='{interface}'"
load-module module-remap-sink sink_name=mouth master=interface channels=1 channel_map=mono \
master_channel_map=front-left remix=no sink_properties="device.description='{mouth}'"
load-module module-remap-sink sink_name=speaker master=interface channels=1 channel_map=mono \
master_channel_map=front-right remix=no sink_properties="device.description='{speaker}'"
load-module module-remap-source source_name=microphone master=interface.monitor channels=1 channel_map=mono \
master_channel_map=front-left remix=no source_properties="device.description='{microphone}'"
set-default-sink speaker
set-default-source microphone
load-module module-native-protocol-unix socket={socket} auth-cookie={cookie}
"""

# The whole of ALSA's configuration: only these names exist for a program inside, and no card of the machine.
_ALSA_CONF = """\
pcm."{interface}" {{
    type asym
    playback.pcm {{ type pulse device mouth }}
    capture.pcm {{ type pulse device interface.monitor }}
}}
pcm."{mouth}" {{
    type asym
    playback.pcm {{ type pulse device mouth }}
}}
pcm."{speaker}" {{
    type asym
    playback.pcm {{ type pulse device speaker }}
}}
pcm."{microphone}" {{
    type asym
    capture.pcm {{ type pulse device microphone }}
}}
pcm.default {{
    type asym
    playback.pcm {{ type pulse device speaker }}
    capture.pcm {{ type pulse device microphone }}
}}
ctl.default {{ type pulse }}
"""


@dataclass(frozen=True, slots=True)
class PulseBench:
    """The files of the private server, all inside `folder`."""

    folder: Path
    board_plays_on: str | None = "mouth"

    @property
    def socket(self) -> Path:
        return self.folder / "native"

    @property
    def log(self) -> Path:
        return self.folder / "pulseaudio.log"

    def write_configuration(self) -> None:
        """Writes everything that the server, its clients and ALSA read."""
        (self.folder / "home").mkdir(mode=0o700)
        (self.folder / "daemon.conf").write_text(_DAEMON_CONF, encoding="ascii")
        (self.folder / "client.conf").write_text(_CLIENT_CONF, encoding="ascii")
        names = {"interface": INTERFACE, "mouth": MOUTH, "speaker": SPEAKER, "microphone": MICROPHONE}
        script = _SCRIPT.format(**names, socket=self.socket, cookie=self.folder / "cookie")
        (self.folder / "bench.pa").write_text(script, encoding="utf-8")
        (self.folder / "alsa.conf").write_text(_ALSA_CONF.format(**names), encoding="ascii")

    def servers(self, environ: dict[str, str]) -> list[Server]:
        """The server in the foreground, with nothing loaded but what `bench.pa` says."""
        quiet = ["--daemonize=no", "--use-pid-file=no", "--log-target=stderr", "--log-level=notice"]
        command = ["pulseaudio", "-n", *quiet, "-F", str(self.folder / "bench.pa")]
        return [Server("pulseaudio", command, self._server_environment(environ), self.log, PACKAGES, self._ready)]

    def roles(self) -> list[tuple[str, str]]:
        return [("interface", INTERFACE), ("mouth", MOUTH), ("speaker", SPEAKER), ("microphone", MICROPHONE)]

    def sweep(self) -> None:
        """Everything of it is in the folder."""

    def _server_environment(self, environ: dict[str, str]) -> dict[str, str]:
        """No home, no session bus, no runtime folder of the user's: only the search path is taken over."""
        own = {
            "PATH": environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(self.folder / "home"),
            "XDG_RUNTIME_DIR": str(self.folder),
            "XDG_CONFIG_HOME": str(self.folder / "home"),
            "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.folder / 'no-bus'}",
            "PULSE_CONFIG": str(self.folder / "daemon.conf"),
            "PULSE_STATE_PATH": str(self.folder / "home"),
        }
        return own | self.client_environment()

    def client_environment(self) -> dict[str, str]:
        """What a program needs, beside its own environment, to have its default microphone and speaker in here."""
        return {
            "PULSE_SERVER": f"unix:{self.socket}",
            "PULSE_COOKIE": str(self.folder / "cookie"),
            "PULSE_CLIENTCONFIG": str(self.folder / "client.conf"),
            "PULSE_RUNTIME_PATH": str(self.folder),
            "PULSE_SINK": "speaker",  # the default anyway, but the user's own shell may name others
            "PULSE_SOURCE": "microphone",
            "ALSA_CONFIG_PATH": str(self.folder / "alsa.conf"),
        }

    def complaint(self) -> str | None:
        """What of the bench could not be made. The server itself goes on without it and only tells its log."""
        for line in self.log.read_text(encoding="utf-8", errors="replace").splitlines():
            if "Failed to load module" in line:
                missing = line.partition("module.c: ")[2] or line
                return f"{missing} (PulseAudio 14 or newer with its null and remap modules is needed)"
        return None

    def _ready(self) -> bool:
        """Can a program connect?"""
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(self.socket))
            except OSError:
                return False
        return True
