"""Where results of analyses are kept between commands, and what makes them old."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import rig
from rig.shelf.cache import ResultCache

VARIABLE = "RIG_CACHE"
"""Names another folder; `off` keeps nothing."""


def open_cache() -> ResultCache | None:
    """The cache of this user; None where it is switched off."""
    chosen = os.environ.get(VARIABLE, "")
    if chosen == "off":
        return None
    return ResultCache(Path(chosen) if chosen else _usual_folder() / "rig" / "results", code_state())


def code_state() -> str:
    """Stands for the code that analyses: rig's version, and name, size and time of its files, since a checkout changes
    without a new version."""
    root = Path(rig.__file__).parent
    state = hashlib.sha256(rig.__version__.encode())
    for path in sorted(root.rglob("*.py")):
        facts = path.stat()
        state.update(f"\0{path.relative_to(root)}\0{facts.st_size}\0{facts.st_mtime_ns}".encode())
    return state.hexdigest()


def _usual_folder() -> Path:
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
