"""Notes on what a runtime or its files cannot do for a problem."""

from __future__ import annotations

from colsynth.model import Collective, Direction, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.profile import Profile
from colsynth.text import listed
from colsynth.units import format_bandwidth, percent

_SHOWN = 2
"""Number of switches to name; the rest are counted."""


def capability_notes(problem: Problem, profile: Profile) -> tuple[str, ...]:
    """Return a note if switches could multicast or reduce for this collective."""
    from colsynth.bounds.allreduce.halves import CAPABILITY, capable
    from colsynth.cost.shared_switch import usable_switch

    places = capable(problem.topology)
    ways = [way for way in PHASES.get(problem.collective, ()) if places[way]]
    if not ways:
        return ()
    found = sorted({node for way in ways for node in places[way]})
    names = listed((problem.topology.nodes[node].name for node in found), _SHOWN)
    # Data goes inwards first, but multicast is the better-known word, so it comes first.
    words = " and ".join(CAPABILITY[way] for way in (Direction.OUT, Direction.IN) if way in ways)
    if usable_switch(problem, profile) is not None:
        return (f"{names} can {words}: '-a multicast' does, this file does not",)
    says = "does not" if profile.plans else "cannot"
    can = f"{names} can {words}, which a file for {profile.name} {says} say"
    return (f"{can}: compiled without; {_worth(problem)}",)


def plan_notes(problem: Problem, profile: Profile, protocol: str) -> tuple[str, ...]:
    """Return notes on calls that never reach a plan, or must not, and on graphs."""
    if not profile.plans:
        return ()
    found = []
    if problem.collective in (Collective.ALLTOALL, Collective.REDUCE):
        found.append(
            "calls of NCCL's interface never reach this plan: run it with mscclpp.Executor"
        )
    if problem.collective is Collective.REDUCE_SCATTER and not profile.directory:
        found.append(
            "through NCCL's interface, ranks would choose differently for in-place reduce-scatter "
            "and hang: run this plan with mscclpp.Executor"
        )
    if protocol == "LL":
        found.append(
            "a captured CUDA graph must hold an even number of launches of this plan, four or more"
        )
    return tuple(found)


def _worth(problem: Problem) -> str:
    """Return how the capabilities would change the bound, in words."""
    if problem.collective is not Collective.ALLREDUCE:
        return "the bound is the same with it"
    from colsynth.bounds.allreduce.rooted import allreduce_bound

    found = allreduce_bound(problem)
    if found.in_network is None:
        return "what it would gain is not known for so many GPUs"
    gain = found.in_network.algbw / found.algbw - 1
    if gain <= 0:
        return "the bound is the same with it"
    rate = format_bandwidth(found.in_network.algbw)
    return f"with it the bound is {rate}, {percent(gain):.2f} % more"
