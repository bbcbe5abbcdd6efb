"""Allreduce forests that branch at switches: in-network reduction and multicast.

A switch that multicasts is a place where trees outwards may branch, as a GPU is; one that
reduces is one where trees inwards may join (NVLink SHARP and NVLS, InfiniBand SHARP). So
trees are packed over GPUs and such switches alike, every tree reaching all of them, and
the switches then disappear into the routes of the edges between GPUs. Edges of a tree
that leave their parent together share their links up to the switch where they part.

That every tree reaches every such switch is more than is needed. So it is tried with all
of them, with those inside boxes and with those outside, and the best is taken; the gap to
the bound, which asks for no such thing, is known. (Packing trees that may leave nodes out
is hard, and need not reach what cuts allow.)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from colsynth.model import (
    AllreduceBound,
    Direction,
    Forest,
    Kind,
    Phase,
    Problem,
    RootedBound,
    Topology,
    Tree,
    TreeEdge,
)
from colsynth.synthesis.allreduce.pack import packed
from colsynth.synthesis.allreduce.rooted import Proposal
from colsynth.synthesis.allreduce.sides import Branching, Halves, Side, capable, halves_of
from colsynth.synthesis.allreduce.whole import WholeSearch, WholeTrees
from colsynth.synthesis.forest.pack_trees import merge_equal, turned
from colsynth.synthesis.network import Ints


def in_network_forest(problem: Problem, found: AllreduceBound, trees: str) -> Forest | None:
    """Return a forest whose trees branch at switches; None where there is none.

    Parameters
    ----------
    problem : Problem
    found : AllreduceBound
        Of the problem; without `in_network` there is no such forest.
    trees : str
        ``"auto"``, ``"optimal"`` or the number of trees in all, as in `PackRoots`.
    """
    if found.in_network is None:
        return None
    best = max(_proposals(problem), key=lambda item: item[0].reached, default=None)
    if best is None:
        return None
    rooted, branching, halves = best
    search = WholeSearch(problem, rooted, halves)
    whole = search.choose(trees)
    if whole is None:
        return None
    phases = {
        side.direction: _phase(problem, side, branching, whole, units)
        for side, units in zip(halves.sides, whole.units, strict=True)
    }
    if halves.partner is not None:
        phases[Direction.IN] = turned(problem.topology, phases[Direction.OUT], Direction.IN)
    return Forest(
        problem=problem,
        bound=found.in_network,
        trees_per_root=0,
        phases=(phases[Direction.IN], phases[Direction.OUT]),
        shares=tuple(int(whole.counts[node]) for node in problem.topology.ranks),
        together=True,
        in_network=True,
    )


def _proposals(problem: Problem) -> Iterator[tuple[RootedBound, Branching, Halves]]:
    """Yield what each choice of switches to branch at can reach."""
    everywhere = capable(problem.topology)
    nodes = problem.topology.nodes
    inside = {w: tuple(i for i in v if nodes[i].box is not None) for w, v in everywhere.items()}
    outside = {w: tuple(i for i in v if nodes[i].box is None) for w, v in everywhere.items()}
    for branching in (everywhere, inside, outside):
        if not any(branching.values()):
            continue
        halves = halves_of(problem, branching, reached=True)
        rooted = Proposal(problem, halves, in_network=True).bound()
        if rooted is not None:
            yield rooted, branching, halves


def _phase(
    problem: Problem, side: Side, branching: Branching, whole: WholeTrees, units: Ints
) -> Phase:
    """Pack the trees of one half over GPUs and switches, then leave the switches out."""
    places = sorted(branching.get(side.direction, ()))
    wider = replace(problem, topology=_with_gpus_at(problem.topology, places))
    grown = packed(wider, side, whole.counts, units)
    trees = [_without(tree, problem.topology.size, side.direction) for tree in grown]
    return Phase(side.direction, merge_equal(trees), whole.unit_bandwidth)


def _with_gpus_at(topology: Topology, places: list[int]) -> Topology:
    """Return the topology with GPUs in the place of some switches, ranked behind all others."""
    nodes = [replace(x, kind=Kind.GPU) if i in places else x for i, x in enumerate(topology.nodes)]
    return replace(topology, nodes=tuple(nodes), ranks=(*topology.ranks, *places))


def _without(tree: Tree, size: int, direction: Direction) -> Tree:
    """Return a tree without ranks from `size` on: their edges become parts of routes."""
    above: dict[int, tuple[int, tuple[int, ...]]] = {}
    edges: list[TreeEdge] = []
    for edge in tree.edges:
        parent, before = above.get(edge.parent, (edge.parent, ()))
        outwards = direction is Direction.OUT
        route = before + edge.route if outwards else edge.route + before
        if edge.child < size:
            edges.append(TreeEdge(parent, edge.child, route))
        else:
            above[edge.child] = parent, route
    return Tree(tree.root, tree.weight, tuple(edges))
