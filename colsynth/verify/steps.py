"""The witnesses of a step bound, added up from their definition.

For each step: walk back from the receiver, count what is at that distance and comes by the named
links alone, and divide by their bandwidth. Shares no code with what found them.
"""

from __future__ import annotations

from fractions import Fraction

from colsynth.errors import Diagnostic, VerificationError
from colsynth.model import Direction, Problem, Topology
from colsynth.model.problem import PHASES
from colsynth.model.steps import StepBound, StepLoad, StepPhase

_Cables = dict[int, list[tuple[int, int]]]
"""By rank, the ranks that send to it, and the link by which data enters or leaves that rank."""


def check_steps(problem: Problem, bound: StepBound) -> None:
    """Check that every step carries what is claimed, and that there are no more steps.

    Raises
    ------
    VerificationError
        CS526: a number of steps, a load or a bandwidth is not what the graph has.
    """
    if tuple(phase.direction for phase in bound.phases) != PHASES[problem.collective]:
        raise _failure(f"the phases are not those of {problem.collective}")
    if bound.parts != sum(problem.weights):
        raise _failure(f"the message has {sum(problem.weights)} parts, not {bound.parts}")
    for phase in bound.phases:
        _check_phase(problem, phase)


def _check_phase(problem: Problem, phase: StepPhase) -> None:
    cables = _cables(problem.topology, phase.direction)
    parts = dict(zip(problem.roots, problem.weights, strict=True))
    farthest = max(
        distance
        for rank in range(problem.topology.size)
        for source, distance in _distances(cables, rank).items()
        if parts.get(source)
    )
    if farthest != len(phase.steps):
        raise _failure(f"the longest shortest path has {farthest} links, not {len(phase.steps)}")
    for number, load in enumerate((phase.together, *phase.steps)):
        _check_load(problem.topology, cables, parts, load, number)


def _check_load(
    topology: Topology, cables: _Cables, parts: dict[int, int], load: StepLoad, step: int
) -> None:
    """Check one witness; step 0 stands for all steps together."""
    own = _distances(cables, load.rank)
    last: dict[int, set[int]] = {rank: set() for rank in own}
    for near, link in cables[load.rank]:
        for rank, distance in _distances(cables, near).items():
            if distance + 1 == own[rank] and rank != load.rank:
                last[rank].add(link)
    only = set(load.links)
    counted = sum(
        parts.get(rank, 0)
        for rank, links in last.items()
        if links and links <= only and (own[rank] == step or step == 0)
    )
    if counted != load.parts:
        name = topology.gpu_names[load.rank]
        raise _failure(f"{counted} parts must take these links at {name}, not {load.parts}")
    rates = {link: rate for _, link, rate in _rates(topology, cables, load.rank)}
    bandwidth = sum((rates[link] for link in only), Fraction(0))
    if bandwidth != load.bandwidth:
        raise _failure(f"the links carry {bandwidth} bytes/s, not {load.bandwidth}")


def _rates(topology: Topology, cables: _Cables, rank: int) -> list[tuple[int, int, Fraction]]:
    """Return the cables of a rank with the bandwidth of their narrowest link."""
    found = []
    for near, link in cables[rank]:
        inwards = topology.links[link].target == topology.ranks[rank]
        route = _followed(topology, link, inwards=inwards)
        found.append((near, link, min(topology.links[i].bandwidth for i in route)))
    return found


def _followed(topology: Topology, link: int, *, inwards: bool) -> list[int]:
    """Return a link at a GPU and those that lead on from it to the next GPU; none to a dead end."""
    route = [link]
    while True:
        here = topology.links[route[-1]]
        at, before = (here.source, here.target) if inwards else (here.target, here.source)
        if at in topology.rank_of:
            return route
        onward = [
            i
            for i, other in enumerate(topology.links)
            if (other.target if inwards else other.source) == at
            and (other.source if inwards else other.target) != before
        ]
        if not onward:
            return []
        route.append(onward[0])


def _cables(topology: Topology, direction: Direction) -> _Cables:
    inwards = direction is Direction.OUT
    found: _Cables = {rank: [] for rank in range(topology.size)}
    for i, link in enumerate(topology.links):
        end = link.target if inwards else link.source
        if end in topology.rank_of:
            route = _followed(topology, i, inwards=inwards)
            if not route:
                continue
            last = topology.links[route[-1]]
            far = topology.rank_of[last.source if inwards else last.target]
            if far != topology.rank_of[end]:
                found[topology.rank_of[end]].append((far, i))
    return found


def _distances(cables: _Cables, rank: int) -> dict[int, int]:
    """Return how many cables lead from every rank to this one."""
    found, front = {rank: 0}, [rank]
    for at in front:
        for near, _ in cables[at]:
            if near not in found:
                found[near] = found[at] + 1
                front.append(near)
    return found


def _failure(phrase: str) -> VerificationError:
    return VerificationError(Diagnostic("CS526", phrase))
