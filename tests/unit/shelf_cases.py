"""Folders of sessions made by hand: manifests, and the results that their analyses would have kept."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from report_cases import FACTS, run_of

from rig.cli.results import open_cache
from rig.domain.records import Reason
from rig.report.render_json import render_json
from rig.report.summary import summarise


def manifest(**more: Any) -> dict[str, Any]:
    """A manifest with what a list reads."""
    return {
        "schema": "rig.session/1",
        "id": "0123456789ab",
        "status": "complete",
        "bench": "hardware",
        "mode": "call",
        "device": "USB Audio",
        "build": None,
        "started": None,
        "environment": {"os": "Debian GNU/Linux 12", "network": None},
        "runs": [],
        "files": {},
        **more,
    }


def result(median_s: float | None, spread_s: float = 1e-4, **more: Any) -> dict[str, Any]:
    """The document of a measurement of one run with this median; None: of one that was refused."""
    latencies = [Reason.NO_ARRIVAL] * 6 if median_s is None else [median_s + spread_s * k for k in (-2, -1, 0, 1, 2)]
    document: dict[str, Any] = json.loads(render_json(summarise([run_of(latencies)], FACTS)))
    return {**document, "device": "USB Audio", "bench": "hardware", **more}


def put(folder: Path, name: str, document: dict[str, Any] | None, **more: Any) -> Path:
    """A session folder of this name, and its result where there is one."""
    session = folder / name
    session.mkdir(parents=True)
    identity = hashlib.sha256(name.encode()).hexdigest()[:12]
    text = json.dumps(manifest(**{"id": identity, **more}), ensure_ascii=False)
    (session / "manifest.json").write_text(text, encoding="utf-8")
    if document is not None:
        cache = open_cache()
        assert cache is not None
        key = cache.key(session)
        assert key is not None
        cache.store(key, document)
    return session
