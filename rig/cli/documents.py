"""The JSON document of a measurement, wherever it comes from: kept from before, analysed now, or written in a file.

What a result depends on beside the session and rig's code must go into the key of `rig/shelf/cache.py`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.cli.results import open_cache
from rig.domain.report import Report
from rig.errors import BadInput
from rig.report.render_json import SCHEMA, render_json
from rig.shelf.cache import ResultCache

MANIFEST = "manifest.json"

_READ = (
    *("mode", "bench", "device", "scenario", "asked", "granted", "claimed_s", "plan", "channels", "window_s", "blank"),
    *("corrections", "environment", "build", "session", "cut_short", "mixture", "stages", "rig_version"),
)


def document_of(source: Path, quiet: bool) -> dict[str, Any]:
    """The document (docs/measurement.schema.json) of a session folder, a recording or a document in a file.

    Raises BadInput for what is none of these."""
    if source.suffix == ".json" and source.name != MANIFEST and not source.is_dir():
        return _from_file(source)
    cache = open_cache()
    key = _key(cache, source)
    kept = None if cache is None or key is None else cache.document(key)
    return analysed(source, quiet, cache, key) if kept is None else kept


def whole_document_of(source: Path, quiet: bool) -> dict[str, Any]:
    """`document_of`, with its figures there as docs/measurement.schema.json has them: a document in a file may be cut.

    Raises BadInput where what a verdict reads is missing or of another kind."""
    document = document_of(source, quiet)
    try:
        figures = [document["latency_s"], *(run["latency_s"] for run in document["runs"])]
        counts = [run[key] for run in document["runs"] for key in ("n_accepted", "n_trials")]
        for name in ("median", "low", "high", "min", "max", "range", "n"):
            counts += [figure[name] for figure in figures if figure is not None]
        if not all(isinstance(value, int | float) for value in counts):
            raise TypeError("a figure is no number")
        for key in _READ:
            document[key]
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{source.name} is not a whole document of a measurement ({type(error).__name__}: {error})",
            "a document as rig analyze --json of this version writes it",
            "make it again from the session or the recording",
        ) from error
    return document


def analysed(source: Path, quiet: bool, cache: ResultCache | None, key: str | None) -> dict[str, Any]:
    """The document from an analysis made now, as the session itself has it, and kept under `key`."""
    from rig.cli.pipeline import Choices, report_on
    from rig.cli.progress import open_display

    with open_display(quiet) as display:
        document: dict[str, Any] = json.loads(render_json(report_on(source, Choices(), display)))
    if cache is not None and key is not None:
        cache.store(key, document)
    return document


def keep(key: str | None, report: Report) -> None:
    """Keeps the report that was just made of a session under the key that it had before."""
    cache = open_cache()
    if cache is not None and key is not None:
        cache.store(key, json.loads(render_json(report)))


def key_of(source: Path) -> str | None:
    """What the result of a session as it is now is kept under; None for anything else."""
    return _key(open_cache(), source)


def _key(cache: ResultCache | None, source: Path) -> str | None:
    folder = source.parent if source.name == MANIFEST else source
    return cache.key(folder) if cache is not None and (folder / MANIFEST).is_file() else None


def _from_file(source: Path) -> dict[str, Any]:
    document = strictjson.read_object(source)
    if document.get("schema") != SCHEMA:
        raise BadInput(
            f"{source.name} is no document of a measurement: its schema is {str(document.get('schema'))[:60]!r}",
            SCHEMA,
            "give the session's folder, or what rig analyze SESSION --json printed",
        )
    return document
