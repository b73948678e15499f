"""Every operation on clocks that must not type-check. Checked by mypy, never run.

Each line is wrong on purpose and says so with an ignore. The day one of them becomes legal its ignore is unused, and
strict mypy reports it.
"""

# ruff: noqa: B015, B018, F841 - useless expressions and unused names are the point

from __future__ import annotations

import numpy as np

from rig.domain.seams import HostTime
from rig.domain.timebase import AudioClock, ClockMap, Duration, HostClock, Instant, McuClock, SutClock, Timebase


def forbidden(
    host: Instant[HostClock],
    mcu: Instant[McuClock],
    audio: Instant[AudioClock],
    sut: Instant[SutClock],
    length: Duration,
    mcu_to_host: ClockMap[McuClock, HostClock],
    audio_base: Timebase[AudioClock],
    time: HostTime,
) -> None:
    # The difference of two clocks, either way round and through the method.
    audio - mcu  # type: ignore[operator]
    mcu - audio  # type: ignore[operator]
    host - audio  # type: ignore[operator]
    host - sut  # type: ignore[operator]
    sut - audio  # type: ignore[operator]
    audio.since(mcu)  # type: ignore[arg-type]
    sut.since(host)  # type: ignore[arg-type]

    # Arithmetic that has no meaning.
    host + host  # type: ignore[operator]
    -host  # type: ignore[operator]
    host * 2  # type: ignore[operator]
    host < mcu  # type: ignore[operator]
    abs(host)  # type: ignore[arg-type]
    float(host)  # type: ignore[arg-type]

    # Bare numbers, of Python and of numpy, for instants and lengths.
    host - 1.0  # type: ignore[operator]
    1.0 - host  # type: ignore[operator]
    host - np.float64(1.0)  # type: ignore[operator]
    host - np.zeros(3)  # type: ignore[operator]
    host + 0.5  # type: ignore[operator]
    host - length  # type: ignore[operator]
    host.plus(0.5)  # type: ignore[arg-type]
    host.plus(host)  # type: ignore[arg-type]
    length + 0.5  # type: ignore[operator]
    length - host  # type: ignore[operator]
    length < 0.5  # type: ignore[operator]
    length * length  # type: ignore[operator]

    # An instant of one clock where another's is wanted.
    wrong: Instant[AudioClock] = mcu  # type: ignore[assignment]
    wider: Instant[object] = mcu  # type: ignore[assignment]
    Instant[McuClock](audio_base, 1.0)  # type: ignore[arg-type]
    time.sleep_until(audio)  # type: ignore[arg-type]
    time.sleep_until(1.0)  # type: ignore[arg-type]
    time.now() - mcu  # type: ignore[operator]

    # A map from the wrong clock, its result on the wrong clock, a map turned round.
    mcu_to_host.apply(audio)  # type: ignore[arg-type]
    mcu_to_host.apply(1.0)  # type: ignore[arg-type]
    mcu_to_host.apply(mcu) - mcu  # type: ignore[operator]
    turned: ClockMap[HostClock, McuClock] = mcu_to_host  # type: ignore[assignment]

    # Nothing changes after it was made.
    host.seconds = 2.0  # type: ignore[misc]
    mcu_to_host.rate = 1.0  # type: ignore[misc]
