"""What an allreduce can reach when roots have shares of their own, with proofs."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model.bound import Bound
from colsynth.model.problem import Direction


@dataclass(frozen=True, slots=True)
class Limit:
    """A bandwidth that no allreduce of any kind beats.

    Parameters
    ----------
    algbw : Fraction
        Bytes per second.
    parts : tuple of tuple of int
        Disjoint sets of node indices with a GPU in each. One set: all data must cross the
        cut around it once. Several, k of them: together they hold every GPU, and 2 (k - 1)
        times the data must cross their borders.
    direction : Direction
        OUT: what leaves the sets is counted; IN: what enters them.
    bandwidth : Fraction
        Of the links that are counted, bytes per second.
    """

    algbw: Fraction
    parts: tuple[tuple[int, ...], ...]
    direction: Direction
    bandwidth: Fraction


@dataclass(frozen=True, slots=True)
class PricedCut:
    """A set that data must leave (OUT) or enter (IN), and the price of doing so.

    Parameters
    ----------
    direction : Direction
    nodes : tuple of int
        Node indices, ascending; some GPU is not among them.
    price : int
        Above zero; paid on every link that crosses in that direction.
    """

    direction: Direction
    nodes: tuple[int, ...]
    price: int


@dataclass(frozen=True, slots=True)
class RootedBound:
    """A bandwidth that no allreduce beats that adds each chunk up at one place.

    That is a GPU, with `in_network` also a switch that reduces and multicasts; in a process
    group with transit also a GPU outside it. A chunk with root v pays the price of every set
    with v in it, on its way in or out; links can be paid at most their bandwidth times their
    price.

    Parameters
    ----------
    algbw : Fraction
        Bytes per second.
    cuts : tuple of PricedCut
    potentials : tuple of (Direction, int, int)
        Direction, node index and refund: a node that only forwards takes the refund from
        what enters it and gives it to what leaves it, outwards from the roots.
    reached : float
        Bytes per second that the linear program found a way to use.
    in_network : bool
        Whether switches multicast and reduce where they can. Without, each only forwards.
    """

    algbw: Fraction
    cuts: tuple[PricedCut, ...]
    potentials: tuple[tuple[Direction, int, int], ...]
    reached: float
    in_network: bool = False


@dataclass(frozen=True, slots=True)
class AllreduceBound:
    """What an allreduce can reach in one way and another, and what none can.

    Parameters
    ----------
    composition : Bound
        Reduce-scatter, then allgather: each GPU is root of an equal share.
    rooted : RootedBound or None
        Shares and links divided at will; None where `limit` proves that the composition
        cannot be beaten, or where the linear program is too large.
    limit : Limit
        The least bound found on any schedule in which switches only forward.
    in_network : RootedBound or None
        What free roots reach where switches multicast and reduce as they can; None where
        none of them can.
    """

    composition: Bound
    rooted: RootedBound | None
    limit: Limit
    in_network: RootedBound | None = None

    @property
    def algbw(self) -> Fraction:
        """Bytes per second that no trees beat; where `known` is False, that some reach."""
        return self.composition.algbw if self.rooted is None else self.rooted.algbw

    @property
    def known(self) -> bool:
        """Whether `algbw` is the optimum of trees, not only what equal roots reach."""
        return self.rooted is not None or self.limit.algbw == self.composition.algbw

    @property
    def proven(self) -> bool:
        """Whether no schedule at all beats `algbw`, be it of trees or not."""
        return self.limit.algbw == self.algbw

    @property
    def gain(self) -> Fraction:
        """How much faster than the composition free roots may be: 1/5 is 20 %."""
        return self.algbw / self.composition.algbw - 1
