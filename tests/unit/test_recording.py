"""open_recording: every format that is promised gives the samples that libsndfile gives, window by window."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import numpy as np
import pytest
import soundfile

from rig.domain.seams import FrameSource
from rig.errors import BadInput
from rig.recording import SoundFileSource, open_recording
from rig.wavwriter import WavWriter

RATE_HZ = 48_000


def noise(rng: np.random.Generator, n_frames: int, channels: int = 2, bits: int = 16) -> np.ndarray:
    """Noise on the grid of `bits`, so that every format that holds it gives it back exactly."""
    scale = 2 ** (bits - 1)
    whole = rng.integers(-scale, scale, (n_frames, channels))
    return (whole / scale).astype(np.float32)


FORMATS = [
    # format, subtype, full scale
    ("WAV", "PCM_16", 1 - 2.0**-15),
    ("WAV", "PCM_24", 1 - 2.0**-23),
    ("WAV", "PCM_32", 1.0),  # as float32 shows it
    ("WAV", "FLOAT", None),
    ("WAV", "DOUBLE", None),
    ("WAVEX", "PCM_16", 1 - 2.0**-15),
    ("WAVEX", "PCM_24", 1 - 2.0**-23),
    ("WAVEX", "FLOAT", None),
    ("RF64", "PCM_16", 1 - 2.0**-15),
    ("RF64", "PCM_24", 1 - 2.0**-23),
    ("FLAC", "PCM_S8", 1 - 2.0**-7),
    ("FLAC", "PCM_16", 1 - 2.0**-15),
    ("FLAC", "PCM_24", 1 - 2.0**-23),
]


@pytest.mark.parametrize("rate_hz", [8_000, 44_100, 192_000])
@pytest.mark.parametrize(("kind", "subtype", "full_scale"), FORMATS)
def test_every_format_gives_the_samples_of_libsndfile(
    tmp_path: Path, rng: np.random.Generator, kind: str, subtype: str, full_scale: float | None, rate_hz: int
) -> None:
    path = tmp_path / ("x.flac" if kind == "FLAC" else "x.wav")
    soundfile.write(path, noise(rng, rate_hz), rate_hz, subtype=subtype, format=kind)
    expected = soundfile.read(path, dtype="float32")[0]
    with open_recording(path) as source:
        as_seam: FrameSource = source
        assert (as_seam.rate_hz, as_seam.n_frames, as_seam.n_channels) == (rate_hz, rate_hz, 2)
        assert as_seam.full_scale == full_scale
        assert not source.truncated
        assert source.caveats == ()
        assert source.container == ("FLAC" if kind == "FLAC" else "WAV")
        frames = as_seam.read(0, rate_hz)
        assert frames.dtype == np.float32
        np.testing.assert_array_equal(frames, expected)


@pytest.mark.parametrize("channels", [2, 3, 8])
@pytest.mark.parametrize(("kind", "subtype"), [("WAV", "PCM_24"), ("WAVEX", "PCM_16"), ("FLAC", "PCM_24")])
def test_more_channels(tmp_path: Path, rng: np.random.Generator, kind: str, subtype: str, channels: int) -> None:
    path = tmp_path / "x"
    frames = noise(rng, 30_000, channels)
    soundfile.write(path, frames, RATE_HZ, subtype=subtype, format=kind)
    with open_recording(path) as source:
        assert source.n_channels == channels
        np.testing.assert_array_equal(source.read(11, 20_000), frames[11:20_011])


@pytest.mark.parametrize("name", ["x.wav", "x.flac"])
def test_windows_in_any_order(tmp_path: Path, rng: np.random.Generator, name: str) -> None:
    # 20 s: beyond the seconds that a FLAC keeps decoded. Sizes from nothing to more than it keeps.
    path = tmp_path / name
    frames = noise(rng, 20 * RATE_HZ)
    soundfile.write(path, frames, RATE_HZ, subtype="PCM_16")
    with open_recording(path) as source:
        at = 0
        for _ in range(150):
            jump = rng.choice([0, 0, 0, -30_000, 5_000, 200_000, -400_000])
            at = int(np.clip(at + jump, 0, len(frames)))
            count = int(rng.choice([0, 1, 480, 48_000, 1 << 17, 500_000]))
            window = source.read(at, count)
            np.testing.assert_array_equal(window, frames[at : at + count], err_msg=f"{count} frames at {at}")
            window[:] = 9.0  # the array is the caller's: spoiling it must not spoil the next
            at += len(window)


def test_the_last_seconds_of_a_flac_are_not_decoded_twice(tmp_path: Path, rng: np.random.Generator) -> None:
    path = tmp_path / "x.flac"
    frames = noise(rng, 12 * RATE_HZ)
    soundfile.write(path, frames, RATE_HZ, subtype="PCM_16")
    with open_recording(path) as source:
        for second in range(11):
            block = source.read(second * RATE_HZ, RATE_HZ)
            np.testing.assert_array_equal(block, frames[second * RATE_HZ : (second + 1) * RATE_HZ])
            decoded_to = source._decoder._at
            for back in (RATE_HZ, 2 * RATE_HZ + 7, 5 * RATE_HZ):
                start = max(0, (second + 1) * RATE_HZ - back)
                window = source.read(start, 30_000)
                np.testing.assert_array_equal(
                    window, frames[start : start + 30_000], err_msg=f"{second} s, {back} back"
                )
            assert source._decoder._at == decoded_to, "a window behind was decoded again"


def test_a_window_is_clipped_to_the_file(tmp_path: Path, rng: np.random.Generator) -> None:
    frames = noise(rng, RATE_HZ)
    soundfile.write(tmp_path / "x.wav", frames, RATE_HZ, subtype="PCM_16")
    with open_recording(tmp_path / "x.wav") as source:
        np.testing.assert_array_equal(source.read(RATE_HZ - 10, 100), frames[-10:])
        assert source.read(RATE_HZ + 5, 100).shape == (0, 2)
        np.testing.assert_array_equal(source.read(-10, 20), frames[:10])
        assert source.read(10, -3).shape == (0, 2)


def test_24_bits_in_a_container_of_32(tmp_path: Path, rng: np.random.Generator) -> None:
    frames = noise(rng, 30_000, bits=24)
    pcm = np.rint(frames.astype(np.float64) * 2**31).astype("<i4").tobytes()
    tail = bytes.fromhex("0100000000001000800000aa00389b71")
    fmt = struct.pack("<HHIIHHHHI", 0xFFFE, 2, 96_000, 96_000 * 8, 8, 32, 22, 24, 3) + tail
    path = tmp_path / "x.wav"
    path.write_bytes(riff(fmt, pcm))
    with open_recording(path, min_duration_s=0.1) as source:
        assert source.full_scale == float(np.float32(1 - 2.0**-23))
        np.testing.assert_array_equal(source.read(0, 30_000), frames)


def riff(fmt: bytes, data: bytes, stated: int | None = None, before: bytes = b"", after: bytes = b"") -> bytes:
    stated = len(data) if stated is None else stated
    body = b"WAVE" + before + struct.pack("<4sI", b"fmt ", len(fmt)) + fmt + struct.pack("<4sI", b"data", stated) + data
    return struct.pack("<4sI", b"RIFF", len(body) + len(after)) + body + after


def pcm_fmt(channels: int = 2, bits: int = 16, tag: int = 1, rate_hz: int = RATE_HZ, align: int | None = None) -> bytes:
    align = channels * bits // 8 if align is None else align
    return struct.pack("<HHIIHH", tag, channels, rate_hz, rate_hz * align, align, bits)


def ramp(n_frames: int) -> bytes:
    return (np.arange(2 * n_frames) % 65536).astype("<u2").tobytes()


def test_chunks_before_and_behind_the_samples_are_no_samples(tmp_path: Path) -> None:
    listing = struct.pack("<4sI", b"LIST", 6000) + b"INFO" + b"x" * 5996
    odd = struct.pack("<4sI", b"bext", 3) + b"abc\0"  # padded to an even length
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(30_000), before=odd, after=listing))
    with open_recording(path) as source:
        assert source.n_frames == 30_000
        assert not source.truncated
        np.testing.assert_array_equal(source.read(0, 2)[:, 0] * 2**15, [0, 2])


def test_a_tag_appended_behind_the_file_is_no_samples(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(30_000)) + b"ID3\x04" + bytes(20_000))
    with open_recording(path) as source:
        assert source.n_frames == 30_000


@pytest.mark.parametrize("stated", [0, 4 * 5000, 0xFFFFFFFF, 0x80000000, 0x7FFFF000 - 44])
def test_a_wav_whose_recorder_was_killed_is_read_to_its_end(tmp_path: Path, stated: int) -> None:
    # Never updated (0), updated some time before, or "unknown" as several recorders write it. The last frame is cut.
    whole = riff(pcm_fmt(), ramp(30_000), stated)
    sizes = struct.pack("<I", min(0xFFFFFFFF, 36 + stated) if stated else 0)
    path = tmp_path / "x.wav"
    path.write_bytes(whole[:4] + sizes + whole[8:-3])
    with open_recording(path) as source:
        assert source.n_frames == 29_999
        assert source.missing_frames is None
        assert source.truncated == (stated in (0, 4 * 5000)), "an unknown length may be that of a pipe"
        assert len(source.caveats) == 1
        last = source.read(29_998, 1)[0] * 2**15
        np.testing.assert_array_equal(last, [59_996 - 65_536, 59_997 - 65_536])


def test_a_wav_cut_in_its_samples_says_what_is_missing(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(96_000))[: -4 * 48_000 - 2])
    with open_recording(path) as source:
        assert source.n_frames == 47_999
        assert source.truncated
        assert source.missing_frames == 48_001
        assert source.caveats == ("x.wav: the file ends before its samples do (48001 frames, 1.00 s are missing)",)


def test_a_flac_cut_in_its_samples_says_what_is_missing(tmp_path: Path, rng: np.random.Generator) -> None:
    frames = noise(rng, 10 * RATE_HZ)
    path = tmp_path / "x.flac"
    soundfile.write(path, frames, RATE_HZ, subtype="PCM_16")
    path.write_bytes(path.read_bytes()[: path.stat().st_size * 2 // 3])
    with open_recording(path) as source:
        assert source.truncated
        assert source.missing_frames == 10 * RATE_HZ - source.n_frames
        assert 6.5 * RATE_HZ < source.n_frames < 6.7 * RATE_HZ, "up to one block of 4096 may be lost at the cut"
        for start in (0, source.n_frames - 5000, 100_000, 7):
            window = source.read(start, 60_000)
            np.testing.assert_array_equal(window, frames[start : min(start + 60_000, source.n_frames)])


def test_a_flac_of_unstated_length_is_counted(tmp_path: Path, rng: np.random.Generator) -> None:
    frames = noise(rng, 3 * RATE_HZ)
    path = tmp_path / "x.flac"
    soundfile.write(path, frames, RATE_HZ, subtype="PCM_16")
    raw = bytearray(path.read_bytes())
    raw[21] &= 0xF0  # STREAMINFO: the 36 bits of total samples
    raw[22:26] = bytes(4)
    path.write_bytes(raw)
    with open_recording(path) as source:
        assert not source.truncated
        assert 0 <= 3 * RATE_HZ - source.n_frames <= 64
        np.testing.assert_array_equal(source.read(0, source.n_frames), frames[: source.n_frames])


def test_a_flac_damaged_in_the_middle_is_an_error_there_and_only_there(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    frames = noise(rng, 10 * RATE_HZ)
    path = tmp_path / "x.flac"
    soundfile.write(path, frames, RATE_HZ, subtype="PCM_16")
    raw = bytearray(path.read_bytes())
    middle = len(raw) // 2
    raw[middle : middle + 3000] = rng.bytes(3000)
    path.write_bytes(raw)
    with open_recording(path) as source:
        np.testing.assert_array_equal(source.read(0, 4 * RATE_HZ), frames[: 4 * RATE_HZ])
        with pytest.raises(BadInput, match=r"x\.flac is damaged at or after frame \d+"):
            source.read(4 * RATE_HZ, 2 * RATE_HZ)
        for start in (9 * RATE_HZ, 100):  # behind the damage, which is not kept from before; and in front of it
            window = source.read(start, 1000)
            np.testing.assert_array_equal(window, frames[start : start + 1000], err_msg="an error does not stick")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e30])
def test_a_float_file_with_what_is_no_sample_is_refused_where_it_is(
    tmp_path: Path, rng: np.random.Generator, value: float
) -> None:
    frames = noise(rng, RATE_HZ)
    frames[12_345, 1] = value
    soundfile.write(tmp_path / "x.wav", frames, RATE_HZ, subtype="FLOAT")
    with open_recording(tmp_path / "x.wav") as source:
        np.testing.assert_array_equal(source.read(0, 12_345), frames[:12_345])
        with pytest.raises(BadInput, match=r"frame 12345 \(0\.257 s\), channel 2"):
            source.read(12_000, 1000)


def test_a_float_file_may_exceed_full_scale(tmp_path: Path, rng: np.random.Generator) -> None:
    frames = 1.3 * noise(rng, RATE_HZ)
    soundfile.write(tmp_path / "x.wav", frames, RATE_HZ, subtype="FLOAT")
    with open_recording(tmp_path / "x.wav") as source:
        assert source.full_scale is None
        np.testing.assert_array_equal(source.read(0, RATE_HZ), frames)


def test_what_the_writer_writes_comes_back(tmp_path: Path, rng: np.random.Generator) -> None:
    for channels in (1, 2, 3):
        frames = noise(rng, 30_001, channels, bits=24)
        frames[0] = [1.0, 0.5, -1.0][:channels]
        path = tmp_path / f"{channels}.wav"
        writer = WavWriter(path, RATE_HZ, channels)
        for start in range(0, len(frames), 480):
            writer.write(frames[start : start + 480])
            with open_recording(path, min_duration_s=0.0, min_channels=1) as source:
                assert source.n_frames == min(start + 480, len(frames)), "readable while it grows"
        writer.close()
        writer.close()
        assert path.stat().st_size == 80 + 30_001 * 3 * channels + (channels & 1), "an odd length is padded"
        expected = np.minimum(frames, np.float32(1 - 2.0**-23))
        for given in (soundfile.read(path, dtype="float32", always_2d=True)[0], read_all(path)):
            np.testing.assert_array_equal(given, expected)


def read_all(path: Path) -> np.ndarray:
    with open_recording(path, min_channels=1) as source:
        assert source.caveats == ()
        return source.read(0, source.n_frames)


def test_the_writer_goes_on_past_4_gib_as_rf64(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    writer = WavWriter(path, RATE_HZ, 2)
    block = np.full((1000, 2), 0.25, np.float32)
    writer.write(block)
    # A hole in the file stands for four hours of recording.
    skipped = (1 << 32) // 6
    os.truncate(path, 80 + 6 * (1000 + skipped))
    os.lseek(writer._file._open(), 0, os.SEEK_END)
    writer.n_frames += skipped
    writer.write(2 * block)
    writer.close()
    with open(path, "rb") as handle:
        assert handle.read(4) == b"RF64"
    with open_recording(path) as source:
        assert source.n_frames == 2000 + skipped
        assert source.caveats == ()
        np.testing.assert_array_equal(source.read(source.n_frames - 1000, 1000), 2 * block)
    with soundfile.SoundFile(path) as other:
        assert other.frames == 2000 + skipped


BAD: list[tuple[str, bytes, str]] = [
    ("empty", b"", "is empty"),
    ("text", b"hello, this is no audio at all", "not an audio file that rig knows"),
    ("one byte", b"R", "not an audio file that rig knows"),
    ("an Ogg file", b"OggS" + bytes(100), "is an Ogg file"),
    ("an MP4 file", bytes(4) + b"ftypisom" + bytes(100), "is an MP4 file"),
    ("big-endian", b"RIFX" + bytes(100), "big-endian WAV"),
    ("a bare RIFF", b"RIFF\x04\0\0\0WAVE", "has a header but no samples"),
    ("header only", riff(pcm_fmt(), b""), "has a header but no samples"),
    ("samples undescribed", b"RIFF\x20\0\0\0WAVEdata\x04\0\0\0" + bytes(4), "no description of them"),
    ("a short fmt", riff(b"\1\0\2\0", ramp(30_000)), "'fmt ' chunk of 4 bytes"),
    ("mono", riff(pcm_fmt(channels=1), ramp(30_000)), "has one channel (mono)"),
    ("4 kHz", riff(pcm_fmt(rate_hz=4000), ramp(30_000)), "a sample rate of 4000 Hz"),
    ("384 kHz", riff(pcm_fmt(rate_hz=384_000), ramp(300_000)), "a sample rate of 384000 Hz"),
    ("0 Hz", riff(pcm_fmt(rate_hz=0), ramp(30_000)), "a sample rate of 0 Hz"),
    ("too short", riff(pcm_fmt(), ramp(14_400)), "is 0.30 s long"),
    ("mu-law", riff(pcm_fmt(tag=7, bits=8), ramp(30_000)), "format tag 0x0007 (mu-law)"),
    ("MP3 in WAV", riff(pcm_fmt(tag=0x55, bits=16), ramp(30_000)), "format tag 0x0055 (MP3)"),
    ("8 bits", riff(pcm_fmt(bits=8), ramp(30_000)), "8-bit PCM"),
    ("16-bit float", riff(pcm_fmt(tag=3), ramp(30_000)), "16-bit float"),
    ("frames that do not add up", riff(pcm_fmt(align=5), ramp(30_000)), "damaged header"),
    ("no channels", riff(pcm_fmt(channels=0), ramp(30_000)), "damaged header"),
    ("60000 channels", riff(pcm_fmt(channels=30_000), ramp(30_000)), "damaged header"),
    ("extensible nonsense", riff(pcm_fmt(tag=0xFFFE) + bytes(24), ramp(30_000)), "unknown sub-format"),
    ("FLAC nonsense", b"fLaC" + bytes(100), "cannot be decoded as FLAC"),
]


@pytest.mark.parametrize(("raw", "what"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_what_cannot_be_used_is_refused_in_words(tmp_path: Path, raw: bytes, what: str) -> None:
    path = tmp_path / "take.wav"
    path.write_bytes(raw)
    with pytest.raises(BadInput) as caught:
        open_recording(path)
    assert what in caught.value.what
    assert "take.wav" in caught.value.what
    assert caught.value.expected
    assert caught.value.remedy
    assert caught.value.exit_code == 2


def test_what_is_no_file_is_refused_in_words(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name, what in [("absent", "does not exist"), ("", "is a folder"), ("pipe", "is not a regular file")]:
        with pytest.raises(BadInput, match=what):
            open_recording(tmp_path / name)
    with pytest.raises(BadInput, match="cannot be read"):
        open_recording("a\0b")


def test_a_file_without_permission_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(30_000)))
    path.chmod(0)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65_534)  # root may read everything; nobody may not
        with pytest.raises(BadInput, match="may not be read by this user"):
            open_recording(path)
    finally:
        os.seteuid(user)


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(30_000)))
    with open_recording(path) as source:
        os.truncate(path, 1000)
        with pytest.raises(BadInput, match="became shorter while it was read"):
            source.read(0, 30_000)


def test_a_source_left_open_is_closed_without_a_word(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(riff(pcm_fmt(), ramp(30_000)))
    source: SoundFileSource | None = open_recording(path)
    assert source is not None
    before = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else None
    source = None
    if before is not None:
        assert len(os.listdir("/proc/self/fd")) == before - 1
