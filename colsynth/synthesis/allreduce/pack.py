"""Allreduce forests with free roots: trees inwards and outwards that share the links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction

from colsynth.bounds.allreduce.halves import Side
from colsynth.bounds.network import Ints
from colsynth.errors import DefectError, Diagnostic
from colsynth.model import AllreduceBound, Direction, Forest, Phase, Problem, RootedBound, Tree
from colsynth.synthesis.allreduce.whole import WholeSearch, WholeTrees
from colsynth.synthesis.forest.pack import pack
from colsynth.synthesis.forest.switches import remove_switches
from colsynth.synthesis.forest.trees import merge_equal, turned

MOST_GIVEN_UP = Fraction(5, 100)
"""How far below the optimum ``auto`` may stay; nor does it give up half of what is gained."""


def free_forest(problem: Problem, found: AllreduceBound, trees: str) -> Forest | None:
    """Return a forest with free roots; None where there is none of so many trees.

    Parameters
    ----------
    problem : Problem
    found : AllreduceBound
        Of the problem; without `rooted` there is no such forest.
    trees : str
        ``"auto"``, ``"optimal"`` or the number of trees in all, as in `PackRoots`.
    """
    if found.rooted is None:
        return None
    search = WholeSearch(problem, found.rooted)
    whole = search.choose(trees, min(MOST_GIVEN_UP, found.gain / 2))
    if whole is None:
        return None
    halves = zip(search.halves.sides, whole.units, strict=True)
    phases = [_phase(problem, side, whole, units) for side, units in halves]
    return joined_forest(problem, found.rooted, whole.counts, phases)


def joined_forest(
    problem: Problem,
    bound: RootedBound,
    counts: Ints,
    phases: Iterable[Phase],
    *,
    in_network: bool = False,
) -> Forest:
    """Return a forest of two phases at a time; a missing one is the other one turned."""
    ways = {phase.direction: phase for phase in phases}
    if Direction.IN not in ways:
        ways[Direction.IN] = turned(problem.topology, ways[Direction.OUT], Direction.IN)
    return Forest(
        problem=problem,
        bound=bound,
        trees_per_root=0,
        phases=(ways[Direction.IN], ways[Direction.OUT]),
        shares=tuple(int(counts[node]) for node in problem.topology.ranks),
        together=True,
        in_network=in_network,
    )


def _phase(problem: Problem, side: Side, whole: WholeTrees, units: Ints) -> Phase:
    """Pack the trees of one half into its part of the links."""
    trees = packed(problem, side, whole.counts, units)
    return Phase(side.direction, merge_equal(trees), whole.unit_bandwidth)


def packed(problem: Problem, side: Side, counts: Ints, units: Ints) -> Iterator[Tree]:
    """Yield trees between all GPUs of a problem, as many per root as `counts` says.

    Raises
    ------
    DefectError
        CS901: what the integer program says to fit does not.
    """
    capacity = tuple(Fraction(int(u)) for u in units)
    network = replace(side.network, capacity=capacity, weight=counts)
    arcs, deficit = remove_switches(problem.topology, network, units, 1)
    if deficit:
        raise DefectError(
            Diagnostic("CS901", "switches lost capacity although they forward all they receive")
        )
    # Few wide trees are copied until they fill the links. Lower ones from other orders of
    # packing use more connections, so threadblocks suffice for fewer copies.
    yield from pack(network, arcs, 1, problem, side.direction, "plain")
