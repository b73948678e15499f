"""The cables of the JACK bench, a process of its own: `python -m rig.virtual.jack_wires READY_FILE`.

One JACK client is the interface. What is played on it goes to the mouth, and by a cable from there into channel 1;
what a system sends to the ear is channel 2. Every way through JACK that ends where it began costs one period, wherever
in the circle it is paid. The cable and a system between mouth and ear are both such ways, so the period is in both
channels and in no difference: a system that holds sound back for N frames is N frames late, exactly.
"""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path
from typing import Any

INTERFACE = "Virtual USB Audio"
PLAYED = ("play_1", "play_2")
"""What a program plays on the interface; the first is heard."""

CABLES = ("in_1", "in_2")
"""What comes into the channels."""

CHANNELS = ("channel_1", "channel_2")
"""What a program records from the interface."""

MOUTH = "mouth"

_TRIES = 100
_PAUSE_S = 0.05


def lay(client: Any, ended: threading.Event) -> None:
    """Registers the interface's ports, starts it and lays the cable from the mouth into channel 1.

    PortAudio takes the ports in the order in which they are registered: those that a program records and plays come
    first.
    """
    played, *_ = [client.inports.register(name) for name in PLAYED]
    cables = [client.inports.register(name) for name in CABLES]
    channels = [client.outports.register(name) for name in CHANNELS]
    mouth = client.outports.register(MOUTH)

    def pass_on(_frames: int) -> None:
        # Channels before the mouth: the cable holds the mouth's last period until the mouth is written anew.
        for cable, channel in zip(cables, channels, strict=True):
            channel.get_buffer()[:] = cable.get_buffer()
        mouth.get_buffer()[:] = played.get_buffer()

    def shut_down(_status: object, _reason: str) -> None:
        ended.set()

    client.set_process_callback(pass_on)
    client.set_shutdown_callback(shut_down)
    client.activate()
    client.connect(mouth, cables[0])


def open_client(name: str, ended: threading.Event) -> Any:
    """A client of the server that the environment names; the server may be a moment away. Raises what JACK raises."""
    import jack

    for _ in range(_TRIES - 1):
        try:
            return jack.Client(name, use_exact_name=True, no_start_server=True)
        except jack.JackOpenError:
            if ended.wait(_PAUSE_S):
                break
    return jack.Client(name, use_exact_name=True, no_start_server=True)


def main(ready: Path) -> int:
    """Lays the cables, makes the file `ready`, and stays until the server ends or SIGTERM comes."""
    ended = threading.Event()
    # A client that ends without a word makes the server wait for it.
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    client = open_client(INTERFACE, ended)
    try:
        lay(client, ended)
        ready.touch()
        ended.wait()
    finally:
        client.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
