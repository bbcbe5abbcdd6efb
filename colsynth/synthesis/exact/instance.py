"""What the solver is asked: hops, chunks, and which choices are equal by symmetry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from math import gcd

import numpy as np
from numpy.typing import NDArray

from colsynth.model import Hops
from colsynth.synthesis.timed.demands import Wants
from colsynth.synthesis.timed.hops import select

Ints = NDArray[np.int64]
Permutation = tuple[int, ...]

_FINE = 2**26
"""Largest time in a model, in its units; times are rounded up to fit."""


@dataclass(frozen=True)
class Limits:
    """What schedules are restricted to.

    Parameters
    ----------
    pairs : frozenset of (int, int), optional
        Pairs of ranks (source, target) between which data may pass; None: all that have a hop.
    barred : frozenset of (int, int, int)
        (chunk, source, target): chunks, by number, that a pair does not carry.
    symmetries : tuple of tuple of int
        Permutations of ranks that the schedule is invariant under; those that are none of the
        network and of what is wanted are left out.
    """

    pairs: frozenset[tuple[int, int]] | None = None
    barred: frozenset[tuple[int, int, int]] = frozenset()
    symmetries: tuple[Permutation, ...] = ()


@dataclass(frozen=True, eq=False)
class Instance:
    """One phase, outwards, for the model.

    Parameters
    ----------
    gpus : int
    hops : Hops
        Without a gap; those that may be used.
    was : int64 (H,)
        Rows of these hops among those of the phase.
    holders, wanted : list of frozenset of int
        Ranks of each chunk.
    barred : frozenset of (int, int)
        (chunk, hop) that are not used.
    moving, lag : int64 (links,), int64 (H,)
        Units that a chunk's bytes occupy a link, and that a message over a hop takes beyond.
    unit : int
        Ticks of a unit.
    whole : bool
        Whether all times are whole units; otherwise they are rounded up.
    same : int64 (C, H)
        A number for each (chunk, hop); equal for those that do the same by symmetry.
    symmetries : int
        How many of the permutations asked for hold.
    """

    gpus: int
    hops: Hops
    was: Ints
    holders: list[frozenset[int]]
    wanted: list[frozenset[int]]
    barred: frozenset[tuple[int, int]]
    moving: Ints
    lag: Ints
    unit: int
    whole: bool
    same: Ints
    symmetries: int

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.holders)

    def turned(self) -> Instance:
        """Return the instance with all hops the other way round, in the same order."""
        hops = self.hops
        return replace(self, hops=replace(hops, source=hops.target, target=hops.source))


def instance_of(
    gpus: int,
    links: int,
    hops: Hops,
    item: Wants,
    members: tuple[tuple[int, ...], ...],
    limits: Limits,
) -> Instance:
    """Return what the solver is asked in one phase.

    Parameters
    ----------
    gpus, links : int
    hops : Hops
        Outwards, without a gap.
    item : Wants
    members : tuple of tuple of int
        The groups, for chunks that all of a group want.
    limits : Limits
        In the direction of `hops`.
    """
    ends = list(zip(hops.source.tolist(), hops.target.tolist(), strict=True))
    keep = np.array([limits.pairs is None or pair in limits.pairs for pair in ends], np.bool_)
    was = np.flatnonzero(keep)
    kept = select(hops, keep)
    holders = _sets(item.holders.first, item.holders.items)
    if item.wanted is None:
        group = {rank: frozenset(some) for some in members for rank in some}
        wanted = [group[min(some)] for some in holders]
    else:
        wanted = _sets(item.wanted.first, item.wanted.items)
    place = {number: c for c, number in enumerate(item.number.tolist())}
    at: dict[tuple[int, int], list[int]] = {}
    for h, old in enumerate(was.tolist()):
        at.setdefault(ends[old], []).append(h)
    barred = frozenset(
        (place[chunk], h)
        for chunk, u, v in limits.barred
        if chunk in place
        for h in at.get((u, v), ())
    )
    moving, lag, unit, whole = _times(kept, links)
    same, count = _orbits(kept, at, holders, wanted, barred, limits.symmetries)
    times = moving, lag, unit, whole
    return Instance(gpus, kept, was, holders, wanted, barred, *times, same, count)


def _sets(first: Ints, items: NDArray[np.int32]) -> list[frozenset[int]]:
    values = items.tolist()
    bounds = first.tolist()
    return [frozenset(values[a:b]) for a, b in pairwise(bounds)]


def _times(hops: Hops, links: int) -> tuple[Ints, Ints, int, bool]:
    """Return the times of links and hops in units, the ticks of a unit, and whether all fit."""
    moving = np.zeros(links, np.int64)
    moving[hops.links] = hops.end - hops.begin
    slowest = np.maximum.reduceat(hops.end - hops.begin, hops.first[:-1])
    lag = hops.duration - slowest
    values = np.concatenate((moving, lag, hops.begin))
    unit = fits = max(gcd(*values.tolist()), 1)
    unit = unit if int(values.max()) // unit <= _FINE else -(-int(values.max()) // _FINE)
    return -(-moving // unit), -(-lag // unit), unit, unit == fits


def _orbits(
    hops: Hops,
    at: dict[tuple[int, int], list[int]],
    holders: list[frozenset[int]],
    wanted: list[frozenset[int]],
    barred: frozenset[tuple[int, int]],
    symmetries: Iterable[Permutation],
) -> tuple[Ints, int]:
    """Return equal numbers for what symmetries make equal, and how many of them hold."""
    label = np.arange(len(holders) * len(hops)).reshape(len(holders), len(hops))
    images = []
    for permutation in symmetries:
        hop = _hop_image(hops, at, permutation)
        chunk = _chunk_image(holders, wanted, permutation)
        if hop is None or chunk is None:
            continue
        if any((int(chunk[c]), int(hop[h])) not in barred for c, h in barred):
            continue
        images.append(np.ix_(chunk, hop))
    before = None
    while before is None or not np.array_equal(before, label):
        before = label.copy()
        for image in images:
            np.minimum(label, label[image], out=label)
    return label, len(images)


def _hop_image(
    hops: Hops, at: dict[tuple[int, int], list[int]], permutation: Permutation
) -> Ints | None:
    """Return where a permutation of ranks takes every hop; None where it is no symmetry."""
    image = np.empty(len(hops), np.int64)
    link: dict[int, int] = {}
    for (u, v), some in at.items():
        others = at.get((permutation[u], permutation[v]), [])
        if len(others) != len(some):
            return None
        for h, other in zip(some, others, strict=True):
            image[h] = other
            mine = slice(hops.first[h], hops.first[h + 1])
            theirs = slice(hops.first[other], hops.first[other + 1])
            times = (hops.begin, hops.end)
            if any(not np.array_equal(x[mine], x[theirs]) for x in times):
                return None
            pairs = zip(hops.links[mine].tolist(), hops.links[theirs].tolist(), strict=True)
            if hops.lag[h] != hops.lag[other] or any(link.setdefault(a, b) != b for a, b in pairs):
                return None
    return image


def _chunk_image(
    holders: list[frozenset[int]], wanted: list[frozenset[int]], permutation: Permutation
) -> Ints | None:
    """Return where a permutation takes every chunk; the k-th of equal ones to the k-th."""
    kinds: dict[tuple[frozenset[int], frozenset[int]], list[int]] = {}
    for c, key in enumerate(zip(holders, wanted, strict=True)):
        kinds.setdefault(key, []).append(c)
    image = np.empty(len(holders), np.int64)
    for (has, wants), some in kinds.items():
        moved = tuple(frozenset(permutation[r] for r in ranks) for ranks in (has, wants))
        others = kinds.get((moved[0], moved[1]), [])
        if len(others) != len(some):
            return None
        image[some] = others
    return image


def turns(boxes: Sequence[int]) -> tuple[Permutation, ...]:
    """Return permutations that equal boxes may allow: box to box, and within all boxes at once.

    Parameters
    ----------
    boxes : sequence of int
        Box of every rank.
    """
    order = sorted(set(boxes))
    parts = [[rank for rank, box in enumerate(boxes) if box == some] for some in order]
    if len({len(part) for part in parts}) > 1:
        return ()
    size = len(parts[0])
    found = [[*parts[1:], parts[0]]]
    shifts = [1 << k for k in range(size.bit_length()) if 1 << k < size]
    found += [[part[k:] + part[:k] for part in parts] for k in shifts]
    images = []
    for moved in found:
        pairs = zip(chain(*parts), chain(*moved), strict=True)
        images.append(tuple(other for _, other in sorted(pairs)))
    return tuple(image for image in images if image != tuple(range(len(boxes))))
