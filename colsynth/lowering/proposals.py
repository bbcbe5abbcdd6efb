"""What to try so that a program fills and drains quickly.

A large message takes as long as its busiest links are busy, plus the time until the first data
reaches them and the time that others need after their last. With few chunks per tree, these are
a tenth to a third of the total. Two things shorten them. All boxes send round-robin
(`order-transfers{order=round-robin}`), with threadblocks in proportion to load or with a window
on the NICs. And trees carry their chunks in several segments (`colsynth.lowering.segmentations`):
small ones first where a collective begins by reducing, small ones last where it ends by copying.
"""

from __future__ import annotations

from collections.abc import Iterator

from colsynth.lowering.fold_sums import folds
from colsynth.lowering.orders import ORDERS
from colsynth.lowering.segmentations import (
    BY_LOAD,
    INSTANCES,
    MERGE,
    MOST,
    NIC_WINDOW,
    ORDER,
    SEGMENTS,
    STRATEGY,
    SUMS,
    WINDOW,
    leaves_boxes,
    ordered_by_time,
)
from colsynth.runtimes.choice import Basis, Changes, Proposal
from colsynth.runtimes.selection import dividing

_PLAIN = "spread", "fewest", "balanced"
"""Strategies that need no other options."""

SPREAD = "lower-rounds.spread"
_SPREADS = ((2, 2), (4, 4), (8, 8), (16, 16))
"""Parts of the busiest link's load in a round, and copies of the program.

An allreduce of 1 GiB on two MI250 boxes: 61.7 GB/s with (16, 16), 61.8 with (16, 32).
"""


def unmerged(basis: Basis) -> Iterator[Proposal]:
    """Yield smaller steps, where some move several chunks.

    Also single chunks of heavy trees, none merged. An allgather of 1 GiB on an MI250 with RCCL
    takes 8.6 or 8.8 ms with either change alone, with both 5.9 ms.
    """
    if basis.shape.trees and basis.shape.count > 1 and basis.values[MERGE] != 1:
        yield ({MERGE: 1},)
    if basis.shape.weight > 1 and basis.values[MERGE] != 1 and basis.values[MOST] != 1:
        yield ({MOST: 1, MERGE: 1},)


def orders(basis: Basis) -> Iterator[Proposal]:
    """Yield other orders of transfers, where threadblocks hold several steps in a row."""
    if basis.shape.trees and basis.shape.block_steps > 1:
        for order in ORDERS:
            if order != basis.values[ORDER]:
                yield ({ORDER: order},)
    if basis.shape.height < 2 or basis.values[SEGMENTS] != "1":
        return
    cut = [0, 1] if basis.shape.weight > 1 else [0]
    leaves = leaves_boxes(basis)
    for most in cut:  # neither round-robin nor smaller transfers may be faster alone
        yield ({**BY_LOAD, MOST: most},)
        if leaves:
            yield ({ORDER: "round-robin", NIC_WINDOW: WINDOW, MOST: most},)


def smaller_transfers(basis: Basis) -> Iterator[Proposal]:
    """Yield fewer chunks of a tree in a transfer, where trees carry several."""
    for exponent in range(max(0, basis.shape.weight - 1).bit_length()):
        if basis.values[MOST] != 1 << exponent:
            yield ({MOST: 1 << exponent},)


def coarser_weights(basis: Basis) -> Iterator[Proposal]:
    """Yield weights that add up to fewer parts, where trees have weights of several."""
    trees, parts = str(basis.values.get("pack-trees.trees", "")), basis.shape.trees_per_gpu // 2
    while trees.isdigit() and basis.shape.weight > 1 and parts >= int(trees):
        yield ({"round-weights.parts": parts},)
        parts //= 2


def sums_in_one_go(basis: Basis) -> Iterator[Proposal]:
    """Yield sums of all arrivals in one go, where GPUs add up, or the other way round.

    Along a path, as in rings, nobody has two arrivals to add up.
    """
    shape, profile = basis.shape, basis.profile
    if not shape.rises or shape.height == shape.ranks - 1:
        return
    if basis.values[SUMS] != "running":
        yield ({SUMS: "running"},)
        return
    yield ({SUMS: "joined"},)
    if "assign-threadblocks.fold" in basis.values:  # the other way to add up several at once
        yield from folds(basis)
    if shape.height != 1 or profile.plans:
        return
    if profile.fuses:
        yield from _spread_sums(basis)
    else:
        yield tuple(_paired_sums(basis))


def _spread_sums(basis: Basis) -> Iterator[Proposal]:
    """Yield as many channels as fit, and half as many with more threadblocks for sums.

    A channel has a threadblock for each direction of each peer, and one for each of its sums. Where
    sums are sent on, each is a call of its own, so there is one a rank at most.
    """
    ranks, blocks = basis.shape.ranks, basis.profile.usable_threadblocks
    peers, most = 2 * (ranks - 1), ranks if basis.shape.falls else blocks
    number = dividing(basis.parts, blocks // (peers + 2))
    for channels in (number, dividing(basis.parts, number // 2)):
        if channels:
            segments = dividing(basis.parts // channels, min(most, blocks // channels - peers))
            plan = {SUMS: "by-chunk", STRATEGY: "spread", SEGMENTS: str(segments)}
            yield ({**plan, INSTANCES: channels},)


def _paired_sums(basis: Basis) -> Iterator[Changes]:
    """Yield ever fewer channels whose threadblocks share their sums.

    A threadblock serves both directions of a pair, so that a channel has one a rank, and each has
    as many of its sums. Numbers with which calls of the size use the file come first.
    """
    ranks, parts = basis.shape.ranks, basis.parts
    most = basis.profile.usable_threadblocks // ranks
    plan = {SUMS: "by-chunk", STRATEGY: "paired", SEGMENTS: str(ranks)}
    for channels in sorted(range(most, 0, -1), key=lambda number: parts % (number * ranks) > 0):
        yield {**plan, INSTANCES: channels}


def spreads(basis: Basis) -> Iterator[Proposal]:
    """Yield more rounds, with more chunks to follow each other through trees and rings."""
    for parts, instances in _SPREADS:
        changes: Changes = {SPREAD: parts}
        if basis.shape.height > 1 and "lower-forest.instances" in basis.values:
            changes = {SPREAD: parts, "lower-forest.instances": instances, MERGE: 1}
        if basis.shape.height != 1:
            yield (changes,)


def redealt(basis: Basis) -> Iterator[Proposal]:
    """Yield the other of two strategies, where trees of a plan carry segments.

    The strategy was chosen before trees had segments (`colsynth.search.levels.LAST`).
    """
    others = {"spread": "balanced", "balanced": "spread"}
    other = others.get(str(basis.values[STRATEGY]))
    cut = basis.values.get(SEGMENTS, "1") != "1"
    if other is not None and cut and basis.profile.plans:
        yield ({STRATEGY: other},)


def strategies(basis: Basis) -> Iterator[Proposal]:
    """Yield segments that a simulation orders, and where everything is tried, other strategies.

    `segmentations` yields the former too. Here they have the trees that were found since.
    """
    if basis.thorough:
        for other in _PLAIN:
            if other != basis.values[STRATEGY]:
                yield ({STRATEGY: other},)
    if basis.values[STRATEGY] != "scheduled" and SEGMENTS in basis.values:
        yield from ordered_by_time(basis)
