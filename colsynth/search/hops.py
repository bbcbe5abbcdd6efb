"""How much of the time hops may take: it decides which variants of an algorithm are tried."""

from __future__ import annotations

from dataclasses import dataclass

from colsynth.bounds.runtime import RuntimeBound
from colsynth.cost import model_of
from colsynth.search.case import Case
from colsynth.search.levels import CLOSE


@dataclass(frozen=True, slots=True)
class Hops:
    """What hops are to files of a size.

    Parameters
    ----------
    dominate : bool
        Whether they may take most of the time.
    one_more : bool
        Whether a file with one more between boxes may be faster than those found.
    """

    dominate: bool
    one_more: bool


def hops_of(case: Case, floor: RuntimeBound, seconds: float) -> Hops:
    """Return what hops are, by the least time of any file and the best found."""
    model = model_of(case)
    another = (model.network_hop[floor.protocol] + model.step[floor.protocol]) / 1e6
    return Hops(
        dominate=floor.latency * CLOSE >= floor.seconds,
        one_more=floor.latency + another < seconds,
    )
