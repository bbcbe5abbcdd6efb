"""The floor: the time that the bottleneck cut takes at the link efficiency of the model.

No program is faster than the floor.
"""

from __future__ import annotations

from fractions import Fraction

from colsynth.cost import Model, model_of
from colsynth.cost.pair_routes import is_network
from colsynth.model import AllreduceBound, Bound, Cut, FlowBound, Problem
from colsynth.search.case import Case


def floors(case: Case, optimum: Bound | FlowBound | AllreduceBound) -> tuple[float, ...]:
    """Return the floor in seconds for every size of a case.

    It is the time of the bottleneck cut, where each link has the share of its bandwidth that the
    simulator leaves it.
    """
    rate = _rate(case.problem, optimum, model_of(case))
    return tuple(float(size / rate) for size in case.sizes)


def _rate(problem: Problem, optimum: Bound | FlowBound | AllreduceBound, model: Model) -> Fraction:
    """Return the message bytes per second that the cuts allow."""
    if isinstance(optimum, AllreduceBound):
        if optimum.rooted is None and optimum.known:
            return _rate(problem, optimum.composition, model)
        best = max(model.link_efficiency, model.network_efficiency)
        return max(optimum.limit.algbw, optimum.algbw) * _exact(best)
    if isinstance(optimum, FlowBound):
        return optimum.algbw * _share(problem, optimum.cut, model)
    phases = zip(optimum.rates, optimum.cuts, strict=True)
    times = (1 / (rate * _share(problem, cut, model)) for rate, cut in phases)
    return 1 / sum(times, Fraction(0))


def _share(problem: Problem, cut: Cut, model: Model) -> Fraction:
    """Return the share of a cut's bandwidth that the simulator leaves, 0 to 1."""
    topology = problem.topology
    left = Fraction(0)
    for link in cut.links:
        outside = is_network(topology, link)
        share = model.network_efficiency if outside else model.link_efficiency
        left += topology.links[link].bandwidth * _exact(share)
    return left / cut.bandwidth


def _exact(share: float) -> Fraction:
    return Fraction(share).limit_denominator(10**6)
