"""Pass pack-trees: Problem -> Forest at the exact rate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colsynth.errors import DefectError, Diagnostic, InputError
from colsynth.model import Bound, Direction, Forest, Phase, Problem, Topology, Tree, TreeEdge
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.bound import bound, least_ratio
from colsynth.synthesis.forest.choose import PREFERENCES, pack_best
from colsynth.synthesis.forest.digraph import Digraph, Packed, by_level
from colsynth.synthesis.forest.forwarding import counts_forwarded, forwarding_of
from colsynth.synthesis.forest.rate import (
    Rate,
    fixed_rate,
    numbers_of_trees,
    require_trees,
    trees_per_root,
)
from colsynth.synthesis.forest.routes import Arc, Bundle, Supply, bundled
from colsynth.synthesis.forest.switches import remove_switches
from colsynth.synthesis.network import (
    Ints,
    Network,
    network_of,
    refuse_unforwarded,
    to_int64,
)

_REFINEMENT = 16
"""How much finer capacities are cut where switches cannot forward all that enters."""

_PRECISION = 2**12
"""Part of the demand up to which the largest one served is sought there."""


@dataclass(frozen=True, slots=True)
class PackTrees:
    """Pack spanning trees at the best rate for their number.

    Parameters
    ----------
    trees : str
        ``"optimal"``: the fewest per root that reach the exact optimum. ``"auto"``: the
        fewest within 2 % of it. A number K: the best rate that K trees per root can have.
    prefer : str
        Which trees to take at that rate, up to 64 GPUs: ``"low"`` ones, or as ``"few"``
        different ones as are found, which take fewer threadblocks and may be higher;
        ``"plain"`` ones come from one order of packing.

    Notes
    -----
    Rate from cuts, switches removed under certificates, arborescences packed by the
    constructive form of Edmonds' theorem; see the modules `rate`, `switches` and
    ``kernels/packing``. On graphs whose switches have as much ingress as egress the rate
    is reached exactly; elsewhere the gap to the cut bound is measured and kept in the
    forest. Polynomial: some maximum flows per GPU and level of the trees.
    """

    trees: str = "auto"
    prefer: str = "low"

    name: ClassVar[str] = "pack-trees"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("trees", propose=numbers_of_trees),
        Choice("prefer", ("low", "few")),
    )

    def __post_init__(self) -> None:
        require_trees(self.trees)
        if self.prefer not in PREFERENCES:
            phrase = f"prefer {self.prefer}: expected {' or '.join(PREFERENCES)}"
            raise InputError(Diagnostic("CS210", phrase))

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem."""
        if value.groups:
            from colsynth.synthesis.groups.pack import forest_of_groups

            return forest_of_groups(value, self, target)
        optimum = bound(value)
        tried: list[Forest] = []
        for count in self._counts(value, optimum):
            tried.append(_forest(value, optimum, count, self.prefer, target))
            if tried[-1].gap == 0:
                return tried[-1]
        return min(tried, key=lambda forest: forest.gap)

    def _counts(self, problem: Problem, optimum: Bound) -> Iterator[int]:
        """Yield numbers of trees per root to try until one reaches the bound."""
        known = trees_per_root(self.trees, problem, optimum)
        yield from known
        if self.trees == "optimal":
            yield from (count for count in counts_forwarded(problem) if count not in known)


def _forest(problem: Problem, optimum: Bound, trees: int, prefer: str, target: Target) -> Forest:
    """Pack `trees` trees per root, as fast as they can be."""
    phases: list[Phase] = []
    for number, (cut, algbw) in enumerate(zip(optimum.cuts, optimum.rates, strict=True)):
        target.progress("packing trees", number, len(optimum.cuts))
        if phases and problem.topology.is_symmetric:
            phases.append(turned(problem.topology, phases[0], cut.direction))
        else:
            phases.append(_phase(problem, cut.direction, trees, prefer, algbw))
    shares = tuple(part * trees for part in problem.shards)
    return Forest(problem, optimum, 0 if shares else trees, tuple(phases), shares)


