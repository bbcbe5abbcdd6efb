"""Forests whose roots have equal numbers of trees, or numbers in proportion to their shards."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from colsynth.bounds.network import network_of
from colsynth.bounds.trees import bound
from colsynth.model import Bound, Direction, Forest, Phase, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.bfb.trees import may_grow, shortest_phase
from colsynth.synthesis.forest.capacities import fitted
from colsynth.synthesis.forest.circulant import circulant_phase
from colsynth.synthesis.forest.forwarding import counts_forwarded
from colsynth.synthesis.forest.grid import Distances, Grid
from colsynth.synthesis.forest.pack import pack
from colsynth.synthesis.forest.rate import fixed_rate, trees_per_root
from colsynth.synthesis.forest.trees import merge_equal, turned

_PACKED = 64
"""GPUs up to which trees are packed although shortest paths reach the same rate: some packings
have fewer trees, and the search compares both (-a bfb). Beyond, packing takes long."""


def equal_forest(
    problem: Problem, trees: str, prefer: str, target: Target, grid: Grid | Distances = ()
) -> Forest:
    """Return the forest of a problem without process groups.

    Parameters
    ----------
    problem : Problem
    trees, prefer : str
        As in `PackTrees`.
    target : Target
        Told of progress.
    grid : tuple of int
        Extents of the grid of `PackTrees`; none for ``"all"``.

    Raises
    ------
    InfeasibleError, InputError
        As `bounds.trees.bound`.
    """
    optimum = bound(problem)
    tried: list[Forest] = []
    for count in _counts(problem, trees, optimum):
        tried.append(_forest(problem, optimum, count, prefer, target, grid))
        if tried[-1].gap == 0:
            return tried[-1]
    return min(tried, key=lambda forest: forest.gap)


def _counts(problem: Problem, trees: str, optimum: Bound) -> Iterator[int]:
    """Yield numbers of trees per root to try until one reaches the bound."""
    known = trees_per_root(trees, problem, optimum)
    yield from known
    if trees == "optimal":
        yield from (count for count in counts_forwarded(problem) if count not in known)


def _forest(
    problem: Problem,
    optimum: Bound,
    trees: int,
    prefer: str,
    target: Target,
    grid: Grid | Distances,
) -> Forest:
    """Pack `trees` trees per root, as fast as they can be."""
    phases: list[Phase] = []
    for number, (cut, algbw) in enumerate(zip(optimum.cuts, optimum.rates, strict=True)):
        target.progress("packing trees", number, len(optimum.cuts))
        if phases and problem.topology.is_symmetric:
            phases.append(turned(problem.topology, phases[0], cut.direction))
        else:
            phases.append(_phase(problem, cut.direction, trees, prefer, algbw, grid))
    shares = tuple(part * trees for part in problem.shards)
    return Forest(problem, optimum, 0 if shares else trees, tuple(phases), shares)


def _phase(
    problem: Problem,
    direction: Direction,
    trees: int,
    prefer: str,
    algbw: Fraction,
    grid: Grid | Distances,
) -> Phase:
    """Pack one phase; `algbw` is its optimum.

    On large direct-connect fabrics, trees of shortest paths are taken where no trees of this number
    are faster: they are the lowest, and take no packing.
    """
    if isinstance(grid, Distances):
        built = circulant_phase(problem, direction, trees, grid)
        if built is not None:
            return built
        grid = ()
    network = network_of(problem, direction)
    rate = algbw / int(network.weight.sum())
    if problem.topology.size > _PACKED and may_grow(problem, trees):
        grown = shortest_phase(problem, direction, trees, by_step=False)
        if grown.unit_bandwidth == fixed_rate(network, trees, rate).unit_bandwidth:
            return grown
    unit, arcs = fitted(problem, network, direction, trees, rate, grid)
    packed = pack(network, arcs, trees, problem, direction, prefer)
    return Phase(direction, merge_equal(packed), unit)
