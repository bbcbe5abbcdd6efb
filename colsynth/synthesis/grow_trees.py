"""Pass grow-trees: Problem -> Forest of shortest paths, on direct links within boxes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.bounds.trees import bound
from colsynth.errors import Diagnostic, InputError, require_least
from colsynth.model import Forest, Phase, Problem
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.bfb.trees import shortest_phase
from colsynth.synthesis.forest.trees import turned

BALANCES = ("all", "step")


@dataclass(frozen=True, slots=True)
class GrowTrees:
    """Send everything along shortest paths, balanced over the links that enter each GPU.

    Links lead from GPU to GPU. Where a network joins boxes of such links, each GPU has one
    neighbour in every other box, that in the same place.

    Parameters
    ----------
    chunks_per_gpu : int
        Chunks that every shard is cut into. More of them balance links better.
    balance : str
        What is balanced: the load of ``"all"`` steps together, or of every ``"step"``.

    Notes
    -----
    Breadth-first broadcast (arXiv 2202.03356): no tree is higher than the longest shortest path.
    Reduce-scatter is the same on the transpose.
    """

    chunks_per_gpu: int = 1
    balance: str = "all"

    name: ClassVar[str] = "grow-trees"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (
        Choice("chunks_per_gpu", (1, 2, 4, 8, 16), ladder=True),
        Choice("balance", BALANCES),
    )

    def __post_init__(self) -> None:
        require_least("chunks-per-gpu", self.chunks_per_gpu, 1)
        if self.balance not in BALANCES:
            phrase = f"balance {self.balance}: expected {' or '.join(BALANCES)}"
            raise InputError(Diagnostic("CS210", phrase))

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of a problem.

        Raises
        ------
        InputError
            CS309: GPUs of a box share links, boxes are unequal, or some GPU has no way to those in
            its place. CS303: trees cannot serve the problem.
        """
        optimum = bound(value)
        phases: list[Phase] = []
        for number, cut in enumerate(optimum.cuts):
            target.progress("growing trees", number, len(optimum.cuts))
            if phases and value.topology.is_symmetric:
                phases.append(turned(value.topology, phases[0], cut.direction))
                continue
            by_step = self.balance == "step"
            phases.append(
                shortest_phase(value, cut.direction, self.chunks_per_gpu, by_step=by_step)
            )
        shares = tuple(part * self.chunks_per_gpu for part in value.shards)
        return Forest(value, optimum, 0 if shares else self.chunks_per_gpu, tuple(phases), shares)
