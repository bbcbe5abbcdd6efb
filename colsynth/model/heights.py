"""The least congestion of trees of bounded height, and the prices that prove it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from colsynth.model.problem import Direction


@dataclass(frozen=True, slots=True)
class HeightBound:
    """A bound on trees that are no higher than `height`, in one direction.

    Parameters
    ----------
    direction : Direction
    height : int
        Most links between a root and a GPU.
    load : Fraction
        Seconds for each byte of a part: no such trees load their links less.
    prices : tuple of int
        Of every link; zero or more. They price a unit of its bandwidth.
    joints : tuple of tuple of int
        (root, link, level, price) of using a link at a level, paid to those who reach its tail one
        level before. Prices above zero alone.

    Notes
    -----
    Weak duality: give every GPU v of the tree of root r the least, over the links into v and
    levels, of price + joint of this use - joints of all uses that leave v a level later. A tree
    pays at least what its GPUs are given, and all trees together at most load x bandwidths x
    prices.
    """

    direction: Direction
    height: int
    load: Fraction
    prices: tuple[int, ...]
    joints: tuple[tuple[int, int, int, int], ...]
