"""The bandwidths that the simulator lets links have."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache

from colsynth.cost.model import Model
from colsynth.model import Topology


@cache
def exact(decimal: float) -> Fraction:
    """Return the fraction that a decimal of a model means."""
    return Fraction(decimal).limit_denominator()


def pace(model: Model, protocol: str) -> Fraction:
    """Return the bytes per second that a threadblock moves."""
    return exact(model.rate[protocol]) * 10**9


def _efficiency(topology: Topology, link: int, model: Model) -> float:
    return model.network_efficiency if link in topology.network else model.link_efficiency


def share_of(topology: Topology, link: int, model: Model) -> Fraction:
    """Return the share of its bandwidth that protocols leave a link."""
    return exact(_efficiency(topology, link, model))


def bandwidth(topology: Topology, link: int, model: Model) -> Fraction:
    """Return the bytes per second of a link that the protocols of the wire leave."""
    return topology.links[link].bandwidth * share_of(topology, link, model)


def speed_of(topology: Topology, link: int, model: Model) -> float:
    """Return `bandwidth` as the simulator counts it."""
    return float(topology.links[link].bandwidth) * _efficiency(topology, link, model)


def has_several_shares(topology: Topology, model: Model) -> bool:
    """Whether protocols leave different shares of different links."""
    shares = {share_of(topology, link, model) for link in range(len(topology.links))}
    return len(shares) > 1


def usable(topology: Topology, model: Model) -> Topology:
    """Return the topology with the bandwidth that protocols leave each link."""
    links = tuple(
        replace(link, bandwidth=bandwidth(topology, number, model))
        for number, link in enumerate(topology.links)
    )
    return replace(topology, links=links, whole=None)