def _phase(
    problem: Problem, direction: Direction, trees: int, prefer: str, algbw: Fraction
) -> Phase:
    """Pack one phase; `algbw` is its optimum."""
    network = network_of(problem, direction)
    rate = algbw / int(network.weight.sum())
    found = fixed_rate(network, trees, rate)
    arcs, deficit = remove_switches(problem.topology, network, found.units, trees)
    unit = found.unit_bandwidth
    if deficit:
        fitted = _balanced(problem, network, direction, trees, unit)
        unit, arcs = fitted or _refined(problem.topology, network, found, trees, rate)
    packed = pack(network, arcs, trees, problem, direction, prefer)
    return Phase(direction, merge_equal(packed), unit)


def _balanced(
    problem: Problem, network: Network, direction: Direction, trees: int, most: Fraction
) -> tuple[Fraction, tuple[Arc, ...]] | None:
    """Return (bandwidth of a unit, arcs) of capacities that every switch can forward.

    None where the programs that choose them are too large or give up.
    """
    forwarding = forwarding_of(problem, direction)
    found = forwarding and forwarding.fit(trees, most)
    if not found:
        return None
    arcs, deficit = remove_switches(problem.topology, network, found.units, trees)
    return None if deficit else (found.unit_bandwidth, arcs)


def _refined(
    topology: Topology, network: Network, found: Rate, trees: int, rate: Fraction
) -> tuple[Fraction, tuple[Arc, ...]]:
    """Return (bandwidth of a unit, arcs) of what is left of capacities that are cut finer."""
    whole = Rate(network.integers, network.unit)
    return max(
        _forwarded(topology, network, found, trees, trees),
        _forwarded(topology, network, whole, int(rate / network.unit), trees),
        key=lambda fitted: fitted[0],
    )


def _forwarded(
    topology: Topology, network: Network, base: Rate, demand: int, trees: int
) -> tuple[Fraction, tuple[Arc, ...]]:
    """Return (bandwidth of a unit, arcs) where switches lose some of what cuts allow.

    Capacities that were rounded down to trees, as `base` may be, and switches with more
    ingress than egress or the reverse cannot always forward what the cuts allow. So
    capacities are cut finer, the largest `demand` per root is sought that survives the
    removal of switches, and the trees are fitted to the logical arcs that it leaves.
    """
    finer = [int(units) * _REFINEMENT for units in base.units]
    units = to_int64(finer, "capacities in parts of trees")
    arcs = _largest_served(topology, network, units, demand * _REFINEMENT)
    arcs, scale = _refitted(topology, network, arcs, trees)
    return base.unit_bandwidth / (_REFINEMENT * scale), arcs


