"""What a fabric is worth: steps, times and distances, worked out exactly on the built graph."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from colsynth.kernels.shortest import distances, step_loads
from colsynth.topology.graphs.digraph import Digraph
from colsynth.topology.graphs.grammar import build, read_term
from colsynth.topology.graphs.moore import moore_distances


@dataclass(frozen=True, slots=True)
class Figures:
    """One fabric, by its expression.

    Parameters
    ----------
    text : str
        Expression of the graph.
    size, ports : int
        GPUs; ports of each, idle ones included.
    steps : int
        Steps of an allgather along shortest paths; a reduce-scatter takes as many.
    gather, scatter : Fraction
        Time of all steps of an allgather, of a reduce-scatter, in units of the message over the
        bandwidth of a GPU.
    pipelined : Fraction
        The same for the larger congestion of both, with steps that overlap.
    distance : Fraction
        Mean over the GPUs of the sum of distances to all others.
    """

    text: str
    size: int
    ports: int
    steps: int
    gather: Fraction
    scatter: Fraction
    pipelined: Fraction
    distance: Fraction

    @property
    def best(self) -> Fraction:
        """The least time that any graph allows."""
        return Fraction(self.size - 1, self.size)

    def spread(self, *, duplex: bool) -> Fraction:
        """Return the mean sum of distances over that of the Moore tree."""
        return self.distance / moore_distances(self.size, self.ports, duplex=duplex)


def figures(text: str, ports: int, *, both: bool = True) -> Figures | None:
    """Return the figures of an expression; None where some GPU cannot reach another.

    Parameters
    ----------
    ports : int
        Ports of every GPU, idle ones included.
    both : bool
        Whether the reduce-scatter counts; otherwise it has the figures of the allgather.
    """
    graph = build(read_term(text))
    gather = _side(graph)
    if gather is None:
        return None
    steps, load, together, total = gather
    scatter = (_side(graph.reversed()) if both else None) or gather
    unit = Fraction(ports, graph.size)
    return Figures(
        *(text, graph.size, ports, steps, load * unit, scatter[1] * unit),
        max(together, scatter[2]) * unit,
        total,
    )


def _side(graph: Digraph) -> tuple[int, Fraction, Fraction, Fraction] | None:
    """Return (steps, sum of loads, congestion, mean sum of distances) of an allgather."""
    plain = graph.without_loops()
    order = np.lexsort((plain.tail, plain.head))
    pairs = np.stack((plain.head[order], plain.tail[order]), 1)
    unique, capacity = np.unique(pairs, axis=0, return_counts=True)
    head, tail = unique[:, 0], unique[:, 1].copy()
    first = np.searchsorted(head, np.arange(graph.size + 1)).astype(np.int64)
    receivers = np.arange(1 if graph.transitive else graph.size)
    targets = np.arange(graph.size)
    if graph.transitive:
        targets = np.unique(np.append(tail[: first[1]], 0))
    distance = distances(first, tail, targets)
    if distance.min() < 0:
        return None
    row = np.zeros(graph.size, np.int64)
    row[targets] = np.arange(len(targets))
    weight = np.ones(graph.size, np.int64)
    found = step_loads(
        first, tail, capacity.astype(np.int64), distance, row, receivers, weight
    ).tolist()
    loads = [Fraction(p, q) for p, q, _, _ in found]
    rows = distance[row[receivers]]
    total = Fraction(int(rows.sum(dtype=np.int64)), len(receivers))
    return len(loads) - 1, sum(loads[1:], Fraction(0)), loads[0], total
