"""Weighted trees, stored once, outwards; a phase says which way they are walked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from colsynth.model.allreduce import RootedBound
from colsynth.model.bound import Bound
from colsynth.model.problem import Direction, Problem
from colsynth.model.topology import Topology
from colsynth.units import format_bandwidth, plural


@dataclass(frozen=True, slots=True)
class TreeEdge:
    """An edge of a tree between two ranks, away from the root.

    Parameters
    ----------
    parent, child : int
        Ranks.
    route : tuple of int
        Link indices in the order data takes them: from parent to child in an OUT
        phase, from child to parent in an IN phase.
    """

    parent: int
    child: int
    route: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tree:
    """A spanning arborescence that carries `weight` equal chunks of its root's shard.

    In a process group it spans the group's members; with transit it may pass other GPUs.

    Parameters
    ----------
    root : int
        Rank.
    weight : int
        Number of chunks it carries, one or more.
    edges : tuple of TreeEdge
        N - 1 edges (and one for each other GPU), every edge after the one that reaches its
        parent.
    """

    root: int
    weight: int
    edges: tuple[TreeEdge, ...]

    def depths(self) -> dict[int, int]:
        """Return the number of edges between the root and every rank."""
        depth = {self.root: 0}
        for edge in self.edges:
            depth[edge.child] = depth[edge.parent] + 1
        return depth

    @property
    def height(self) -> int:
        """Depth of the deepest rank."""
        return max(self.depths().values())


def chunks_on_links(trees: Iterable[Tree]) -> Counter[int]:
    """Return the chunks that each link carries, by its index, if all its edges carry their own."""
    carried: Counter[int] = Counter()
    for tree in trees:
        for edge in tree.edges:
            for link in edge.route:
                carried[link] += tree.weight
    return carried


def unit_bandwidth(topology: Topology, chunks: Mapping[int, int | Fraction]) -> Fraction:
    """Return the bytes per second of a chunk at which the fullest of some links is full."""
    return min(topology.links[link].bandwidth / count for link, count in chunks.items())


@dataclass(frozen=True, slots=True)
class Phase:
    """Trees walked in one direction.

    Parameters
    ----------
    direction : Direction
    trees : tuple of Tree
        For every root, weights add up to its part of `Forest.weights`.
    unit_bandwidth : Fraction
        Bytes per second that one unit of weight is given on each of its links.
    """

    direction: Direction
    trees: tuple[Tree, ...]
    unit_bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class Forest:
    """A schedule of trees for a problem, beside the bound it is measured against.

    Parameters
    ----------
    problem : Problem
    bound : Bound or RootedBound
    trees_per_root : int
        Chunks of every root; 0 where roots have shares of their own.
    phases : tuple of Phase
    shares : tuple of int
        Chunks of every root, in the order of `Problem.roots`; some may have none. Empty
        where all have `trees_per_root`.
    together : bool
        Whether phases run at the same time, on different chunks, and share the links.
    in_network : bool
        Whether edges of a tree that leave their parent on the same links take these once, up
        to a switch that multicasts (OUT) or reduces (IN). No runtime file can say so.
    """

    problem: Problem
    bound: Bound | RootedBound
    trees_per_root: int
    phases: tuple[Phase, ...]
    shares: tuple[int, ...] = ()
    together: bool = False
    in_network: bool = False

    def __repr__(self) -> str:
        """Return one line: fields hold the topology and every edge of every tree."""
        problem, rate, most = self.problem, *map(format_bandwidth, (self.algbw, self.bound.algbw))
        trees = plural(sum(len(phase.trees) for phase in self.phases), "different tree")
        found = f"{problem.collective} on {problem.topology.name}, {trees}"
        return f"Forest({found}, {rate}, at most {most})"

    @property
    def weights(self) -> tuple[int, ...]:
        """Chunks of every root, in the order of `Problem.roots`."""
        return self.shares or (self.trees_per_root,) * len(self.problem.roots)

    @property
    def chunks(self) -> int:
        """Chunks of the whole message, that of one process group."""
        return sum(self.weights) // len(self.problem.members)

    @property
    def algbw(self) -> Fraction:
        """Algorithm bandwidth reached, bytes per second."""
        if self.together:
            return self.chunks * min(phase.unit_bandwidth for phase in self.phases)
        return 1 / sum((1 / (self.chunks * p.unit_bandwidth) for p in self.phases), Fraction(0))

    @property
    def gap(self) -> Fraction:
        """Lost share of time: bound / reached - 1; 0 is proven optimal."""
        return self.bound.algbw / self.algbw - 1

    @property
    def max_height(self) -> int:
        """Height of the tallest tree."""
        return max(tree.height for phase in self.phases for tree in phase.trees)

    @property
    def mean_height(self) -> Fraction:
        """Mean height of the trees, each counted with its weight."""
        heights = [(t.height * t.weight, t.weight) for p in self.phases for t in p.trees]
        return Fraction(sum(h for h, _ in heights), sum(w for _, w in heights))