def _largest_served(
    topology: Topology, network: Network, units: Ints, most: int
) -> tuple[Arc, ...]:
    """Return the logical arcs of about the largest demand up to `most` that they serve."""
    low, middle, high = 0, most, most + 1
    best: tuple[Arc, ...] = ()
    while high - low > max(1, high // _PRECISION):
        arcs, deficit = remove_switches(topology, network, units, middle)
        if deficit:
            high = middle
        else:
            low, best = middle, arcs
        middle = (low + high) // 2
    return best or remove_switches(topology, network, units, 1)[0]


def _refitted(
    topology: Topology, network: Network, arcs: Sequence[Arc], trees: int
) -> tuple[tuple[Arc, ...], Fraction]:
    """Return the arcs with capacities that hold the trees, and how much finer they are."""
    logical = Network(
        size=network.size,
        tail=np.array([arc.tail for arc in arcs], np.int64),
        head=np.array([arc.head for arc in arcs], np.int64),
        capacity=tuple(Fraction(arc.units) for arc in arcs),
        gpus=network.gpus,
        weight=network.weight,
    )
    rate, inside = least_ratio(logical)
    if rate == 0:
        refuse_unforwarded(topology, inside)
    fitted: Rate = fixed_rate(logical, trees, rate)
    refined = (a._replace(units=int(u)) for a, u in zip(arcs, fitted.units, strict=True))
    return tuple(arc for arc in refined if arc.units), 1 / fitted.unit_bandwidth


def pack(
    network: Network,
    arcs: Sequence[Arc],
    trees: int,
    problem: Problem,
    direction: Direction,
    prefer: str = "low",
) -> Iterator[Tree]:
    """Yield trees packed into the arcs; those between the same GPUs count as one.

    Each root of the network gets `trees` times its weight of them; `prefer` is as in
    `PackTrees`.
    """
    place = {int(node): rank for rank, node in enumerate(network.gpus)}
    # Preference among the arcs of one GPU: wide ones first, then the next GPU around.
    size = len(place)
    bundles = sorted(
        bundled(arcs),
        key=lambda b: (place[b.tail], -b.units, (place[b.head] - place[b.tail]) % size),
    )
    graph = Digraph(
        size,
        np.array([place[bundle.tail] for bundle in bundles], np.int64),
        np.array([place[bundle.head] for bundle in bundles], np.int64),
        np.array([bundle.units for bundle in bundles], np.int64),
    )
    roots = np.array(sorted(network.roots, key=lambda node: place[int(node)]), np.int64)
    ranks = np.array([place[int(root)] for root in roots], np.int64)
    found = pack_best(graph, ranks, network.weight[roots] * trees, prefer)
    if found is None:
        raise DefectError(
            Diagnostic(
                "CS901",
                "tree packing stopped although the cut condition holds",
                notes=(f"topology {problem.topology.name}, {trees} trees per root",),
            )
        )
    supplies = [Supply(edges) for edges in _edges(bundles, place, direction)]
    for packed in found:
        yield from _routed(packed, [supplies[arc] for arc in by_level(graph, packed)])


def _edges(
    bundles: Sequence[Bundle], place: dict[int, int], direction: Direction
) -> Iterator[list[tuple[TreeEdge, int]]]:
    """Yield (edge, units) for every route of every bundle; trees share these edges.

    A route of an IN phase lists links in the order data takes them.
    """
    step = 1 if direction is Direction.OUT else -1
    for bundle in bundles:
        parent, child = place[bundle.tail], place[bundle.head]
        yield [(TreeEdge(parent, child, arc.route[::step]), arc.units) for arc in bundle.arcs]


def _routed(packed: Packed, supplies: Sequence[Supply[TreeEdge]]) -> Iterator[Tree]:
    """Yield equal trees with the routes of their edges, as many at a time as routes allow."""
    weight = packed.weight
    while weight:
        part = min(weight, *(supply.room for supply in supplies))
        yield Tree(packed.root, part, tuple(supply.take(part) for supply in supplies))
        weight -= part


def merge_equal(trees: Iterable[Tree]) -> tuple[Tree, ...]:
    """Add up the weights of equal trees; sort by root, widest and lowest first.

    Trees that only differ in their routes through switches stay beside each other: their
    chunks travel together. Trees of one packing share their edges, so few edges have to be
    told apart by value.
    """
    by_value: dict[TreeEdge, int] = {}
    number: dict[int, int] = {}
    merged: dict[tuple[int, ...], Tree] = {}
    kept = tuple(trees)
    for tree in kept:
        for edge in tree.edges:
            if id(edge) not in number:
                number[id(edge)] = by_value.setdefault(edge, len(by_value))
        key = (tree.root, *(number[id(edge)] for edge in tree.edges))
        before = merged.get(key)
        merged[key] = replace(tree, weight=tree.weight + (before.weight if before else 0))
    found = list(merged.values())
    if len(found) == len({tree.root for tree in found}):
        return tuple(sorted(found, key=lambda tree: tree.root))
    shapes = [(tree.root, *((e.parent, e.child) for e in tree.edges)) for tree in found]
    width: dict[tuple[object, ...], int] = {}
    for shape, tree in zip(shapes, found, strict=True):
        width[shape] = width.get(shape, 0) + tree.weight
    first = {shape: place for place, shape in enumerate(width)}
    rows = zip(shapes, found, strict=True)
    ordered = sorted(
        rows, key=lambda x: (x[1].root, -width[x[0]], x[1].height, first[x[0]], -x[1].weight)
    )
    return tuple(tree for _, tree in ordered)


def turned(topology: Topology, phase: Phase, direction: Direction) -> Phase:
    """Return the phase for the other direction on a topology equal to its reverse."""
    links, between = topology.links, topology.link_between
    reverse = [between[link.target, link.source] for link in links]
    turned: dict[int, TreeEdge] = {}
    for edge in (edge for tree in phase.trees for edge in tree.edges):
        if id(edge) not in turned:
            route = tuple(reverse[i] for i in reversed(edge.route))
            turned[id(edge)] = TreeEdge(edge.parent, edge.child, route)
    trees = tuple(
        Tree(tree.root, tree.weight, tuple(turned[id(edge)] for edge in tree.edges))
        for tree in phase.trees
    )
    return Phase(direction, trees, phase.unit_bandwidth)
