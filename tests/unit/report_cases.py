"""Analysed runs built by hand: what a report is tested with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rig.domain.records import (
    BenchKind,
    BlankFloor,
    BudgetLine,
    ChannelLevel,
    Correction,
    Reason,
    RunAnalysis,
    StimulusPlan,
    StreamGrant,
    StreamSpec,
    Trial,
)
from rig.domain.report import MeasurementFacts

RATE_HZ = 48_000
NOISE_S = 0.5e-6
BUDGET = (
    BudgetLine("estimator noise", NOISE_S, "A", "ear SNR of each trial"),
    BudgetLine("definition on a dispersive path", 12e-6, "B", "spread of the readings of one arrival"),
    BudgetLine("sample rate", 5e-6, "B", "50 ppm of the latency"),
)
LEVEL = ChannelLevel(
    peak_dbfs=-12.3, noise_dbfs=-71.2, dc=0.0004, hum_dbfs=None, clipped_samples=0, digital_silence=False
)


def accepted(index: int, latency_s: float, spacing_s: float = 2.0, **more: object) -> Trial:
    """An accepted trial, `spacing_s` after the one before."""
    facts: dict[str, object] = {"polarity": 1, "snr_db": 24.0, "z": 180.0, "decoy_db": 21.0, "coherence": 0.97}
    return Trial(
        index=index,
        reference_frame=RATE_HZ * (1.0 + spacing_s * index),
        valid=True,
        reason=None,
        latency_s=float(latency_s),
        u_s=13e-6,
        u_noise_s=NOISE_S,
        precision_s=float(latency_s) + 2e-6,
        crlb_s=0.2e-6,
        **{**facts, **more},  # type: ignore[arg-type]
    )


def refused(index: int, reason: Reason, unconfirmed_s: float | None = None, spacing_s: float = 2.0) -> Trial:
    """A refused trial."""
    return Trial(
        index, RATE_HZ * (1.0 + spacing_s * index), False, reason, None, None, None, unconfirmed_s=unconfirmed_s
    )


def run_of(latencies_s: Sequence[float | Reason] | np.ndarray, run: int = 1, **more: object) -> RunAnalysis:
    """A run from latencies in s; a `Reason` in their place is a refused trial."""
    trials = tuple(
        refused(i, value) if isinstance(value, Reason) else accepted(i, value) for i, value in enumerate(latencies_s)
    )
    facts: dict[str, object] = {
        "refusal": None,
        "refusal_detail": None,
        "stimulus": "chirp",
        "band_hz": (300.0, 3400.0),
        "levels": (LEVEL, LEVEL),
        "budget": BUDGET,
    }
    return RunAnalysis(
        run=run,
        trials=trials,
        rate_hz=RATE_HZ,
        n_frames=RATE_HZ * (2 * len(trials) + 2),
        **{**facts, **more},  # type: ignore[arg-type]
    )


FACTS = MeasurementFacts(
    mode="call",
    bench=BenchKind.SIMULATED,
    device="sim:default",
    session="0123456789ab",
    scenario="default",
    seed=7,
    asked=StreamSpec("sim:default", RATE_HZ, 2),
    granted=StreamGrant("sim:default", "simulated", RATE_HZ, 2, 256, 0.0058, 0.0123),
    plan=StimulusPlan("chirp", 20, (2.0,) * 19, 0.5, "mcu"),
    runs_planned=3,
    reference_channel=1,
    ear_channel=2,
    environment=(("os", "Linux"), ("python", "3.11")),
    xruns=0,
    blank=BlankFloor(None, None, 5),
)

FILE_FACTS = MeasurementFacts(mode="call", bench=BenchKind.FILE, source="call.wav", reference_channel=1, ear_channel=2)

CORRECTION = Correction("air, loudspeaker to ear", -0.00029, 6e-6, "air-gap.2026-01-05")


def jittering_runs(seed: int, n: int = 20, runs: int = 3, sd_s: float = 3e-3) -> list[RunAnalysis]:
    """Runs about 150 ms whose trials jitter normally; the runs agree."""
    rng = np.random.default_rng(seed)
    return [run_of(rng.normal(0.150, sd_s, n), run=r + 1) for r in range(runs)]
