"""The rows of a budget as text, and as JUnit XML for CI."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from rig.report.digits import ms, table
from rig.verdict.budget import Kept, Row


def as_text(name: str, rows: Sequence[Row]) -> str:
    """One line a limit, ms, and the outcome."""
    cells = [["measured", "limit", "up to", "", ""]]
    for row in rows:
        verdict = "FAIL " + row.kept if row.failed else "ok   " + row.kept
        cells.append([ms(row.value_s, 3), ms(row.limit.limit_s, 3), ms(row.high_s, 3), row.limit.name, verdict])
    failed = sum(row.failed for row in rows)
    ending = "all limits hold" if not failed else f"{failed} of {len(rows)} limits do not hold"
    return "\n".join([f"{name}, ms (up to: upper end of the 95 % interval)", *table(cells), "", ending]) + "\n"


def as_junit(name: str, rows: Sequence[Row]) -> str:
    """A test suite with one case a limit (the format that CI servers read, after Ant's JUnit task)."""
    failed = sum(row.failed for row in rows)
    suite = ElementTree.Element("testsuite", name="rig validate", tests=str(len(rows)), failures=str(failed))
    for row in rows:
        case = ElementTree.SubElement(suite, "testcase", classname=_clean(name), name=_clean(row.limit.name))
        words = f"{ms(row.value_s, 3)} ms measured, {ms(row.limit.limit_s, 3)} ms allowed"
        if row.failed:
            text = "not measured" if row.kept is Kept.NOT_MEASURED else words
            ElementTree.SubElement(case, "failure", message=text, type=row.kept.value)
        else:
            ElementTree.SubElement(case, "system-out").text = words
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(suite, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    """Without what XML cannot carry."""
    return "".join(c if c.isprintable() else "?" for c in text)
