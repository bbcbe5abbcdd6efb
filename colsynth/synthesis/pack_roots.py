"""Pass pack-roots: an allreduce -> Forest whose roots have shares of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from colsynth.bounds.allreduce.rooted import allreduce_bound
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.model import AllreduceBound, Forest, Problem
from colsynth.runtimes.choice import Choice
from colsynth.runtimes.target import Target
from colsynth.synthesis.allreduce.pack import free_forest
from colsynth.synthesis.forest.rate import require_trees


@dataclass(frozen=True, slots=True)
class PackRoots:
    """Pack the trees of an allreduce whose roots add up as much as suits the links.

    Parameters
    ----------
    trees : str
        ``"auto"``: the fewest trees within 5 % of the optimum that keep half of what is
        gained over equal roots, counted over all roots.
        ``"optimal"``: as many as the exact optimum needs. A number K: K in all.

    Notes
    -----
    A linear program shares out roots and links (`bounds.allreduce`), an integer program makes
    whole trees of it (`allreduce.whole`); they are packed as in `PackTrees`, inwards and outwards
    into different parts of the links. Nothing beats reduce-scatter and allgather where GPUs are
    alike; on meshes, stars and lopsided machines this does.
    """

    trees: str = "auto"

    name: ClassVar[str] = "pack-roots"
    takes: ClassVar[type] = Problem
    gives: ClassVar[type] = Forest
    any_message: ClassVar[bool] = True
    choices: ClassVar[tuple[Choice, ...]] = (Choice("trees", ("auto", "1", "2", "8", "32")),)

    def __post_init__(self) -> None:
        require_trees(self.trees)

    def run(self, value: Problem, target: Target) -> Forest:
        """Return the forest of an allreduce.

        Raises
        ------
        InputError
            CS321: another collective.
        InfeasibleError
            CS322: reduce-scatter and allgather cannot be beaten here, or so many trees do
            not fit.
        """
        target.progress("sharing out roots", 0, 2)
        found = allreduce_bound(value)
        target.progress("packing trees", 1, 2)
        forest = free_forest(value, found, self.trees)
        if forest is None:
            raise InfeasibleError(self._refusal(value, found))
        return forest

    def _refusal(self, problem: Problem, found: AllreduceBound) -> Diagnostic:
        where = problem.topology.name
        if found.rooted is None:
            phrase = f"free roots have nothing to gain on {where}"
            proven = found.limit.algbw == found.composition.algbw
            note = "a cut proves it" if proven else "it is too large for the linear program"
            return Diagnostic("CS322", phrase, notes=(note,), help="take -a forest")
        count = self.trees if self.trees.isdigit() else "a manageable number of"
        phrase = f"no schedule of {count} trees with free roots was found on {where}"
        return Diagnostic("CS322", phrase, help="give another number with --trees")
