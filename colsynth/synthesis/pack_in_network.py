"""Pass pack-in-network: Problem -> Forest with help from switches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import Forest, Problem
from colsynth.runtimes.target import Target
from colsynth.synthesis.forest.rate import require_trees
from colsynth.synthesis.groups.pack import group_in_network
from colsynth.synthesis.in_network.pack import forest_in_network, nothing_found


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
    any_message: ClassVar[bool] = True

    def __post_init__(self) -> None:
        require_trees(self.trees)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem; a process group is taken for itself first.

        Raises
        ------
        InfeasibleError
            CS324: no switch can do what the collective needs, or there are too many GPUs.
        InputError
            CS303: there are several process groups.
        """
        if value.groups:
            return group_in_network(value, self.trees, target)
        forest = forest_in_network(value, self.trees, target)
        if forest is None:
            raise nothing_found(value)
        return forest
