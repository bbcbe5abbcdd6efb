"""Direct-connect fabrics: shortest-path broadcast, and cablings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from colsynth.model import Problem

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

    found = step_bound(problem)
    if problem.topology.size <= _CHECKED:
        check_steps(problem, found)
    return found


_CHECKED = 1024
"""GPUs up to which witnesses are added up again: 1024 take a second."""


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
        CS141: the request makes no sense, or no fabric was found.
    """
    from colsynth.cabling.request import find_cablings

    return find_cablings(request, progress or (lambda _what, _done, _total: None))


def write_cabling(
    found: Figures,
    request: Request,
    topology: Path | None = None,
    cables: Path | None = None,
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
        contents[topology] = (head + export_flat(fabric(found, request))).encode()
    if cables is not None:
        contents[cables] = cable_list(found, request).encode()
    write_files(contents, replace=replace)
