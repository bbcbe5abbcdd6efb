"""Pass pack-trees: Problem -> Forest at the exact rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.model import Forest, Problem
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.bfb.bounded import bounded_forest
from colsynth.synthesis.forest.choose import PREFERENCES
from colsynth.synthesis.forest.equal_roots import equal_forest
from colsynth.synthesis.forest.grid import grid_of, grids
from colsynth.synthesis.forest.rate import numbers_of_trees, require_trees
from colsynth.synthesis.forest.usable import (
    BANDWIDTHS,
    bandwidths,
    narrowed,
    on_wires,
)
from colsynth.synthesis.groups.pack import forest_of_groups


@dataclass(frozen=True, slots=True)
class PackTrees:
    """Pack spanning trees at the best rate for their number.

    Parameters
    ----------
    trees : str
        ``"optimal"``: the fewest per root that reach the exact optimum. ``"auto"``: the
        fewest within 2 % of it. A number K: the best rate that K trees per root can have.
    prefer : str
        Which trees to take at that rate, up to 64 GPUs: ``"low"`` ones, or as ``"few"``
        different ones as are found, which take fewer threadblocks and may be higher;
        ``"plain"`` ones come from one order of packing.
    grid : str
        Which GPUs behind one switch are neighbours: ``"all"``, or those that share all but one
        coordinate of a grid, such as ``"2x2x2x3"`` for 24 GPUs, or those at some distances on a
        ring of all, such as ``"1+3+9"``. Machines without a switch of so many ports ignore a
        grid, those that are more than one switch ignore distances.
    bandwidth : str
        Of links: that of the ``"wire"``; what protocols leave of it, as the simulator counts
        (``"usable"``); or of that, no more between boxes than is ``"needed"``. Rates and bounds
        are those of wires in any case. Process groups and trees of bounded height keep to wires.
    max_height : int
        Most links between a root and a GPU, on direct-connect fabrics; 0 sets no limit. The
        trees are the best of that height, and `prefer` does not matter.

    Notes
    -----
    Rate from cuts, switches removed under certificates, arborescences packed by the
    constructive form of Edmonds' theorem; see the modules `rate`, `switches` and
    ``kernels/packing``. On graphs whose switches have as much ingress as egress the rate
    is reached exactly; elsewhere the gap to the cut bound is measured and kept in the
    forest. Polynomial: some maximum flows per GPU and level of the trees.
    """

    trees: str = "auto"
    prefer: str = "low"
    grid: str = "all"
    bandwidth: str = "wire"
    max_height: int = 0

    name: ClassVar[str] = "pack-trees"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("trees", propose=numbers_of_trees),
        Choice("grid", propose=grids),
        Choice("prefer", ("low", "few")),
        Choice("bandwidth", propose=bandwidths),
    )

    def __post_init__(self) -> None:
        require_trees(self.trees)
        require_least("max-height", self.max_height, 0)
        if self.prefer not in PREFERENCES:
            phrase = f"prefer {self.prefer}: expected {' or '.join(PREFERENCES)}"
            raise InputError(Diagnostic("CS210", phrase))
        if self.bandwidth not in BANDWIDTHS:
            phrase = f"bandwidth {self.bandwidth}: expected {' or '.join(BANDWIDTHS)}"
            raise InputError(Diagnostic("CS210", phrase))
        grid_of(self.grid)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem; process groups are told apart first."""
        if self.max_height:
            return bounded_forest(value, self.trees, self.max_height, target)
        grid = grid_of(self.grid)
        if value.groups and grid:
            phrase = f"grid {self.grid} does not go with process groups"
            raise InputError(Diagnostic("CS210", phrase))
        if value.groups:
            return forest_of_groups(value, self.trees, self.prefer, target)
        if self.bandwidth != "wire":
            problem = narrowed(value, self.bandwidth, target)
            return on_wires(equal_forest(problem, self.trees, self.prefer, target, grid), value)
        return equal_forest(value, self.trees, self.prefer, target, grid)
