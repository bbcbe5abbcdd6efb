"""The certificate of a forest, checked from its definition in exact arithmetic.

A forest proves a rate: its trees span, and no link carries more than it can. A cut
proves that no schedule is faster: everything that ranks inside it hold must leave
through its links. Neither proof trusts the code that found them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from math import gcd, lcm

from colsynth.errors import Diagnostic, VerificationError
from colsynth.model import (
    Bound,
    Collective,
    Cut,
    Direction,
    Forest,
    Kind,
    Phase,
    Problem,
    RootedBound,
    Topology,
    Tree,
)
from colsynth.model.forest import TreeEdge
from colsynth.model.problem import PHASES
from colsynth.verify.allreduce import check_rooted, open_links

_POWER = {Direction.OUT: "multicast", Direction.IN: "reduce"}
"""What a switch must be capable of for the edges of a tree to part there."""

Loads = dict[int, Fraction]
"""Bytes per second on links, by index."""

_Taken = tuple[TreeEdge, int]
"""An edge, and the weight of all trees that have it."""


def check_forest(forest: Forest) -> None:
    """Check that trees span, links hold, and the bound is one.

    Parameters
    ----------
    forest : Forest

    Raises
    ------
    VerificationError
        CS521 when a tree is no spanning arborescence of its root or a route is broken,
        CS522 when the weights of a root do not add up, CS523 when a link carries more
        than its bandwidth, CS524 when a cut or the rate derived from it is wrong, CS525
        when the forest claims more than the bound.

    Notes
    -----
    Linear in the edges of all trees and in the length of different routes.
    """
    problem = forest.problem
    wanted = PHASES.get(problem.collective)
    found = tuple(phase.direction for phase in forest.phases)
    if found != wanted:
        raise _failure("CS522", f"phases are {found}, {problem.collective} takes {wanted}")
    loads = [_check_phase(forest, phase) for phase in forest.phases]
    if forest.together:
        _check_loads(problem.topology, _added(loads), "all phases together")
    _check_shares(forest)
    if isinstance(forest.bound, RootedBound):
        check_rooted(problem, forest.bound)
    else:
        _check_bound(problem, forest.bound)
    if forest.algbw > forest.bound.algbw:
        text = f"the forest claims {forest.algbw} bytes/s, the bound is {forest.bound.algbw}"
        raise _failure("CS525", text)


def _check_phase(forest: Forest, phase: Phase) -> Loads:
    """Check trees, weights and loads; return what each link carries, bytes/s."""
    topology = forest.problem.topology
    member_of = {rank: set(group) for group in forest.problem.members for rank in group}
    if phase.unit_bandwidth <= 0:
        raise _failure("CS523", f"a unit of weight is given {phase.unit_bandwidth} bytes/s")
    weights: Counter[int] = Counter()
    carried: Counter[int] = Counter()
    taken: dict[int, _Taken] = {}
    for tree in phase.trees:
        _check_tree(topology, tree, phase.direction, taken)
        _check_reach(forest.problem, tree, member_of.get(tree.root, set()))
        weights[tree.root] += tree.weight
        if forest.in_network:
            _carry_once(topology, tree, phase.direction, carried)
    for edge, weight in () if forest.in_network else taken.values():
        for link in edge.route:
            carried[link] += weight
    _check_weights(forest, weights)
    loads = {link: weight * phase.unit_bandwidth for link, weight in carried.items()}
    _check_loads(topology, loads, f"the {phase.direction} phase")
    return loads


def _carry_once(
    topology: Topology, tree: Tree, direction: Direction, carried: Counter[int]
) -> None:
    """Add up a tree's loads where switches copy what they send on, or add up what they get."""
    outwards = direction is Direction.OUT
    routes: dict[int, list[tuple[int, ...]]] = {}
    for edge in tree.edges:
        routes.setdefault(edge.parent, []).append(edge.route[:: 1 if outwards else -1])

    def units(routes: list[tuple[int, ...]]) -> int:
        """Return how many times a parent must have the chunk for these ways, away from it."""
        total = 0
        for link in sorted({route[0] for route in routes if route}):
            onward = [route[1:] for route in routes if route and route[0] == link]
            end = topology.links[link].target if outwards else topology.links[link].source
            needed = sum(1 for route in onward if not route) + units(onward)
            if _POWER[direction] in topology.nodes[end].capabilities:
                needed = min(needed, 1)
            carried[link] += needed * tree.weight
            total += needed
        return total

    for parent in sorted(routes):
        units(routes[parent])


