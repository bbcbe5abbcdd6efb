"""Plots as Vega-Lite specifications; `vega` compiles them to what the page carries.

Colours of the page are CSS variables, so that a plot follows the preference for light or dark,
and paper, without being drawn again.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

Spec = dict[str, Any]

SCHEMA, DIALECT = "https://vega.github.io/schema/vega-lite/v6.json", "6.4"
SERIES = tuple(f"var(--s{number})" for number in range(9))
"""Colours that stay apart for all kinds of sight (Okabe and Ito); the first is the bound's."""

SIZE_LABEL = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB'"
    " : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB'"
    " : datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
_LEAST_TICKS = 3
_NARROW: Spec = {
    "tickCount": {"signal": "width < 420 ? 4 : 10"},
    "labelOverlap": True,
    "labelSeparation": 6,
}
"""Labels of an axis that do not touch on a phone."""
CONFIG: Spec = {
    "background": None,
    "font": "system-ui, Segoe UI, Helvetica, Arial, sans-serif",
    "view": {"stroke": "var(--rule)"},
    "axis": {
        **dict.fromkeys(("domainColor", "tickColor"), "var(--wire)"),
        **dict.fromkeys(("labelColor", "titleColor"), "var(--ink)"),
        "gridColor": "var(--faint)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
        "titlePadding": 8,
    },
    "legend": {
        **dict.fromkeys(("labelColor", "titleColor"), "var(--ink)"),
        "labelFontSize": 12,
        "labelLimit": 260,
        "titleFontSize": 12,
        "titleFontWeight": "normal",
    },
}


def bandwidth(rows: Sequence[Spec], sizes: Sequence[int]) -> Spec:
    """Return algorithm bandwidth over message size, a line for each name.

    Parameters
    ----------
    rows : sequence of dict
        ``size`` (bytes), ``GB/s``, ``name``; the first name is drawn dashed, as a limit.
    sizes : sequence of int
        Of the axis.
    """
    names = list(dict.fromkeys(row["name"] for row in rows))
    rates = [row["GB/s"] for row in rows]
    scale = {"domain": names, "range": [SERIES[i % len(SERIES)] for i in range(len(names))]}
    shapes = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]
    columns = {"signal": "width < 420 ? 1 : width < 800 ? 2 : 3"}
    legend = {"orient": "bottom", "title": None, "columns": columns, "symbolStrokeWidth": 2}
    colour = {"field": "name", "type": "nominal", "scale": scale, "legend": legend}
    x = {
        "field": "size",
        "type": "quantitative",
        "scale": {"type": "log", "base": 2, "nice": False},
        "axis": {
            "values": _few(sizes),
            "labelExpr": SIZE_LABEL,
            "labelOverlap": True,
            "title": "message size",
        },
    }
    y = {
        "field": "GB/s",
        "type": "quantitative",
        "scale": {"type": "log"},
        "axis": {"title": "algbw, GB/s", "values": decades(min(rates) / 2, max(rates) * 2)},
    }
    dash = {"condition": {"test": {"field": "name", "equal": names[0]}, "value": [6, 4]}}
    told = [{"field": key} for key in ("name", "message", "GB/s", "time")]
    marks = {
        "field": "name",
        "scale": {"domain": names, "range": [shapes[i % len(shapes)] for i in range(len(names))]},
        "legend": legend,
    }
    line = {
        "mark": {"type": "line", "strokeWidth": 2.2},
        "encoding": {"strokeDash": {**dash, "value": [1, 0]}},
    }
    points = {
        "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
        "encoding": {"shape": marks, "tooltip": told},
    }
    shared = {"x": x, "y": y, "color": colour}
    return _whole(
        {"data": {"values": list(rows)}, "layer": [line, points], "encoding": shared}, 360
    )


