"""The proven optimum of a collective on a topology."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model.problem import Direction


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of nodes whose outgoing links hold everything back.

    Parameters
    ----------
    direction : Direction
        The phase that the cut limits. For IN, `links` run into the set.
    nodes : tuple of int
        Node indices of the set, ascending.
    gpus : tuple of int
        Ranks of the set, ascending; at least one rank of the topology is not in it.
    links : tuple of int
        Link indices that cross the cut in the direction data must take.
    bandwidth : Fraction
        Sum over `links`, bytes per second.
    """

    direction: Direction
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    links: tuple[int, ...]
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class Bound:
    """Best possible algorithm bandwidth, with the cut that proves it.

    Parameters
    ----------
    algbw : Fraction
        Bytes per second: message size over the least possible time. For allreduce
        of the composition reduce-scatter + allgather.
    trees_per_root : int
        Fewest equal trees per root with which the optimum is reached.
    cuts : tuple of Cut
        One bottleneck per phase, in the order of the phases.
    rates : tuple of Fraction
        Algorithm bandwidth of each phase alone, bytes per second.
    """

    algbw: Fraction
    trees_per_root: int
    cuts: tuple[Cut, ...]
    rates: tuple[Fraction, ...]
