"""What connections carry, and how many threadblocks that takes at the pace of the links."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil

from colsynth.model import Topology, Transfer
from colsynth.runtimes.target import Target
from colsynth.simulate import Model, default_model
from colsynth.simulate.ways import is_network, ways

Way = tuple[int, ...]
"""Links from one rank to another."""

Connection = tuple[int, int, int]
"""First channel, source and target: what may be shared among threadblocks."""


def lanes(
    transfers: Sequence[Transfer],
    first_channel: Callable[[Transfer], int],
    steps: int,
    topology: Topology,
    target: Target,
) -> dict[Connection, int]:
    """Return how many threadblocks each connection needs at each of its ends.

    As many as move its chunks while the busiest link moves all of its own, and as many as
    have room for its steps.

    Parameters
    ----------
    transfers : sequence of Transfer
    first_channel : callable
        The least channel that a transfer may take.
    steps : int
        That a threadblock may have.
    topology : Topology
    target : Target
    """
    chunks: Counter[Connection] = Counter()
    count: Counter[Connection] = Counter()
    for transfer in transfers:
        if not transfer.is_local:
            connection = first_channel(transfer), transfer.source, transfer.target
            chunks[connection] += transfer.count
            count[connection] += 1
    most = pace(target) * _busiest(chunks, topology, default_model(target.profile))
    return {
        connection: max(ceil(load / most), -(-count[connection] // steps))
        for connection, load in sorted(chunks.items())
    }


def _busiest(chunks: Counter[Connection], topology: Topology, model: Model) -> Fraction:
    """Return the seconds per byte of a chunk that the busiest link takes for all it carries."""
    known = ways(topology, sorted({(source, target) for _, source, target in chunks}))
    busy: dict[int, Fraction] = {}
    for (_, source, target), load in sorted(chunks.items()):
        choice = known[source, target]
        for way in choice:
            for link in way:
                busy[link] = busy.get(link, Fraction(0)) + Fraction(load, len(choice))
    return max(load / bandwidth(topology, link, model) for link, load in sorted(busy.items()))


def pace(target: Target) -> Fraction:
    """Return the bytes per second that a threadblock moves."""
    rate = default_model(target.profile).rate[target.protocol]
    return Fraction(rate).limit_denominator() * 10**9


def bandwidth(topology: Topology, link: int, model: Model) -> Fraction:
    """Return the bytes per second of a link that the protocols of the wire leave."""
    outside = is_network(topology, link)
    share = model.network_efficiency if outside else model.link_efficiency
    return topology.links[link].bandwidth * Fraction(share).limit_denominator()
