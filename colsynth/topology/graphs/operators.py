"""Expansions: graphs made of graphs (facts and sources in ``guide/cabling.md``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from colsynth.topology.graphs.digraph import Digraph

Size = tuple[int, int]


@dataclass(frozen=True)
class Operator:
    """An expansion.

    Parameters
    ----------
    parts : int
        Graphs that it takes.
    number : str
        Sign before its number, such as ``^``; empty without a number.
    size : callable
        (number, sizes of the parts) -> (nodes, arcs).
    make : callable
        (number, parts) -> graph.
    """

    parts: int
    number: str
    size: Callable[[int, list[Size]], Size]
    make: Callable[[int, list[Digraph]], Digraph]


def line(graph: Digraph) -> Digraph:
    """Return the line graph: nodes are arcs (self-loops too), uv -> vw."""
    order = np.argsort(graph.tail, kind="stable")
    out = np.bincount(graph.tail, minlength=graph.size)
    first = np.concatenate(([0], np.cumsum(out)))
    count = out[graph.head]
    tail = np.repeat(np.arange(len(graph.tail)), count)
    start = np.repeat(first[graph.head] - np.cumsum(count) + count, count)
    head = order[start + np.arange(len(tail))]
    axis = np.zeros(len(tail), np.int64)
    return Digraph(len(graph.tail), tail, head, axis)


def degree(copies: int, graph: Digraph) -> Digraph:
    """Return copies of every node, each arc between all of them."""
    pairs = [(i, j) for i in range(copies) for j in range(copies)]
    tail = np.concatenate([graph.tail * copies + i for i, _ in pairs])
    head = np.concatenate([graph.head * copies + j for _, j in pairs])
    whole = replace(graph, size=graph.size * copies, tail=tail, head=head)
    return replace(whole, axis=np.zeros(len(tail), np.int64), axes=1)


def product(one: Digraph, other: Digraph) -> Digraph:
    """Return the Cartesian product; nodes of the second factor vary fastest."""
    inner, outer = np.arange(other.size), np.arange(one.size)
    tail, head = (
        np.concatenate(
            ((a[:, None] * other.size + inner).ravel(), (b[:, None] + outer * other.size).ravel())
        )
        for a, b in ((one.tail, other.tail), (one.head, other.head))
    )
    axis = np.concatenate(
        (np.repeat(one.axis, other.size), np.repeat(other.axis, one.size) + one.axes)
    )
    return Digraph(
        one.size * other.size,
        tail,
        head,
        axis,
        one.axes + other.axes,
        transitive=one.transitive and other.transitive,
    )


def duplex(graph: Digraph) -> Digraph:
    """Return the union with the transpose: every cable carries both directions."""
    tail, head = np.concatenate((graph.tail, graph.head)), np.concatenate((graph.head, graph.tail))
    axis = np.concatenate((graph.axis, graph.axis))
    return replace(graph, tail=tail, head=head, axis=axis)


def joined(graph: Digraph) -> Digraph:
    """Return the graph whose nodes with self-loops are joined in a cycle instead."""
    loops = np.nonzero(graph.tail == graph.head)[0]
    head = graph.head.copy()
    head[loops] = np.roll(graph.tail[loops], -1)
    return replace(graph, head=head, transitive=False)


def _repeated(make: Callable[[Digraph], Digraph], times: int, graph: Digraph) -> Digraph:
    for _ in range(times):
        graph = make(graph)
    return graph


def _line_size(times: int, parts: list[Size]) -> Size:
    (nodes, arcs), ratio = parts[0], max(1, parts[0][1] // max(parts[0][0], 1))
    return nodes * ratio**times, arcs * ratio**times


def _product_size(_: int, parts: list[Size]) -> Size:
    (n, m), (k, e) = parts
    return n * k, m * k + e * n


def _power_size(times: int, parts: list[Size]) -> Size:
    (n, m), others = parts[0], max(times - 1, 0)
    return n**times, times * m * n**others


def _power(times: int, parts: list[Digraph]) -> Digraph:
    return _repeated(lambda graph: product(parts[0], graph), times - 1, parts[0])


OPERATORS: dict[str, Operator] = {
    "line": Operator(*(1, "^", _line_size), lambda k, parts: _repeated(line, k, parts[0])),
    "degree": Operator(
        *(1, ":", lambda k, parts: (k * parts[0][0], k * k * parts[0][1])),
        lambda k, parts: degree(k, parts[0]),
    ),
    "power": Operator(1, ":", _power_size, _power),
    "product": Operator(*(2, "", _product_size), lambda _, parts: product(*parts)),
    "duplex": Operator(
        *(1, "", lambda _, parts: (parts[0][0], 2 * parts[0][1])),
        lambda _, parts: duplex(parts[0]),
    ),
    "transpose": Operator(
        *(1, "", lambda _, parts: parts[0]),
        lambda _, parts: parts[0].reversed(),
    ),
    "joined": Operator(
        *(1, "", lambda _, parts: parts[0]),
        lambda _, parts: joined(parts[0]),
    ),
}
"""The expansions, by name. A number is one to `MOST_NUMBER`."""

MOST_NUMBER = 40
"""Largest number of an expansion; sizes are checked before anything is built."""
