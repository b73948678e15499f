"""The voice loop in one process: real frames, coder, server and sockets between devices that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scripted_streams import RATE_HZ, ScriptedStreams

from rig.cli.main import main
from rig.domain.marks import MarkPart
from rig.errors import AudioLost, BenchNotReady
from rig.marks import Marks
from rig.session.marks import read_marks
from rig.sut.voice.client import VoiceLoop
from rig.sut.voice.echo_server import EchoCounts, EchoServer
from rig.sut.voice.impair import Impairment
from rig.sut.voice.settings import VoiceSettings

pytest.importorskip("aiohttp")
pytest.importorskip("av")

PLAIN = VoiceSettings(rate_hz=48000, codec="pcm", jitter_buffer=("fixed", 0.04), buffering=("fixed", 0.02))
FRAME, BLOCK = 960, 480


@dataclass(frozen=True)
class Call:
    """What one call left behind."""

    report: dict[str, Any]
    part: MarkPart
    server: EchoCounts
    sound: np.ndarray

    @property
    def played(self) -> list[Any]:
        return [row for row in self.part.rows if row.problem is None]


def numbered(n_frames: int) -> np.ndarray:
    """Frames that each hold one level of their own, in steps that 16 bits tell apart."""
    return np.repeat(0.05 + 0.002 * np.arange(n_frames), FRAME).astype(np.float32)


def call(
    folder: Path,
    settings: VoiceSettings,
    script: np.ndarray,
    *,
    network: Impairment | None = None,
    seconds: float = 0.8,
    streams: ScriptedStreams | None = None,
    address: str | None = None,
    ends_server_after: float | None = None,
) -> Call:
    """One call through a real server on loopback."""
    path = folder / "m.jsonl"
    server = EchoServer(Impairment() if network is None else network)
    streams = ScriptedStreams(script) if streams is None else streams
    readies: list[bool] = []

    async def both() -> dict[str, Any]:
        told, over, there = asyncio.Event(), asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(server.serve("127.0.0.1", 0, there.set_result, over.wait()))
        loop = asyncio.get_running_loop()
        loop.call_later(seconds, told.set)
        if ends_server_after is not None:
            loop.call_later(ends_server_after, over.set)
        try:
            with Marks(path, frame_ms=1e3 * settings.frame_s, rate_hz=RATE_HZ) as marks:
                voice = VoiceLoop(settings, streams, marks)
                return await voice.run(address or await there, told, lambda: readies.append(True))
        finally:
            over.set()
            await serving

    report = asyncio.run(both())
    assert readies == [True]
    (part,) = read_marks(path).parts
    return Call(report, part, server.counts, streams.sound)


def test_what_is_heard_is_played_once_and_in_order_with_a_mark_at_each_step(tmp_path: Path) -> None:
    # Held for long enough that a busy machine does not break it.
    done = call(tmp_path, replace(PLAIN, jitter_buffer=("fixed", 0.25)), numbered(30), seconds=1.1)
    levels = np.round((done.sound[done.sound > 0.01] - 0.05) / 0.002).astype(int)
    assert levels.tolist() == np.repeat(np.arange(30), FRAME).tolist()
    assert done.server.received == done.server.sent
    assert done.report["packets"]["lost"] == done.report["bad_packets"] == done.report["frames_not_sent"] == 0
    assert len(done.played) > 25
    for row in done.played:
        assert None not in row.instants_s
        assert row.peak is not None
    assert {c.name: c.value_s for c in done.part.claims} == {"input_latency": 0.01, "output_latency": 0.012}
    assert done.part.config["codec"] == "pcm"


def test_the_buffers_hold_sound_for_as_long_as_they_are_told(tmp_path: Path) -> None:
    def play_s(settings: VoiceSettings) -> float:
        rows = call(tmp_path / str(settings.jitter_buffer[1]), settings, numbered(20), seconds=0.6).played
        return float(np.median([row.instants_s[4] - row.instants_s[3] for row in rows]))

    for name in ("0.04", "0.14"):
        (tmp_path / name).mkdir()
    short_s, long_s = play_s(PLAIN), play_s(replace(PLAIN, jitter_buffer=("fixed", 0.14)))
    print("play, ms:", 1e3 * short_s, 1e3 * long_s)
    assert short_s >= 0.04
    assert long_s - short_s == pytest.approx(0.1, abs=0.025)  # both move in blocks, and the machine may be busy


def test_the_place_of_a_sound_is_marked_in_the_frame_that_has_it(tmp_path: Path) -> None:
    script = np.zeros(20 * FRAME, dtype=np.float32)
    script[7 * FRAME + 131 :][:200] = 0.5
    done = call(tmp_path, PLAIN, script, seconds=0.6)
    (row,) = [row for row in done.part.rows if row.peak_at is not None]
    assert (row.seq, row.peak_at) == (7, 131)
    assert row.peak == pytest.approx(0.5)


@pytest.mark.parametrize("where", ["hidden_capture_s", "hidden_output_s"])
def test_a_hidden_delay_is_in_the_sound_and_in_no_stage(where: str, tmp_path: Path) -> None:
    script = np.zeros(30 * FRAME, dtype=np.float32)
    script[5 * FRAME : 6 * FRAME] = 0.5
    streams = ScriptedStreams(script, BLOCK)
    done = call(tmp_path, replace(PLAIN, **{where: 0.1}), script, seconds=0.8, streams=streams)  # type: ignore[arg-type]
    (row,) = [row for row in done.part.rows if row.peak_at is not None]
    # In samples of the devices, so that no clock comes in: when the frame with the sound was complete, and played.
    complete = BLOCK * (streams.block_at(row.instants_s[0]) + 1)
    begun = BLOCK * streams.block_at(row.instants_s[4])
    put = 5 * FRAME
    heard = int(np.flatnonzero(done.sound > 0.2)[0])
    hidden = round(0.1 * RATE_HZ)
    assert complete - FRAME + row.peak_at - put == (hidden if where == "hidden_capture_s" else 0)
    assert heard - begun - row.peak_at == (hidden if where == "hidden_output_s" else 0)
    assert "100" not in str(done.part.config)


def test_what_the_network_loses_is_made_up_and_counted(tmp_path: Path) -> None:
    network = Impairment(0.005, 0.01, 0.3, seed=3)
    done = call(tmp_path, replace(PLAIN, codec="opus", rate_hz=24000), numbered(40), network=network)
    packets, concealed = done.report["packets"], done.report["concealed"]
    assert done.server.lost > 3
    assert packets["lost"] > 3
    assert concealed["repeated"] + concealed["silent"] == packets["lost"]
    gone = packets["played"] + packets["late"] + packets["dropped"] + packets["duplicates"]
    assert gone <= packets["received"] <= gone + 4  # the rest is held
    never_came = [row for row in done.part.rows if row.instants_s[2] is not None and row.instants_s[3] is None]
    assert len(never_came) >= done.server.lost


def test_an_adaptive_loop_over_a_bad_network_plays_on(tmp_path: Path) -> None:
    settings = replace(PLAIN, frame_s=0.01, jitter_buffer=("adaptive", None), buffering=("adaptive", None))
    done = call(tmp_path, settings, numbered(40), network=Impairment(0.0, 0.04, 0.05, seed=5), seconds=0.9)
    assert done.report["packets"]["added"] >= 1
    assert done.report["jitter_buffer_target_s"] > 0.02
    assert len(done.played) > 40


def test_a_server_that_ends_ends_the_loop(tmp_path: Path) -> None:
    with pytest.raises(AudioLost, match="server has gone"):
        call(tmp_path, PLAIN, numbered(5), seconds=20.0, ends_server_after=0.4)


def test_a_device_that_ends_ends_the_loop(tmp_path: Path) -> None:
    streams = ScriptedStreams(numbered(5), dies_after=30)
    with pytest.raises(AudioLost, match="stopped by itself"):
        call(tmp_path, PLAIN, numbered(5), seconds=20.0, streams=streams)


def test_a_device_that_does_not_open_leaves_nothing_running(tmp_path: Path) -> None:
    with pytest.raises(BenchNotReady, match="no microphone"):
        call(tmp_path, PLAIN, numbered(5), streams=ScriptedStreams(numbered(5), refuses=True))


def test_without_a_server_there_is_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(BenchNotReady, match="does not answer") as found:
        call(tmp_path, PLAIN, numbered(5), address="ws://127.0.0.1:9/echo")
    assert "rig sut echo-server" in found.value.remedy


def talk_to(server: EchoServer, say: Callable[[Any, str], Awaitable[None]]) -> None:
    """Runs `say` with a client session and the server's address."""
    import aiohttp

    async def both() -> None:
        over, there = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.create_task(server.serve("127.0.0.1", 0, there.set_result, over.wait()))
        try:
            async with aiohttp.ClientSession() as session:
                await say(session, await there)
        finally:
            over.set()
            await serving

    asyncio.run(both())


