"""The machine below the audio library: sound servers that run, and device nodes that this user may open.

Linux tells these things by sockets and files; elsewhere nothing is claimed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rig.acquire.ports import rights
from rig.doctor.finding import Finding, fail, ok, warn

SOUND_NODES = Path("/dev/snd")
_CONNECT_S = 0.5


@dataclass(frozen=True, slots=True)
class Node:
    """A device node. `usable`: this user may read and write it. `joined`: the user is in its group by the system's
    files, but this login was made before."""

    path: str
    usable: bool
    joined: bool = False


def sound_servers(environ: Mapping[str, str], uid: int, root: Path = Path("/")) -> list[str]:
    """The sound servers that take a connection now, by name. One that is named but not on this machine counts, too."""
    runtime = environ.get("XDG_RUNTIME_DIR")
    folders = list(dict.fromkeys(([Path(runtime)] if runtime else []) + [root / "run" / "user" / str(uid)]))
    named = environ.get("PULSE_SERVER", "")
    pulse = [Path(named.removeprefix("unix:"))] if named.startswith(("unix:", "/")) else []
    found = []
    if named and not pulse:
        found.append(f"PulseAudio at {named}")
    pulse += [] if named else [folder / "pulse" / "native" for folder in folders]
    if any(_answers(path) for path in pulse):
        found.append("PulseAudio")
    if any(_answers(folder / "pipewire-0") for folder in folders):
        found.append("PipeWire")
    shared = root / "dev" / "shm"
    if any(_answers(path) for path in sorted(shared.glob(f"jack_*_{uid}_0"))):
        found.append("JACK")
    return found


def server_finding(servers: Sequence[str], bench: str, through: bool | None) -> Finding:
    """On the sound servers. `bench`: hardware or virtual; `through`: whether the chosen device is reached through one,
    None where none was chosen."""
    named = " and ".join(servers)
    if bench == "virtual":
        return ok("server", f"inside the virtual bench: {named or 'its own'}")
    if not servers:
        return ok("server", "no sound server runs: devices are reached directly")
    if through:
        return warn(
            "server",
            f"{named} runs, and the device is one of its names: it buffers again and may resample, which adds to what"
            " the driver claims, and to both channels alike",
            "name the hardware itself with --device (rig devices)",
        )
    return ok("server", f"{named} runs; the hardware can be named directly, unless it holds it")


def sound_nodes(folder: Path = SOUND_NODES) -> list[Node] | None:
    """The kernel's nodes for sound cards; None where there are none at all."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return None
    return [look(folder / name) for name in names if name.startswith(("control", "pcm"))] or None


def look(path: Path) -> Node:
    """Whether this user may use a node."""
    return Node(str(path), os.access(path, os.R_OK | os.W_OK), _joined(path))


def sound_finding(nodes: Sequence[Node] | None, bench: str, needed: bool) -> Finding:
    """On the rights to the sound cards. `needed`: no server stands between them and the program."""
    if bench == "virtual":
        return ok("sound cards", "none is needed: the virtual bench has its own")
    if nodes is None:
        return warn(
            "sound cards",
            "the kernel shows no sound card: there is nothing in /dev/snd",
            "plug the interface in; a container has to be given /dev/snd; without hardware: --device sim, or"
            " rig virtual up",
        )
    closed = [node for node in nodes if not node.usable]
    if not closed:
        return ok("sound cards", f"this user may open all {len(nodes)} nodes in /dev/snd")
    remedy = remedy_for(closed[0], "audio")
    text = f"this user may not open {closed[0].path}" + (f" and {len(closed) - 1} more" if len(closed) > 1 else "")
    return fail("sound cards", text, remedy) if needed else warn("sound cards", text, remedy)


def port_finding(node: Node) -> Finding:
    """On the right to a serial port."""
    if node.usable:
        return ok("port", f"this user may open {node.path}")
    return fail("port", f"no permission to open {node.path}", remedy_for(node, "dialout"))


def remedy_for(node: Node, usual_group: str) -> str:
    """How this user gets the right to a node."""
    if node.joined:
        return "you are in its group already, but this login is older than that: log out and in again"
    return rights(node.path, usual_group)


def _joined(path: Path) -> bool:
    try:
        import grp
        import pwd

        gid = path.stat().st_gid
        user = pwd.getpwuid(os.getuid()).pw_name
        return user in grp.getgrgid(gid).gr_mem and gid not in os.getgroups()
    except (ImportError, OSError, KeyError):
        return False


def _answers(path: Path) -> bool:
    """Whether somebody listens at a local socket: after a crash its file stays behind, and nobody does."""
    if not hasattr(socket, "AF_UNIX"):
        return False
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(_CONNECT_S)
        try:
            probe.connect(str(path))
        except OSError:
            return False
    return True
