"""One half alone over switches that multicast or reduce: any collective with one phase."""

from __future__ import annotations

from dataclasses import replace

from colsynth.bounds.trees import bound
from colsynth.model import Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest.equal_roots import equal_forest
from colsynth.synthesis.in_network.widen import choices, narrowed, widened


def one_way_forest(problem: Problem, trees: str, target: Target) -> Forest | None:
    """Return a forest of one phase whose trees branch at switches; None where none can.

    The best of the choices of switches, each packed by `equal_forest` on a topology with GPUs
    in their place that are root of nothing.
    """
    optimum = bound(problem)
    [direction] = (cut.direction for cut in optimum.cuts)
    tried = []
    for choice in choices(problem.topology):
        places = choice[direction]
        if not places:
            continue
        shards = problem.shards
        if problem.root is None:
            shards = (*problem.weights, *(0 for _ in places))
        wider = replace(problem, topology=widened(problem.topology, places), shards=shards)
        packed = equal_forest(wider, trees, "low", target)
        [phase] = packed.phases
        held = packed.weights[: len(problem.roots)]
        tried.append(
            Forest(
                problem=problem,
                bound=optimum,
                trees_per_root=0 if problem.shards else held[0],
                phases=(narrowed(phase, problem.topology.size),),
                shares=held if problem.shards else (),
                in_network=True,
            )
        )
    return min(tried, key=lambda forest: forest.gap, default=None)
