"""One HTML file with its values, scripts and styles inside."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

from colsynth import __version__
from colsynth.errors import Diagnostic, InputError
from colsynth.report import charts
from colsynth.units import format_size, plural

FORMAT, VERSION = "colsynth report", 1

_NEEDED = ("jinja2", "vl_convert")
_SCRIPTS = ("machine.js", "replay.js", "main.js")
_SHARED = (*_SCRIPTS, "page.css", "licences.txt")


def check_installed(what: str = "report", modules: tuple[str, ...] = _NEEDED) -> None:
    """Refuse where optional packages are missing.

    Parameters
    ----------
    what : str
        Command or option that needs them.
    modules : tuple of str

    Raises
    ------
    InputError
        CS640: one of them is not installed.
    """
    for module in modules:
        if find_spec(module) is None:
            phrase = f"{what} needs {module}, which is not installed"
            advice = "pip install 'colsynth[report]'"
            raise InputError(Diagnostic("CS640", phrase, help=advice))


def render(values: dict[str, Any]) -> bytes:
    """Return the page of some values; equal values give equal bytes.

    Parameters
    ----------
    values : dict
        What ``--json`` prints. Sections without values are left out.
    """
    import jinja2
    import vl_convert

    plots = {name: charts.vega(spec) for name, spec in _plots(values).items()}
    texts = {name: _read(name) for name in _SHARED}
    room = jinja2.Environment(
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        loader=jinja2.FunctionLoader(_read),
    )
    room.filters |= {"size": format_size, "plural": plural, "figure": _figure}
    page = room.get_template("page.html.j2").render(
        values=values,
        plots=plots,
        data=_inside(values),
        specs=_inside(plots),
        style=texts["page.css"],
        library=_vega(vl_convert.get_vega_version()),
        scripts="\n".join(texts[name] for name in _SCRIPTS),
        licences=texts["licences.txt"],
        drawn_by=f"Vega {vl_convert.get_vega_version()}",
    )
    return page.encode()


def heading(values: dict[str, Any], command: str, inputs: dict[str, bytes]) -> dict[str, Any]:
    """Return values with what they were made by, and from."""
    named = [
        {"name": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        for name, data in inputs.items()
    ]
    made = {"colsynth": __version__}
    head = {"format": FORMAT, "version": VERSION, "made_by": made, "command": command}
    return {**head, "inputs": named, **values}


@cache
def _vega(version: str) -> str:
    """Return the script of Vega; vl-convert carries it under this address, and loads nothing."""
    import vl_convert

    address = f"https://cdn.jsdelivr.net/npm/vega@{version}/+esm"
    use = f'import * as V from "{address}"; window.vega = {{ parse: V.parse, View: V.View }};'
    script: str = vl_convert.javascript_bundle(use)
    return script.replace("</script", "<\\/script")


def _read(name: str) -> str:
    return files("colsynth").joinpath("report", "static", name).read_text("utf-8")


def _inside(value: Any) -> str:
    """Return JSON that may stand in a script element."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    for letter in "<>&":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _figure(value: float | None, digits: int = 4) -> str:
    """Return a number for people."""
    if value is None:
        return "–"
    return f"{value:,.0f}" if abs(value) >= 10**digits else f"{value:,.{digits}g}"


def _plots(values: dict[str, Any]) -> dict[str, Any]:
    """Return the specifications of the plots that values have data for."""
    found: dict[str, Any] = {}
    rows = _bandwidths(values)
    if rows:
        sizes = sorted({row["size"] for row in rows})
        found["bandwidth"] = charts.bandwidth(rows, sizes)
    if values.get("breakdown"):
        parts = values["breakdown"]["path_us"]
        times = [{"name": name, "µs": round(time, 3)} for name, time in parts.items() if time > 0]
        found["breakdown"] = charts.bars(times, "µs", "µs on the critical path")
    if values.get("schedule"):
        found["timeline"] = charts.timeline()
    if values.get("load"):
        found["load"] = charts.heat_map()
    if values.get("survey"):
        lost = [
            {"name": row["failure"], "loss": row["loss_percent"]}
            for row in values["survey"]["rows"][:40]
        ]
        found["survey"] = charts.bars(lost, "loss", "loss of the bound, %")
    return found


def _bandwidths(values: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the points of all lines, the bound first."""
    lines: list[tuple[str, list[tuple[int, float | None]]]] = []
    if values.get("least"):
        limit = [(row["size_bytes"], row["most_gb_per_s"]) for row in values["least"]]
        lines.append(("at most (bound of the runtime)", limit))
    elif values.get("compare"):
        sizes = values["compare"]["sizes_bytes"]
        lines.append(("bound", [(size, values["compare"]["bound_gb_per_s"]) for size in sizes]))
    for name, points in values.get("predicted", {}).items():
        lines.append((name, [(p["size_bytes"], p["algbw_gb_per_s"]) for p in points]))
    if values.get("compare"):
        sizes = values["compare"]["sizes_bytes"]
        for name, rates in values["compare"]["algbw_gb_per_s"].items():
            lines.append((name, list(zip(sizes, rates, strict=True))))
    return [
        {
            "name": name,
            "size": size,
            "message": format_size(size),
            "GB/s": rate,
            "time": f"{_figure(size / rate / 1e3)} µs",
        }
        for name, points in lines
        for size, rate in points
        if rate
    ]
