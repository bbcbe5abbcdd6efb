"""Pass pack-in-network: Problem -> Forest with help from switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import Collective, Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.allreduce.rooted import allreduce_bound
from colsynth.synthesis.forest.rate import require_trees
from colsynth.synthesis.in_network.both_ways import allreduce_forest
from colsynth.synthesis.in_network.one_way import one_way_forest


@dataclass(frozen=True, slots=True)
class PackInNetwork:
    """Pack trees that branch at switches that multicast, or join at those that reduce.

    Parameters
    ----------
    trees : str
        ``"auto"``: the fewest within 2 % of the optimum. ``"optimal"``: the exact optimum.
        A number K: K per root, of an allreduce K in all.

    Notes
    -----
    For what such switches are worth, and for programs of one's own: no runtime's file can
    say that a switch does more than forward, so `lower-forest` refuses these forests.
    """

    trees: str = "auto"

    name: ClassVar[str] = "pack-in-network"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest

    def __post_init__(self) -> None:
        require_trees(self.trees)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem.

        Raises
        ------
        InfeasibleError
            CS324: no switch can do what the collective needs, or there are too many GPUs.
        """
        if value.groups:
            from colsynth.synthesis.groups.pack import forest_in_network

            return forest_in_network(value, self.trees, target)
        if value.collective is Collective.ALLREDUCE:
            target.progress("sharing out roots", 0, 2)
            forest = allreduce_forest(value, allreduce_bound(value), self.trees)
        else:
            forest = one_way_forest(value, self.trees, target)
        if forest is not None:
            return forest
        phrase = f"no {value.collective} in the network was found on {value.topology.name}"
        note = "it takes switches that multicast outwards and reduce inwards"
        advice = "give switches capabilities, or take -a forest"
        raise InfeasibleError(Diagnostic("CS324", phrase, notes=(note,), help=advice))
