"""A seeded search among Cayley digraphs: random generators of many groups, then better ones.

One GPU stands for all, so a candidate costs microseconds. Half of the tries draw generators for all
groups; the others change single generators of the best so far.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import product
from math import gcd, lcm

import numpy as np
from numpy.typing import NDArray

from colsynth.cabling.figures import Figures
from colsynth.kernels.cayley import evaluate
from colsynth.topology.graphs.cayley import Cayley, automorphisms, powers

Ints = NDArray[np.int64]
Key = Callable[[Figures], tuple[int, Fraction]]

MOST_PORTS, MOST_GPUS = 10, 4096
_MATRICES = 5
"""Automorphisms that are tried for every pair of groups."""
_BEST = 12
"""Tries that are changed further, at a time."""
_BATCH = 96


@dataclass(frozen=True)
class Group:
    """A x| Z_k as tables; see `kernels/cayley.py`."""

    shape: tuple[int, ...]
    order: int
    matrix: tuple[int, ...]

    @cached_property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape)) * self.order

    @property
    def add(self) -> NDArray[np.int32]:
        """Sums in A."""
        return _sums(self.shape)

    @cached_property
    def act(self) -> NDArray[np.int32]:
        """M^i a, in row i."""
        size = self.size // self.order
        places = np.stack(np.unravel_index(np.arange(size), self.shape))
        moved = powers(self.shape, self.order, self.matrix)[: self.order] @ places
        moved %= np.array(self.shape)[None, :, None]
        rows = tuple(np.moveaxis(moved, 1, 0))
        return np.asarray(np.ravel_multi_index(rows, self.shape), np.int32)

    @cached_property
    def inverse(self) -> Ints:
        """The inverse of every element."""
        a, i = np.divmod(np.arange(self.size), self.order)
        back = -i % self.order
        negative = np.argmin(self.add, axis=1)  # a + b = 0, which is number 0
        return np.asarray(self.act[back, negative[a]].astype(np.int64) * self.order + back)

    def text(self, generators: Ints) -> str:
        """Return the expression of a Cayley digraph of the group."""
        a, i = np.divmod(np.sort(generators), self.order)
        places = np.stack((*np.unravel_index(a, self.shape), i), 1).tolist()
        return str(Cayley(self.shape, self.order, self.matrix, tuple(map(tuple, places))))


@lru_cache(maxsize=8)
def _sums(shape: tuple[int, ...]) -> NDArray[np.int32]:
    """Return the sums in a product of cyclic groups; large, and the same for many groups."""
    places = np.stack(np.unravel_index(np.arange(np.prod(shape)), shape))
    sums = (places[:, :, None] + places[:, None, :]) % np.array(shape)[:, None, None]
    return np.asarray(np.ravel_multi_index(tuple(sums), shape), np.int32)


def groups(size: int, rng: np.random.Generator) -> Iterator[Group]:
    """Yield groups with so many elements: A cyclic or of rank two."""
    for order in (k for k in range(1, size) if size % k == 0):
        rest = size // order
        pairs = ((a, rest // a) for a in range(2, int(rest**0.5) + 1) if rest % a == 0)
        shapes = [(rest,), *(pair for pair in pairs if gcd(*pair) > 1)]
        for shape in shapes:
            for matrix in automorphisms(shape, order, _MATRICES if order > 1 else 1, rng):
                if order == 1 or any(
                    matrix[i * len(shape) + j] != int(i == j)
                    for i, j in product(range(len(shape)), repeat=2)
                ):
                    yield Group(shape, order, matrix)


def draw(group: Group, ports: int, count: int, rng: np.random.Generator, *, duplex: bool) -> Ints:
    """Return random sets of distinct generators, in duplex closed under inverses."""
    if not duplex:
        return _distinct(rng.integers(1, group.size, (count, ports)))
    inverse = group.inverse
    own = np.nonzero(inverse == np.arange(group.size))[0][1:]
    rows = []
    for alone in range(ports % 2, min(ports, 2 + ports % 2) + 1, 2):
        if alone and not len(own):
            continue
        pairs = rng.integers(1, group.size, (count, (ports - alone) // 2))
        single = rng.choice(own, (count, alone)) if alone else np.empty((count, 0), np.int64)
        rows.append(np.concatenate((pairs, inverse[pairs], single), 1))
    return _distinct(np.concatenate(rows)) if rows else np.empty((0, ports), np.int64)


def _distinct(rows: Ints) -> Ints:
    """Return the rows without repeated entries."""
    ordered = np.sort(rows, 1)
    return np.asarray(rows[(ordered[:, 1:] != ordered[:, :-1]).all(1)], np.int64)


def _changed(
    group: Group, generators: Ints, count: int, rng: np.random.Generator, *, duplex: bool
) -> Ints:
    """Return sets that differ in one generator (in duplex, and its inverse)."""
    rows = np.repeat(generators[None, :], count, 0)
    place = rng.integers(0, len(generators), count)
    fresh = rng.integers(1, group.size, count)
    each = np.arange(count)
    if duplex:
        back = np.array([np.nonzero(generators == group.inverse[g])[0][0] for g in generators])
        paired = back[place] != place
        other = group.inverse[fresh]
        keeps = paired | (other == fresh)
        rows[each, back[place]] = other
        rows[each, place] = fresh
        return _distinct(rows[keeps])
    rows[each, place] = fresh
    return _distinct(rows)


def search(
    size: int, ports: int, tries: int, seed: int, key: Key, *, duplex: bool
) -> Iterator[Figures]:
    """Yield the Pareto front of Cayley digraphs by `key`: (steps, time).

    Parameters
    ----------
    tries : int
        Candidates that are evaluated, about.
    seed : int
        Equal seeds give equal answers.
    """
    rng = np.random.default_rng([seed, size, ports, int(duplex)])
    if tries < 1 or not 1 <= ports <= min(MOST_PORTS, size - 1) or size > MOST_GPUS:
        return
    known = [*groups(size, rng)]
    most = _most_steps(size, ports)
    front: dict[tuple[int, Fraction], tuple[Group, Ints, Figures]] = {}
    each = max(4, tries // 2 // len(known))
    for group in known:
        _judge(group, draw(group, ports, each, rng, duplex=duplex), most, key, front)
    for _ in range(max(1, tries // 2 // _BATCH) if front else 0):
        best = sorted(front)[:_BEST]
        group, generators, _ = front[best[int(rng.integers(len(best)))]]
        rows = _changed(group, generators, _BATCH, rng, duplex=duplex)
        _judge(group, rows, most, key, front)
    yield from (front[k][2] for k in _pareto(front))


def _judge(
    group: Group,
    rows: Ints,
    most_steps: int,
    key: Key,
    front: dict[tuple[int, Fraction], tuple[Group, Ints, Figures]],
) -> None:
    """Evaluate sets of generators; keep those on the front, and the best few of every height."""
    if not len(rows):
        return
    ports = rows.shape[1]
    scale = lcm(*range(1, ports + 1))
    found = evaluate(group.add, group.act, rows, scale, most_steps)
    reached = np.nonzero(found[:, 0])[0]
    order = np.lexsort((found[reached, 1] + found[reached, 2], found[reached, 0]))
    unit = Fraction(ports, scale * group.size)
    seen: dict[int, int] = {}
    for place in reached[order].tolist():
        steps, load, turned, whole, total = found[place].tolist()
        seen[steps] = seen.get(steps, 0) + 1
        if seen[steps] > 2:
            continue
        made = Figures(
            *("", group.size, ports, steps, load * unit, turned * unit, whole * unit),
            Fraction(total),
        )
        if key(made) in front or any(_beats(k, key(made)) for k in _pareto(front)):
            continue
        front[key(made)] = group, rows[place], replace(made, text=group.text(rows[place]))


def _beats(one: tuple[int, Fraction], other: tuple[int, Fraction]) -> bool:
    return one[0] <= other[0] and one[1] <= other[1]


def _pareto(
    front: dict[tuple[int, Fraction], tuple[Group, Ints, Figures]],
) -> list[tuple[int, Fraction]]:
    """Return the keys that no other one beats, by steps."""
    kept: list[tuple[int, Fraction]] = []
    for k in sorted(front):
        if not kept or k[1] < kept[-1][1]:
            kept.append(k)
    return kept


def _most_steps(size: int, ports: int) -> int:
    """Return the steps beyond which candidates are given up: about three times the Moore bound."""
    reached, steps = 1, 0
    while reached < size:
        reached *= max(ports, 2)
        steps += 1
    return min(3 * steps + 4, size - 1) if ports > 1 else size - 1
