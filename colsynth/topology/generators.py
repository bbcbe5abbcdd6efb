"""Graphs by name, as topologies: ``ring:8``, ``torus:4x4x4``, ``line^2(kautz:2,2)``.

All GPUs sit in box 0. Parallel arcs become one link of their added bandwidth; self-loops are left
out. Bandwidths and latencies may differ from axis to axis of a grid (``"100,200,400 GB/s"``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from colsynth.errors import Diagnostic, InputError, Span
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.builder import Builder
from colsynth.topology.quantities import no_unit, read_bandwidth, read_latency

if TYPE_CHECKING:
    from colsynth.topology.graphs.digraph import Digraph

DEFAULT_BANDWIDTH = "50 GB/s"
"""One xGMI link of an MI250 (facts G); a round number, not a machine."""

DEFAULT_LATENCY = "0.7 us"
"""GPU to GPU inside a box, as TE-CCL's NDv2 has it."""

_DEFAULTS = {"bandwidth": DEFAULT_BANDWIDTH, "latency": DEFAULT_LATENCY}

_Value = TypeVar("_Value")
_BARE = re.compile(r"[0-9.]+(?:/[0-9]+)?")
_UNIT = re.compile(r"\s*[A-Za-zµ][A-Za-zµ/]*$")


def generate(spec: str, bandwidth: str | None = None, latency: str | None = None) -> Topology:
    """Return the topology that a text such as ``"torus:4x4"`` means.

    Parameters
    ----------
    spec : str
    bandwidth, latency : str, optional
        Of every link, or of those of each axis: ``"100,200,400 GB/s"``. 50 GB/s and 0.7 us
        when left out.

    Raises
    ------
    InputError
        The text means no topology, or one too large; a figure is none, or there are not as
        many as axes.
    """
    from colsynth.topology.graphs.grammar import build, read_term

    term = read_term(spec)
    return topology_of(build(term), str(term), bandwidth, latency)


def topology_of(
    graph: Digraph, name: str, bandwidth: str | None = None, latency: str | None = None
) -> Topology:
    """Return a graph as a topology; parameters and errors as `generate`."""
    speeds = _by_axis("bandwidth", bandwidth, graph.axes, read_bandwidth)
    delays = _by_axis("latency", latency, graph.axes, read_latency)
    builder = Builder()
    for i in range(graph.size):
        builder.add_node(Node(f"gpu{i}", Kind.GPU, box=0))
    links: dict[tuple[int, int], Link] = {}
    plain = graph.without_loops()
    for tail, head, axis in zip(
        plain.tail.tolist(), plain.head.tolist(), plain.axis.tolist(), strict=True
    ):
        known = links.get((tail, head))
        rate = speeds[axis] + (known.bandwidth if known else 0)
        links[tail, head] = Link(tail, head, rate, delays[axis])
    for link in links.values():
        builder.add_link(link, one_way=True)
    return builder.finish(name)


def _by_axis(
    what: str, given: str | None, axes: int, read: Callable[[str, Span | None], _Value]
) -> list[_Value]:
    """Return a figure for every axis; those without a unit have that of the last."""
    text: object = _DEFAULTS[what] if given is None else given
    if not isinstance(text, str):  # a number from Python: of which unit?
        raise no_unit(what, text, Span(f"--{what} {text!r}"))
    words = [word.strip() for word in text.split(",")]
    unit = _UNIT.search(words[-1])
    span = Span(f"--{what} {text!r}")
    if len(words) not in (1, axes):
        phrase = f"{len(words)} figures for {axes} {'axis' if axes == 1 else 'axes'}"
        advice = "give one figure for all links, or one for every axis"
        raise InputError(Diagnostic("CS121", phrase, span, help=advice))
    full = [word + unit[0] if unit and _BARE.fullmatch(word) else word for word in words]
    figures = [read(word, span) for word in full]
    return figures * (axes if len(figures) == 1 else 1)
