"""Direct-connect fabrics: shortest-path broadcast, and cablings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from colsynth.api.given import plain_values, require_callable, require_problem, require_request
from colsynth.model import Forest, Problem

if TYPE_CHECKING:
    from collections.abc import Callable

    from colsynth.cabling.figures import Figures
    from colsynth.cabling.ranking import Ranking
    from colsynth.cabling.request import Request
    from colsynth.model.steps import StepBound


def steps(problem: Problem) -> StepBound:
    """Return steps and times of shortest-path broadcast on a direct-connect fabric, checked.

    Parameters
    ----------
    problem : Problem
        Of a collective that trees serve, without process groups.

    Raises
    ------
    InputError
        CS309: the topology has switches. CS303: trees cannot serve the problem.
    """
    from colsynth.bounds.steps import step_bound
    from colsynth.verify.steps import check_steps

    require_problem(problem, "steps")
    found = step_bound(problem)
    if problem.topology.size <= _CHECKED:
        check_steps(problem, found)
    return found


_CHECKED = 1024
"""GPUs up to which witnesses are added up again: 1024 take a second."""


@dataclass(frozen=True, slots=True)
class HeightRow:
    """What trees of a height reach.

    Parameters
    ----------
    height : int
        Most links between a root and a GPU.
    bound : Fraction
        Bytes per second that no trees of the height exceed, proven by prices.
    forest : Forest
        Trees of the height.
    """

    height: int
    bound: Fraction
    forest: Forest


def heights(
    problem: Problem, progress: Callable[[str, int, int], None] | None = None
) -> list[HeightRow]:
    """Return what trees of each height reach, from the lowest to the first found at the optimum.

    All proofs are checked.

    Parameters
    ----------
    problem : Problem
        On a direct-connect fabric.
    progress : callable, optional
        Told (what, done, total).

    Raises
    ------
    InputError
        CS309: the topology has switches. CS310: it is too large.
    """
    from colsynth.api.trees import pack
    from colsynth.bounds.levels import height_bound
    from colsynth.bounds.trees import bound
    from colsynth.runtimes.target import Context
    from colsynth.synthesis.bfb.bounded import bounded_forest
    from colsynth.verify import check_forest
    from colsynth.verify.heights import check_heights

    require_problem(problem, "heights")
    require_callable("progress", progress)
    optimum, highest = bound(problem), pack(problem, "optimal")
    rows: list[HeightRow] = []
    best = Fraction(0)
    lowest = max(len(phase.steps) for phase in steps(problem).phases)
    for height in range(lowest, max(lowest, highest.max_height) + 1):
        if progress is not None:
            progress(f"trees of height {height}", len(rows), 0)
        if best < optimum.algbw:
            limits = [height_bound(problem, cut.direction, height) for cut in optimum.cuts]
            for limit in limits:
                check_heights(problem, limit)
            slowest = sum((limit.load for limit in limits), Fraction(0))
            best = min(sum(problem.weights) / slowest, optimum.algbw)
        forest = highest
        if height < highest.max_height:
            forest = bounded_forest(problem, "optimal", height, Context())
            check_forest(forest)
        rows.append(HeightRow(height, best, forest))
        if forest.algbw == optimum.algbw:
            break
    return rows


def cablings(request: Request, progress: Callable[[str, int, int], None] | None = None) -> Ranking:
    """Return the best cablings for a number of GPUs and ports, judged exactly.

    Parameters
    ----------
    request : Request
        See `colsynth.cabling.request`.
    progress : callable, optional
        Told (what, done, total).

    Raises
    ------
    InputError
        CS200: another object than a request. CS141: the request makes no sense, or no fabric
        was found.
    """
    from colsynth.cabling.request import find_cablings

    require_request(request)
    require_callable("progress", progress)
    names = ("gpus", "ports", "reserved", "tries", "seed")
    request = replace(request, **plain_values({name: getattr(request, name) for name in names}))
    return find_cablings(request, progress or (lambda _what, _done, _total: None))


def write_cabling(
    found: Figures,
    request: Request,
    topology: str | Path | None = None,
    cables: str | Path | None = None,
    *,
    provenance: str = "",
    replace: bool = False,
) -> None:
    """Write a fabric as YAML, and its cables as CSV: a permutation for every panel.

    Raises
    ------
    InputError
        CS207 where a file exists and `replace` is false, CS208 when the system refuses. CS141:
        the GPUs differ in their numbers of links, so panels do not suit them.
    """
    from colsynth.cabling.products import cable_list, fabric
    from colsynth.topology import export_flat
    from colsynth.writing import write_files

    contents = {}
    if topology is not None:
        head = f"# {provenance}\n" if provenance else ""
        contents[Path(topology)] = (head + export_flat(fabric(found, request))).encode()
    if cables is not None:
        contents[Path(cables)] = cable_list(found, request).encode()
    write_files(contents, replace=replace)