def test_the_server_sends_back_what_it_was_sent_as_late_as_asked() -> None:
    server = EchoServer(Impairment(delay_s=0.05))
    waits: list[float] = []

    async def say(session: Any, address: str) -> None:
        loop = asyncio.get_running_loop()
        async with session.ws_connect(address) as socket:
            for k in range(5):
                begin = loop.time()
                await socket.send_bytes(bytes([k]) * 100)
                assert (await socket.receive()).data == bytes([k]) * 100
                waits.append(loop.time() - begin)
            await socket.send_str("not a packet")

    talk_to(server, say)
    assert min(waits) >= 0.05
    assert server.counts == EchoCounts(calls=1, received=5, sent=5)


def test_jitter_of_the_server_changes_the_order() -> None:
    server = EchoServer(Impairment(jitter_s=0.1, seed=2))
    came: list[int] = []

    async def say(session: Any, address: str) -> None:
        async with session.ws_connect(address) as socket:
            for k in range(20):
                await socket.send_bytes(bytes([k]))
            for _ in range(20):
                came.append((await socket.receive()).data[0])

    talk_to(server, say)
    assert sorted(came) == list(range(20))
    assert came != sorted(came)


def test_a_page_of_another_site_gets_no_call() -> None:
    import aiohttp

    server = EchoServer(Impairment())

    async def say(session: Any, address: str) -> None:
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await session.ws_connect(address, headers={"Origin": "http://example.org"})
        async with session.ws_connect(address, headers={"Origin": "http://127.0.0.1:80"}) as socket:
            await socket.send_bytes(bytes(1 << 17))  # too long: the call is ended, the server stays
            assert (await socket.receive()).type is not aiohttp.WSMsgType.BINARY
        async with session.ws_connect(address) as socket:
            await socket.send_bytes(b"x")
            assert (await socket.receive()).data == b"x"

    talk_to(server, say)


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["voice-loop", "--jitter-buffer", "neteq"], "--jitter-buffer neteq"),
        (["voice-loop", "--jitter-buffer", "fixed:60"], "has no unit"),
        (["voice-loop", "--buffering", "fixed"], "--buffering fixed"),
        (["voice-loop", "--codec", "mp3"], "--codec mp3"),
        (["voice-loop", "--frame", "25ms"], "--frame 25ms"),
        (["voice-loop", "--backend", "oss"], "--backend oss"),
        (["voice-loop", "--loss", "1.5"], "--loss 1.5"),
        (["voice-loop", "--server", "ws://127.0.0.1:1/echo", "--loss", "0.1"], "--server names a server"),
        (["voice-loop", "--server", "http://127.0.0.1:1"], "no address of an echo server"),
        (["echo-server", "--server-jitter", "7s"], "--server-jitter 7s"),
    ],
)
def test_what_cannot_be_done_is_refused_before(
    words: list[str], what: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RIG_MARKS", raising=False)
    assert main(["sut", *words]) == 2
    assert what in capsys.readouterr().err
