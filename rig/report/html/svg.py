"""Axes and marks as inline SVG. Colours and fonts are classes of the page's style sheet, so that dark mode and print
change them too."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rig.report.html.markup import Child, Markup, el, join

WIDE, NARROW = 760, 380
"""Every figure is drawn twice, for a desk and for a phone; the style sheet shows one."""


def figure(title: str, words: str, draw: Callable[[int], tuple[int, Child]], legend: Child = None) -> Markup:
    """A figure with its title and a description in words. `draw` is given a width and returns (height, marks)."""
    pictures = []
    for width, kind in ((WIDE, "wide"), (NARROW, "narrow")):
        height, marks = draw(width)
        label = f"{title}. {words}"
        pictures.append(el("svg", marks, viewBox=f"0 0 {width} {height}", class_=kind, role="img", aria_label=label))
    return el("figure", el("figcaption", el("strong", title), " ", el("span", words)), legend, *pictures)


def legend(*entries: tuple[str, str]) -> Markup:
    """(class of the mark, words) of each."""
    return el("p", [el("span", el("i", class_=f"key {kind}"), words) for kind, words in entries], class_="legend")


def nice_ticks(low: float, high: float, about: int) -> list[float]:
    """Round values inside [low, high], about so many, in steps of 1, 2 or 5."""
    span = high - low
    if not span > 0.0 or not math.isfinite(span):
        return [low]
    raw = span / max(1, about)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * m for m in (1.0, 2.0, 5.0, 10.0) if power * m >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [k * step for k in range(first, math.floor(high / step + 1e-9) + 1)]


def decimals_of(ticks: Sequence[float]) -> int:
    """Decimals that tell neighbouring ticks apart."""
    if len(ticks) < 2:
        return 1
    return max(0, -math.floor(math.log10(abs(ticks[1] - ticks[0])) + 1e-9))


def padded(low: float, high: float, share: float = 0.08, least: float = 1e-9) -> tuple[float, float]:
    """The range with some air at both ends, never empty."""
    pad = max(share * (high - low), 0.5 * max(0.0, least - (high - low)))
    return low - pad, high + pad


@dataclass(frozen=True)
class Axes:
    """A plot area inside a picture: values to pixels, either axis linear or (x) logarithmic."""

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    left: int = 64
    right: int = 12
    top: int = 10
    bottom: int = 38
    log_x: bool = False

    @property
    def right_px(self) -> int:
        return self.width - self.right

    @property
    def bottom_px(self) -> int:
        return self.height - self.bottom

    def px(self, x: float) -> float:
        low, high = self.x
        if self.log_x:
            x, low, high = math.log(x), math.log(low), math.log(high)
        return self.left + (x - low) / (high - low) * (self.right_px - self.left)

    def py(self, y: float) -> float:
        low, high = self.y
        return self.bottom_px - (y - low) / (high - low) * (self.bottom_px - self.top)

    def y_axis(self, label: str) -> Markup:
        ticks = nice_ticks(*self.y, max(2, (self.bottom_px - self.top) // 45))
        decimals = decimals_of(ticks)
        lines = [
            (
                line(self.left, self.py(t), self.right_px, self.py(t), "grid"),
                text(self.left - 6, self.py(t) + 4, f"{t:.{decimals}f}", "end"),
            )
            for t in ticks
        ]
        middle = 0.5 * (self.top + self.bottom_px)
        name = el(
            "text", label, x=13, y=f"{middle:.0f}", transform=f"rotate(-90 13 {middle:.0f})", text_anchor="middle"
        )
        return join(lines, name)

    def x_axis(self, label: str, ticks: Sequence[float] | None = None, grid: bool = True) -> Markup:
        if ticks is None:
            ticks = nice_ticks(*self.x, max(2, (self.right_px - self.left) // 80))
        decimals = decimals_of(ticks) if not self.log_x else 0
        marks = [
            (
                line(self.px(t), self.top, self.px(t), self.bottom_px, "grid") if grid else None,
                text(self.px(t), self.bottom_px + 16, f"{t:.{decimals}f}" if not self.log_x else _hz(t), "middle"),
            )
            for t in ticks
        ]
        name = text(0.5 * (self.left + self.right_px), self.height - 5, label, "middle")
        return join(marks, name)

    def border(self) -> Markup:
        return line(self.left, self.bottom_px, self.right_px, self.bottom_px, "axis")


def _hz(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return el("line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", class_=kind)


def text(x: float, y: float, words: str, anchor: str = "start", kind: str | None = None) -> Markup:
    return el("text", words, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor if anchor != "start" else None, class_=kind)


def box(x1: float, y1: float, x2: float, y2: float, kind: str, title: str | None = None) -> Markup:
    size = {"width": f"{max(0.5, abs(x2 - x1)):.1f}", "height": f"{max(0.5, abs(y2 - y1)):.1f}"}
    place = {"x": f"{min(x1, x2):.1f}", "y": f"{min(y1, y2):.1f}"}
    if title is None:
        return el("rect", **place, **size, class_=kind)
    return el("g", el("title", title), el("rect", **place, **size, class_=kind))


def polyline(points: Iterable[tuple[float, float]], kind: str) -> Markup:
    """A line through points in pixels."""
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    return el("path", d=f"M{steps}", class_=kind) if steps else Markup("")


SHAPES = (
    "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0-7.2 0",  # disc
    "M-3.3-3.3h6.6v6.6h-6.6z",  # square
    "M0-4.4L4.2 3H-4.2z",  # triangle
    "M0-4.6L4.6 0L0 4.6L-4.6 0z",  # diamond
    "M0 4.4L4.2-3H-4.2z",  # triangle, down
    "M-4.4-1.4h3v-3h2.8v3h3v2.8h-3v3h-2.8v-3h-3z",  # plus
)
CROSS = "M-3.5-3.5L3.5 3.5M3.5-3.5L-3.5 3.5"


def shapes() -> Markup:
    """The shapes of all marks, once a page."""
    defined = [el("path", id=f"m{i}", d=d) for i, d in enumerate(SHAPES)]
    return el("svg", el("defs", defined, el("path", id="mx", d=CROSS)), width="0", height="0", aria_hidden="true")


def run_kind(position: int) -> int:
    """Which colour and shape the run at `position` gets: both differ, so that neither has to be told apart alone."""
    return position % len(SHAPES)


def mark(kind: int | None, x: float, y: float, title: str | None = None, trial: str | None = None) -> Markup:
    """A run's mark, or for None the cross of a refused trial. `trial` names what a click opens."""
    name, colour = ("mx", "refused") if kind is None else (f"m{kind}", f"c{kind}")
    place = {"href": f"#{name}", "x": f"{x:.1f}", "y": f"{y:.1f}", "class_": colour, "data_trial": trial}
    if title is None:
        return el("use", **place)
    return el("g", el("title", title), el("use", **place))
