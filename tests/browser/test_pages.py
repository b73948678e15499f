"""The pages of `rig report` in a real browser: nothing is logged or fetched, and every figure is the JSON's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.cli.main import main

websocket = pytest.importorskip("websocket", reason="websocket-client is not installed")

from tests.browser.chromium import PHONE, Tab, browser, chromium  # noqa: E402

SHOTS = Path(__file__).parents[2] / "build" / "screenshots"
"""Kept after the run, to look at."""

SCENARIOS = {"default": 0, "echo": 0, "suppressed": 0, "jitter-buffer-step": 0, "no-answer": 7, "dead-ear": 7}


@pytest.fixture(scope="module")
def tab() -> Iterator[Tab]:
    program = chromium()
    if program is None:
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with browser(program) as opened:
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    SHOTS.mkdir(parents=True, exist_ok=True)
    return tmp_path_factory.mktemp("pages")


def measured(folder: Path, scenario: str, capsys: pytest.CaptureFixture[str]) -> tuple[Path, dict, int]:
    """(session, its JSON document, exit code) of a small measurement with a page beside it."""
    session = folder / scenario
    capsys.readouterr()
    options = ["--seed", "4", "--runs", "2", "--stimuli", "8", "--quiet", "--json", "--report"]
    code = main(["measure", "--device", f"sim:{scenario}", "--out", str(session), *options])
    return session, json.loads(capsys.readouterr().out), code


def quiet(tab: Tab, page: Path) -> None:
    """Nothing was logged, and nothing but the file itself was asked for, since the last look."""
    assert tab.logged == []
    assert {url.split("#")[0] for url in tab.requested} == {page.resolve().as_uri()}
    tab.requested.clear()


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_page_says_what_the_json_says(
    scenario: str, tab: Tab, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, document, code = measured(folder, scenario, capsys)
    page = session.with_name(f"{scenario}-report.html")
    assert code == SCENARIOS[scenario]
    assert page.stat().st_size < 3_000_000
    tab.open(page)
    tab.photograph(SHOTS / f"{scenario}.png")
    quiet(tab, page)
    latency = document["latency_s"]
    shown = tab.evaluate("document.getElementById('median')?.value ?? null")
    if latency is None:
        assert shown is None
        assert "no valid measurement" in tab.evaluate("document.getElementById('headline').innerText")
        remedies = tab.evaluate("document.getElementById('next').innerText").lower()
        assert all(r["remedy"].lower() in remedies for r in document["remedies"])
    else:
        assert float(shown) == latency["median"]
        values = [float(v) for v in tab.evaluate("[...document.querySelectorAll('#headline data')].map(e => e.value)")]
        for name in ("median", "low", "high", "min", "max", "mean", "instrument_u95"):
            assert latency[name] in values, name
    row = "[...document.querySelectorAll('#figures details:first-of-type tbody tr')]"
    values = tab.evaluate(f"{row}.map(r => r.querySelector('data')?.value ?? null)")
    trials = [t for r in document["runs"] for t in r["trials"]]
    assert [None if v is None else float(v) for v in values] == [t["latency_s"] for t in trials]
    assert tab.evaluate("document.getElementById('stages')") is None


def test_every_trial_can_be_opened_and_zoomed(tab: Tab, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session, document, _ = measured(folder / "zoom", "suppressed", capsys)
    page = session.with_name("suppressed-report.html")
    tab.open(page)
    trials = [t for r in document["runs"] for t in r["trials"]]
    assert tab.evaluate("document.getElementById('choose').length") == len(trials)
    at = tab.evaluate("document.getElementById('lags').getAttribute('aria-label')")
    for trial in trials:
        told = tab.evaluate("document.getElementById('told').innerText")
        assert ("refused" in told) == (not trial["valid"])
        if trial["valid"]:
            assert f"{1e3 * trial['latency_s']:.4f} ±" in told
        tab.evaluate("document.querySelector('[data-do=next]').click()")
    assert tab.evaluate("document.getElementById('lags').getAttribute('aria-label')") != at
    pixels = "document.getElementById('lags').toDataURL()"
    before = tab.evaluate(pixels)
    tab.evaluate("document.querySelector('[data-do=in]').click()")
    zoomed = tab.evaluate(pixels)
    assert zoomed != before
    tab.evaluate("document.querySelector('[data-do=all]').click()")
    assert tab.evaluate(pixels) == before
    tab.evaluate(
        "document.querySelector('svg.wide [data-trial]').dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert tab.evaluate("document.getElementById('choose').selectedIndex") == 0
    quiet(tab, page)


def test_a_page_fits_a_phone_and_keeps_its_contrast_in_the_dark(
    tab: Tab, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, _, _ = measured(folder / "phone", "default", capsys)
    page = session.with_name("default-report.html")
    contrasts = {}
    for scheme in ("light", "dark"):
        tab.open(page, PHONE, scheme)
        tab.photograph(SHOTS / f"phone-{scheme}.png")
        assert tab.evaluate("document.documentElement.scrollWidth") <= PHONE[0]
        contrasts[scheme] = tab.evaluate(CONTRAST)
    assert min(contrasts["light"]) >= 3.0, contrasts  # of what is drawn; WCAG 1.4.11
    assert min(contrasts["dark"]) >= 3.0, contrasts
    quiet(tab, page)


CONTRAST = """(() => {
  const style = getComputedStyle(document.documentElement);
  const light = (name) => {
    const hex = style.getPropertyValue(name).trim().slice(1);
    const [r, g, b] = [0, 2, 4].map(k => parseInt(hex.slice(k, k + 2), 16) / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const paper = light("--paper");
  return ["--ink", "--soft", "--bad", "--good", "--c0", "--c1", "--c2", "--c3", "--c4", "--c5"]
    .map(n => (Math.max(light(n), paper) + 0.05) / (Math.min(light(n), paper) + 0.05));
})()"""


def test_everything_drawn_is_told_to_a_screen_reader(
    tab: Tab, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    session, _, _ = measured(folder / "reader", "echo", capsys)
    tab.open(session.with_name("echo-report.html"))
    unnamed = (
        "[...document.querySelectorAll('%s')].filter(e => !(e.getAttribute('aria-label') || e.innerText).trim()).length"
    )
    for what in ("svg.wide", "canvas", "button", "[role=region]"):
        assert tab.evaluate(unnamed % what) == 0, what
        assert tab.evaluate(f"document.querySelectorAll('{what}').length") > 0, what
    assert tab.evaluate("[...document.querySelectorAll('table')].every(t => t.caption && t.tHead)")
    assert tab.evaluate("document.documentElement.lang") == "en"
    quiet(tab, session.with_name("echo-report.html"))


def test_a_comparison_shows_the_difference(tab: Tab, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, a, _ = measured(folder / "compared", "quiet", capsys)
    second, b, _ = measured(folder / "compared", "default", capsys)
    page = folder / "compared.html"
    assert main(["report", str(first), str(second), "--out", str(page), "--quiet"]) == 0
    assert capsys.readouterr().out.strip() == str(page)
    tab.open(page)
    tab.photograph(SHOTS / "comparison.png")
    shown = float(tab.evaluate("document.querySelector('.difference data').value"))
    assert shown == pytest.approx(b["latency_s"]["median"] - a["latency_s"]["median"], abs=1e-12)
    assert "scenario" in tab.evaluate("document.getElementById('apart').innerText")
    quiet(tab, page)
