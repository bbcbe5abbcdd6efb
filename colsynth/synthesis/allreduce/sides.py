"""The two halves of an allreduce, and how they share the links.

Inwards each chunk is added up along a tree towards its root, outwards it is copied from
there. Both halves are described as trees that grow outwards, the first on the reversed
network, so that one set of cuts serves both. Both run at the same time on different
chunks, so a link is shared between them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from colsynth.model import Direction, Kind, Problem
from colsynth.synthesis.network import Ints, Network, network_of


@dataclass(frozen=True, eq=False)
class Side:
    """One half of an allreduce.

    Parameters
    ----------
    direction : Direction
    network : Network
        Outwards from the roots; arc i is link i of the topology, turned for IN.
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


def halves_of(problem: Problem) -> Halves:
    """Return the halves of an allreduce on a topology."""
    topology = problem.topology
    outwards = _side(problem, Direction.OUT)
    if topology.is_symmetric:
        reverse = topology.link_between
        turned = [reverse[link.target, link.source] for link in topology.links]
        return Halves((outwards,), np.array(turned, np.int64))
    return Halves((outwards, _side(problem, Direction.IN)), None)


def _side(problem: Problem, direction: Direction) -> Side:
    nodes = problem.topology.nodes
    forwards = [i for i, node in enumerate(nodes) if node.kind is not Kind.GPU]
    return Side(direction, network_of(problem, direction), np.array(forwards, np.int64))
