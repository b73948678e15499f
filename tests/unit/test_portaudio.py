"""Both backends over scripted PortAudio: opening, callbacks, what errors mean, and a device that goes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scripted_portaudio import Flags, Row, ScriptedPyaudio, ScriptedSounddevice, ScriptedStream, Table

from rig.acquire.audio_pyaudio import PyaudioBackend
from rig.acquire.audio_sounddevice import SounddeviceBackend
from rig.acquire.link import SystemTime
from rig.acquire.portaudio import PortBackend
from rig.domain.records import StreamSpec
from rig.domain.seams import AudioBlock, AudioStream
from rig.domain.timebase import Duration
from rig.errors import AudioLost, BenchNotReady, DeviceNotFound

TIME = SystemTime()
Make = Callable[..., PortBackend]


@pytest.fixture(params=["sounddevice", "pyaudio"])
def make(request: pytest.FixtureRequest) -> Make:
    """A backend over a table."""

    def build(table: Table, **options: Any) -> PortBackend:
        if request.param == "sounddevice":
            return SounddeviceBackend(TIME, library=ScriptedSounddevice(table), **options)
        return PyaudioBackend(TIME, library=ScriptedPyaudio(table), **options)

    return build


def spec(device: str = "USB Audio", **changes: Any) -> StreamSpec:
    return StreamSpec(**{"device": device, "rate_hz": 48000, "channels": 2, **changes})


def opened(make: Make, table: Table, **options: Any) -> tuple[AudioStream, ScriptedStream]:
    stream = make(table, **options).open(spec())
    return stream, table.streams[-1]


def read(stream: AudioStream) -> AudioBlock | None:
    return stream.read(TIME.now().plus(Duration(0.01)))


def ramp(first: int, n: int) -> np.ndarray:
    return np.stack([np.arange(first, first + n), -np.arange(first, first + n)], axis=1) / 2.0**20


def test_blocks_come_out_as_they_went_in(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio (hw:1,0)")]))
    sizes = [512, 1, 300, 2048]
    for first, n in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        below.deliver(ramp(int(first), n), adc_s=10.0 + first / 48000, now_s=10.1)
    blocks = [read(stream) for _ in sizes]
    assert read(stream) is None, "nothing more before the deadline"
    assert [b.first_frame for b in blocks if b] == [0, 512, 513, 813]
    np.testing.assert_array_equal(np.concatenate([b.frames for b in blocks if b]), ramp(0, sum(sizes)))
    assert [(b.overflow, b.underflow) for b in blocks if b] == [(False, False)] * 4
    assert blocks[1] is not None
    assert blocks[1].adc_time_claimed_s == 10.0 + 512 / 48000
    assert blocks[1].now_claimed_s == 10.1
    stream.close()
    assert below.closed


def test_times_that_a_host_api_does_not_give_are_none(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]))
    below.deliver(ramp(0, 10))
    block = read(stream)
    assert block is not None
    assert (block.adc_time_claimed_s, block.now_claimed_s) == (None, None)
    stream.close()


def test_flags_of_the_driver_are_kept(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]))
    for flags in (0, Flags.INPUT_OVERFLOW, 0, Flags.INPUT_UNDERFLOW):
        below.deliver(ramp(0, 10), flags=flags)
    assert [block.overflow for block in (read(stream) for _ in range(4)) if block] == [False, True, False, True]
    stream.close()


def test_silence_before_the_device_has_begun_is_no_recording(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]), plays=True)
    played = below.deliver(np.zeros((10, 2)), flags=Flags.INPUT_UNDERFLOW)
    assert played is not None
    assert not played.any()
    below.deliver(ramp(5, 10))
    block = read(stream)
    assert block is not None
    assert block.first_frame == 0
    np.testing.assert_array_equal(block.frames, ramp(5, 10))
    stream.close()


def test_a_wave_is_played_at_its_frame_on_every_output(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]), plays=True)
    wave = np.arange(1, 701, dtype=np.float32) / 1000
    below.deliver(ramp(0, 400))
    assert stream.play(wave, 2000) == 2000
    late = stream.play(wave[:5], 100)
    assert late == 400 + round(0.02 * 48000), "what has passed is played as soon as can be"
    out = np.concatenate([below.deliver(ramp(400 + 256 * k, 256)) for k in range(12)])
    expected = np.zeros(len(out) + 400, np.float32)
    expected[2000:2700] += wave
    expected[late : late + 5] += wave[:5]
    for channel in range(out.shape[1]):
        np.testing.assert_array_equal(out[:, channel], expected[400:])
    stream.close()


def test_what_is_granted_is_told(make: Make) -> None:
    table = Table([Row("USB Audio (hw:1,0)")])
    stream, _ = opened(make, table)
    granted = stream.granted
    assert (granted.device, granted.host_api, granted.rate_hz, granted.channels) == (
        "USB Audio (hw:1,0)",
        "ALSA",
        48000,
        2,
    )
    assert granted.input_latency_claimed_s == 0.02
    assert granted.output_latency_claimed_s is None, "it does not play"
    stream.close()
    playing = make(table, plays=True).open(spec(block_frames=256))
    assert playing.granted.output_latency_claimed_s == 0.03
    assert playing.granted.block_frames == 256
    playing.close()


def test_a_full_ring_shows_how_much_was_lost(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]))
    block = np.zeros((48000, 2))
    for _ in range(22):  # seconds; nobody reads
        below.deliver(block)
    frames = 0
    while (got := read(stream)) is not None:
        frames = got.first_frame + len(got.frames)
    assert frames == 20 * 48000
    below.deliver(block)
    got = read(stream)
    assert got is not None
    assert got.first_frame == 22 * 48000, "two seconds are missing, and the count says so"
    stream.close()


def test_a_fault_in_the_callback_reaches_the_reader(make: Make) -> None:
    stream, below = opened(make, Table([Row("USB Audio")]))
    below.deliver(np.zeros((11, 3)))  # a library that hands over other channels than it was asked for
    with pytest.raises(AudioLost, match="the audio callback failed"):
        read(stream)
    stream.close()


def test_a_rate_that_is_refused_names_those_that_are_not(make: Make) -> None:
    backend = make(Table([Row("USB Audio", rates_hz=(48000, 96000))]))
    with pytest.raises(BenchNotReady) as caught:
        backend.open(spec(rate_hz=44100))
    assert caught.value.what == "USB Audio does not take 44100 Hz"
    assert caught.value.expected == "one of 48000, 96000 Hz"
    assert "--rate 48000" in caught.value.remedy


def test_another_rate_than_asked_for_is_refused() -> None:
    table = Table([Row("USB Audio")], granted_rate_hz=44100.0)
    backend = SounddeviceBackend(TIME, library=ScriptedSounddevice(table))
    with pytest.raises(BenchNotReady, match="was asked for 48000 Hz and runs at 44100 Hz"):
        backend.open(spec())
    assert table.streams[-1].closed


def test_a_busy_device_is_said_to_be_busy(make: Make) -> None:
    backend = make(Table([Row("USB Audio", busy="Device unavailable")]))
    with pytest.raises(BenchNotReady, match=r"USB Audio is in use by another program: .*Device unavailable"):
        backend.open(spec())


def test_another_device_than_the_chosen_one_is_not_recorded() -> None:
    table = Table([Row("USB Audio")], opens_as="Webcam")
    backend = SounddeviceBackend(TIME, library=ScriptedSounddevice(table))
    with pytest.raises(BenchNotReady, match="USB Audio was asked for and Webcam was opened"):
        backend.open(spec())
    assert table.streams[-1].closed


def test_the_list_is_made_anew_for_every_opening(make: Make) -> None:
    table = Table([Row("Webcam", inputs=1), Row("USB Audio")])
    backend = make(table)
    assert backend.choose("USB Audio", 2).index == 1
    table.plugged = [Row("Another"), Row("Webcam", inputs=1), Row("USB Audio")]
    stream = backend.open(spec())
    assert stream.granted.device == "USB Audio"
    device = table.streams[-1].asked.get("device", table.streams[-1].asked.get("input_device_index"))
    assert device == 2, "its index now"
    stream.close()


def test_a_device_that_goes_before_it_is_opened(make: Make) -> None:
    table = Table([Row("USB Audio"), Row("Webcam")])
    backend = make(table)
    backend.choose("USB Audio", 2)
    table.plugged = [Row("Webcam")]
    with pytest.raises(DeviceNotFound, match="USB Audio was there and went away"):
        backend.open(spec())


def test_a_device_that_goes_between_two_runs_is_lost(make: Make) -> None:
    table = Table([Row("USB Audio")])
    backend = make(table)
    backend.open(spec()).close()
    table.plugged = []
    with pytest.raises(AudioLost, match="USB Audio is not there any more"):
        backend.open(spec())


def test_a_device_that_does_not_let_go_is_left_behind(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rig.acquire.portaudio.CLOSE_S", 0.05)
    table = Table([Row("USB Audio")], blocks_on_close=threading.Event())
    backend = make(table)
    stream = backend.open(spec())
    stream.close()  # comes back
    with pytest.raises(AudioLost, match="does not let go"):
        backend.open(spec())
    assert table.blocks_on_close is not None
    table.blocks_on_close.set()


def test_playing_takes_an_interface_with_outputs(make: Make) -> None:
    with pytest.raises(DeviceNotFound, match="offers 0 outputs"):
        make(Table([Row("USB Audio", outputs=0)]), plays=True).open(spec())


def test_the_device_list_is_told_as_facts(make: Make) -> None:
    (row,) = make(Table([Row("USB Audio", api="JACK")])).devices()
    assert row["name"] == "USB Audio"
    assert row["host_api"] == "JACK"
    assert (row["inputs"], row["outputs"]) == (2, 2)


def test_a_name_means_the_same_whatever_was_opened_before(make: Make) -> None:
    table = Table([Row("X Alt Analog"), Row("X Analog")])
    backend = make(table)
    for wanted, index in (("X Alt", 0), ("X Analog", 1), ("X Alt Analog", 0), ("X Analog", 1)):
        backend.choose(wanted, 2)
        backend.open(spec(wanted)).close()
        asked = table.streams[-1].asked
        assert asked.get("device", asked.get("input_device_index")) == index


def test_an_index_means_the_device_that_had_it_when_it_was_chosen(make: Make) -> None:
    table = Table([Row("Webcam", inputs=1), Row("USB Audio")])
    backend = make(table)
    backend.choose("1", 2)
    table.plugged = [Row("Another"), Row("Headset"), Row("USB Audio")]
    stream = backend.open(spec("1"))
    assert stream.granted.device == "USB Audio"
    stream.close()