def bars(rows: Sequence[Spec], value: str, title: str) -> Spec:
    """Return level bars in the order of the rows: ``name``, ``kind`` and a value."""
    rows = [{"kind": "", **row} for row in rows]
    kinds = list(dict.fromkeys(row["kind"] for row in rows))
    scale = {"domain": kinds, "range": [SERIES[1 + i % 8] for i in range(len(kinds))]}
    legend = {"orient": "bottom", "title": None} if len(kinds) > 1 else None
    axis = {"title": None, "labelLimit": 190, "ticks": False}
    y = {"field": "name", "type": "nominal", "sort": None, "axis": axis}
    return _whole(
        {
            "data": {"values": list(rows)},
            "mark": {"type": "bar", "cornerRadiusEnd": 3},
            "encoding": {
                "y": y,
                "x": {
                    "field": value,
                    "type": "quantitative",
                    "axis": _NARROW | {"title": title},
                },
                "color": {"field": "kind", "type": "nominal", "scale": scale, "legend": legend},
                "tooltip": [{"field": "name"}, {"field": value, "format": ",.4~g"}],
            },
        },
        {"step": 22},
    )


def timeline() -> Spec:
    """Return spans of time in lanes; the page fills in the data ``spans``."""
    critical = {
        "domain": ["critical path", "other"],
        "range": ["var(--s2)", "var(--s1)"],
    }
    return _whole(
        {
            "data": {"name": "spans", "values": []},
            "mark": {"type": "bar", "height": {"band": 0.82}, "opacity": 0.92},
            "encoding": {
                "y": _lane("lane", sort="ascending"),
                "x": {"field": "from", "type": "quantitative", "axis": _NARROW | {"title": "µs"}},
                "x2": {"field": "to"},
                "color": {
                    "field": "critical",
                    "type": "nominal",
                    "scale": critical,
                    "legend": {"orient": "top", "title": None},
                },
                "stroke": {"value": "var(--card)"},
                "strokeWidth": {"value": 0.6},
                "tooltip": [
                    {"field": "text", "title": "step"},
                    {"field": "from", "title": "from µs", "format": ",.2f"},
                    {"field": "to", "title": "to µs", "format": ",.2f"},
                ],
            },
        },
        {"step": 15},
    )


def heat_map() -> Spec:
    """Return the use of links over time; the page fills in the data ``load``."""
    return _whole(
        {
            "data": {"name": "load", "values": []},
            "mark": {"type": "rect"},
            "encoding": {
                "y": _lane("link", sort=None),
                "x": {
                    "field": "from",
                    "type": "quantitative",
                    "axis": _NARROW | {"title": "ms", "grid": False},
                },
                "x2": {"field": "to"},
                "color": {
                    "field": "share",
                    "type": "quantitative",
                    "scale": {"scheme": "viridis", "domain": [0, 1]},
                    "legend": {
                        "orient": "top",
                        "title": "share of what the link carries",
                        "format": ".0%",
                        "gradientLength": 180,
                    },
                },
                "tooltip": [
                    {"field": "link"},
                    {"field": "share", "title": "used", "format": ".0%"},
                    {"field": "from", "title": "from ms", "format": ",.4~g"},
                ],
            },
        },
        {"step": 13},
    )


def _lane(field: str, sort: str | None) -> Spec:
    axis = {"title": None, "labelFontSize": 11, "labelLimit": 170, "ticks": False}
    return {"field": field, "type": "nominal", "sort": sort, "axis": axis}


def _whole(spec: Spec, height: Any) -> Spec:
    """Return a specification with the width of its place and the house's colours."""
    return {
        "$schema": SCHEMA,
        "width": "container",
        "height": height,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "config": CONFIG,
        **spec,
    }


def _few(sizes: Sequence[int]) -> list[int]:
    """Return sizes that have room below an axis."""
    step = -(-len(sizes) // 12)
    return list(sizes)[::step]


def decades(low: float, high: float) -> list[float]:
    """Return round values of a logarithmic axis: powers of ten, or finer where these are few."""
    powers = range(floor(log10(low)), ceil(log10(high)) + 1)
    found: list[float] = []
    for digits in ((10,), (10, 20, 50), range(10, 100, 10), range(10, 100)):
        values = (round(digit * 10.0 ** (power - 1), 12) for power in powers for digit in digits)
        found = [value for value in values if low <= value <= high]
        if len(found) >= _LEAST_TICKS:
            break
    return found


def vega(spec: Spec) -> Spec:
    """Return a Vega-Lite specification compiled to Vega."""
    import vl_convert

    found: Spec = vl_convert.vegalite_to_vega(spec, vl_version=DIALECT)
    return found
