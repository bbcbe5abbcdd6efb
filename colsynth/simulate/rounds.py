"""The time of a program in rounds: each is as long as its busiest link, rank and message.

Here, all ranks begin a round together, when the slowest has ended the one before. Ranks of a real
job need not wait for those with which they exchange nothing. On the GPU, a round costs a group of
messages (`Model.step`, before and after them), the latency of its longest message, every further
message that a rank sends or receives (`Model.hop` each), the bytes of its busiest link or of its
largest message, then the local steps of the busiest rank (`Model.wait` each, `Model.local_rate`).

The host posts all that (`Model.round`, `Model.post`) and does not wait for the GPU. So a call takes
as long as the GPU needs where messages are large, and as long as the host needs where they are
small. A round begins when the hosts of all ranks that take part in it have come so far.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from colsynth.cost import Model
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.routes import Route
from colsynth.cost.usable import speed_of
from colsynth.model import Round, RoundProgram, Topology
from colsynth.simulate.executable import require_ranks

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RoundCost:
    """What a round costs, for all message sizes.

    Parameters
    ----------
    fixed, local_fixed : float
        Seconds of messages and local steps that do not depend on the size.
    links, rate, local : float
        Seconds per byte of a chunk: on the busiest link, of the largest message, in local steps.
    posted, local_posted : float
        Seconds from the launch until hosts have posted the messages, and the local steps.
    """

    fixed: float
    links: float
    rate: float
    local_fixed: float
    local: float
    posted: float
    local_posted: float

    def parts(self, chunk: float) -> dict[str, float]:
        """Return the GPU's seconds of a round by what limits it, for chunks of so many bytes."""
        by_link = self.links >= self.rate
        moving = chunk * max(self.links, self.rate)
        return {
            "links": moving if by_link else 0.0,
            "message rate": 0.0 if by_link else moving,
            "local steps": self.local_fixed + chunk * self.local,
            "rounds": self.fixed,
        }


def costs(program: RoundProgram, topology: Topology, model: Model) -> tuple[RoundCost, ...]:
    """Return the cost of every round.

    Raises
    ------
    InputError
        CS600: the ranks of both differ.
    InfeasibleError
        CS601: the program sends where no links lead.
    """
    require_ranks(program.header.ranks, topology)
    routes = pair_routes(topology, program.pairs)
    payload = model.payload["Simple"]  # of the bytes on links; `Model.rate` counts no others
    rates = [speed_of(topology, link, model) * payload for link in range(len(topology.links))]
    latency = {pair: _latency(found[0], topology, model) for pair, found in routes.items()}
    hosts: defaultdict[int, float] = defaultdict(float)
    return tuple(_cost(found, routes, rates, latency, model, hosts) for found in program.rounds)


def seconds(
    program: RoundProgram, topology: Topology, sizes: Sequence[int], model: Model
) -> tuple[float, ...]:
    """Return the time of a call at every message size."""
    rows = costs(program, topology, model)
    chunks = [size / program.header.chunks for size in sizes]
    return tuple(sum(_spent(rows, chunk, model).values()) for chunk in chunks)


def shares(program: RoundProgram, topology: Topology, size: int, model: Model) -> dict[str, float]:
    """Return the share of each limit in the time of a call, 0 to 1; the launch is a round's."""
    spent = _spent(costs(program, topology, model), size / program.header.chunks, model)
    whole = sum(spent.values())
    return {name: value / whole if whole else 0.0 for name, value in spent.items()}


def _spent(rows: Sequence[RoundCost], chunk: float, model: Model) -> dict[str, float]:
    """Return the seconds of a call by what limits it, for chunks of so many bytes."""
    begin = model.launch["Simple"] / 1e6
    spent: defaultdict[str, float] = defaultdict(float, rounds=begin)
    gpu = begin
    for row in rows:
        parts = row.parts(chunk)
        local = parts["local steps"]
        for posted, busy in ((row.posted, sum(parts.values()) - local), (row.local_posted, local)):
            late = max(0.0, begin + posted - gpu)  # the GPU waits for the host
            spent["rounds"] += late
            gpu += late + busy
        for name, value in parts.items():
            spent[name] += value
    return spent


def _latency(route: Route, topology: Topology, model: Model) -> float:
    """Return the seconds that a message takes beside its bytes."""
    network = not topology.network.isdisjoint(route)
    hop = (model.network_hop if network else model.hop)["Simple"] / 1e6
    return hop + float(sum(topology.links[link].latency for link in route))


def _cost(
    found: Round,
    routes: dict[Pair, tuple[Route, ...]],
    speed: list[float],
    latency: dict[Pair, float],
    model: Model,
    hosts: dict[int, float],
) -> RoundCost:
    """Return the cost of a round; by rank, `hosts` has the seconds that its host was busy."""
    load: defaultdict[int, float] = defaultdict(float)
    largest, longest = 0, 0.0
    for m in found.messages:
        pair = m.source, m.target
        largest, longest = max(largest, m.count), max(longest, latency[pair])
        for route in routes[pair]:  # equal routes share a message, as channels of a library do
            for link in route:
                load[link] += m.count / len(routes[pair])
    sent = Counter(m.source for m in found.messages)
    received = Counter(m.target for m in found.messages)
    further = max((*sent.values(), *received.values()), default=1) - 1
    group = 2 * model.step["Simple"] if found.messages else 0.0
    steps = Counter(s.rank for s in found.local)
    moved: Counter[int] = Counter()
    for s in found.local:
        moved[s.rank] += s.count
    ends = sent + received
    for rank, number in ends.items():
        hosts[rank] += (model.round + number * model.post) / 1e6
    ready = max((hosts[rank] for rank in ends), default=0.0)
    for rank, number in steps.items():
        hosts[rank] += number * model.post / 1e6
    return RoundCost(
        fixed=(group + further * model.hop["Simple"]) / 1e6 + longest,
        links=max((chunks / speed[link] for link, chunks in load.items()), default=0.0),
        rate=largest / (model.rate["Simple"] * 1e9),
        local_fixed=max(steps.values(), default=0) * model.wait / 1e6,
        local=max(moved.values(), default=0) / (model.local_rate["Simple"] * 1e9),
        posted=ready,
        local_posted=max((hosts[rank] for rank in steps), default=0.0),
    )
