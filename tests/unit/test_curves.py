"""What a page shows of a trial is what the estimator saw: the same peak, the same samples, and the same result."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rig.analyse.curves import KEPT_AT_MOST, KEPT_FIRST, CurveKeeper
from rig.cli.pipeline import Choices, report_on, report_with_exhibits
from rig.cli.progress import Display
from rig.domain.exhibits import Curve
from rig.recording import open_recording
from rig.report.render_json import render_json

GOLDEN = Path(__file__).parents[1] / "golden"
RTC = GOLDEN / "chromium-rtc-chirp.flac"


def top_s(curve: Curve) -> float:
    """Where the squared curve has its top, by a parabola through the three highest values."""
    k = int(np.argmax(curve.values))
    a, b, c = (float(v) ** 2 for v in curve.values[k - 1 : k + 2])
    return curve.start_s + curve.step_s * (k + 0.5 * (a - c) / (a - 2.0 * b + c))


@pytest.mark.parametrize("name", ["chromium-rtc-chirp", "chromium-rtc-jbt100-chirp", "chromium-direct-48k-click"])
def test_the_refined_response_peaks_at_the_latency(name: str) -> None:
    report, exhibits = report_with_exhibits(GOLDEN / f"{name}.flac", Choices(), Display(None))
    figures = {t.index: t.latency_s for t in report.runs[0].analysis.trials if t.latency_s is not None}
    kept = {c.index: c for c in exhibits.runs[0].trials}
    assert len(figures) >= 3
    for index, latency_s in figures.items():
        assert min(abs(top_s(c) - latency_s) for c in kept[index].timed) < 1e-6


def test_looking_changes_nothing() -> None:
    report, _ = report_with_exhibits(RTC, Choices(), Display(None))
    assert render_json(report) == render_json(report_on(RTC, Choices(), Display(None)))


def test_the_waveforms_are_the_recordings() -> None:
    report, exhibits = report_with_exhibits(RTC, Choices(), Display(None))
    trial = next(t for t in report.runs[0].analysis.trials if t.valid)
    shown = next(c for c in exhibits.runs[0].trials if c.index == trial.index)
    with open_recording(RTC) as source:
        for curve, channel in ((shown.reference, 0), (shown.ear, 1)):
            times_s = curve.start_s + curve.step_s * np.arange(len(curve.values))
            start = round(trial.reference_frame) + int(times_s[0] * source.rate_hz) - 8
            frames = source.read(start, int((times_s[-1] - times_s[0]) * source.rate_hz) + 64)[:, channel]
            at = trial.reference_frame + times_s * source.rate_hz - start
            recorded = np.interp(at, np.arange(len(frames)), frames)
            # Alike up to what a straight line between samples, and the cut at 8 kHz, leave out.
            assert np.corrcoef(recorded, curve.values)[0, 1] > 0.95
    assert exhibits.files[0][0] == RTC.name


def test_spectra_hold_the_power_of_the_stimulus() -> None:
    _, exhibits = report_with_exhibits(RTC, Choices(), Display(None))
    spectra = exhibits.runs[0].spectra
    assert spectra is not None
    assert spectra.reference_pause_db is not None
    inside = (spectra.frequency_hz > 500.0) & (spectra.frequency_hz < 3000.0)
    assert np.all(spectra.reference_db[inside] > spectra.reference_pause_db[inside] + 20.0)


def test_what_is_kept_of_a_long_run_is_bounded() -> None:
    _, exhibits = report_with_exhibits(RTC, Choices(), Display(None))
    keeper = CurveKeeper(1, 48_000.0)
    assert keeper.exhibits().trials == ()
    assert keeper.exhibits().spectra is None
    assert len(exhibits.runs[0].trials) <= KEPT_FIRST <= KEPT_AT_MOST
