"""Trees for the bandwidths that protocols leave links, instead of those of the wires.

Protocols leave links inside a box a smaller share than NICs. Trees that are best for the wires may
fill links inside boxes, which then take longer than the NICs: an allgather of 1 GiB on two DGX-1V
takes 14.9 ms with RCCL, with trees for what is left 12.1 ms.

Where links inside boxes are the bottleneck, NICs have some bandwidth to spare. Trees that fill it
cross from box to box more often than they must, and are higher for it. With no more bandwidth of
the network than enters each box in any case, an allgather of 1 GiB by a plan on two DGX-2 takes
9.6 ms instead of 11.4, a reduce-scatter 9.7 instead of 13.8.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache

from colsynth.bounds.trees import bound
from colsynth.cost import Model, model_of
from colsynth.cost.usable import has_several_shares, usable
from colsynth.model import Forest, Problem, chunks_on_links, unit_bandwidth
from colsynth.runtimes.choice import Basis, Proposal
from colsynth.runtimes.target import Target

BANDWIDTHS = "wire", "usable", "needed"
"""The values of `PackTrees.bandwidth`."""

_OPTION = "pack-trees.bandwidth"


def bandwidths(basis: Basis) -> Iterator[Proposal]:
    """Yield the other bandwidths, where links lose different shares or the network has spare."""
    problem, model = basis.problem, model_of(basis)
    if problem.groups:
        return
    values = ["wire"]
    if has_several_shares(problem.topology, model):
        values.append("usable")
    if _needed_share(_usable_problem(problem, model)) < 1:
        values.append("needed")
    for value in values:
        if basis.values[_OPTION] != value:
            yield ({_OPTION: value},)


def narrowed(problem: Problem, bandwidth: str, target: Target) -> Problem:
    """Return the problem on links with one of the `BANDWIDTHS`; `on_wires` is the way back.

    ``"needed"`` is that of ``"usable"``, but of the network only what the trees must have.
    """
    if bandwidth == "wire":
        return problem
    left = _usable_problem(problem, model_of(target))
    share = _needed_share(left) if bandwidth == "needed" else Fraction(1)
    if share >= 1:
        return left
    topology = left.topology
    links = tuple(
        replace(link, bandwidth=link.bandwidth * share) if number in topology.network else link
        for number, link in enumerate(topology.links)
    )
    return replace(problem, topology=replace(topology, links=links, whole=None))


def _usable_problem(problem: Problem, model: Model) -> Problem:
    return replace(problem, topology=usable(problem.topology, model))


@lru_cache(maxsize=4)
def _needed_share(problem: Problem) -> Fraction:
    """Return the share of the network's bandwidth that trees at the best rate must have.

    Every tree enters, or leaves, each box that its root is not in. The share is 1 where the network
    has a part in the bottleneck.
    """
    topology = problem.topology
    if len(topology.boxes) < 2:
        return Fraction(1)
    best = bound(problem)
    if any(link in topology.network for cut in best.cuts for link in cut.links):
        return Fraction(1)
    rate = max(best.rates) / len(problem.roots)
    home = Counter(topology.nodes[topology.ranks[root]].box for root in problem.roots)
    into, out = (defaultdict[int | None, Fraction](Fraction) for _ in range(2))
    for link in topology.links:
        source, target = (topology.nodes[end].box for end in link.ends)
        if source != target:
            out[source] += link.bandwidth
            into[target] += link.bandwidth
    return max(
        (len(problem.roots) - home[box]) * rate / (min(into[box], out[box]) or 1)
        for box in topology.boxes
    )


def on_wires(forest: Forest, problem: Problem) -> Forest:
    """Return the trees of a `narrowed` problem with the rates that the wires allow."""
    units = (unit_bandwidth(problem.topology, chunks_on_links(x.trees)) for x in forest.phases)
    pairs = zip(forest.phases, units, strict=True)
    phases = tuple(replace(phase, unit_bandwidth=unit) for phase, unit in pairs)
    return replace(forest, problem=problem, bound=bound(problem), phases=phases)
