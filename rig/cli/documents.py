"""The JSON document of a measurement, wherever it comes from: analysed now, or written by `rig analyze --json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rig import strictjson
from rig.cli.pipeline import MANIFEST, Choices, report_on
from rig.cli.progress import Display
from rig.errors import BadInput
from rig.report.render_json import SCHEMA, render_json


def document_of(source: Path, display: Display) -> dict[str, Any]:
    """The document (docs/measurement.schema.json) of a session folder, a recording or a document in a file.

    Raises BadInput for what is none of these."""
    if source.suffix == ".json" and source.name != MANIFEST and not source.is_dir():
        document = strictjson.read_object(source)
        if document.get("schema") != SCHEMA:
            raise BadInput(
                f"{source.name} is no document of a measurement: its schema is {str(document.get('schema'))[:60]!r}",
                SCHEMA,
                "give the session's folder, or what rig analyze SESSION --json printed",
            )
        return document
    parsed: dict[str, Any] = json.loads(render_json(report_on(source, Choices(), display)))
    return parsed
