"""Where a page goes, and that nothing of the user's is written over."""

from __future__ import annotations

from pathlib import Path

from rig.errors import UsageError
from rig.report.html.page import GENERATOR

SUFFIX = "-report.html"


def page_path(source: Path, wanted: Path | None) -> Path:
    """The file for the page on `source`: as wanted, or beside it (a session is never written into).

    Raises UsageError where a file stands there that no earlier report made, or where there is no such folder.
    """
    path = source.resolve() if wanted is None else wanted
    if wanted is None:
        folder = path.parent if path.name == "manifest.json" else path
        path = folder.with_name((folder.stem if folder.is_file() else folder.name) + SUFFIX)
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "the name of a file to write", f"add a name: {path / 'report.html'}")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} does not exist", "a folder to write into", "make it first")
    if path.exists() and GENERATOR.encode() not in path.read_bytes()[:600]:
        raise UsageError(
            f"{path} exists and is no report of rig's",
            "a new file, or an earlier report to replace",
            "name another file",
        )
    return path


def write_page(path: Path, text: str) -> None:
    """Writes the page. Raises UsageError where the file cannot be written."""
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be written: {error.strerror or error}", "a file that may be written", "name another file"
        ) from error
