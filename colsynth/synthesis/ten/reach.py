"""Whether chunks can reach everyone who wants them."""

from __future__ import annotations

import numpy as np

from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.kernels.reach import first_unreached
from colsynth.model import Direction, Hops, Problem
from colsynth.synthesis.ten.demands import Lists, Wants
from colsynth.synthesis.ten.fabric import group_by


def refuse_unreachable(problem: Problem, hops: Hops, wants: Wants) -> None:
    """Raise InfeasibleError naming two GPUs between which no chunk can pass.

    Parameters
    ----------
    problem : Problem
    hops : Hops
        Outwards: reversed where the phase reduces.
    wants : Wants

    Raises
    ------
    InfeasibleError
        CS302.
    """
    holders, wanted = wants.holders, wants.wanted
    if wanted is None:
        holders, wanted = _all_to_first_to_all(problem, wants)
    first, out = group_by(hops.source, problem.topology.size)
    chunk, rank = first_unreached(
        first, out, hops.target, holders.first, holders.items, wanted.first, wanted.items
    )
    if chunk < 0:
        return
    ends = (int(holders.items[holders.first[chunk]]), int(rank))
    source, target = ends if wants.direction is Direction.OUT else ends[::-1]
    names = [problem.topology.nodes[problem.topology.ranks[r]].name for r in (source, target)]
    confined = bool(problem.groups) and not problem.transit
    raise InfeasibleError(
        Diagnostic(
            "CS302",
            f"no data can pass from {names[0]} to {names[1]}",
            notes=("only GPUs of the same group may pass chunks on",) if confined else (),
            help="let other GPUs pass chunks on with --transit"
            if confined
            else "add the missing links, or leave the unreachable GPUs out",
        )
    )


def _all_to_first_to_all(problem: Problem, wants: Wants) -> tuple[Lists, Lists]:
    """Return pairs that, if joined, join every holder with all of its group."""
    holding = set(wants.holders.items.tolist())
    pairs: list[tuple[int, int]] = []
    for group in problem.members:
        holders = [rank for rank in group if rank in holding]
        pairs += [(holders[0], rank) for rank in group]
        pairs += [(rank, holders[0]) for rank in holders]
    first = np.arange(len(pairs) + 1)
    ends = np.array(pairs, np.int32).reshape(-1, 2)
    return Lists(first, ends[:, 0].copy()), Lists(first, ends[:, 1].copy())