def _check_loads(topology: Topology, loads: Loads, when: str) -> None:
    for link, load in sorted(loads.items()):
        capacity = topology.links[link].bandwidth
        if load > capacity:
            text = f"link {topology.link_name(link)} carries {load} of {capacity} bytes/s"
            raise _failure("CS523", f"{text} in {when}")


def _added(loads: Iterable[Loads]) -> Loads:
    total: Loads = {}
    for part in loads:
        for link, load in part.items():
            total[link] = total.get(link, Fraction(0)) + load
    return total


def _check_shares(forest: Forest) -> None:
    """Check that roots have their part of the chunks, and that phases at once are of one pace."""
    problem = forest.problem
    if problem.shards:
        _check_proportions(forest)
    elif forest.shares and (
        problem.collective is not Collective.ALLREDUCE or min(forest.shares) < 0
    ):
        text = f"{problem.collective} cannot have shares {forest.shares}"
        raise _failure("CS522", text)
    if len({phase.unit_bandwidth for phase in forest.phases}) > 1 and forest.together:
        raise _failure("CS523", "phases that run together are given different bandwidths")


def _check_proportions(forest: Forest) -> None:
    """Check that chunks are shared out as the problem's shards are."""
    problem = forest.problem
    whole, chunks = sum(problem.weights), forest.chunks
    for root, part, held in zip(problem.roots, problem.weights, forest.weights, strict=True):
        if held * whole != part * chunks or chunks < 1:
            text = f"rank {root} has {held} of {chunks} chunks"
            raise _failure("CS522", f"{text}, and {part} of {whole} parts of the message")


def _check_weights(forest: Forest, weights: Counter[int]) -> None:
    roots = forest.problem.roots
    strangers = sorted(set(weights) - set(roots))
    if strangers:
        raise _failure("CS522", f"ranks {strangers} have trees but are no roots")
    if len(forest.weights) != len(roots):
        raise _failure("CS522", f"{len(forest.weights)} shares for {len(roots)} roots")
    for root, wanted in zip(roots, forest.weights, strict=True):
        if weights[root] != wanted:
            text = f"the trees of rank {root} weigh {weights[root]}"
            raise _failure("CS522", f"{text}, not {wanted}")


def _check_tree(
    topology: Topology, tree: Tree, direction: Direction, taken: dict[int, _Taken]
) -> None:
    """Check that a tree is one; add its weight to what each of its edges carries.

    Trees may share edges, by identity: such a route is walked once.
    """
    if tree.weight < 1:
        raise _failure("CS522", f"a tree of rank {tree.root} weighs {tree.weight}")
    reached = {tree.root}
    for edge in tree.edges:
        if edge.parent not in reached:
            text = f"rank {edge.child} hangs on rank {edge.parent} before that is reached"
            raise _tree_failure(tree, text)
        if edge.child in reached:
            raise _tree_failure(tree, f"rank {edge.child} is reached twice")
        reached.add(edge.child)
        known = taken.get(id(edge))
        if known is None:
            _check_route(topology, tree, edge, direction)
        taken[id(edge)] = (edge, tree.weight + (known[1] if known else 0))


def _check_reach(problem: Problem, tree: Tree, members: set[int]) -> None:
    """Check that a tree spans the group of its root, and passes others only in transit."""
    reached = {tree.root, *(edge.child for edge in tree.edges)}
    missing = sorted(members - reached)
    if missing:
        raise _tree_failure(tree, f"ranks {missing} are not reached")
    if not reached <= set(range(problem.topology.size)):
        raise _tree_failure(tree, "it reaches ranks that do not exist")
    strangers = sorted(reached - members)
    if strangers and not problem.transit:
        raise _tree_failure(tree, f"ranks {strangers} are not of its group")


def _check_route(topology: Topology, tree: Tree, edge: TreeEdge, direction: Direction) -> None:
    """Check that links lead from one GPU to the other, through switches and NICs only."""
    ends = (edge.parent, edge.child) if direction is Direction.OUT else (edge.child, edge.parent)
    name = f"the route from rank {ends[0]} to rank {ends[1]}"
    if not all(0 <= rank < topology.size for rank in ends):
        raise _tree_failure(tree, f"{name} has an end that does not exist")
    at, goal = topology.ranks[ends[0]], topology.ranks[ends[1]]
    for index in edge.route:
        if not 0 <= index < len(topology.links):
            raise _tree_failure(tree, f"{name} takes link {index}, which does not exist")
        link = topology.links[index]
        if link.source != at:
            raise _tree_failure(tree, f"{name} jumps to {topology.link_name(index)}")
        at = link.target
        if at != goal and topology.nodes[at].kind is Kind.GPU:
            raise _tree_failure(tree, f"{name} passes through GPU {topology.nodes[at].name}")
    if at != goal:
        raise _tree_failure(tree, f"{name} ends at {topology.nodes[at].name}")


