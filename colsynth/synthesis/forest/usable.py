"""Trees for the bandwidths that protocols leave links, instead of those of the wires.

Protocols leave links inside a box a smaller share than NICs. Trees that are best for the wires may
fill links inside boxes, which then take longer than the NICs: an allgather of 1 GiB on two DGX-1V
takes 14.9 ms with RCCL, with trees for what is left 12.1 ms.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from colsynth.bounds.trees import bound
from colsynth.cost import model_of
from colsynth.cost.usable import has_several_shares, usable
from colsynth.model import Forest, Phase, Problem
from colsynth.runtimes.choice import Basis, Proposal
from colsynth.runtimes.target import Target

BANDWIDTHS = "wire", "usable"
"""The values of `PackTrees.bandwidth`."""

_OPTION = "pack-trees.bandwidth"


def bandwidths(basis: Basis) -> Iterator[Proposal]:
    """Yield the other bandwidths, where links lose different shares of theirs."""
    problem = basis.problem
    if problem.groups or not has_several_shares(problem.topology, model_of(basis)):
        return
    for value in BANDWIDTHS:
        if basis.values[_OPTION] != value:
            yield ({_OPTION: value},)


def usable_problem(problem: Problem, target: Target) -> Problem:
    """Return the problem on links with the bandwidth that protocols leave them."""
    return replace(problem, topology=usable(problem.topology, model_of(target)))


def on_wires(forest: Forest, problem: Problem) -> Forest:
    """Return the trees of a `usable_problem` with the rates that the wires allow."""
    phases = tuple(_at_wire_rate(problem, phase) for phase in forest.phases)
    return replace(forest, problem=problem, bound=bound(problem), phases=phases)


def _at_wire_rate(problem: Problem, phase: Phase) -> Phase:
    load: Counter[int] = Counter()
    for tree in phase.trees:
        for edge in tree.edges:
            for link in edge.route:
                load[link] += tree.weight
    links = problem.topology.links
    unit = min(links[link].bandwidth / units for link, units in load.items())
    return replace(phase, unit_bandwidth=unit)
