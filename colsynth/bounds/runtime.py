"""What no file can beat on a runtime, by message size: links, threadblocks, latency.

Three limits of the simulator's model, each a proof by counting:

- **Links.** The bottleneck cut, where every link has the share of its bandwidth that protocols
  leave, and data the share of the bytes on the wire that the protocol leaves. The last byte arrives
  a hop after it was sent, and receivers are busy with the last calls (`latency`). Where files can
  let a switch multicast and reduce, an allreduce has what links allow over it: each GPU sends and
  receives the message once, and its shard of the sums besides (`switch_rate`).
- **Threadblocks.** On average, every GPU receives and sends some bytes, and adds some up. A
  threadblock moves so many per second, with a step for each call, and only so many are resident; a
  file that asks for more may not fit a GPU, and is not bounded. The first call to receive begins a
  hop after the first to send. Where a runtime fuses steps, a receive and a send may share one;
  elsewhere each takes its own time. Over such a switch, a GPU moves its shard alone.
- **Latency.** The fewest hops, or the bytes that fewer hops would ask for (`latency`).

A call launches before any of that begins. The protocol with the least time counts at each size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from colsynth.bounds.latency import Latency
from colsynth.bounds.optimum import best_optimum
from colsynth.bounds.ways import Ways
from colsynth.cost import Model, default_model
from colsynth.cost.shared_switch import switch_rate, usable_switch
from colsynth.cost.usable import exact, has_several_shares, share_of, usable
from colsynth.model import AllreduceBound, Bound, Collective, FlowBound, Problem, Topology
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
    ways, switched = Ways(problem, model), usable_switch(problem, profile) is not None
    rate = max(rate, _added_rate(problem, profile) * _best_share(problem.topology, model))
    links = _bottleneck(optimum, len(problem.topology.links))
    limits = [Latency(ways, profile, model, name) for name in profile.fifo_calls]

    def bound(size: int, limit: Latency) -> RuntimeBound:
        moving = float(size / rate) / model.payload[limit.protocol]
        late = 0.0 if switched else limit.links(size)
        return RuntimeBound(
            size=size,
            protocol=limit.protocol,
            links=max(limit.begin + limit.used(moving) + limit.tail(links), late),
            threadblocks=limit.begin + _threadblock_time(limit, size, switched),
            latency=limit.once if switched else limit.least(size),
        )

    several = ([bound(size, limit) for limit in limits] for size in sizes)
    return tuple(min(found, key=lambda bound: bound.seconds) for found in several)


def file_rate(problem: Problem, profile: Profile, optimum: Optimum) -> Fraction:
    """Return the message bytes per second that links allow any file of a runtime.

    That is the optimum, which counts on switches that only forward, or more where files can let one
    add up.

    Parameters
    ----------
    problem : Problem
    profile : Profile
    optimum : Bound, FlowBound or AllreduceBound
        Of the problem.
    """
    return max(optimum.algbw, _added_rate(problem, profile))


def is_proven(optimum: Optimum, rate: Fraction) -> bool:
    """Return whether no schedule beats the rate of `file_rate`, be it of trees or not."""
    return not isinstance(optimum, AllreduceBound) or rate > optimum.algbw or optimum.proven


def _added_rate(problem: Problem, profile: Profile) -> Fraction:
    """Return what links allow an allreduce whose sums a switch adds up; 0 where none can."""
    if problem.collective is not Collective.ALLREDUCE or usable_switch(problem, profile) is None:
        return Fraction(0)
    return switch_rate(problem.topology) or Fraction(0)


def _bottleneck(optimum: Optimum, links: int) -> Iterable[int]:
    """Return links of which each byte of the bound of links passes one."""
    if isinstance(optimum, FlowBound):
        priced = [index for index, price in enumerate(optimum.prices) if price]
        return priced or optimum.cut.links
    if isinstance(optimum, AllreduceBound):
        composed = optimum.rooted is None and optimum.known
        return _bottleneck(optimum.composition, links) if composed else range(links)
    return {index for cut in optimum.cuts for index in cut.links}


def _best_share(topology: Topology, model: Model) -> Fraction:
    """Return the greatest share of its bandwidth that the simulator leaves any link."""
    return exact(max(model.link_efficiency, model.network_efficiency * bool(topology.network)))


def _threadblock_time(limit: Latency, size: int, switched: bool) -> float:
    """Return seconds that threadblocks need behind the first step; 0 where that is not known."""
    problem, profile, protocol = limit.ways.problem, limit.profile, limit.protocol
    if problem.collective not in _WORK or problem.shards:
        return 0.0
    rate, local_rate = (kind[protocol] * 1e9 for kind in (limit.model.rate, limit.model.local_rate))
    received, sent, added = _WORK[problem.collective]
    ranks = len(problem.members[0])  # groups have as many, and work at the same time
    each = size / ranks / profile.usable_threadblocks  # bytes of a shard, for each threadblock
    if switched:
        return each / rate
    each *= ranks - 1
    moved = each * (max(received, sent) if profile.fuses else received + sent)
    if not profile.xml:
        return moved / rate + limit.hop
    arriving = limit.connection(each * received)
    if added == received and ranks > 2:  # all messages but one of each sum wait for others
        others = limit.connection(each * (ranks - 2) / (ranks - 1)) + limit.merged
        arriving = max(arriving + limit.add, others)
    if profile.fuses:
        return limit.hop + arriving
    calls = max(0.0, moved / profile.tile_bytes[protocol] - 2) * limit.step
    summed = each * added * (1 + (ranks - 2) * limit.model.operand) / (ranks - 1)
    busy = min(limit.hop, limit.step) + calls + moved / rate + summed / local_rate
    return max(limit.hop + arriving, busy)


def link_rate(problem: Problem, optimum: Optimum, model: Model) -> Fraction:
    """Return the message bytes per second that the cuts allow, at the efficiency of the model.

    The sums of an allreduce may be anywhere, so no single cut tells its limit. A file that the
    simulator executes is a schedule for links with the bandwidth that it lets them have, so it is
    no faster than the optimum of a topology with such links.
    """
    if isinstance(optimum, AllreduceBound):
        if optimum.rooted is None and optimum.known:
            return link_rate(problem, optimum.composition, model)
        rate = max(optimum.limit.algbw, optimum.algbw) * _best_share(problem.topology, model)
        if not has_several_shares(problem.topology, model):
            return rate
        left = best_optimum(replace(problem, topology=usable(problem.topology, model)))
        if not isinstance(left, AllreduceBound):
            raise TypeError("an allreduce has a bound of another kind")
        return min(rate, max(left.limit.algbw, left.algbw))
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
        share = share_of(topology, link, model)
        whole += topology.links[link].bandwidth * price
        left += topology.links[link].bandwidth * price * share
    return left / whole
