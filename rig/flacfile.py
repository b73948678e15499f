"""FLAC through libsndfile: how much of it can be decoded, and overlapping windows without decoding twice.

libsndfile drops the whole read in which a damaged frame is met, believes the length in the header, and starts a seek
from a frame boundary. So the end is probed on opening, and the last seconds decoded are kept.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from rig.domain.seams import Frames
from rig.errors import BadInput, MissingLibrary

_LOOK_BACK_S = 8.0  # covers a window of 5 s of latency behind a gate block of 2**17 frames at 48 kHz
_LOOK_BACK_BYTES = 32 << 20
_SKIP_S = 0.25  # decoding on is cheaper than a seek up to here
_COUNT_STEPS = (1 << 16, 4096, 64)  # frames per read while the end of a damaged file is sought
_MOST_FRAMES = 1 << 36  # the format's own limit: 36 bits of length

_FULL_SCALE = {"PCM_S8": 1 - 2.0**-7, "PCM_16": 1 - 2.0**-15, "PCM_24": 1 - 2.0**-23}


class FlacReader:
    """Random access to a FLAC; close it. Raises BadInput where libsndfile cannot read it."""

    def __init__(self, path: Path, name: str) -> None:
        try:
            import soundfile  # heavy: only when a FLAC is opened
        except (ImportError, OSError) as error:
            raise MissingLibrary(
                f"{name} needs libsndfile, which cannot be loaded: {error}",
                "the Python package soundfile",
                "pip install soundfile, or convert the recording to WAV",
            ) from error
        self._library: Any = soundfile
        self._path = path
        self._name = name
        self._file: Any = self._open()
        self._at = 0  # the next frame that libsndfile will give
        self.rate_hz = int(self._file.samplerate)
        self.n_channels = int(self._file.channels)
        self.full_scale: float | None = _FULL_SCALE.get(str(self._file.subtype), 1.0)
        self.missing_frames: int | None = None
        self.truncated = False
        self.length_note: str | None = None
        self._kept: Frames = np.empty((0, self.n_channels), np.float32)
        self._kept_from = 0
        rate_room = int(_LOOK_BACK_S * self.rate_hz)
        self._room = max(1, min(rate_room, _LOOK_BACK_BYTES // (4 * self.n_channels)))
        try:
            self.n_frames = self._usable(int(self._file.frames))
        except BaseException:
            self.close()
            raise

    def read(self, first: int, count: int) -> Frames:
        """Frames [first, first + count), which must lie within `n_frames`. Raises BadInput at damage."""
        out: Frames = np.empty((count, self.n_channels), np.float32)
        done = 0
        kept_to = self._kept_from + len(self._kept)
        if self._kept_from <= first < kept_to:
            done = min(count, kept_to - first)
            out[:done] = self._kept[first - self._kept_from : first - self._kept_from + done]
        while done < count:
            step = min(count - done, self._room)
            out[done : done + step] = self._decode(first + done, step)
            done += step
        return out

    def close(self) -> None:
        if getattr(self, "_file", None) is not None:
            self._file.close()

    def _open(self) -> Any:
        try:
            return self._library.SoundFile(str(self._path))
        except (self._library.SoundFileError, OSError, ValueError, TypeError) as error:
            raise BadInput(
                f"{self._name} cannot be decoded as FLAC: {_why(error)}",
                "a FLAC of 8, 16 or 24 bits",
                "convert it, for example: ffmpeg -i FILE -c:a pcm_s24le NEW.wav",
            ) from error

    def _decode(self, first: int, count: int) -> Frames:
        """Decodes [first, first + count) and keeps it; count is at most the room kept."""
        try:
            ahead = first - self._at
            if 0 < ahead <= _SKIP_S * self.rate_hz:
                self._keep(self._at, self._next(ahead))
            elif ahead != 0:
                self._seek(first)
            frames = self._next(count)
        except self._library.SoundFileError as error:
            self._restart()
            raise self._damaged(first) from error
        if len(frames) < count:
            self._restart()
            raise self._damaged(first + len(frames))
        self._keep(first, frames)
        return frames

    def _next(self, count: int) -> Frames:
        frames: Frames = self._file.read(count, dtype="float32", always_2d=True)
        self._at += len(frames)
        return frames

    def _keep(self, first: int, frames: Frames) -> None:
        """Appends to the look-back where it is contiguous, else starts it anew; the oldest beyond the room goes."""
        if first != self._kept_from + len(self._kept) or not len(self._kept):
            self._kept, self._kept_from = frames[-self._room :].copy(), first + max(0, len(frames) - self._room)
            return
        old = self._kept[max(0, len(self._kept) + len(frames) - self._room) :]
        self._kept_from += len(self._kept) - len(old)
        self._kept = np.concatenate((old, frames))

    def _seek(self, first: int) -> None:
        try:
            self._file.seek(first)
            self._at = first
        except (self._library.SoundFileError, ValueError):
            # Without its end a FLAC cannot always be searched: decode from the start. The error sticks to the handle.
            self._restart()
            while self._at < first:
                if not len(self._next(min(1 << 16, first - self._at))):
                    raise self._damaged(self._at) from None

    def _restart(self) -> None:
        self._file.close()
        self._file = self._open()
        self._at = 0

    def _usable(self, stated: int) -> int:
        """Frames that can be decoded: as stated when the last one can, else as counted."""
        known = 0 < stated <= _MOST_FRAMES
        if known and self._last_is_there(stated):
            return stated
        counted = self._count(stated if known else _MOST_FRAMES)
        if not known:
            self.length_note = "the header does not state a length; counted by decoding"
        elif counted < stated:
            self.truncated, self.missing_frames = True, stated - counted
            self.length_note = "the file is cut or damaged, and used up to there"
        return counted

    def _last_is_there(self, stated: int) -> bool:
        try:
            self._file.seek(stated - 1)
            whole = len(self._file.read(1, dtype="float32", always_2d=True)) == 1
        except (self._library.SoundFileError, ValueError):
            whole = False
        self._restart()
        return whole

    def _count(self, limit: int) -> int:
        counted = 0
        for step in _COUNT_STEPS:
            try:
                self._restart()
                self._seek(counted)
                while counted < limit:
                    got = len(self._next(min(step, limit - counted)))
                    counted += got
                    if got == 0:
                        break
            except (self._library.SoundFileError, BadInput):
                continue
        self._restart()
        return counted

    def _damaged(self, frame: int) -> BadInput:
        return BadInput(
            f"{self._name} is damaged at or after frame {frame} ({frame / self.rate_hz:.2f} s)",
            "a FLAC that can be decoded",
            "use what precedes it: ffmpeg -i FILE -t SECONDS NEW.wav",
        )


def _why(error: BaseException) -> str:
    text = str(error).replace("\n", " ").strip()
    return text.split(": ", 1)[-1].rstrip(".").lower() or type(error).__name__
