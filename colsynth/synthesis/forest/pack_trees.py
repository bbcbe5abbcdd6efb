"""Pass pack-trees: Problem -> Forest at the exact rate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from colsynth.errors import DefectError, Diagnostic
from colsynth.kernels.packing import pack_arborescences
from colsynth.model import Direction, Forest, Phase, Problem, Topology, Tree, TreeEdge
from colsynth.runtimes.target import Target
from colsynth.synthesis.bound import bound, least_ratio, phases_of
from colsynth.synthesis.forest.rate import Rate, fixed_rate, require_trees, trees_per_root
from colsynth.synthesis.forest.routes import Arc, Supply, bundled
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
        ``"optimal"``: as many per root as the exact optimum needs. ``"auto"``: the fewest
        within 2 % of it. A number K: the best rate that K trees per root can have.

    Notes
    -----
    Rate from cuts, switches removed under certificates, arborescences packed by the
    constructive form of Edmonds' theorem; see the modules `rate`, `switches` and
    ``kernels/packing``. On graphs whose switches have as much ingress as egress the rate
    is reached exactly; elsewhere the gap to the cut bound is measured and kept in the
    forest. Polynomial: about one maximum flow per tree edge.
    """

    trees: str = "auto"

    name: ClassVar[str] = "pack-trees"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest

    def __post_init__(self) -> None:
        require_trees(self.trees)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem."""
        optimum = bound(value)
        count = trees_per_root(self.trees, value, optimum)
        phases: dict[Direction, Phase] = {}
        directions = phases_of(value)
        for number, (direction, algbw) in enumerate(zip(directions, optimum.rates, strict=True)):
            target.progress("packing trees", number, len(directions))
            if phases and value.topology.is_symmetric:
                phases[direction] = turned(value.topology, phases[directions[0]], direction)
            else:
                rate = algbw / len(value.roots)
                phases[direction] = _phase(value, direction, count, rate)
        return Forest(value, optimum, count, tuple(phases[d] for d in directions))


def _phase(problem: Problem, direction: Direction, trees: int, rate: Fraction) -> Phase:
    """Pack one phase; `rate` is its optimum per unit of root weight."""
    network = network_of(problem, direction)
    found = fixed_rate(network, trees, rate)
    arcs, deficit = remove_switches(problem.topology, network, found.units, trees)
    unit = found.unit_bandwidth
    if deficit:
        whole = Rate(network.integers, network.unit)
        unit, arcs = max(
            _forwarded(problem.topology, network, found, trees, trees),
            _forwarded(problem.topology, network, whole, int(rate / network.unit), trees),
            key=lambda fitted: fitted[0],
        )
    packed = tuple(pack(network, arcs, trees, problem, direction))
    return Phase(direction, merge_equal(packed), unit)


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
    network: Network, arcs: Sequence[Arc], trees: int, problem: Problem, direction: Direction
) -> Iterator[Tree]:
    """Yield trees packed into the arcs; those between the same GPUs count as one.

    Each root of the network gets `trees` times its weight of them.
    """
    place = {int(node): rank for rank, node in enumerate(network.gpus)}
    # Preference among the arcs of one GPU: wide ones first, then the next GPU around.
    size = len(place)
    bundles = sorted(
        bundled(arcs),
        key=lambda b: (place[b.tail], -b.units, (place[b.head] - place[b.tail]) % size),
    )
    roots = np.array(sorted(network.roots, key=lambda node: place[int(node)]), np.int64)
    sizes, edges = pack_arborescences(
        size,
        np.array([place[bundle.tail] for bundle in bundles], np.int64),
        np.array([place[bundle.head] for bundle in bundles], np.int64),
        np.array([bundle.units for bundle in bundles], np.int64),
        np.array([place[int(root)] for root in roots], np.int64),
        network.weight[roots] * trees,
    )
    if not sizes.all():
        raise DefectError(
            Diagnostic(
                "CS901",
                "tree packing stopped although the cut condition holds",
                notes=(f"topology {problem.topology.name}, {trees} trees per root",),
            )
        )
    supplies = [Supply(bundle) for bundle in bundles]
    for weight, row in zip(sizes, edges, strict=True):
        ends = [(place[bundles[i].tail], place[bundles[i].head]) for i in row[1:]]
        taken = [supplies[i] for i in row[1:]]
        yield from _routed(int(row[0]), int(weight), ends, taken, direction)


def _routed(
    root: int,
    weight: int,
    ends: Sequence[tuple[int, int]],
    supplies: Sequence[Supply],
    direction: Direction,
) -> Iterator[Tree]:
    """Yield equal trees with the routes of their edges, as many at a time as routes allow.

    A route of an IN phase lists links in the order data takes them.
    """
    step = 1 if direction is Direction.OUT else -1
    while weight:
        part = min(weight, *(supply.room for supply in supplies))
        routes = [supply.take(part)[::step] for supply in supplies]
        edges = (TreeEdge(*pair, route) for pair, route in zip(ends, routes, strict=True))
        yield Tree(root, part, tuple(edges))
        weight -= part


def merge_equal(trees: Sequence[Tree]) -> tuple[Tree, ...]:
    """Add up the weights of equal trees; sort by root, widest and lowest first."""
    weights: dict[tuple[int, tuple[TreeEdge, ...]], int] = {}
    for tree in trees:
        key = tree.root, tree.edges
        weights[key] = weights.get(key, 0) + tree.weight
    merged = [Tree(root, weight, edges) for (root, edges), weight in weights.items()]
    return tuple(
        sorted(
            merged,
            key=lambda t: (t.root, -t.weight, t.height, [(e.parent, e.child) for e in t.edges]),
        )
    )


def turned(topology: Topology, phase: Phase, direction: Direction) -> Phase:
    """Return the phase for the other direction on a topology equal to its reverse."""
    links, between = topology.links, topology.link_between
    reverse = [between[link.target, link.source] for link in links]
    trees = tuple(
        Tree(
            tree.root,
            tree.weight,
            tuple(
                TreeEdge(e.parent, e.child, tuple(reverse[i] for i in reversed(e.route)))
                for e in tree.edges
            ),
        )
        for tree in phase.trees
    )
    return Phase(direction, trees, phase.unit_bandwidth)
