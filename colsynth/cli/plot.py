"""A plot with two logarithmic axes, as SVG text made without a library.

Colours follow the viewer's preference for light or dark. The background is painted, so that the
plot is readable in viewers that ignore the preference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import ceil, floor, log, log10
from xml.sax.saxutils import escape

from colsynth.units import format_size

WIDTH, HEIGHT = 860, 560
LEFT, RIGHT, TOP, BOTTOM = 76, 28, 66, 56
LEGEND_ROW = 24
"""The legend stands below these; two entries share a row."""
NOTE_ROOM = 150
PAD = 0.04
"""Share of an axis kept free at both of its ends."""

MOST_SIZES = 12
"""Sizes that have room below an axis."""
_SHORT = 0.6
"""Decades of an axis that has room for a number at every line."""
_STEPS = (1, 2, 5, 10, 20, 40, 80)
"""Powers of two from one written size to the next; those from 10 on keep to whole units."""

# Colours that stay apart for all kinds of sight (after Okabe and Ito), lighter on dark.
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0578d", "#8a6d00", "#57606a", "#5b4bb5", "#7a3b10")
DARK = ("#56b4e9", "#ff9d4d", "#2bc79a", "#e08cbd", "#e6c84a", "#b1bac4", "#a99bf5", "#c98a5b")

STYLE = """
text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #24292f }
.title { font-size: 16px; font-weight: 600 } .small { font-size: 11px; fill: #57606a }
.paper { fill: #ffffff } .box { fill: none; stroke: #8c959f }
.major { stroke: #d8dee4 } .minor { stroke: #eff2f5 }
.line { fill: none; stroke-width: 2 } .mark { stroke-width: 1.6 }
"""
STYLE_DARK = """
text { fill: #e6edf3 } .small { fill: #9ea7b0 } .paper { fill: #0d1117 } .box { stroke: #6e7681 }
.major { stroke: #2c333b } .minor { stroke: #1a2027 }
"""

# Outlines around a point: what is joined by a line is round, other series differ in shape.
DISC = "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z"
SHAPES = ("m0-5.5l5.5 5.5l-5.5 5.5l-5.5-5.5z", "m0-5.5l5.2 9h-10.4z", "m-4.5-4.5h9v9h-9z")

Point = tuple[float, float]


@dataclass(frozen=True)
class Series:
    """Points with one colour and one entry of the legend.

    Parameters
    ----------
    label : str
    points : tuple of (x, y)
        Above zero.
    joined : bool
        By a line from each to the next; otherwise the points have hollow marks.
    colour : int
        Series of one colour belong together.
    notes : tuple of str
        Beside the points, in their order; may end early.
    left : bool
        Whether notes stand left of their points.
    marked : bool
        Whether points that are joined have marks.
    """

    label: str
    points: tuple[Point, ...]
    joined: bool = True
    colour: int = 0
    notes: tuple[str, ...] = ()
    left: bool = False
    marked: bool = True


def exponent(points: Iterable[Point]) -> float:
    """Return the p of the best fit of y = c * x**p, by least squares of the logarithms."""
    logs = [(log(x), log(y)) for x, y in points]
    x_mean, y_mean = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    spread = sum((x - x_mean) ** 2 for x, _ in logs)
    return float(sum((x - x_mean) * (y - y_mean) for x, y in logs) / spread)


@dataclass(frozen=True)
class Axis:
    """A logarithmic scale from the logarithms `low` to `high` onto pixels.

    Parameters
    ----------
    low, high : float
        Powers of ten.
    first, last : float
        Pixels.
    bytes_ : bool
        Whether values are sizes, which are read in KiB, MiB and GiB.
    """

    low: float
    high: float
    first: float
    last: float
    bytes_: bool = False

    def at(self, value: float) -> float:
        """Return the pixel of a value."""
        share = (log10(value) - self.low) / (self.high - self.low)
        return float(round(self.first + share * (self.last - self.first), 2))

    def ticks(self) -> Iterator[tuple[float, bool]]:
        """Yield (value, whether it is written out) of the grid: powers of ten, of two for sizes.

        On a short axis, every line is written out: there may be no power of ten.
        """
        if self.bytes_:
            yield from self._sizes()
            return
        short = self.high - self.low < _SHORT
        for power in range(floor(self.low), ceil(self.high) + 1):
            for digit in range(1, 10):
                if self.low <= log10(digit * 10.0**power) <= self.high:
                    yield digit * 10.0**power, digit == 1 or short

    def _sizes(self) -> Iterator[tuple[float, bool]]:
        first, last = max(0, ceil(self.low / log10(2))), floor(self.high / log10(2))
        step = next(step for step in _STEPS if last - first < step * MOST_SIZES)
        for power in range(first, last + 1):
            yield 2.0**power, power % step == 0

    def spell(self, value: float) -> str:
        """Return a value of the grid for people."""
        return format_size(int(value)) if self.bytes_ else f"{value:,g}"


def draw(
    title: str,
    note: str,
    labels: tuple[str, str],
    series: tuple[Series, ...],
    sizes: bool = False,
) -> str:
    """Return the SVG text of a plot.

    Parameters
    ----------
    title, note : str
        Above the plot, the note in small print.
    labels : (str, str)
        Of the axes, x and y.
    series : tuple of Series
    sizes : bool
        Whether x is a number of bytes.

    Raises
    ------
    ValueError
        There is no point.
    """
    middle = ((LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2)
    points = [point for item in series for point in item.points]
    if not points:
        raise ValueError("a plot needs a point")
    x = replace(_axis([a for a, _ in points], LEFT, WIDTH - RIGHT), bytes_=sizes)
    y = _axis([b for _, b in points], HEIGHT - BOTTOM, TOP)
    height = HEIGHT + LEGEND_ROW * ((len(series) + 1) // 2) + 8
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">'
    )
    parts = [
        head,
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}{_colours(LIGHT)}",
        f"@media (prefers-color-scheme: dark) {{{STYLE_DARK}{_colours(DARK)}}}</style>",
        f'<rect class="paper" width="{WIDTH}" height="{height}"/>',
        _text(LEFT, 30, title, "title"),
        _text(LEFT, 51, note, "small"),
        *_grid(x, y),
        _text(middle[0], HEIGHT - 14, labels[0], anchor="middle"),
        f'<g transform="translate(20 {middle[1]}) rotate(-90)">',
        _text(0, 0, labels[1], anchor="middle"),
        "</g>",
    ]
    for number, item in enumerate(series):
        parts += _series(item, number, x, y)
    parts += _legend(series)
    return "\n".join([*parts, "</svg>", ""])


def _axis(values: list[float], first: float, last: float) -> Axis:
    low, high = log10(min(values)), log10(max(values))
    room = PAD * (high - low) or 0.5
    return Axis(low - room, high + room, first, last)


def _colours(colours: tuple[str, ...]) -> str:
    rules = [f".s{i} {{ stroke: {c} }} .d{i} {{ fill: {c} }}" for i, c in enumerate(colours)]
    return "\n".join(rules) + "\n.hollow { fill-opacity: 0.18 }\n"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    name = f' class="{kind}"' if kind else ""
    return f'<text x="{x}" y="{y}"{name} text-anchor="{anchor}">{escape(text)}</text>'


def _grid(x: Axis, y: Axis) -> Iterator[str]:
    for value, major in x.ticks():
        kind, at = "major" if major else "minor", x.at(value)
        yield f'<path class="{kind}" d="M{at} {TOP}V{HEIGHT - BOTTOM}"/>'
        if major:
            yield _text(at, HEIGHT - BOTTOM + 20, x.spell(value), anchor="middle")
    for value, major in y.ticks():
        kind, at = "major" if major else "minor", y.at(value)
        yield f'<path class="{kind}" d="M{LEFT} {at}H{WIDTH - RIGHT}"/>'
        if major:
            yield _text(LEFT - 9, at + 4, y.spell(value), anchor="end")
    box = f'x="{LEFT}" y="{TOP}" width="{WIDTH - LEFT - RIGHT}" height="{HEIGHT - TOP - BOTTOM}"'
    yield f'<rect class="box" {box}/>'


def _series(item: Series, number: int, x: Axis, y: Axis) -> Iterator[str]:
    places = [(x.at(a), y.at(b)) for a, b in item.points]
    if item.joined and len(places) > 1:
        path = "L".join(f"{a} {b}" for a, b in places)
        yield f'<path class="line s{item.colour % len(LIGHT)}" d="M{path}"/>'
    for a, b in places if item.marked or not item.joined else ():
        yield _mark(item, number, a, b)
    for (a, b), note in zip(places, item.notes, strict=False):
        left = a > WIDTH - RIGHT - NOTE_ROOM or (item.left and a > LEFT + NOTE_ROOM)
        yield _text(a + (-10 if left else 10), b + 4, note, "small", "end" if left else "start")


def _mark(item: Series, number: int, a: float, b: float) -> str:
    colour = item.colour % len(LIGHT)
    shape = DISC if item.joined else SHAPES[number % len(SHAPES)]
    hollow = "" if item.joined else " hollow"
    return f'<path class="mark s{colour} d{colour}{hollow}" d="M{a} {b}{shape}"/>'


def _legend(series: tuple[Series, ...]) -> Iterator[str]:
    for number, item in enumerate(series):
        x, y = LEFT + number % 2 * (WIDTH - LEFT) // 2, HEIGHT + 6 + LEGEND_ROW * (number // 2)
        if item.joined:
            yield f'<path class="line s{item.colour % len(LIGHT)}" d="M{x} {y}h26"/>'
        if item.marked or not item.joined:
            yield _mark(item, number, x + 13, y)
        yield _text(x + 34, y + 4, item.label)
