"""The switch of a box that multicasts and reduces for all GPUs, and what it has to carry."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model import Collective, Problem, Topology
from colsynth.runtimes.profile import Profile

SERVED = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER)
STORES_SINCE = (0, 10)
"""The version of MSCCL++ with ``gstore``, which an allgather takes."""
_WORDS = {"multicast", "reduce"}


@dataclass(frozen=True, slots=True)
class SharedSwitch:
    """A switch that every GPU has direct links to and from.

    Parameters
    ----------
    bandwidth : Fraction
        Bytes per second of the slowest link to or from it.
    latency : Fraction
        Seconds from one GPU to another over it, at most.
    """

    bandwidth: Fraction
    latency: Fraction


def shared_switch(topology: Topology) -> SharedSwitch | None:
    """Return the fastest switch that multicasts and reduces for all GPUs; None without one.

    All GPUs must be in one box: boxes joined by such switches alone are not served.
    """
    found = []
    for number, node in enumerate(topology.nodes):
        ends = [(gpu, number) for gpu in topology.ranks]
        pairs = [*ends, *((number, gpu) for gpu, _ in ends)]
        capable = set(node.capabilities) >= _WORDS and len(topology.boxes) == 1
        if capable and len(ends) > 1 and all(pair in topology.link_between for pair in pairs):
            links = [topology.links[topology.link_between[pair]] for pair in pairs]
            slowest = min(link.bandwidth for link in links)
            latency = 2 * max(Fraction(link.latency) for link in links)
            found.append(SharedSwitch(slowest, latency))
    return max(found, key=lambda switch: switch.bandwidth, default=None)


def usable_switch(problem: Problem, profile: Profile) -> SharedSwitch | None:
    """Return the switch that adds up and copies for a file of a runtime; None if none can."""
    plans, collective = profile.plans, problem.collective
    if not plans or collective not in SERVED or problem.groups or problem.shards:
        return None
    if collective is Collective.ALLGATHER and tuple(plans["version"]) < STORES_SINCE:
        return None
    return shared_switch(problem.topology)


def carried(collective: Collective, ranks: int) -> Fraction:
    """Return what each link carries of a message, per byte of it, in its busier direction.

    A GPU reads its shard of all copies through the switch, its own too, and stores it once: to
    the switch go its copy of the whole message, and a shard; from it come one shard, and all
    shards as they are stored. Without sums only the latter move.
    """
    return Fraction(1) if collective is Collective.ALLGATHER else 1 + Fraction(1, ranks)
