"""The parts of the voice loop that only compute: packets, a network's fate, frames, what is made up, rates, coders."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rig.errors import UsageError
from rig.sut.voice.coding import LOOKAHEAD_S, Coder, make_coder
from rig.sut.voice.conceal import REPEATS, Concealer
from rig.sut.voice.framing import Framer
from rig.sut.voice.impair import Fate, Impairment
from rig.sut.voice.packets import CODECS, MAX_PACKET_BYTES, MAX_SEQ, BadPacket, Packet, pack, unpack
from rig.sut.voice.resample import Resampler
from rig.sut.voice.settings import VoiceSettings


@given(st.integers(0, MAX_SEQ), st.sampled_from(CODECS), st.binary(max_size=200))
def test_a_packet_comes_back_as_it_was(seq: int, codec: str, payload: bytes) -> None:
    assert unpack(pack(Packet(seq, codec, payload))) == Packet(seq, codec, payload)


@given(st.binary(max_size=40))
def test_bytes_are_a_packet_or_refused(data: bytes) -> None:
    try:
        packet = unpack(data)
    except BadPacket:
        return
    assert pack(packet) == data


def test_what_does_not_fit_into_a_packet_is_refused() -> None:
    for bad in (Packet(-1, "pcm", b""), Packet(MAX_SEQ + 1, "pcm", b""), Packet(0, "pcm", bytes(MAX_PACKET_BYTES))):
        with pytest.raises(ValueError, match=r"seq|bytes"):
            pack(bad)
    with pytest.raises(BadPacket):
        unpack(pack(Packet(0, "pcm", b"")) + bytes(MAX_PACKET_BYTES))


def test_a_network_is_as_bad_as_asked_for_and_the_same_for_a_seed() -> None:
    fate = Fate(Impairment(0.03, 0.04, 0.1, seed=7))
    drawn = [fate.next_delay_s() for _ in range(5000)]
    came = [d for d in drawn if d is not None]
    assert 1.0 - len(came) / len(drawn) == pytest.approx(0.1, abs=0.02)
    assert min(came) >= 0.03
    assert max(came) <= 0.07
    assert np.mean(came) == pytest.approx(0.05, abs=0.001)
    again, other = Fate(Impairment(0.03, 0.04, 0.1, seed=7)), Fate(Impairment(0.03, 0.04, 0.1, seed=8))
    assert [again.next_delay_s() for _ in range(50)] == drawn[:50]
    assert [other.next_delay_s() for _ in range(50)] != drawn[:50]
    lossless = Fate(Impairment(0.03, 0.04, 0.0, seed=7))
    assert all(b is None or a == b for a, b in zip((lossless.next_delay_s() for _ in range(5000)), drawn, strict=True))


@given(st.lists(st.integers(1, 70), max_size=40), st.integers(1, 50))
def test_frames_hold_the_samples_of_the_blocks_in_order(blocks: list[int], length: int) -> None:
    framer = Framer(length)
    samples = np.arange(sum(blocks), dtype=np.float32)
    out, at = [], 0
    for n in blocks:
        done = list(framer.push(samples[at : at + n]))
        at += n
        out += done
        assert len(out) == at // length  # each as soon as it is complete
    assert [seq for seq, _ in out] == list(range(len(out)))
    if out:
        assert np.array_equal(np.concatenate([frame for _, frame in out]), samples[: length * len(out)])


def test_a_lost_frame_is_repeated_softer_and_then_silent() -> None:
    conceal = Concealer(3)
    assert not conceal.made_up().any()
    frame = np.array([0.4, -0.4, 0.2], dtype=np.float32)
    conceal.heard(frame)
    peaks = [float(np.max(np.abs(conceal.made_up()))) for _ in range(REPEATS + 2)]
    assert peaks == pytest.approx([0.2, 0.1, 0.0, 0.0])
    assert (conceal.repeated, conceal.silent) == (REPEATS, 3)
    conceal.heard(frame)
    assert conceal.made_up().any()


def late_s(before: np.ndarray, after: np.ndarray, rate_hz: int) -> float:
    """How much later `after` is, by the peak of the correlation, to a fraction of a sample."""
    n = 2 * len(before)
    c = np.fft.irfft(np.fft.rfft(after, n) * np.conj(np.fft.rfft(before, n)), n)
    k = int(np.argmax(c))
    a, b, d = c[k - 1], c[k], c[(k + 1) % n]
    return (k + 0.5 * (a - d) / (a - 2 * b + d)) / rate_hz


def talk(rng: np.random.Generator, n: int) -> np.ndarray:
    """Noise up to 3 kHz at 48 kHz, under words of 0.2 s."""
    spectrum = np.fft.rfft(rng.normal(size=n))
    spectrum[int(3000 / 24000 * len(spectrum)) :] = 0.0
    spectrum[: int(200 / 24000 * len(spectrum))] = 0.0
    sound = np.fft.irfft(spectrum, n)
    return (0.3 * sound / np.max(np.abs(sound)) * (np.sin(np.arange(n) / 1500.0) ** 2)).astype(np.float32)


@pytest.mark.parametrize(("from_hz", "to_hz"), [(48000, 24000), (24000, 48000), (44100, 24000), (48000, 48000)])
def test_each_block_gives_a_whole_one_as_much_later_as_stated(
    from_hz: int, to_hz: int, rng: np.random.Generator
) -> None:
    block = from_hz // 50
    resampler = Resampler(from_hz, to_hz, block)
    blocks = [np.zeros(block, np.float32)] * 2
    t = np.arange(40 * block) / from_hz
    tone = (0.3 * np.sin(2 * np.pi * (300.0 + 400.0 * t) * t)).astype(np.float32)
    blocks += list(tone.reshape(-1, block)) + [np.zeros(block, np.float32)] * 2
    out = np.concatenate([resampler.process(b) for b in blocks])
    assert len(out) == len(blocks) * to_hz // 50
    found = np.flatnonzero(np.abs(out) > 0.02)[0] / to_hz
    put = np.flatnonzero(np.abs(np.concatenate(blocks)) > 0.02)[0] / from_hz
    assert found - put == pytest.approx(resampler.delay_s, abs=1.0 / min(from_hz, to_hz))
    assert resampler.delay_s < 0.003


@pytest.mark.parametrize(
    ("codec", "rate_hz", "frame_s", "most_off"),
    [("pcm", 48000, 0.02, 1e-6), ("pcm", 24000, 0.02, 2e-5), ("opus", 24000, 0.02, 3e-4), ("opus", 48000, 0.04, 3e-4)],
)
def test_a_coder_gives_the_sound_back_as_late_as_it_states(
    codec: str, rate_hz: int, frame_s: float, most_off: float, rng: np.random.Generator
) -> None:
    frame = round(48000 * frame_s)
    coder: Coder = make_coder(codec, 48000, rate_hz, frame)
    sound = talk(rng, 48000)
    back = np.concatenate([coder.decode(coder.encode(f)) for f in sound.reshape(-1, frame)])
    assert len(back) == len(sound)
    assert late_s(sound, back, 48000) == pytest.approx(coder.delay_s, abs=most_off)
    shift = round(coder.delay_s * 48000)
    likeness = np.corrcoef(sound[: len(sound) - shift], back[shift:])[0, 1]
    assert likeness > (0.999 if codec == "pcm" else 0.6)  # a speech coder keeps no waveform
    if codec == "opus":
        assert coder.delay_s >= LOOKAHEAD_S


@pytest.mark.parametrize("codec", ["pcm", "opus"])
def test_a_payload_that_is_none_is_refused(codec: str, rng: np.random.Generator) -> None:
    coder = make_coder(codec, 48000, 24000, 960)
    bad = [b"", b"\x00", b"\xff" * 7, *(rng.bytes(int(n)) for n in rng.integers(2, 300, 60))]
    for payload in bad:
        try:
            samples = coder.decode(payload)
        except ValueError:
            continue
        assert samples.shape == (960,)  # noise can be valid Opus
    assert len(coder.decode(coder.encode(np.zeros(960, np.float32)))) == 960


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Impairment(loss=1.0).check(), "--loss 1"),
        (lambda: Impairment(delay_s=9.0).check(), "--server-delay 9s"),
        (lambda: make_coder("mp3", 48000, 24000, 960), "--codec mp3"),
        (lambda: make_coder("opus", 48000, 22050, 960), "Opus takes no frames"),
        (lambda: make_coder("pcm", 48000, 22050, 480), "is no whole number of samples"),
        (lambda: VoiceSettings(frame_s=0.03).check(), "--frame 30ms"),
        (lambda: VoiceSettings(hidden_output_s=3.0).check(), "--hidden-output 3s"),
        (lambda: VoiceSettings(frame_s=0.01, device_hz=22050).check(), "--device-rate 22050"),
    ],
)
def test_what_cannot_be_made_is_refused(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError) as found:
        make()
    assert words in found.value.what
