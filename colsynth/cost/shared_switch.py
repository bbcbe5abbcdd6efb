"""The switch of a box that multicasts and reduces for all GPUs, and what it has to carry."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model import Collective, Problem, Topology
from colsynth.runtimes.profile import Profile

SERVED = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER)
STORES_SINCE = (0, 10)
"""The version of MSCCL++ with ``gstore``, which an allgather takes."""
MOST_GPUS = 256
"""GPUs of a file over a switch, at most.

An assumption: DGX GH200, announced in 2023 for up to 256 GPUs, is the largest NVLink domain that we
know of. What a multicast group itself allows was not found.
"""
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
    if len(topology.boxes) != 1 or topology.size < 2:
        return None
    found = []
    for number, node in enumerate(topology.nodes):
        if not set(node.capabilities) >= _WORDS:
            continue
        ends = [(gpu, number) for gpu in topology.ranks]
        pairs = [*ends, *((number, gpu) for gpu, _ in ends)]
        if all(pair in topology.link_between for pair in pairs):
            links = [topology.links[topology.link_between[pair]] for pair in pairs]
            slowest = min(link.bandwidth for link in links)
            latency = 2 * max(Fraction(link.latency) for link in links)
            found.append(SharedSwitch(slowest, latency))
    return max(found, key=lambda switch: switch.bandwidth, default=None)


def planned_switch(topology: Topology) -> SharedSwitch | None:
    """Return the switch that files may use; None without one, or for more GPUs than files have."""
    return None if topology.size > MOST_GPUS else shared_switch(topology)


def usable_switch(problem: Problem, profile: Profile) -> SharedSwitch | None:
    """Return the switch that adds up and copies for a file of a runtime; None if none can."""
    plans, collective = profile.plans, problem.collective
    if not plans or collective not in SERVED or problem.groups or problem.shards:
        return None
    if collective is Collective.ALLGATHER and tuple(plans["version"]) < STORES_SINCE:
        return None
    return planned_switch(problem.topology)


def switch_rate(topology: Topology) -> Fraction | None:
    """Return the message bytes per second that links allow an allreduce over a shared switch.

    A GPU reads its shard of all copies through the switch, its own too, and stores the sum at all
    GPUs, itself too. So to the switch go its copy of the whole message, and a shard; from it come a
    shard, and all shards as they are stored. Shards may differ, so that only their sum counts.

    None without a switch that files may use.
    """
    if planned_switch(topology) is None:
        return None
    leaving, entering = (dict.fromkeys(topology.ranks, Fraction(0)) for _ in range(2))
    for link in topology.links:
        for ways, node in ((leaving, link.source), (entering, link.target)):
            if node in ways:
                ways[node] += link.bandwidth
    found = []
    for ways in (leaving, entering):
        rates = ways.values()
        found += [min(rates), sum(rates, Fraction(0)) / (topology.size + 1)]
    return min(found)
