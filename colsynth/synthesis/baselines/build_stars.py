"""Pass build-stars: Problem -> Forest of stars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.model import Collective, Forest, Problem
from colsynth.model.problem import PHASES
from colsynth.runtimes.target import Target
from colsynth.synthesis.baselines.forests import forest_of
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes
from colsynth.synthesis.baselines.refusals import require_collective
from colsynth.synthesis.baselines.trees import near_tree


@dataclass(frozen=True, slots=True)
class BuildStars:
    """Exchange shards between all pairs at once: the two-shot all-pairs of libraries.

    Every rank adds up its shard of what all others send it straight away, and sends the sum
    to all of them. Pairs without a way through no third GPU go through as few as can be.
    """

    name: ClassVar[str] = "build-stars"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True

    def run(self, value: Problem, target: Target) -> Forest:
        """Return one tree per root, a star where there are ways.

        Raises
        ------
        InputError
            CS311: stars do not serve the collective.
        InfeasibleError
            CS302: no data can pass between some two GPUs.
        """
        served = (Collective.ALLREDUCE, Collective.ALLGATHER, Collective.REDUCE_SCATTER)
        require_collective("allpairs2", value, served)
        ways = LoadedRoutes(value.topology)
        trees = {}
        for direction in PHASES[value.collective]:
            fresh = ways.unloaded()
            trees[direction] = tuple(near_tree(fresh, root, direction) for root in value.roots)
        return forest_of(value, trees)
