"""What no file can beat on a runtime, by message size: links, threadblocks, latency.

Three limits of the simulator's model, each a proof by counting:

- **Links.** The bottleneck cut, where every link has the share of its bandwidth that protocols
  leave, and data the share of the bytes on the wire that the protocol leaves.
  Where files can let a switch multicast and reduce, an allreduce has the optimum over it: each GPU
  sends and receives the message once.
- **Threadblocks.** On average, every GPU receives and sends some bytes, and adds some up. A
  threadblock moves so many per second, and only so many are resident; a file that asks for more
  may not fit a GPU, and is not bounded. Where a runtime fuses steps, a receive and a send may
  share one; elsewhere each takes its own time. Over such a switch, a GPU moves its shard alone.
- **Latency.** In every process group, some message must reach or leave the first GPU, and its box
  if the group has GPUs in others. In a custom collective, some chunk must reach who wants it.

A call launches before any of that begins. The protocol with the least time counts at each size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from colsynth.cost import Model, default_model
from colsynth.cost.pair_routes import is_network
from colsynth.cost.shared_switch import usable_switch
from colsynth.model import AllreduceBound, Bound, Collective, FlowBound, Link, Problem, Topology
from colsynth.runtimes.profile import Profile

Optimum = Bound | FlowBound | AllreduceBound

_WORK: dict[Collective, tuple[int, int, int]] = {
    Collective.ALLGATHER: (1, 1, 0),
    Collective.REDUCE_SCATTER: (1, 1, 1),
    Collective.ALLREDUCE: (2, 2, 1),
    Collective.ALLTOALL: (1, 1, 0),
    Collective.BROADCAST: (1, 1, 0),
    Collective.REDUCE: (1, 1, 1),
}
"""How often a GPU receives, sends and adds (N - 1) / N of the message, on average at least."""


@dataclass(frozen=True, slots=True)
class RuntimeBound:
    """The least time of any file for a message of one size.

    Parameters
    ----------
    size : int
        Bytes of the message.
    protocol : str
        The protocol with the least time.
    links, threadblocks, latency : float
        Seconds that each limit asks for, with the launch of the call.
    """

    size: int
    protocol: str
    links: float
    threadblocks: float
    latency: float

    @property
    def seconds(self) -> float:
        """The largest of the three."""
        return max(self.links, self.threadblocks, self.latency)

    @property
    def algbw(self) -> float:
        """Message bytes per second, at most."""
        return self.size / self.seconds

    @property
    def binds(self) -> str:
        """The limit that asks for most: ``"links"``, ``"threadblocks"`` or ``"latency"``."""
        limits = ("links", self.links), ("threadblocks", self.threadblocks)
        return max(*limits, ("latency", self.latency), key=lambda pair: pair[1])[0]


def runtime_bounds(
    problem: Problem,
    profile: Profile,
    optimum: Optimum,
    sizes: Iterable[int],
    model: Model | None = None,
) -> tuple[RuntimeBound, ...]:
    """Return the least time that any file can take at each message size.

    Parameters
    ----------
    problem : Problem
    profile : Profile
    optimum : Bound, FlowBound or AllreduceBound
        Of the problem.
    sizes : iterable of int
        Bytes.
    model : Model, optional
        Constants of the simulator; those of the runtime by default.
    """
    model = model or default_model(profile)
    rate = link_rate(problem, optimum, model)
    wires, switched = _wires(problem), usable_switch(problem, profile) is not None
    if switched and isinstance(optimum, AllreduceBound):
        rate = max(rate, _switch_rate(problem, optimum, model))
    works = [_threadblock_time(problem, profile, model, p, switched) for p in profile.fifo_calls]
    bounds = [
        [
            _bound(model, name, size, rate, wires, work)
            for name, work in zip(profile.fifo_calls, works, strict=True)
        ]
        for size in sizes
    ]
    return tuple(min(several, key=lambda bound: bound.seconds) for several in bounds)


def _switch_rate(problem: Problem, optimum: AllreduceBound, model: Model) -> Fraction:
    """Return the bytes per second of an allreduce whose GPUs share a switch that reduces."""
    topology = problem.topology
    network = any(is_network(topology, link) for link in range(len(topology.links)))
    best = _exact(max(model.link_efficiency, model.network_efficiency * network))
    if optimum.in_network is not None:
        return optimum.in_network.algbw * best
    ways: dict[tuple[int, int], Fraction] = {}
    for link in topology.links:
        for end in ((link.source, 0), (link.target, 1)):
            ways[end] = ways.get(end, Fraction(0)) + link.bandwidth
    return best * min(ways[node, way] for node in topology.ranks for way in (0, 1))


def _bound(
    model: Model,
    protocol: str,
    size: int,
    rate: Fraction,
    wires: tuple[float, float | None],
    work: float,
) -> RuntimeBound:
    """Return the bound of a protocol, from the rate of links, `_wires` and threadblocks' time."""
    begun = (model.launch[protocol] + model.step[protocol]) / 1e6
    near, between = wires
    hop, network_hop = model.hop[protocol] / 1e6, model.network_hop[protocol] / 1e6
    message = min(hop, network_hop) + near  # NICs may lie on the way within a box, too
    if between is not None:
        message = max(message, network_hop + between)
    return RuntimeBound(
        size=size,
        protocol=protocol,
        links=begun + float(size / rate) / model.payload[protocol],
        threadblocks=begun + size * work,
        latency=begun + model.step[protocol] / 1e6 + message,  # the receiver takes a step, too
    )


