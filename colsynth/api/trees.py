"""Forests for programs of one's own, where no file of a runtime is wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from colsynth.api.given import require_callable, require_problem
from colsynth.model import Forest, Problem

if TYPE_CHECKING:
    from colsynth.pipeline.target import Progress


def pack(
    problem: Problem,
    trees: str | int = "auto",
    progress: Progress | None = None,
    *,
    in_network: bool = False,
    free_roots: bool = False,
) -> Forest:
    """Return spanning trees that were checked, at the best rate for their number.

    Also for what no file can say, such as shards of different sizes: every root has trees in
    proportion to its shard.

    Parameters
    ----------
    problem : Problem
    trees : str or int
        ``"auto"``: the fewest per root, or per part of the shards, within 2 % of the optimum;
        ``"optimal"``: as many as the optimum needs; or a number.
    progress : callable, optional
        As for `compile`.
    in_network : bool
        Whether trees branch at switches that multicast or reduce. Roots are free then.
    free_roots : bool
        Whether the roots of an allreduce add up as much as suits the links, instead of equal parts.

    Raises
    ------
    InputError
        CS210: no such number of trees. CS303: trees cannot serve the collective. CS321: free roots
        of another collective than an allreduce.
    InfeasibleError
        Some GPU cannot be reached; CS322: no trees with free roots are better, or none were found;
        CS324: no switch can do what is asked of it.
    DefectError
        colsynth made a wrong forest and kept it from you.
    """
    from colsynth.pipeline.clock import Clock
    from colsynth.pipeline.manager import Pipeline
    from colsynth.pipeline.registry import DEFAULT
    from colsynth.runtimes.target import Context

    require_problem(problem, "pack")
    require_callable("progress", progress)
    name = "pack-roots" if free_roots else "pack-trees"
    packer = DEFAULT.load("pack-in-network" if in_network else name)
    pipeline = Pipeline((packer(trees=str(trees)),))
    pipeline.check(Problem, Forest)
    context = Context() if progress is None else Context(progress=progress)
    packed: Forest = pipeline.run(problem, context, Clock())
    return packed
