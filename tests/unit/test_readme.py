"""The report in README.md is what `rig measure --device sim` prints. `python tests/unit/test_readme.py` renews it."""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]

REPORT = re.compile(r"(?<=tests/unit/test_readme\.py -->\n```\n).*?(?=\n```)", re.S)
MEDIANS = re.compile(r"(?<=true medians of the three runs are )([\d.]+), ([\d.]+) and\n([\d.]+)(?= ms)")


def real_report(session: Path) -> tuple[str, list[str]]:
    """What `rig measure --device sim` prints, and the true medians of its runs in ms; the session goes to `session`."""
    command = [sys.executable, "-c", "from rig.cli.main import run; run()"]
    options = ["measure", "--device", "sim", "--quiet", "--out", str(session)]
    printed = subprocess.run([*command, *options], capture_output=True, text=True, check=True, cwd=ROOT).stdout.rstrip()
    runs = json.loads((session / "truth.json").read_text(encoding="utf-8"))["runs"]
    medians = [statistics.median(stimulus["defined_latency_s"] for stimulus in run["stimuli"]) for run in runs]
    return printed, [f"{median_s * 1e3:.3f}" for median_s in medians]


def test_readme_shows_the_report_that_is_printed(tmp_path: Path) -> None:
    # Word for word, but for the last digits of numbers, which may differ between builds of numpy, and the identity.
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    printed, medians = real_report(tmp_path / "session")
    found, told = REPORT.search(readme), MEDIANS.search(readme)
    assert found is not None
    assert told is not None
    assert list(told.groups()) == medians
    shown, printed = (re.sub(r"(?m)^  session  \w+$", "  session", report) for report in (found[0], printed))
    hint = f"README.md is old: python tests/unit/test_readme.py puts this into it:\n{printed}"
    number = r"[+-]?\d+(?:\.\d+)?"
    assert words_of(shown, number) == words_of(printed, number), hint
    pairs = zip(re.findall(number, shown), re.findall(number, printed), strict=True)
    far = [(a, b) for a, b in pairs if abs(float(a) - float(b)) > 1.01 * last_digit(b)]
    assert not far, f"{far}; {hint}"


def last_digit(number: str) -> float:
    """What one step of a number's last decimal is worth; whole numbers are counts and must be the same."""
    decimals = len(number.partition(".")[2])
    return 10.0**-decimals if decimals else 0.0


def write_readme() -> None:
    """Puts the report as it is now into README.md."""
    with tempfile.TemporaryDirectory() as folder:
        printed, medians = real_report(Path(folder) / "session")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    readme = REPORT.sub(lambda _: printed, readme)
    readme = MEDIANS.sub("{}, {} and\n{}".format(*medians), readme)
    (ROOT / "README.md").write_text(readme, encoding="utf-8")


def words_of(report: str, number: str) -> list[str]:
    """A report's words without its numbers."""
    return re.sub(number, "#", report).split()


if __name__ == "__main__":
    write_readme()