def _check_bound(problem: Problem, bound: Bound) -> None:
    directions = PHASES[problem.collective]
    if len(bound.cuts) != len(directions) or len(bound.rates) != len(directions):
        raise _failure("CS524", f"{len(bound.cuts)} cuts for {len(directions)} phases")
    for direction, cut, rate in zip(directions, bound.cuts, bound.rates, strict=True):
        if cut.direction is not direction:
            raise _failure("CS524", f"the cut of the {direction} phase is for {cut.direction}")
        _check_cut(problem, cut)
        _check_rate(problem, cut, rate)
    whole = 1 / sum((1 / rate for rate in bound.rates), Fraction(0))
    if bound.algbw != whole:
        raise _failure("CS524", f"the phases allow {whole} bytes/s, not {bound.algbw}")
    if not problem.groups:  # groups have trees that each takes alone, which the bound does not say
        _check_trees_per_root(problem, bound)


def _check_trees_per_root(problem: Problem, bound: Bound) -> None:
    """Check that with no fewer trees per root every link carries whole trees at the rate."""
    bandwidths = {link.bandwidth for link in problem.topology.links}
    units = [rate / sum(problem.weights) for rate in bound.rates]
    bottom = lcm(*(value.denominator for value in (*bandwidths, *units)))
    widths = gcd(*(int(value * bottom) for value in bandwidths))
    shares = [int(unit * bottom) for unit in units]
    count = lcm(*(share // gcd(share, widths) for share in shares))
    if bound.trees_per_root != count:
        text = f"the bound takes {count} trees per root"
        raise _failure("CS524", f"{text}, not {bound.trees_per_root}")


def _check_cut(problem: Problem, cut: Cut) -> None:
    """Check that the set is one, and that `links` are all that cross it in its direction."""
    topology = problem.topology
    inside = set(cut.nodes)
    gpus = tuple(rank for rank, node in enumerate(topology.ranks) if node in inside)
    if gpus != cut.gpus or not gpus:
        raise _failure("CS524", f"the cut says ranks {cut.gpus}, its nodes hold {gpus}")
    if all(set(group) <= set(gpus) for group in problem.members):
        raise _failure("CS524", "the cut leaves no GPU outside")
    is_open = open_links(problem, _crossing(problem, cut))
    crossing = []
    for index, link in enumerate(topology.links):
        leaves = link.source in inside and link.target not in inside
        enters = link.target in inside and link.source not in inside
        if (leaves if cut.direction is Direction.OUT else enters) and is_open[index]:
            crossing.append(index)
    if sorted(cut.links) != crossing:
        missing = sorted(set(crossing) ^ set(cut.links))
        names = ", ".join(topology.link_name(i) for i in missing if 0 <= i < len(topology.links))
        raise _failure("CS524", f"the cut's links differ from those that cross it: {names}")
    bandwidth = sum((topology.links[index].bandwidth for index in crossing), Fraction(0))
    if bandwidth != cut.bandwidth or bandwidth <= 0:
        text = f"the cut's links carry {bandwidth} bytes/s, not {cut.bandwidth}"
        raise _failure("CS524", text)


def _crossing(problem: Problem, cut: Cut) -> list[tuple[int, ...]]:
    """Return the groups with a root inside a cut and a member outside."""
    gpus, roots = (
        set(cut.gpus),
        {r for r, w in zip(problem.roots, problem.weights, strict=True) if w},
    )
    groups = [group for group in problem.members if not set(group) <= gpus]
    return [group for group in groups if gpus & roots & set(group)]


def _check_rate(problem: Problem, cut: Cut, rate: Fraction) -> None:
    """Check a rate against its cut: shards of the roots inside must leave through it.

    Every group has a message of its own.
    """
    parts = dict(zip(problem.roots, problem.weights, strict=True))
    ranks = [rank for group in _crossing(problem, cut) for rank in group if rank in cut.gpus]
    inside = sum(parts.get(rank, 0) for rank in ranks)
    if not inside:
        raise _failure("CS524", "the cut holds no root, so nothing must cross it")
    allowed = sum(parts.values()) * cut.bandwidth / (inside * len(problem.members))
    if rate != allowed:
        raise _failure("CS524", f"the cut allows {allowed} bytes/s, not {rate}")


def _tree_failure(tree: Tree, text: str) -> VerificationError:
    return _failure("CS521", f"a tree of rank {tree.root} is wrong: {text}")


def _failure(code: str, phrase: str) -> VerificationError:
    return VerificationError(Diagnostic(code, phrase))
