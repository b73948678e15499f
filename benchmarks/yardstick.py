"""The plain way to do the same work: scipy.signal.correlate around each stimulus, whose places it is told.

Run as a program: `python -m benchmarks.yardstick FILE DURATION_S SEED`. It reads the window of each stimulus, takes the
reference clip out, correlates it with 1.5 s of the ear channel and keeps the largest magnitude: no search for stimuli,
no validity, no interpolation.
"""

from __future__ import annotations

import sys

import numpy as np
import soundfile
from scipy.signal import correlate

from benchmarks.longfile import LATENCY_S, RATE_HZ, chirp, onsets

WINDOW_S = 1.5


def main() -> None:
    """Prints the number of stimuli and how many have the right lag."""
    path, duration_s, seed = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    clip = chirp().size
    right = 0
    starts = onsets(duration_s, seed)
    with soundfile.SoundFile(path) as source:
        for start in starts:
            source.seek(int(start))
            frames = source.read(clip + int(WINDOW_S * RATE_HZ), dtype="float32")
            r = correlate(frames[:, 1], frames[:clip, 0], mode="valid", method="fft")
            right += abs(int(np.argmax(np.abs(r))) - round(LATENCY_S * RATE_HZ)) <= 1
    print(f"{starts.size} {right}")


if __name__ == "__main__":
    main()
