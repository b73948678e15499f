"""Recordings of a real browser give the figures that were found when they were made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from figures import Figures
from harness import ROLES, refusal

from rig.domain.records import AnalysisHints
from rig.recording import open_recording

GOLDEN = Path(__file__).parents[1] / "golden"

DIRECT_MS, OPUS_MS = 0.05, 0.15
"""How far a median may lie from the figure of the table."""

EXPECTED = [
    ("chromium-direct-click", "click", 81.271, DIRECT_MS),
    ("chromium-direct-48k-click", "click", 118.500, DIRECT_MS),
    ("chromium-spn256-click", "click", 99.646, DIRECT_MS),
    ("chromium-rtc-click", "click", 153.542, OPUS_MS),
    ("chromium-rtc-chirp", "chirp-nb", 143.542, OPUS_MS),
    ("chromium-rtc-jbt100-chirp", "chirp-nb", 178.80, OPUS_MS),
]


def check(name: str, kind: str, expected_ms: float, limit_ms: float, told: bool, figures: Figures) -> None:
    """Analyses one file, says what it gave, and holds it to the table."""
    from rig.analyse.run import analyse_run

    with open_recording(GOLDEN / f"{name}.flac") as source:
        run = analyse_run(source, ROLES, AnalysisHints(stimulus=kind if told else None))
    found = [1e3 * t.latency_s for t in run.trials if t.latency_s is not None]
    why = [t.reason.value for t in run.trials if t.reason is not None]
    median = f"{np.median(found):.4f}" if found else "none"
    figures.say(
        f"{name:26} {'told' if told else 'not told'} {kind}: median {median} ms, by hand {expected_ms} ms;"
        f" {len(found)} accepted, spread {np.ptp(found) if found else float('nan'):.4f} ms {' '.join(why)}".rstrip()
    )
    assert len(run.trials) == 6, [t.reference_frame for t in run.trials]
    assert refusal(run) is None, (refusal(run), run.refusal_detail)
    assert len(found) >= 5, why
    assert np.median(found) == pytest.approx(expected_ms, abs=limit_ms)


@pytest.mark.parametrize("told", [True, False], ids=["told the stimulus", "told nothing"])
@pytest.mark.parametrize(("name", "kind", "expected_ms", "limit_ms"), EXPECTED, ids=[e[0] for e in EXPECTED])
def test_browser_recording(
    name: str, kind: str, expected_ms: float, limit_ms: float, told: bool, figures: Figures
) -> None:
    """Recordings of a real browser: six trials, the median as found by hand."""
    check(name, kind, expected_ms, limit_ms, told, figures)


@pytest.mark.truth
def test_browser_recordings(figures: Figures) -> None:
    """Recordings of a real browser: medians within 0.05 ms on direct paths, 0.15 ms through Opus."""
    for name, kind, expected_ms, limit_ms in EXPECTED:
        check(name, kind, expected_ms, limit_ms, False, figures)


def test_the_recordings_are_what_the_table_says() -> None:
    """Every file of the table is there, with both channels and six stimuli on the first; none is forgotten."""
    assert sorted(p.stem for p in GOLDEN.glob("*.flac")) == sorted(e[0] for e in EXPECTED)
    for name, _, _, _ in EXPECTED:
        with open_recording(GOLDEN / f"{name}.flac") as source:
            assert (source.rate_hz, source.n_channels) == (48_000, 2)
            reference = np.abs(source.read(0, source.n_frames)[:, 0])
        loud = np.flatnonzero(reference > 0.5 * reference.max())
        assert np.sum(np.diff(loud) > 0.3 * 48_000) == 5
