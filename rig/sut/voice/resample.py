"""From one sample rate to another, block by block, through libswresample (PyAV), which is imported lazily."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from rig.errors import MissingLibrary, UsageError

Samples = npt.NDArray[np.float32]


def library() -> Any:
    """PyAV. Raises MissingLibrary."""
    try:
        import av
    except ImportError as error:
        raise MissingLibrary(
            f"the package av cannot be loaded: {error}", "PyAV 12 or later, which carries libopus", "pip install av"
        ) from error
    return av


def packed(av: Any, samples: Samples, rate_hz: int, at: int) -> Any:
    """A frame of PyAV's of one channel, its first sample the `at`th."""
    frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(samples, dtype=np.float32)[None, :], "flt", "mono")
    frame.sample_rate = rate_hz
    frame.pts = at
    frame.time_base = Fraction(1, rate_hz)
    return frame


class Resampler:
    """Blocks of `block_samples` at `from_hz` in, as many as last as long at `to_hz` out.

    The filter sees samples that lie ahead; so that each block gives a whole one, all comes `delay_s` later. Equal rates
    are passed on untouched.
    """

    def __init__(self, from_hz: int, to_hz: int, block_samples: int) -> None:
        """Raises UsageError where a block is no whole number of samples, MissingLibrary without PyAV."""
        if block_samples * to_hz % from_hz:
            raise UsageError(
                f"a frame of {block_samples} samples at {from_hz} Hz is no whole number of samples at {to_hz} Hz",
                "rates that share the frame's length",
                "--rate 48000 or 24000, with frames of 20ms",
            )
        self.out_samples = block_samples * to_hz // from_hz
        self._rates = (from_hz, to_hz)
        self._av = None if from_hz == to_hz else library()
        self._n_in = 0
        self._waiting: Samples = np.zeros(0, dtype=np.float32)
        self.delay_s = 0.0
        if self._av is not None:
            self._filter = self._new()
            missing = self._missing(block_samples)
            self._filter = self._new()
            self._n_in = 0
            self._waiting = np.zeros(missing, dtype=np.float32)
            self.delay_s = missing / to_hz

    def process(self, block: Samples) -> Samples:
        """Shape (block_samples,) to (out_samples,)."""
        if self._av is None:
            return block
        self._waiting = np.concatenate([self._waiting, self._passed(block)])
        out, self._waiting = self._waiting[: self.out_samples], self._waiting[self.out_samples :]
        return out

    def _passed(self, block: Samples) -> Samples:
        frames = self._filter.resample(packed(self._av, block, self._rates[0], self._n_in))
        self._n_in += len(block)
        return np.concatenate([np.zeros(0, np.float32), *(f.to_ndarray().reshape(-1) for f in frames)])

    def _missing(self, block_samples: int) -> int:
        """The most samples by which the filter's output is behind, found by trying: its blocks may vary by one."""
        given, worst, silence = 0, 0, np.zeros(block_samples, dtype=np.float32)
        for k in range(1, 101):
            given += len(self._passed(silence))
            worst = max(worst, k * self.out_samples - given)
        return worst

    def _new(self) -> Any:
        assert self._av is not None
        return self._av.AudioResampler(format="flt", layout="mono", rate=self._rates[1])
