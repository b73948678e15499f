"""Which systems are measured, table by table: one knob turned in each row. The order is the order of measuring."""

from __future__ import annotations

from dataclasses import dataclass

STIMULI = 8
STIMULI_OF_TAILS = 34
"""Of a row that shows a p99, which needs 100 trials in three runs."""


@dataclass(frozen=True, slots=True)
class Row:
    """`words` follow `rig sut`. Rows of several tables with the same words and stimuli are one measurement."""

    knob: str
    words: tuple[str, ...]
    stimuli: int = STIMULI

    @property
    def key(self) -> str:
        return f"{' '.join(self.words)} x{self.stimuli}"


@dataclass(frozen=True, slots=True)
class Table:
    """`kind` says which columns: backend, page, call, or tail (with mean, p99 and their ratio)."""

    name: str
    part: str  # backends | browser
    kind: str
    title: str
    knob: str  # head of the first column
    rows: tuple[Row, ...]


def _passthrough(backend: str, block: int, latency: str) -> Row:
    asked = f"{block} frames" if block else "PortAudio's choice"
    words = ("passthrough", "--backend", backend, "--blocksize", str(block), "--latency", latency)
    return Row(f"{backend}, {latency}, {asked}", words)


BACKENDS = Table(
    "backends",
    "backends",
    "backend",
    "A block handed from microphone to speaker",
    "library, latency asked for, block",
    (
        *(_passthrough("sounddevice", block, "low") for block in (64, 256, 1024, 0)),
        *(_passthrough("sounddevice", block, "high") for block in (64, 256, 1024, 0)),
        *(_passthrough("pyaudio", block, "low") for block in (64, 256, 1024)),
    ),
)

_PAGE = ("browser",)
_SCRIPT = ("browser", "--engine", "script-processor", "--block")
_BUFFERS = ("browser", "--engine", "buffers")
_SOCKET = ("browser", "--transport", "websocket")
_JITTER = ("--server-jitter", "40ms")

ENGINES = Table(
    "engines",
    "browser",
    "page",
    "What carries the sound in a page",
    "engine",
    (
        Row("AudioWorklet", _PAGE),
        Row("ScriptProcessor 256", (*_SCRIPT, "256")),
        Row("ScriptProcessor 4096", (*_SCRIPT, "4096")),
        Row("buffer sources of 1024", _BUFFERS),
        Row("the same, 50 ms ahead", (*_BUFFERS, "--lead", "50ms")),
    ),
)

RATES = Table(
    "rates",
    "browser",
    "page",
    "Sample rate of the AudioContext (AudioWorklet; the devices run at 48 kHz)",
    "sampleRate",
    tuple(Row(f"{hz / 1000:g} kHz", (*_PAGE, "--rate", str(hz))) for hz in (24000, 44100, 48000)),
)

HINTS = Table(
    "hints",
    "browser",
    "page",
    "latencyHint of the AudioContext (AudioWorklet)",
    "latencyHint",
    tuple(Row(hint, (*_PAGE, "--latency-hint", hint)) for hint in ("interactive", "balanced", "playback")),
)

TARGETS = Table(
    "targets",
    "browser",
    "call",
    "jitterBufferTarget of a WebRTC call to itself",
    "jitterBufferTarget",
    (
        Row("not set", ("webrtc",)),
        *(Row(f"{ms} ms", ("webrtc", "--jitter-buffer-target", f"{ms}ms")) for ms in (0, 100, 200)),
    ),
)

PACKETS = Table(
    "packets",
    "browser",
    "call",
    "Length of a packet in a WebRTC call to itself",
    "packet",
    tuple(Row(f"{ms} ms", ("webrtc", "--frame", f"{ms}ms")) for ms in (20, 40)),
)

ECHO_PAGE = Table(
    "echo-page",
    "browser",
    "page",
    "Echo cancellation of the microphone, in a page (AudioWorklet)",
    "echoCancellation",
    (Row("off", _PAGE), Row("on", (*_PAGE, "--echo-cancellation"))),
)

ECHO_CALL = Table(
    "echo-call",
    "browser",
    "call",
    "Echo cancellation of the microphone, in a WebRTC call to itself",
    "echoCancellation",
    (Row("off", ("webrtc",)), Row("on", ("webrtc", "--echo-cancellation"))),
)

RECORDERS = Table(
    "recorders",
    "browser",
    "page",
    "What a page sends to an echo server over a WebSocket",
    "sent",
    (Row("PCM frames", _SOCKET), Row("MediaRecorder", (*_SOCKET, "--engine", "media-recorder"))),
)

FRAMES = Table(
    "frames",
    "browser",
    "page",
    "Length of the frames that a page sends over a WebSocket",
    "frame",
    tuple(Row(f"{ms} ms", (*_SOCKET, "--frame", f"{ms}ms")) for ms in (20, 40)),
)

BUFFERING = Table(
    "buffering",
    "browser",
    "tail",
    "The player's buffering behind a WebSocket, the server's answers spread over 40 ms",
    "buffering",
    tuple(
        Row(kind.partition(":")[0], (*_SOCKET, *_JITTER, "--buffering", kind), STIMULI_OF_TAILS)
        for kind in ("none", "fixed", "adaptive")
    ),
)

TABLES = (
    ENGINES,
    BACKENDS,
    TARGETS,
    RATES,
    HINTS,
    ECHO_PAGE,
    ECHO_CALL,
    PACKETS,
    RECORDERS,
    FRAMES,
    BUFFERING,
)


def tables(part: str) -> tuple[Table, ...]:
    """Those of `backends`, of `browser`, or of `all`."""
    return tuple(table for table in TABLES if part in ("all", table.part))
