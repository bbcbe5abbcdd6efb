"""A topology with the bandwidths that the simulator lets links have."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from colsynth.cost.model import Model
from colsynth.cost.pair_routes import is_network
from colsynth.model import Topology


def share_of(topology: Topology, link: int, model: Model) -> Fraction:
    """Return the share of its bandwidth that protocols leave a link."""
    network = is_network(topology, link)
    share = model.network_efficiency if network else model.link_efficiency
    return Fraction(share).limit_denominator(10**6)


def has_several_shares(topology: Topology, model: Model) -> bool:
    """Whether protocols leave different shares of different links."""
    shares = {share_of(topology, link, model) for link in range(len(topology.links))}
    return len(shares) > 1


def usable(topology: Topology, model: Model) -> Topology:
    """Return the topology with the bandwidth that protocols leave each link."""
    links = tuple(
        replace(link, bandwidth=link.bandwidth * share_of(topology, index, model))
        for index, link in enumerate(topology.links)
    )
    return replace(topology, links=links, whole=None)
