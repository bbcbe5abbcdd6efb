"""Slow, obvious twins of the allreduce bounds."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

from colsynth.model import Kind, Topology
from tests.reference.simplex import maximise


def best_rooted(  # noqa: C901 - one program, row by row
    topology: Topology, in_network: bool = False, members: tuple[int, ...] | None = None
) -> Fraction:
    """Return the rate of free roots by a linear program over every cut, in fractions.

    Switches that multicast (outwards) or reduce (inwards) need not forward all they receive
    where `in_network`; those that do both may be roots. Where some GPUs are `members`, the
    others have nothing to say and need to hear nothing, but may be roots too.

    Variables: the share of every root, then what either half takes of every link.
    """
    gpus, links = list(topology.ranks), topology.links
    if in_network:
        both = {"multicast", "reduce"}
        gpus += [i for i, node in enumerate(topology.nodes) if both <= set(node.capabilities)]
    count = len(gpus) + 2 * len(links)
    rows: list[list[int]] = []
    limits: list[Fraction] = []

    def require(entries: dict[int, int], limit: Fraction = Fraction(0)) -> None:
        rows.append([entries.get(j, 0) for j in range(count)])
        limits.append(limit)

    def column(half: int, link: int) -> int:
        return len(gpus) + half * len(links) + link

    for i, link in enumerate(links):
        require({column(0, i): 1, column(1, i): 1}, link.bandwidth)
    for half in (0, 1):
        for node, value in enumerate(topology.nodes):
            power = ("multicast", "reduce")[half]
            if value.kind is Kind.GPU or (in_network and power in value.capabilities):
                continue
            balance = {column(half, i): 1 for i, x in enumerate(links) if x.target == node}
            balance |= {column(half, i): -1 for i, x in enumerate(links) if x.source == node}
            require(balance)
            require({j: -entry for j, entry in balance.items()})
        for inside in _cuts(topology, gpus, members):
            entries = {k: 1 for k, gpu in enumerate(gpus) if gpu in inside}
            for i, link in enumerate(links):
                near, far = (link.source, link.target) if half == 0 else (link.target, link.source)
                if near in inside and far not in inside:
                    entries[column(half, i)] = -1
            require(entries)
    costs = [1] * len(gpus) + [0] * (2 * len(links))
    return maximise(costs, rows, limits)


def _cuts(topology: Topology, roots: list[int], members: tuple[int, ...] | None) -> list[set[int]]:
    """Return the sets with a root inside and somebody outside who wants its sum."""
    nodes = range(len(topology.nodes))
    wanting = {topology.ranks[r] for r in members or range(topology.size)}
    every = (set(c) for size in range(1, len(nodes)) for c in combinations(nodes, size))
    return [inside for inside in every if inside & set(roots) and not wanting <= inside]


def fewest_messages(parts: int) -> int:
    """Return how many one-way messages make every part know of every other, by search."""
    start = tuple(1 << i for i in range(parts))
    done, seen, level, count = (2**parts - 1,) * parts, {start}, [start], 0
    while done not in seen:
        found = []
        for state in level:
            for source in range(parts):
                for target in range(parts):
                    told = list(state)
                    told[target] |= state[source]
                    after = tuple(told)
                    if after not in seen:
                        seen.add(after)
                        found.append(after)
        level, count = found, count + 1
    return count
