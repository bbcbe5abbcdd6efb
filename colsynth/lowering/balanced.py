"""Threadblocks in proportion to the load of each connection."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil, lcm

from colsynth.cost import Model, model_of
from colsynth.cost.pair_routes import pair_routes
from colsynth.cost.usable import bandwidth, pace
from colsynth.model import Topology
from colsynth.runtimes.target import Target

Way = tuple[int, ...]
"""Links from one rank to another."""

Connection = tuple[int, int, int]
"""First channel, source and target: what may be shared among threadblocks."""


def balanced_threadblocks(
    chunks: Mapping[Connection, int],
    transfers: Mapping[Connection, int],
    steps: int,
    topology: Topology,
    target: Target,
) -> dict[Connection, int]:
    """Return how many threadblocks each connection needs at each of its ends.

    As many as move its chunks while the busiest link moves all of its own, and as many as
    have room for its steps.

    Parameters
    ----------
    chunks, transfers : mapping
        Of each connection.
    steps : int
        That a threadblock may have.
    topology : Topology
    target : Target
    """
    model = model_of(target)
    most = pace(model, target.protocol) * _busiest(chunks, topology, model)
    return {
        connection: max(ceil(load / most), -(-transfers[connection] // steps))
        for connection, load in sorted(chunks.items())
    }


def _busiest(chunks: Mapping[Connection, int], topology: Topology, model: Model) -> Fraction:
    """Return the seconds per byte of a chunk that the busiest link takes for all it carries."""
    known = pair_routes(topology, sorted({(source, target) for _, source, target in chunks}))
    busy, whole = link_loads(((ends, load) for (_, *ends), load in chunks.items()), known)
    heaviest: dict[tuple[Fraction, bool], tuple[int, int]] = {}
    for link, load in busy.items():  # one of the links that are alike is enough
        kind = topology.links[link].bandwidth, link in topology.network
        heaviest[kind] = max(heaviest.get(kind, (0, link)), (load, link))
    return max(
        Fraction(load, whole) / bandwidth(topology, link, model) for load, link in heaviest.values()
    )


def link_loads(
    loads: Iterable[tuple[Sequence[int], int]], known: Mapping[tuple[int, int], Sequence[Way]]
) -> tuple[Counter[int], int]:
    """Return what every link carries, in parts of a unit of the loads, and how many make one.

    Parameters
    ----------
    loads : iterable of (source and target, int)
    known : mapping
        The ways of each pair, which carry equal parts.
    """
    whole = lcm(*map(len, known.values()))
    carried: Counter[int] = Counter()
    for (source, target), load in loads:
        choice = known[source, target]
        part = load * whole // len(choice)
        for way in choice:
            for link in way:
                carried[link] += part
    return carried, whole
