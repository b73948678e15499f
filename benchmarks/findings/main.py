"""`python -m benchmarks findings`: measures the rows that are missing, prints the tables, fills in the page."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from benchmarks.findings.markdown import table_text
from benchmarks.findings.measure import measure
from benchmarks.findings.results import Result, append, load
from benchmarks.findings.rows import Row, Table, tables
from benchmarks.soak import virtual_bench

KEPT = Path("build") / "findings.jsonl"


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks findings", description=__doc__)
    parser.add_argument("--rows", choices=("all", "backends", "browser"), default="all")
    parser.add_argument("--only", metavar="TEXT", help="rows whose command holds this text")
    parser.add_argument("--runs", type=int, default=3, help="starts of the system in each row")
    parser.add_argument("--out", type=Path, default=KEPT, help="where results are kept as they come; those stay")
    parser.add_argument("--again", type=float, metavar="SHARE", help="also rows where other programs took more than it")
    parser.add_argument("--page", type=Path, help="a page with '<!-- findings: NAME -->' where tables go")
    parser.add_argument("--show", action="store_true", help="measure nothing")
    asked = parser.parse_args(arguments)
    chosen = tables(asked.rows)
    if not asked.show:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        _measure_all(chosen, asked)
    results = load(asked.out)
    for table in chosen:
        print(table_text(table, results))
    if asked.page is not None:
        text = asked.page.read_text(encoding="utf-8")
        asked.page.write_text(filled_in(text, {table.name: table_text(table, results) for table in chosen}), "utf-8")


def filled_in(page: str, texts: dict[str, str]) -> str:
    """The page with each table between its two comments. Raises SystemExit for a table that has no place in it."""
    for name, text in texts.items():
        place = re.compile(rf"(<!-- findings: {re.escape(name)} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, n = place.subn(lambda found, text=text: f"{found[1]}{text}{found[2]}", page)
        if n != 1:
            raise SystemExit(f"the page has {n} places '<!-- findings: {name} -->' up to '<!-- end -->', not one")
    return page


def to_measure(chosen: tuple[Table, ...], kept: dict[str, Result], asked: argparse.Namespace) -> list[Row]:
    """Each row once: those never measured or that failed, and with --again those of a busy time."""
    rows = {row.key: row for table in chosen for row in table.rows}
    return [row for row in rows.values() if _wanted(row, kept.get(row.key), asked)]


def _wanted(row: Row, result: Result | None, asked: argparse.Namespace) -> bool:
    if asked.only is not None and asked.only not in row.key:
        return False
    if result is None or result.why is not None or len(result.runs) < asked.runs:
        return True
    return asked.again is not None and (result.others is None or result.others > asked.again)


def _measure_all(chosen: tuple[Table, ...], asked: argparse.Namespace) -> None:
    rows = to_measure(chosen, load(asked.out), asked)
    chromium = _chromium()
    for k, row in enumerate(rows, start=1):
        # A bench of its own for each row: a sound server keeps what it has learnt of earlier clients.
        with virtual_bench() as (environment, servers):
            result = measure(row, asked.runs, environment, servers, chromium)
        append(asked.out, result)
        medians = [run.median_s for run in result.runs]
        said = result.why or " ".join("refused" if m is None else f"{1e3 * m:.1f}" for m in medians)
        others = "" if result.others is None else f", other programs {result.others:.0%}"
        print(f"{k} of {len(rows)}: {row.key}: {said}{others}", file=sys.stderr, flush=True)


def _chromium() -> str | None:
    program = next((p for name in ("chromium", "google-chrome") if (p := shutil.which(name))), None)
    if program is None:
        return None
    said = subprocess.run([program, "--version"], capture_output=True, text=True, env=os.environ, check=False).stdout
    return said.strip() or None
