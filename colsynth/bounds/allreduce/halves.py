"""The two halves of an allreduce, and how they share the links.

Inwards each chunk is added up along a tree towards its root, outwards it is copied from
there. Both halves are described as trees that grow outwards, the first on the reversed
network, so that one set of cuts serves both. Both run at the same time on different
chunks, so a link is shared between them.

A switch that multicasts may be where trees outwards branch: what it receives once it
sends on many links. One that reduces is where trees inwards join. Neither has to pass on
as much as it receives, which is all that is asked of a switch that only forwards.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from colsynth.bounds.network import Ints, Network, network_of
from colsynth.model import Direction, Kind, Problem, Topology

Branching = Mapping[Direction, Collection[int]]
"""Nodes other than GPUs where trees of a direction may branch."""

CAPABILITY = {Direction.OUT: "multicast", Direction.IN: "reduce"}
"""What a switch must be capable of for trees of a direction to branch at it."""


@dataclass(frozen=True, eq=False)
class Side:
    """One half of an allreduce.

    Parameters
    ----------
    direction : Direction
    network : Network
        Outwards from the roots; arc i is link i of the topology, turned for IN. `gpus`
        are the nodes that every tree must reach.
    forwards : int64 (k,)
        Nodes that send on each unit they receive on one link only.
    """

    direction: Direction
    network: Network
    forwards: Ints


@dataclass(frozen=True, eq=False)
class Halves:
    """Both halves, or the one that stands for both.

    Parameters
    ----------
    sides : tuple of Side
        Outwards first. One where every link has an equal reverse: averaging a schedule
        with its reverse shows that some best one goes inwards as it goes outwards.
    partner : int64 (m,)
        With one side: the reverse of every link; trees outwards use it inwards.
    """

    sides: tuple[Side, ...]
    partner: Ints | None


def halves_of(
    problem: Problem, branching: Branching | None = None, *, reached: bool = False
) -> Halves:
    """Return the halves of an allreduce on a topology.

    Parameters
    ----------
    problem : Problem
    branching : mapping, optional
        Where trees may branch besides at GPUs; nowhere unless given.
    reached : bool
        Whether every tree must reach these nodes too, as trees that are packed have to; then
        GPUs alone are roots.
    """
    topology = problem.topology
    places = branching or {}
    ways = Direction.OUT, Direction.IN
    branches = {way: set(places.get(way, ())) for way in ways}
    both = set() if reached else branches[Direction.IN] & branches[Direction.OUT]
    sides = [_side(problem, way, branches[way], both, reached) for way in ways]
    alike = branches[Direction.IN] == branches[Direction.OUT]
    if topology.is_symmetric and alike:
        reverse = topology.link_between
        turned = [reverse[link.target, link.source] for link in topology.links]
        return Halves((sides[0],), np.array(turned, np.int64))
    return Halves(tuple(sides), None)


def capable(topology: Topology) -> dict[Direction, tuple[int, ...]]:
    """Return the nodes where trees of each direction can branch."""
    return {
        way: tuple(i for i, node in enumerate(topology.nodes) if word in node.capabilities)
        for way, word in CAPABILITY.items()
    }


def _side(
    problem: Problem,
    direction: Direction,
    branching: Collection[int],
    roots: Collection[int],
    reached: bool,
) -> Side:
    nodes = problem.topology.nodes
    forwards = [i for i, x in enumerate(nodes) if x.kind is not Kind.GPU and i not in branching]
    network = network_of(problem, direction)
    if roots:
        weight = network.weight.copy()
        weight[sorted(roots)] = 1
        network = replace(network, weight=weight)
    if reached and branching:
        ends = np.concatenate((network.gpus, np.array(sorted(branching), np.int64)))
        network = replace(network, gpus=ends)
    return Side(direction, network, np.array(forwards, np.int64))
