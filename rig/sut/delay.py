"""A reference system whose latency is known: on JACK, what comes in goes out N frames later, bit for bit.

Imports the library JACK-Client, lazily: it is an extra.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from rig.errors import BenchNotReady, MissingLibrary, UsageError

_NAME = "delay"
_SAMPLE_BYTES = 4  # JACK's samples are 32-bit floats

MAX_FRAMES = 1 << 24
"""Six minutes at 48 kHz, 64 MB."""


class DelayLine:
    """Bytes in, the same bytes out `n_bytes` later, zeros before. Constant memory, blocks of any length."""

    def __init__(self, n_bytes: int) -> None:
        self._ring = bytearray(n_bytes)
        self._at = 0

    def pass_on(self, block: Any, out: Any) -> None:
        """Takes the buffer `block` and fills the buffer `out`, which is as long."""
        size, ring = len(block), self._ring
        if not ring:
            out[0:size] = block[0:size]
            return
        done = 0
        while done < size:
            at = self._at
            n = min(size - done, len(ring) - at)
            new = bytes(block[done : done + n])
            out[done : done + n] = bytes(ring[at : at + n])
            ring[at : at + n] = new
            self._at = (at + n) % len(ring)
            done += n


@dataclass(frozen=True, slots=True)
class DelaySpec:
    """`source` and `sink` are full names of JACK ports."""

    frames: int
    source: str
    sink: str


class JackDelay:
    """A JACK client with one port in and one out, connected to the ports that were named."""

    def __init__(self, spec: DelaySpec) -> None:
        """Raises MissingLibrary without the library or JACK, UsageError for a delay that cannot be made."""
        if not 0 <= spec.frames <= MAX_FRAMES:
            raise UsageError(
                f"--frames {spec.frames} cannot be held back", f"0 to {MAX_FRAMES} frames", "choose a shorter delay"
            )
        try:
            import jack
        except (ImportError, OSError) as error:  # OSError: the library is there and JACK is not
            raise MissingLibrary(
                f"JACK-Client cannot be loaded: {error}",
                "the library JACK-Client and JACK",
                "pip install JACK-Client; on Debian also apt-get install jackd2",
            ) from error
        self._jack: Any = jack
        self._spec = spec
        self._client: Any = None
        self._xruns = 0

    def start(self, ended: threading.Event) -> None:
        """Begins, and sets `ended` when the server goes. Raises BenchNotReady without a server, UsageError for ports
        that are not there."""
        jack, spec = self._jack, self._spec
        jack.set_error_function(_nothing)
        try:
            self._client = client = jack.Client(_NAME, no_start_server=True)
        except jack.JackOpenError as error:
            raise BenchNotReady(
                f"no JACK server is reached: {error}",
                "a JACK server that runs",
                "rig virtual up --kind jack, then rig virtual run --kind jack -- rig sut delay",
            ) from error
        line = DelayLine(spec.frames * _SAMPLE_BYTES)
        port_in, port_out = client.inports.register("in"), client.outports.register("out")

        def pass_on(_frames: int) -> None:
            line.pass_on(port_in.get_buffer(), port_out.get_buffer())

        def count(_late_us: float) -> None:
            self._xruns += 1

        def shut_down(_status: object, _reason: str) -> None:
            ended.set()

        client.set_process_callback(pass_on)
        client.set_xrun_callback(count)
        client.set_shutdown_callback(shut_down)
        client.activate()
        for a, b in ((spec.source, port_in), (port_out, spec.sink)):
            try:
                client.connect(a, b)
            except jack.JackError as error:
                there = ", ".join(repr(port.name) for port in client.get_ports(is_audio=True) if not client.owns(port))
                raise UsageError(
                    f"{spec.source!r} and {spec.sink!r} cannot be connected: {error}",
                    f"a port that gives sound and one that takes it, of these: {there or 'none are there'}",
                    "name them with --from and --to",
                ) from error

    def facts(self) -> dict[str, Any]:
        """What was done, ready for JSON."""
        client = self._client
        return {
            "delay_frames": self._spec.frames,
            "rate_hz": client.samplerate,
            "period_frames": client.blocksize,
            "xruns": self._xruns,
        }

    def stop(self) -> None:
        """Takes leave of the server, which waits for clients that do not."""
        if self._client is not None:
            self._client.close()


def _nothing(_message: str) -> None:
    """JACK's own words for what is said as an error here."""
