"""How long `rig sessions` takes over a large folder with kept results, beside two ways to only read the manifests."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

from benchmarks.child import alternating, run
from rig.cli.results import code_state
from rig.shelf.cache import ResultCache

RIG = [sys.executable, "-c", "from rig.cli.main import run; run()"]

_PLAIN = (
    "import json, pathlib, sys; [json.loads(p.read_bytes()) for p in pathlib.Path(sys.argv[1]).glob('*/manifest.json')]"
)
_DUCKDB = (
    "import duckdb, sys; duckdb.execute('SELECT id, device, build, started FROM read_json(?, union_by_name = true)',"
    " [sys.argv[1] + '/*/manifest.json']).fetchall()"
)


def listing(folder: Path, sessions: int) -> None:
    """Prints the wall times. One session of 3 x 20 is measured, the others are its copies with other names."""
    print(f"\nrig sessions, {sessions} sessions of 3 x 20 with kept results, median wall time of 5 alternating runs")
    shelf, results = folder / "shelf", folder / "results"
    os.environ["RIG_CACHE"] = str(results)
    fill(shelf, ResultCache(results, code_state()), sessions)
    commands = {
        "json.loads of the manifests": [sys.executable, "-c", _PLAIN, str(shelf)],
        "DuckDB over the manifests": [sys.executable, "-c", _DUCKDB, str(shelf)],
        "rig sessions": [*RIG, "sessions", str(shelf), "--quiet"],
        "rig sessions trend": [*RIG, "sessions", "trend", str(shelf), "--quiet"],
    }
    for name, wall_s in alternating(commands, 5).items():
        print(f"  {name:28}  {1e3 * wall_s:6.0f} ms")


def fill(shelf: Path, cache: ResultCache, sessions: int) -> None:
    """A folder of sessions without their recordings, and a kept result for each."""
    first = shelf / "first"
    made = run([*RIG, "measure", "--device", "sim", "--json", "--quiet", "--out", str(first)])
    document = json.loads(made.out)
    manifest = json.loads((first / "manifest.json").read_text(encoding="utf-8"))
    for number in range(sessions):
        session = shelf / f"{number:05d}"
        session.mkdir()
        own = {**manifest, "id": f"{number:012x}", "build": f"1.{number // 50}"}
        own["started"] = f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}+00:00"
        (session / "manifest.json").write_text(json.dumps(own, indent=1), encoding="utf-8")
        key = cache.key(session)
        if key is not None:
            cache.store(key, document)
    shutil.rmtree(first)
