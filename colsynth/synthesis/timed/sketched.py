"""What a sketch leaves to chunks: hops for all, and hops for those that begin at some GPUs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Direction, Hops, Problem
from colsynth.sketches.logical import allowed, leaves
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.hops import select

Part = tuple[NDArray[np.int64], NDArray[np.bool_]]
"""Chunks, and which of all hops they may take, (H,)."""


def within(problem: Problem, hops: Hops) -> Hops:
    """Return the hops that the sketch of a problem allows; all where it has none."""
    sketch, topology = problem.sketch, problem.topology
    if sketch is None or not len(hops):
        return hops
    ends = hops.source, hops.target
    return select(hops, allowed(topology, sketch, *ends, hops.first, hops.links))


def barred(problem: Problem, hops: Hops, wants: Wants) -> frozenset[tuple[int, int, int]]:
    """Return (chunk, source, target) of hops that the sketch does not give to a chunk."""
    return frozenset(
        (chunk, source, target)
        for index, keep in parts(problem, hops, wants)
        for source, target in zip(
            hops.source[~keep].tolist(), hops.target[~keep].tolist(), strict=True
        )
        for chunk in wants.number[index].tolist()
    )


def all_hops(hops: Hops, wants: Wants) -> Part:
    """Return all chunks of a phase, and all hops for them."""
    return np.arange(len(wants.number)), np.ones(len(hops), np.bool_)


def parts(problem: Problem, hops: Hops, wants: Wants) -> tuple[Part, ...]:
    """Return the chunks of a phase by the hops that they may take.

    Chunks that are copied leave a box through the senders of the GPUs where they begin. Sums are
    made of what begins at many GPUs, so they take any hop.

    Parameters
    ----------
    problem : Problem
    hops : Hops
        Outwards.
    wants : Wants
    """
    sketch, topology = problem.sketch, problem.topology
    if sketch is None or not sketch.leave or wants.direction is Direction.IN:
        return (all_hops(hops, wants),)
    found: dict[tuple[int, ...], list[int]] = {}
    for chunk in range(len(wants.number)):
        begin, end = wants.holders.first[chunk : chunk + 2]
        found.setdefault(tuple(wants.holders.items[begin:end].tolist()), []).append(chunk)
    return tuple(
        (
            np.array(chunks),
            np.logical_or.reduce([leaves(topology, sketch, rank) for rank in holders])[
                hops.source, hops.target
            ],
        )
        for holders, chunks in found.items()
    )
