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
        Ranks of the set, ascending; at least one rank of the topology (of a process group) is
        not in it.
    links : tuple of int
        Link indices that cross the cut in the direction data must take. Without transit none
        to GPUs that take no part, nor from one process group to another.
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
        of the composition reduce-scatter + allgather. Where several process groups share the
        links, the message of each over a time that may not be reached.
    trees_per_root : int
        Equal trees per root that reach the optimum and leave no fraction of a tree on any
        link (ForestColl's k); fewer may reach it where not every link has to be full.
    cuts : tuple of Cut
        One bottleneck per phase, in the order of the phases.
    rates : tuple of Fraction
        Algorithm bandwidth of each phase alone, bytes per second.
    """

    algbw: Fraction
    trees_per_root: int
    cuts: tuple[Cut, ...]
    rates: tuple[Fraction, ...]


@dataclass(frozen=True, slots=True)
class FlowBound:
    """A bandwidth that no schedule beats, of a collective that gives each pair its own data.

    Parameters
    ----------
    algbw : Fraction
        Bytes per second: message size over time. The message is what each rank sends in
        an all-to-all, and what the root sends or receives in a scatter or gather, its own
        part included.
    cut : Cut
        The most limiting cut of those tried. `Cut.direction` says which way its links run.
    cut_algbw : Fraction
        What the cut allows; `algbw` or more.
    prices : tuple of int
        Of every link, where prices prove less than the cut: the bandwidths times the
        prices, over the cheapest ways of all pairs added up, are the rate of one pair.
        Empty where the cut proves `algbw`.
    reached : float or None
        Algorithm bandwidth of the flow that a linear program found, bytes per second;
        None where none was solved.
    exact : bool
        Whether flows reach `algbw`: proven by the theorem of maximum flows for scatter
        and gather, to a millionth by `reached` for all-to-all.
    """

    algbw: Fraction
    cut: Cut
    cut_algbw: Fraction
    prices: tuple[int, ...]
    reached: float | None
    exact: bool