def _threadblock_time(
    problem: Problem, profile: Profile, model: Model, protocol: str, switched: bool
) -> float:
    """Return seconds per message byte that threadblocks need; 0 where that is not known."""
    if problem.collective not in _WORK or problem.groups or problem.shards:
        return 0.0
    received, sent, added = _WORK[problem.collective]
    ranks = problem.topology.size
    blocks = profile.usable_threadblocks
    if switched:
        return 1 / model.rate[protocol] / ranks / blocks / 1e9
    moves = max(received, sent) if profile.fuses else received + sent
    time = moves / model.rate[protocol]
    if not profile.fuses:
        time += added / model.local_rate[protocol]
    return time * (ranks - 1) / ranks / blocks / 1e9


def link_rate(problem: Problem, optimum: Optimum, model: Model) -> Fraction:
    """Return the message bytes per second that the cuts allow, at the efficiency of the model."""
    if isinstance(optimum, AllreduceBound):
        if optimum.rooted is None and optimum.known:
            return link_rate(problem, optimum.composition, model)
        best = max(model.link_efficiency, model.network_efficiency)
        return max(optimum.limit.algbw, optimum.algbw) * _exact(best)
    if isinstance(optimum, FlowBound):
        # Prices of links prove a rate in proportion to the sum of bandwidth times price.
        prices = dict(enumerate(optimum.prices)) or dict.fromkeys(optimum.cut.links, 1)
        return optimum.algbw * _share(problem, prices, model)
    phases = zip(optimum.rates, optimum.cuts, strict=True)
    times = (
        1 / (rate * _share(problem, dict.fromkeys(cut.links, 1), model)) for rate, cut in phases
    )
    return 1 / sum(times, Fraction(0))


def _share(problem: Problem, prices: Mapping[int, int], model: Model) -> Fraction:
    """Return the share of the priced bandwidth of links that the simulator leaves, 0 to 1."""
    topology = problem.topology
    whole = left = Fraction(0)
    for link, price in prices.items():
        share = model.network_efficiency if is_network(topology, link) else model.link_efficiency
        whole += topology.links[link].bandwidth * price
        left += topology.links[link].bandwidth * price * _exact(share)
    return left / whole


def _exact(share: float) -> Fraction:
    return Fraction(share).limit_denominator(10**6)


def _wires(problem: Problem) -> tuple[float, float | None]:
    """Return the seconds of links that some message passes, and some that changes boxes.

    The second is None where no message must leave a box.
    """
    nodes = problem.topology.nodes
    near, between = 0.0, None
    for some, others in _apart(problem):
        way = min(_latency(problem.topology, *ends) for ends in ((some, others), (others, some)))
        near = max(near, way)
        if {nodes[node].box for node in some}.isdisjoint(nodes[node].box for node in others):
            between = max(between or 0.0, way)
    return near, between


def _apart(problem: Problem) -> Iterator[tuple[set[int], set[int]]]:
    """Yield sets of GPUs of which one must send to, or receive from, one of other GPUs."""
    nodes, ranks = problem.topology.nodes, problem.topology.ranks
    if problem.collective is Collective.CUSTOM:
        for demand in problem.demands:
            for rank in demand.wanted:
                if rank not in demand.holders:
                    yield {ranks[holder] for holder in demand.holders}, {ranks[rank]}
                    return  # one proves as much as a bound needs
        return
    for group in problem.groups or (range(len(ranks)),):
        first, *others = (ranks[rank] for rank in group)
        home = {node for node in (first, *others) if nodes[node].box == nodes[first].box}
        yield {first}, set(others)
        if len(home) < len(group):
            yield home, set(others) - home


def _latency(topology: Topology, sources: set[int], targets: set[int]) -> float:
    """Return the least latency of any way from a source to a target; 0 without a way."""
    ways: dict[int, list[Link]] = {}
    for link in topology.links:
        ways.setdefault(link.source, []).append(link)
    reached = [(Fraction(0), source) for source in sources]
    seen = set[int]()
    while reached:
        latency, node = heappop(reached)
        if node in targets:
            return float(latency)
        if node not in seen:
            seen.add(node)
            for link in ways.get(node, ()):
                heappush(reached, (latency + link.latency, link.target))
    return 0.0
