"""What no file can beat on a runtime, by message size: links, threadblocks, latency.

Three limits of the simulator's model, each a proof by counting:

- **Links.** The bottleneck cut, where every link has the share of its bandwidth that protocols
  leave, and data the share of the bytes on the wire that the protocol leaves.
- **Threadblocks.** On average, every GPU receives and sends some bytes, and adds some up. A
  threadblock moves so many per second, and only so many are resident. Where a runtime fuses steps,
  a receive and a send may share one; elsewhere each takes its own time.
- **Latency.** Some message must reach every GPU, and leave every box.

A call launches before any of that begins. The protocol with the least time counts at each size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from colsynth.cost import Model, default_model
from colsynth.cost.pair_routes import is_network
from colsynth.model import AllreduceBound, Bound, Collective, Cut, FlowBound, Problem, Topology
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
    far = _far(problem.topology)
    wire = max(_nearest(problem.topology), _between_boxes(problem.topology))
    bounds = [
        [_bound(problem, profile, model, name, size, (rate, wire, far)) for name in model.launch]
        for size in sizes
    ]
    return tuple(min(several, key=lambda bound: bound.seconds) for several in bounds)


def _bound(
    problem: Problem,
    profile: Profile,
    model: Model,
    protocol: str,
    size: int,
    known: tuple[Fraction, float, bool],
) -> RuntimeBound:
    """Return the bound of a protocol; `known` is (rate of links, latency, whether boxes differ)."""
    rate, wire, far = known
    begun = (model.launch[protocol] + model.step[protocol]) / 1e6
    hop = (model.network_hop if far else model.hop)[protocol] / 1e6
    wires = float(size / rate) / model.payload[protocol]
    return RuntimeBound(
        size=size,
        protocol=protocol,
        links=begun + wires,
        threadblocks=begun + size * _threadblock_time(problem, profile, model, protocol),
        latency=begun + model.step[protocol] / 1e6 + hop + wire,  # the receiver takes a step, too
    )


def _threadblock_time(problem: Problem, profile: Profile, model: Model, protocol: str) -> float:
    """Return seconds per message byte that threadblocks need; 0 where that is not known."""
    if problem.collective not in _WORK or problem.groups or problem.shards:
        return 0.0
    received, sent, added = _WORK[problem.collective]
    ranks = problem.topology.size
    blocks = min(profile.resident_threadblocks, profile.max_threadblocks)
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


def _far(topology: Topology) -> bool:
    """Whether GPUs are in several boxes."""
    return len({topology.nodes[node].box for node in topology.ranks}) > 1


def _nearest(topology: Topology) -> float:
    """Return the seconds from the first GPU to the one that is nearest to it."""
    first, *others = topology.ranks
    return _least_latency(topology, {first}, set(others))


def _between_boxes(topology: Topology) -> float:
    """Return the least seconds from the first GPU's box to another; 0 in a single box."""
    home = topology.nodes[topology.ranks[0]].box
    inside = {node for node in topology.ranks if topology.nodes[node].box == home}
    return _least_latency(topology, inside, set(topology.ranks) - inside)


def _least_latency(topology: Topology, sources: set[int], targets: set[int]) -> float:
    """Return the least latency of any way from a source to a target; 0 without a target."""
    import networkx as nx

    if not targets:
        return 0.0
    graph = nx.DiGraph()
    for link in topology.links:
        known = graph.get_edge_data(link.source, link.target, {"latency": link.latency})
        graph.add_edge(link.source, link.target, latency=min(known["latency"], link.latency))
    lengths = nx.multi_source_dijkstra_path_length(graph, sources, weight="latency")
    return float(min((lengths[node] for node in targets if node in lengths), default=0))
