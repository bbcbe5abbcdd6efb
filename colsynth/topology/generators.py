"""Regular graphs by name: ``ring:8``, ``mesh:4x4``, ``torus:4x4x4``, ``hypercube:6``, ``clique:8``.

All links go both ways; bandwidths and latencies may differ from axis to axis
(``"100,200,400 GB/s"``). All GPUs sit in box 0 and are numbered with the last axis fastest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import combinations, product
from math import prod
from typing import TypeVar

from colsynth.errors import Diagnostic, InputError, Span, did_you_mean
from colsynth.model import Kind, Link, Node, Topology
from colsynth.topology.builder import MAX_LINKS, MAX_NODES, Builder
from colsynth.topology.quantities import read_bandwidth, read_latency

DEFAULT_BANDWIDTH = "50 GB/s"
"""One xGMI link of an MI250 (facts G); a round number, not a machine."""

DEFAULT_LATENCY = "0.7 us"
"""GPU to GPU inside a box, as TE-CCL's NDv2 has it."""

_DEFAULTS = {"bandwidth": DEFAULT_BANDWIDTH, "latency": DEFAULT_LATENCY}

Shape = tuple[int, ...]
Pairs = Iterator[tuple[Shape, Shape]]

_Value = TypeVar("_Value")
_BARE = re.compile(r"[0-9.]+(?:/[0-9]+)?")
_UNIT = re.compile(r"\s*[A-Za-zµ][A-Za-zµ/]*$")
_SHAPE = re.compile(r"[0-9]{1,9}(?:x[0-9]{1,9})*")


def mesh(shape: Shape) -> Pairs:
    """Neighbours along every dimension."""
    for place in product(*map(range, shape)):
        for axis, size in enumerate(shape):
            if place[axis] + 1 < size:
                yield place, (*place[:axis], place[axis] + 1, *place[axis + 1 :])


def torus(shape: Shape) -> Pairs:
    """A mesh whose dimensions close to rings; a dimension of two has no second link."""
    yield from mesh(shape)
    for axis, size in enumerate(shape):
        if size > 2:
            for place in product(*map(range, (*shape[:axis], 1, *shape[axis + 1 :]))):
                yield (*place[:axis], size - 1, *place[axis + 1 :]), place


def hypercube(shape: Shape) -> Pairs:
    """Neighbours differ in one of the bits."""
    return mesh((2,) * shape[0])


def clique(shape: Shape) -> Pairs:
    """Everyone with everyone."""
    return combinations(((i,) for i in range(shape[0])), 2)


_MAKERS: dict[str, tuple[Callable[[Shape], Pairs], str]] = {
    "ring": (torus, "ring:8"),
    "mesh": (mesh, "mesh:4x4"),
    "torus": (torus, "torus:4x4x4"),
    "hypercube": (hypercube, "hypercube:6"),
    "clique": (clique, "clique:8"),
}
_ONE_DIMENSION = ("ring", "hypercube", "clique")

EXAMPLES = tuple(example for _, example in _MAKERS.values())


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
    kind, _, text = spec.partition(":")
    if kind not in _MAKERS:
        hint = did_you_mean(kind, _MAKERS)
        raise InputError(Diagnostic("CS121", f"unknown generator {kind!r}", help=hint))
    shape = _shape(spec, kind, text)
    grid = (2,) * shape[0] if kind == "hypercube" else shape
    speeds = _by_axis("bandwidth", bandwidth, len(grid), read_bandwidth)
    delays = _by_axis("latency", latency, len(grid), read_latency)
    builder = Builder()
    for i in range(prod(grid)):
        builder.add_node(Node(f"gpu{i}", Kind.GPU, box=0))
    number = {place: i for i, place in enumerate(product(*map(range, grid)))}
    for here, there in _MAKERS[kind][0](shape):
        axis = next(i for i, x in enumerate(here) if x != there[i])
        builder.add_link(Link(number[here], number[there], speeds[axis], delays[axis]))
    return builder.finish(f"{kind}:{'x'.join(map(str, shape))}")


def _by_axis(
    what: str, given: str | None, axes: int, read: Callable[[str, Span | None], _Value]
) -> list[_Value]:
    """Return a figure for every axis; those without a unit have that of the last."""
    text = _DEFAULTS[what] if given is None else given
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


def _shape(spec: str, kind: str, text: str) -> Shape:
    shape = tuple(map(int, text.split("x"))) if _SHAPE.fullmatch(text) else ()
    if not shape or 0 in shape or (kind in _ONE_DIMENSION and len(shape) > 1):
        phrase = f"cannot read the generator {spec!r}"
        note = f"expected a text such as {_MAKERS[kind][1]!r}"
        raise InputError(Diagnostic("CS121", phrase, notes=(note,)))
    if kind == "hypercube":
        too_large = shape[0] > MAX_NODES.bit_length() - 1
    else:
        too_large = len(shape) > 16 or prod(shape) > MAX_NODES
        too_large |= kind == "clique" and shape[0] ** 2 > MAX_LINKS
    if too_large:
        limits = f"at most {MAX_NODES} GPUs and {MAX_LINKS} links"
        raise InputError(Diagnostic("CS125", f"{spec!r} is too large", notes=(limits,)))
    return shape
