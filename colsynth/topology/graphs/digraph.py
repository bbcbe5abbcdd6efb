"""A directed multigraph: what generators make and expansions take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Digraph:
    """A directed graph with self-loops and parallel arcs.

    Parameters
    ----------
    size : int
        Number of nodes.
    tail, head : int64 (m,)
        Arcs. A self-loop idles a port; a parallel arc adds capacity.
    axis : int64 (m,)
        Of grids: the dimension of each arc. All zero elsewhere.
    axes : int
        Number of dimensions, one or more.
    transitive : bool
        Whether it is known by construction that every node looks like every other.
    """

    size: int
    tail: Ints
    head: Ints
    axis: Ints
    axes: int = 1
    transitive: bool = False

    @property
    def ports(self) -> int:
        """Most arcs that leave or enter a node, self-loops included: the ports of each GPU."""
        return max(int(np.bincount(ends, minlength=1).max()) for ends in (self.tail, self.head))

    def reversed(self) -> Digraph:
        """Return the graph with every arc turned around."""
        return replace(self, tail=self.head, head=self.tail)

    def without_loops(self) -> Digraph:
        """Return the graph without self-loops."""
        kept = self.tail != self.head
        return replace(self, tail=self.tail[kept], head=self.head[kept], axis=self.axis[kept])


def digraph(
    size: int,
    arcs: Iterable[tuple[int, int]],
    *,
    transitive: bool = False,
) -> Digraph:
    """Return the graph with these arcs, in this order."""
    ends = np.array([*arcs], np.int64).reshape(-1, 2)
    axis = np.zeros(len(ends), np.int64)
    tail, head = ends[:, 0].copy(), ends[:, 1].copy()
    return Digraph(size, tail, head, axis, transitive=transitive)


def both_ways(size: int, edges: Iterable[tuple[int, int]], *, transitive: bool = False) -> Digraph:
    """Return the graph with an arc in both directions for every edge."""
    arcs = [arc for a, b in edges for arc in ((a, b), (b, a))]
    return digraph(size, arcs, transitive=transitive)
