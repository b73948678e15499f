"""HTML and SVG as nested calls. Every text is escaped: names of devices, files and scenarios come from elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Any

from rig.report.digits import ABSENT, ms, number

VOID = {"meta", "input", "line", "rect", "path", "use"}


class Markup(str):
    """Text that is markup already; everything else is escaped on its way in."""

    __slots__ = ()


Child = Any
"""A str, a Markup, a number, None (left out), or an iterable of these."""


def el(element: str, /, *children: Child, **attributes: Any) -> Markup:
    """An element. `class_` and `for_` lose their underscore, others turn it into a dash; None and False leave out."""
    parts = [f"<{element}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{escape(str(value), quote=True)}"')
    if element in VOID:
        return Markup("".join([*parts, "/>"]))
    parts.append(">")
    _add(parts, children)
    parts.append(f"</{element}>")
    return Markup("".join(parts))


def join(*children: Child) -> Markup:
    """Children in a row, without an element around them."""
    parts: list[str] = []
    _add(parts, children)
    return Markup("".join(parts))


def _add(parts: list[str], children: Iterable[Child]) -> None:
    for child in children:
        if child is None:
            continue
        if isinstance(child, Markup):
            parts.append(child)
        elif isinstance(child, str):
            parts.append(escape(child, quote=False))
        elif isinstance(child, int | float):
            parts.append(str(child))
        else:
            _add(parts, child)


def time(seconds: float | None, decimals: int = 2, signed: bool = False, unit: bool = False) -> Markup:
    """A time in ms, with the exact seconds of the JSON document as its machine-readable value."""
    if seconds is None:
        return Markup(ABSENT)
    return el("data", ms(seconds, decimals, signed) + (" ms" if unit else ""), value=repr(seconds))


def figure_of(value: float | None, decimals: int = 1, signed: bool = False) -> Markup:
    """A number of another unit, with its exact value."""
    if value is None:
        return Markup(ABSENT)
    return el("data", number(value, decimals, signed), value=repr(value))


def table(caption: str, heads: list[str], rows: list[list[Child]], left: tuple[int, ...] = ()) -> Markup:
    """A table that scrolls by itself on a narrow screen. The first column heads its row; `left`: columns of words."""
    words = {0, *left}

    def cell(i: int, child: Child) -> Markup:
        aligned = "w" if i in words else None
        return el("th", child, scope="row", class_=aligned) if i == 0 else el("td", child, class_=aligned)

    return el(
        "div",
        el(
            "table",
            el("caption", caption),
            el(
                "thead",
                el("tr", [el("th", h, scope="col", class_="w" if i in words else None) for i, h in enumerate(heads)]),
            ),
            el("tbody", [el("tr", [cell(i, child) for i, child in enumerate(row)]) for row in rows]),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def section(anchor: str, title: str, *children: Child) -> Markup:
    """A section with its heading; nothing at all where there is nothing in it."""
    inner = join(*children)
    if not inner:
        return inner
    return el("section", el("h2", title, id=f"{anchor}-title"), inner, id=anchor, aria_labelledby=f"{anchor}-title")


def more(summary: str, *children: Child) -> Markup:
    """Folded away until asked for; open on paper."""
    return el("details", el("summary", summary), *children)
