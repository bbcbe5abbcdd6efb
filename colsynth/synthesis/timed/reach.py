"""Whether chunks can reach everyone who wants them."""

from __future__ import annotations

import numpy as np

from colsynth.bounds.offsets import group_by
from colsynth.errors import Diagnostic, InfeasibleError
from colsynth.kernels.reach import first_unreached, reach
from colsynth.model import Direction, Hops, Problem
from colsynth.synthesis.timed.demands import Wants


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
    pair = _first_apart(problem, hops, wants)
    if pair is None:
        return
    source, target = pair if wants.direction is Direction.OUT else pair[::-1]
    names = problem.topology.gpu_names
    confined = bool(problem.groups) and not problem.transit
    raise InfeasibleError(
        Diagnostic(
            "CS302",
            f"no data can pass from {names[source]} to {names[target]}",
            notes=("only GPUs of the same group may pass chunks on",) if confined else (),
            help="let other GPUs pass chunks on with --transit"
            if confined
            else f"allow more ways in the sketch {problem.sketch.name}"
            if problem.sketch is not None
            else "add the missing links, or leave the unreachable GPUs out",
        )
    )


def _first_apart(problem: Problem, hops: Hops, wants: Wants) -> tuple[int, int] | None:
    """Return (holder, rank) of a chunk's holder and somebody it cannot reach."""
    ways = (*group_by(hops.source, problem.topology.size), hops.target)
    holders, wanted = wants.holders, wants.wanted
    if wanted is not None:
        chunk, rank = first_unreached(
            *ways, holders.first, holders.items, wanted.first, wanted.items
        )
        return None if chunk < 0 else (int(holders.items[holders.first[chunk]]), int(rank))
    back = (*group_by(hops.target, problem.topology.size), hops.source)
    holding = set(holders.items.tolist())
    for group in problem.members:
        # All reach all where the first holder reaches all, and all holders reach it.
        first = next(rank for rank in group if rank in holding)
        start = np.array([first], np.int32)
        reached, reaching = reach(*ways, start), reach(*back, start)
        for rank in group:
            if not reached[rank]:
                return first, rank
            if rank in holding and not reaching[rank]:
                return rank, first
    return None
