"""Trees of a circulant graph behind a single switch, built without packing.

All GPUs are put on a ring, and those at a few distances from each other, both ways round, are
neighbours. Trees are breadth-first, and those of two roots differ only by the way round the ring
from one to the other. So every GPU sends and receives N - 1 shards, as with direct trees, and
nothing is lost, whatever the number of GPUs. A GPU may be reached through several neighbours;
among the choices that keep every way as short as it can be, each distance is taken about
equally often, so that all connections have the same load.

Sources: circulant graphs under breadth-first broadcast, arXiv 2202.03356 and 2309.13541.
"""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.errors import Diagnostic, InputError
from colsynth.model import Direction, Kind, Phase, Problem, Topology, Tree, TreeEdge

Ports = list[tuple[int, int]]
"""By rank, its link to the switch and its link from it."""


def circulant_phase(
    problem: Problem, direction: Direction, trees: int, distances: Sequence[int]
) -> Phase | None:
    """Return breadth-first trees; None where GPUs are no ports of one switch alone.

    Parameters
    ----------
    problem : Problem
        Without process groups.
    direction : Direction
    trees : int
        Per root; they are one of that weight.
    distances : sequence of int
        On the ring, of neighbours.

    Raises
    ------
    InputError
        CS210: the distances do not lead to all GPUs.
    """
    ports, size = single_switch(problem.topology), problem.topology.size
    if ports is None or problem.shards or size < 2:
        return None
    hops = shortest_hops(size, distances)
    links = problem.topology.links
    slowest = min(links[link].bandwidth for pair in ports for link in pair)
    found = []
    for root in problem.roots:
        ends = [((root + a) % size, (root + b) % size) for a, b in hops]
        found.append(Tree(root, trees, tuple(_edge(ports, direction, *end) for end in ends)))
    return Phase(direction, tuple(found), slowest / (trees * (size - 1)))


def shortest_hops(size: int, distances: Sequence[int]) -> list[tuple[int, int]]:
    """Return the hops (from, to) of the tree of root 0, by level.

    Parameters
    ----------
    size : int
        GPUs on the ring.
    distances : sequence of int

    Raises
    ------
    InputError
        CS210: not all GPUs are reached.
    """
    import networkx as nx

    steps = sorted({step % size for d in distances for step in (d, -d)} - {0})
    graph = nx.circulant_graph(size, steps)
    level = nx.single_source_shortest_path_length(graph, 0)
    if len(level) < size:
        spelt = "+".join(map(str, distances))
        phrase = f"grid {spelt}: these distances do not lead to all {size} GPUs"
        advice = "add 1, or another distance without a common factor"
        raise InputError(Diagnostic("CS210", phrase, help=advice))
    usable = {
        gpu: [step for step in steps if level[(gpu - step) % size] == level[gpu] - 1]
        for gpu in range(1, size)
    }
    taken = _evenly(usable, steps)
    return [
        ((gpu - taken[gpu]) % size, gpu) for gpu in sorted(taken, key=lambda gpu: (level[gpu], gpu))
    ]


def _evenly(usable: dict[int, list[int]], steps: Sequence[int]) -> dict[int, int]:
    """Return a usable step for every GPU, such that the most frequent is as rare as can be.

    Nodes are numbers, since networkx takes them from sets: the order of names in a set is another
    one in every process.
    """
    import networkx as nx

    source, sink = 0, -1  # GPU 0 is the root
    node = {step: len(usable) + 1 + place for place, step in enumerate(steps)}
    least = -(-len(usable) // len(steps))
    for most in range(least, len(usable) + 1):
        graph = nx.DiGraph()
        for gpu, choice in usable.items():
            graph.add_edge(source, gpu, capacity=1)
            graph.add_edges_from((gpu, node[step], {"capacity": 1}) for step in choice)
        graph.add_edges_from((node[step], sink, {"capacity": most}) for step in steps)
        value, flow = nx.maximum_flow(graph, source, sink)
        if value == len(usable):
            break
    return {
        gpu: next(step for step in choice if flow[gpu][node[step]])
        for gpu, choice in usable.items()
    }


def single_switch(topology: Topology) -> Ports | None:
    """Return the ports of a switch that joins all GPUs, which have no other links but to NICs."""
    size = topology.size
    rank = {node: number for number, node in enumerate(topology.ranks)}
    ups: list[list[int]] = [[] for _ in range(size)]
    downs: list[list[int]] = [[] for _ in range(size)]
    others = set()
    for number, link in enumerate(topology.links):
        for own, other, side in (
            (link.source, link.target, ups),
            (link.target, link.source, downs),
        ):
            if own in rank and topology.nodes[other].kind is not Kind.NIC:
                side[rank[own]].append(number)
                others.add(other)
    if len(others) != 1 or any(len(side) != 1 for side in (*ups, *downs)):
        return None
    if topology.nodes[others.pop()].kind is not Kind.SWITCH:
        return None
    return [(up[0], down[0]) for up, down in zip(ups, downs, strict=True)]


def _edge(ports: Ports, direction: Direction, parent: int, child: int) -> TreeEdge:
    source, target = (parent, child) if direction is Direction.OUT else (child, parent)
    return TreeEdge(parent, child, (ports[source][0], ports[target][1]))
