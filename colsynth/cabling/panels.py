"""A fabric as cables: one permutation for every patch panel or optical switch.

A graph with d arcs into and out of every node is the union of d permutations (König, 1916). Where
all links go both ways and d is even, the edges are oriented along closed walks (Petersen, 1891):
half as many permutations, whose cables carry both directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from colsynth.errors import Diagnostic, InputError
from colsynth.topology.graphs.digraph import Digraph, Ints


@dataclass(frozen=True, slots=True)
class Cable:
    """A cable through a panel.

    Parameters
    ----------
    panel : int
        From 0 on.
    source, target : int
        Nodes; the same for a port that stays idle.
    both_ways : bool
        Whether data goes in both directions.
    """

    panel: int
    source: int
    target: int
    both_ways: bool


def cables(graph: Digraph) -> tuple[Cable, ...]:
    """Return the cables of a graph, panel by panel.

    Raises
    ------
    InputError
        CS141: the nodes differ in their numbers of arcs.
    """
    arcs = np.bincount(graph.tail, minlength=graph.size), np.bincount(graph.head)
    if len({*arcs[0].tolist(), *arcs[1].tolist()}) != 1:
        phrase = "the GPUs differ in their numbers of links"
        raise InputError(Diagnostic("CS141", phrase, help="--pick another row"))
    duplex = graph.ports % 2 == 0 and _is_duplex(graph)
    tail, head = _oriented(graph) if duplex else (graph.tail, graph.head)
    rest = np.zeros((graph.size, graph.size), np.int64)
    np.add.at(rest, (tail, head), 1)
    found = []
    for panel in range(len(tail) // graph.size):
        matched = _matching(rest)
        rest[np.arange(graph.size), matched] -= 1
        found += [Cable(panel, i, j, duplex) for i, j in enumerate(matched.tolist())]
    return tuple(found)


def _is_duplex(graph: Digraph) -> bool:
    forth = np.sort(graph.tail * graph.size + graph.head)
    back = np.sort(graph.head * graph.size + graph.tail)
    return bool((forth == back).all()) and not (graph.tail == graph.head).any()


def _oriented(graph: Digraph) -> tuple[Ints, Ints]:
    """Return each edge once, directed so that as many leave as enter (closed walks)."""
    onward: list[list[int]] = [[] for _ in range(graph.size)]
    for tail, head in zip(graph.tail.tolist(), graph.head.tolist(), strict=True):
        onward[tail].append(head)
    for heads in onward:
        heads.sort(reverse=True)
    arcs = []
    for start in range(graph.size):
        at = start
        while onward[at]:
            after = onward[at].pop()
            onward[after].remove(at)
            arcs.append((at, after))
            at = after
    ends = np.array(arcs, np.int64)
    return ends[:, 0], ends[:, 1]


def _matching(rest: Ints) -> Ints:
    """Return a permutation along arcs that are left; there is one, as all nodes have as many."""
    import networkx as nx

    size = len(rest)
    graph: Any = nx.Graph()
    graph.add_nodes_from(range(size))
    graph.add_edges_from(
        (i, size + j) for i, j in zip(*map(np.ndarray.tolist, np.nonzero(rest)), strict=True)
    )
    found = nx.bipartite.hopcroft_karp_matching(graph, range(size))
    return np.array([found[i] - size for i in range(size)], np.int64)
