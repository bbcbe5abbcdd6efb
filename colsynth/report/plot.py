"""A plot with two logarithmic axes as a picture: SVG or PNG, drawn by Vega without a browser.

SVG follows the viewer's preference for light or dark. The background is painted, so that the
plot is readable in viewers that ignore the preference.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from math import ceil, floor, log, log10
from typing import Any

from colsynth.report.charts import CONFIG, DIALECT, SCHEMA, SERIES, SIZE_LABEL, Spec, decades

WIDTH, HEIGHT = 760, 440
PAD = 0.04
"""Share of an axis kept free at both of its ends."""
MOST_SIZES = 12
"""Sizes that have room below an axis."""
_STEPS = (1, 2, 5, 10, 20, 40, 80)
"""Powers of two from one written size to the next; those from 10 on keep to whole units."""
_SHAPES = ("diamond", "triangle-up", "square", "cross", "triangle-down")
"""Marks of points that no line joins; what is joined is round."""

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


def plot(
    title: str,
    note: str,
    labels: tuple[str, str],
    series: tuple[Series, ...],
    sizes: bool = False,
) -> Spec:
    """Return a plot as a Vega-Lite specification.

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
    xs, ys = ([point[axis] for item in series for point in item.points] for axis in (0, 1))
    if not xs:
        raise ValueError("a plot needs a point")
    names = [item.label for item in series]
    shapes = ["circle" if x.joined else _SHAPES[i % 5] for i, x in enumerate(series)]
    legend = {
        "orient": "bottom",
        "title": None,
        "columns": 2,
        "columnPadding": 30,
        "labelLimit": 360,
    }
    axis = {"title": labels[0], "values": _powers(xs), "labelExpr": SIZE_LABEL}
    x_axis = axis if sizes else {"title": labels[0]}
    return {
        "$schema": SCHEMA,
        "width": WIDTH,
        "height": HEIGHT,
        "title": {"text": title, "subtitle": note, "anchor": "start"},
        "config": {**CONFIG, "background": "var(--card)", "title": _TITLE},
        "data": {"values": [row for item in series for row in _rows(item, max(xs), min(xs))]},
        "encoding": {
            "x": _logarithmic("x", xs, x_axis),
            "y": _logarithmic("y", ys, {"title": labels[1]}),
            "color": {
                "field": "name",
                "scale": {"domain": names, "range": [SERIES[x.colour % 9] for x in series]},
                "legend": legend,
            },
        },
        "layer": _layers(names, shapes, legend),
    }


def _layers(names: list[str], shapes: list[str], legend: Spec) -> list[Spec]:
    """Return lines, marks, and notes on both sides of marks."""
    scale = {"domain": names, "range": shapes}
    strength = {"condition": {"test": "datum.joined", "value": 1}, "value": 0.5}
    marks = {"shape": {"field": "name", "scale": scale, "legend": legend}, "fillOpacity": strength}
    noted = {"text": {"field": "note"}, "color": {"value": "var(--soft)"}}
    sides = {"left": {"dx": 8}, "right": {"dx": -8}}
    return [
        _layer("datum.joined", {"type": "line", "strokeWidth": 2}, {}),
        _layer("datum.marked", {"type": "point", "size": 60, "filled": True, "opacity": 1}, marks),
        *(
            _layer(
                f"datum.note && datum.left === {'true' if align == 'right' else 'false'}",
                {"type": "text", "align": align, "dy": -8, **shift},
                noted,
            )
            for align, shift in sides.items()
        ),
    ]


def picture(spec: Spec, suffix: str) -> bytes:
    """Return a plot as a file: ``".svg"``, or ``".png"`` in light colours."""
    import vl_convert

    light, dark = _themes()
    if suffix == ".png":
        text = re.sub(r"var\((--\w+)\)", lambda found: light[found[1]], json.dumps(spec))
        return bytes(vl_convert.vegalite_to_png(text, vl_version=DIALECT, scale=2))
    drawn = vl_convert.vegalite_to_svg(spec, vl_version=DIALECT)
    rules = ["".join(f"{name}:{value};" for name, value in x.items()) for x in (light, dark)]
    style = f":root{{{rules[0]}}}@media (prefers-color-scheme:dark){{:root{{{rules[1]}}}}}"
    head, _, rest = drawn.partition(">")
    return f"{head}><style>{style}</style>{rest}\n".encode()


_TITLE = {
    **dict.fromkeys(("color", "subtitleColor"), "var(--ink)"),
    "fontSize": 16,
    "subtitleFontSize": 12,
    "subtitlePadding": 6,
    "offset": 14,
}


def _themes() -> tuple[dict[str, str], dict[str, str]]:
    """Return the colours of pages by name, light and dark."""
    text = files("colsynth").joinpath("report", "static", "page.css").read_text("utf-8")
    light, dark, *_ = re.findall(r":root \{(.*?)\}", text, re.DOTALL)
    first, second = (dict(re.findall(r"(--\w+): (#\w+);", block)) for block in (light, dark))
    return first, second


def _rows(item: Series, most: float, least: float) -> list[dict[str, Any]]:
    """Return the points of a series as rows."""
    notes = (*item.notes, *("" for _ in item.points))
    return [
        {
            "name": item.label,
            "x": x,
            "y": y,
            "note": note,
            "joined": item.joined,
            "marked": item.marked or not item.joined,
            "left": _stands_left(item.left, x, most, least),
        }
        for (x, y), note in zip(item.points, notes, strict=False)
    ]


def _stands_left(wanted: bool, x: float, most: float, least: float) -> bool:
    """Whether a note stands left of its point; at the edges, where it has room."""
    place = log(x / least) / log(most / least) if most > least else 0.5
    return place > 0.8 or (wanted and place > 0.2)


def _layer(test: str, mark: Spec, encoding: Spec) -> Spec:
    return {"transform": [{"filter": test}], "mark": mark, "encoding": encoding}


def _logarithmic(field: str, values: list[float], axis: Spec) -> Spec:
    low, high = log10(min(values)), log10(max(values))
    room = PAD * (high - low) or 0.5
    domain = [10 ** (low - room), 10 ** (high + room)]
    values = axis.get("values") or decades(*domain)
    inside = [value for value in values if domain[0] <= value <= domain[1]]
    scale = {"type": "log", "domain": domain, "nice": False}
    return {
        "field": field,
        "type": "quantitative",
        "scale": scale,
        "axis": {**axis, "values": inside},
    }


def _powers(values: list[float]) -> list[float]:
    """Return the powers of two that are written below an axis of sizes."""
    first, last = floor(log(min(values), 2)), ceil(log(max(values), 2))
    step = next(step for step in _STEPS if last - first < step * MOST_SIZES)
    return [2.0**power for power in range(max(0, first), last + 1) if power % step == 0]
