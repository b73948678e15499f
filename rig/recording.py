"""Two-channel recordings from any recorder: WAV and FLAC, read a window at a time.

WAV is decoded by `wavfile` (which forgives unfinished headers), FLAC by libsndfile. Memory is flat: one scratch block,
and for FLAC the last seconds, because windows overlap and a FLAC must be decoded from a frame boundary.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from types import TracebackType

import numpy as np

from rig import wavfile
from rig.domain.seams import Frames
from rig.errors import BadInput
from rig.flacfile import FlacReader

MIN_RATE_HZ = 8_000
MAX_RATE_HZ = 192_000
MIN_DURATION_S = 0.5
"""Shorter than this holds no stimulus together with its response."""

_LARGEST = 1e6  # of full scale, 120 dB over it: a float beyond this is not a sample
_CONVERT = "convert it, for example: ffmpeg -i FILE -c:a pcm_s24le NEW.wav"
_OTHER_KINDS = (
    (0, b"OggS", "an Ogg file"),
    (0, b"FORM", "an AIFF file"),
    (0, b"caff", "a CAF file"),
    (0, b"riff", "a Wave64 file"),
    (0, b"RIFX", "a big-endian WAV (RIFX)"),
    (0, b".snd", "an AU file"),
    (0, b"\xff\xfb", "an MP3 file"),
    (0, b"\xff\xf3", "an MP3 file"),
    (4, b"ftyp", "an MP4 file"),
    (0, b"\x1aE\xdf\xa3", "a Matroska or WebM file"),
)


class SoundFileSource:
    """A `FrameSource` on a WAV or FLAC file.

    `truncated` says that the file ends before its samples do, `missing_frames` by how much (None: cannot be told),
    and `caveats` says it in words for the report. Close it, or use it in a `with`.
    """

    def __init__(self, path: Path, decoder: _WavReader | FlacReader) -> None:
        self.path = path
        self._decoder = decoder
        self.container = "FLAC" if isinstance(decoder, FlacReader) else "WAV"
        self.truncated = decoder.truncated
        self.missing_frames = decoder.missing_frames
        self.caveats: tuple[str, ...] = () if decoder.length_note is None else (self._length_caveat(),)

    def _length_caveat(self) -> str:
        text = f"{self.path.name}: {self._decoder.length_note}"
        if self.missing_frames:
            text += f" ({self.missing_frames} frames, {self.missing_frames / self.rate_hz:.2f} s are missing)"
        return text

    @property
    def rate_hz(self) -> int:
        return self._decoder.rate_hz

    @property
    def n_frames(self) -> int:
        """Frames that are really there."""
        return self._decoder.n_frames

    @property
    def n_channels(self) -> int:
        return self._decoder.n_channels

    @property
    def full_scale(self) -> float | None:
        """The largest sample as float32 shows it (1.0 for 32 bits); None for float formats, which have no rail."""
        return self._decoder.full_scale

    def read(self, start: int, count: int) -> Frames:
        """Frames [start, start + count) clipped to the file, shape (n, n_channels), float32; the array is the caller's.

        Raises BadInput where the file is damaged or holds samples that are not numbers (they cannot be analysed, and
        replacing them would invent a signal).
        """
        first = min(max(start, 0), self.n_frames)
        last = min(max(start + count, first), self.n_frames)
        frames = self._decoder.read(first, last - first)
        if self.full_scale is None and frames.size:
            self._check_numbers(frames, first)
        return frames

    def _check_numbers(self, frames: Frames, first: int) -> None:
        if float(frames.min()) >= -_LARGEST and float(frames.max()) <= _LARGEST:  # False for NaN too
            return
        bad = ~(np.abs(frames) <= _LARGEST)
        row, channel = (int(i) for i in np.argwhere(bad)[0])
        value = float(frames[row, channel])
        at = first + row
        raise BadInput(
            f"{self.path.name} has a sample of {value:g} at frame {at} ({at / self.rate_hz:.3f} s),"
            f" channel {channel + 1}",
            "finite samples around full scale 1.0",
            "cut that part out, or mend the recorder that wrote it",
        )

    def close(self) -> None:
        """Closes the file; a second call does nothing."""
        self._decoder.close()

    def __enter__(self) -> SoundFileSource:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        decoder = getattr(self, "_decoder", None)
        if decoder is not None:
            decoder.close()


class _WavReader:
    """Random access to the samples of a WAV; a contiguous read does not seek."""

    def __init__(self, path: Path, name: str) -> None:
        self._name = name
        # The descriptor is ours and closed in `close` alone, whatever order a collected cycle is taken apart in.
        self._descriptor: int | None = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            self._handle = io.FileIO(self._descriptor, closefd=False)
            self.layout = wavfile.read_layout(self._handle, os.fstat(self._descriptor).st_size, name)
        except BaseException:
            self.close()
            raise
        self._at = -1  # frame under the file position; unknown yet
        self._scratch = bytearray()

    @property
    def rate_hz(self) -> int:
        return self.layout.rate_hz

    @property
    def n_frames(self) -> int:
        return self.layout.n_frames

    @property
    def n_channels(self) -> int:
        return self.layout.n_channels

    @property
    def full_scale(self) -> float | None:
        return self.layout.full_scale

    @property
    def missing_frames(self) -> int | None:
        return self.layout.missing_frames

    @property
    def truncated(self) -> bool:
        return self.layout.unfinished

    @property
    def length_note(self) -> str | None:
        return self.layout.length_note

    def read(self, first: int, count: int) -> Frames:
        if self._descriptor is None:
            raise ValueError("the recording was closed")
        need = count * self.layout.frame_bytes
        if len(self._scratch) < need:
            self._scratch = bytearray(need)
        view = memoryview(self._scratch)[:need]
        try:
            if self._at != first:
                self._handle.seek(self.layout.data_offset + first * self.layout.frame_bytes)
            self._at = -1
            got = 0
            while got < need:
                step = self._handle.readinto(view[got:])
                if not step:
                    raise BadInput(
                        f"{self._name} became shorter while it was read",
                        "a file that nobody writes to",
                        "wait until the other program is done, then try again",
                    )
                got += step
        except OSError as error:
            raise _unreadable(self._name, error) from error
        self._at = first + count
        return wavfile.decode(view, count, self.layout)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def open_recording(
    path: str | Path, *, min_duration_s: float = MIN_DURATION_S, min_channels: int = 2
) -> SoundFileSource:
    """Opens a WAV (PCM 16, 24, 32; float; extensible; RF64) or FLAC of 8 to 192 kHz and at least two channels.

    Raises BadInput with the reason and a remedy: absent, a folder, no permission, empty, header only, not audio, a
    format it cannot read, too few channels, a rate out of range, too short. A file whose end is missing opens and
    says so.
    """
    path = Path(path)
    name = path.name or str(path)
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise BadInput(f"{name} is a folder", "a WAV or FLAC file, or a session folder", "name the file inside it")
        if not stat.S_ISREG(facts.st_mode):
            raise BadInput(f"{name} is not a regular file", "a WAV or FLAC file", "save the recording to a file first")
        if facts.st_size == 0:
            raise BadInput(f"{name} is empty (0 bytes)", "a WAV or FLAC file", "record again: nothing was kept")
        with open(path, "rb") as handle:
            head = handle.read(12)
        source = SoundFileSource(path, _decoder(path, name, head))
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise _unreadable(name, error) from error
    try:
        _check(source, name, min_duration_s, min_channels)
    except BaseException:
        source.close()
        raise
    return source


def _decoder(path: Path, name: str, head: bytes) -> _WavReader | FlacReader:
    if head[:4] in (b"RIFF", b"RF64", b"BW64") and head[8:12] == b"WAVE":
        return _WavReader(path, name)
    if head[:4] == b"fLaC":
        return FlacReader(path, name)
    for offset, magic, what in _OTHER_KINDS:
        if head[offset : offset + len(magic)] == magic:
            raise BadInput(f"{name} is {what}", "WAV or FLAC", _CONVERT)
    raise BadInput(f"{name} is not an audio file that rig knows", "WAV or FLAC", _CONVERT)


def _check(source: SoundFileSource, name: str, min_duration_s: float, min_channels: int) -> None:
    if source.n_channels < min_channels:
        has = "one channel (mono)" if source.n_channels == 1 else f"{source.n_channels} channels"
        raise BadInput(
            f"{name} has {has}",
            f"at least {min_channels}: the stimulus and what the ear heard, recorded together",
            "record both on one interface, so that they share its clock",
        )
    if not MIN_RATE_HZ <= source.rate_hz <= MAX_RATE_HZ:
        raise BadInput(
            f"{name} has a sample rate of {source.rate_hz} Hz",
            f"{MIN_RATE_HZ} to {MAX_RATE_HZ} Hz",
            "record at 48000 Hz",
        )
    if source.n_frames == 0:
        raise BadInput(f"{name} has a header but no samples", "a recording", "record again: nothing was kept")
    if source.n_frames < min_duration_s * source.rate_hz:
        raise BadInput(
            f"{name} is {source.n_frames / source.rate_hz:.2f} s long",
            f"at least {min_duration_s:g} s: a stimulus and its response",
            "record for longer",
        )


def _unreadable(name: str, error: OSError | ValueError) -> BadInput:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return BadInput(f"{name} does not exist", "a WAV or FLAC file", "check the path")
    if isinstance(error, PermissionError):
        return BadInput(f"{name} may not be read by this user", "permission to read it", "chmod u+r FILE, or copy it")
    why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return BadInput(f"{name} cannot be read: {why}", "a WAV or FLAC file", "copy it to this machine and try again")
