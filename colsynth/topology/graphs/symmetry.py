"""Is a graph vertex-transitive? Colours are refined and nodes are fixed, as McKay describes.

Colours of equal nodes stay equal, so a difference proves that no symmetry maps one to the other.
Where all colours differ, the map they give is checked arc by arc. Source: B. McKay, Practical
graph isomorphism (1981). The answer is unknown where that takes too much work.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from colsynth.topology.graphs.digraph import Ints

_MOST_WORK = 2**26
"""Arcs times refinements: about a second."""


def is_transitive(distance: Ints, tail: Ints, head: Ints, kind: Ints) -> bool | None:
    """Return whether some symmetry maps the first node to every other; None if not found out.

    Parameters
    ----------
    distance : int16 (n, n)
    tail, head, kind : int64 (m,)
        Arcs; symmetries keep their kinds.
    """
    far = int(distance.max()) + 1
    for matrix in (distance, distance.T):
        profiles = {tuple(np.bincount(row, minlength=far).tolist()) for row in matrix}
        if len(profiles) > 1:
            return False
    search = _Search(len(distance), tail, head, kind)
    orbit = np.arange(len(distance))
    for node in range(1, len(distance)):
        if orbit[node] == 0:
            continue
        found = search.symmetry(node)
        if found is None:
            return None if search.spent else False
        while (lower := np.minimum(orbit, orbit[found])).tolist() != orbit.tolist():
            orbit = lower
            np.minimum.at(orbit, found, orbit.copy())
    return True


def maps_of_first(
    size: int, tail: Ints, head: Ints, kind: Ints, images: Iterable[int]
) -> Iterator[Ints]:
    """Yield a symmetry that maps node 0 to each of `images`, where there is one.

    Parameters
    ----------
    size : int
        Number of nodes.
    tail, head, kind : int64 (m,)
        Arcs; symmetries keep their kinds.
    images : iterable of int
    """
    search = _Search(size, tail, head, kind)
    for node in images:
        found = search.symmetry(node)
        if found is not None:
            yield found


class _Search:
    """Symmetries of one graph that map node 0 to another."""

    def __init__(self, size: int, tail: Ints, head: Ints, kind: Ints) -> None:
        self.size, self.tail, self.head, self.kind = size, tail, head, kind
        rng = np.random.default_rng(0)
        self.salt = rng.integers(1, 2**62, (2, int(kind.max()) + 1), np.uint64) | np.uint64(1)
        self.arcs = set(zip(tail.tolist(), head.tolist(), kind.tolist(), strict=True))
        self.work = 0

    @property
    def spent(self) -> bool:
        """Whether it took too much work."""
        return self.work > _MOST_WORK

    def symmetry(self, node: int) -> Ints | None:
        """Return a symmetry that maps node 0 to `node`, None if none is found."""
        start = np.zeros(self.size, np.uint64)
        return self._extend(_marked(start, 0, 1), _marked(start, node, 1), 2)

    def _extend(self, one: NDArray[np.uint64], two: NDArray[np.uint64], mark: int) -> Ints | None:
        one, two = self._refined(one), self._refined(two)
        if self.spent:
            return None
        colours, inverse, counts = np.unique(one, return_inverse=True, return_counts=True)
        others, their_counts = np.unique(two, return_counts=True)
        if not (np.array_equal(colours, others) and np.array_equal(counts, their_counts)):
            return None
        if len(colours) == self.size:
            image_of = np.empty(self.size, np.int64)
            image_of[np.argsort(one)] = np.argsort(two)
            return image_of if self._keeps_arcs(image_of) else None
        cell = int(np.argmin(np.where(counts > 1, counts, self.size + 1)))
        fixed = int(np.argmax(inverse == cell))
        for image in np.nonzero(two == colours[cell])[0].tolist():
            whole = self._extend(_marked(one, fixed, mark), _marked(two, image, mark), mark + 1)
            if whole is not None or self.spent:
                return whole
        return None

    def _refined(self, colour: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return colours that tell nodes apart whose neighbours differ, until none is new."""
        classes = len(np.unique(colour))
        while not self.spent:
            self.work += len(self.tail)
            mixed = colour * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            mixed *= np.uint64(0xBF58476D1CE4E5B9)
            mixed ^= mixed >> np.uint64(32)
            fresh = mixed.copy()
            for salt, near, far in ((0, self.head, self.tail), (1, self.tail, self.head)):
                np.add.at(fresh, near, (mixed[far] ^ self.salt[salt][self.kind]) ** 2)
            found = len(np.unique(fresh))
            if found == classes:
                return colour
            colour, classes = fresh, found
        return colour

    def _keeps_arcs(self, found: Ints) -> bool:
        ends = found[self.tail].tolist(), found[self.head].tolist(), self.kind.tolist()
        return all(arc in self.arcs for arc in zip(*ends, strict=True))


def _marked(colour: NDArray[np.uint64], node: int, mark: int) -> NDArray[np.uint64]:
    fresh = colour.copy()
    fresh[node : node + 1] += np.uint64(mark * 0x9E3779B9 + 1)  # of an array: wraps silently
    return fresh
