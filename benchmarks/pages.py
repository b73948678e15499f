"""`python -m benchmarks.pages [--quick]`: what `rig report` costs beside `rig analyze`, and when its page is painted.

A simulated 3 x 20 session, and one hour of a recording with a stimulus every 2 s (`--quick`: 10 minutes of it).
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from benchmarks import longfile
from benchmarks.__main__ import RIG, SEED
from benchmarks.child import Cost, run
from tests.browser.chromium import browser, chromium


def main() -> None:
    """Measures both and prints as it goes."""
    duration_s = 600.0 if "--quick" in sys.argv[1:] else 3600.0
    with tempfile.TemporaryDirectory(prefix="rig-bench-") as name:
        folder = Path(name)
        session = folder / "session"
        need(run([*RIG, "measure", "--device", "sim", "--quiet", "--out", str(session)]))
        compare(session, "3 x 20")
        recording = folder / "long.wav"
        longfile.write(recording, duration_s, SEED)
        compare(recording, f"{duration_s:.0f} s")


def compare(source: Path, label: str) -> None:
    """One source through both commands, and its page through a browser."""
    page = source.with_name("page.html")
    plain = need(run([*RIG, "analyze", str(source), "--json", "--quiet"]))
    rich = need(run([*RIG, "report", str(source), "--out", str(page), "--quiet"]))
    print(
        f"{label:7}  rig report {rich.wall_s:5.2f} s, CPU {rich.cpu_s:5.2f} s, peak {rich.peak_mb:4.0f} MB"
        f"   rig analyze {plain.wall_s:5.2f} s, CPU {plain.cpu_s:5.2f} s"
        f"   CPU ratio {rich.cpu_s / plain.cpu_s:.2f}"
    )
    painted = first_paint_ms(page)
    said = "no Chromium" if painted is None else f"first paint {painted:.0f} ms"
    print(f"{label:7}  page {page.stat().st_size / 1e6:.2f} MB, {said}")


def first_paint_ms(page: Path) -> float | None:
    """Median of five loads, from the start of the navigation; None without a browser."""
    program = chromium()
    if program is None:
        return None
    painted = []
    with browser(program) as tab:
        for _ in range(5):
            tab.open(page)
            painted.append(tab.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
        tab.close()
    return float(sorted(painted)[2])


def need(cost: Cost) -> Cost:
    if cost.code != 0:
        raise SystemExit(f"exit {cost.code}: {cost.err.strip()[-400:]}")
    return cost


if __name__ == "__main__":
    main()
