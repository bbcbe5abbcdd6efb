"""Cayley digraphs of semidirect products A x| Z_k, A a product of cyclic groups.

Elements are (a, i); the product is (a, i)(b, j) = (a + M^i b, i + j). Arcs lead from x to x g for
every generator g. Written ``cayley:SHAPE:K:MATRIX:GENERATORS``: the orders of A's factors, the
order k, M row by row, and the generators, numbers of one joined by dots:
``cayley:16:4:11:8.3,11.1,9.0,11.0`` is Z16 x| Z4 with M = 11.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np
from numpy.typing import NDArray

from colsynth.topology.graphs.digraph import Digraph

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Cayley:
    """A group A x| Z_k and generators of a digraph.

    Parameters
    ----------
    shape : tuple of int
        Orders of the factors of A.
    order : int
        k.
    matrix : tuple of int
        M, row by row.
    generators : tuple of tuple of int
        Coordinates in A, then the exponent in Z_k.
    """

    shape: tuple[int, ...]
    order: int
    matrix: tuple[int, ...]
    generators: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        matrix = ".".join(map(str, self.matrix))
        generators = ",".join(".".join(map(str, g)) for g in self.generators)
        return f"cayley:{'x'.join(map(str, self.shape))}:{self.order}:{matrix}:{generators}"

    @property
    def extent(self) -> tuple[int, int]:
        """Nodes and arcs."""
        size = prod(self.shape) * self.order
        return size, size * len(self.generators)

    def graph(self) -> Digraph:
        """Return the digraph; node a k + i is the element (a, i), a in mixed radix."""
        size = self.extent[0]
        heads = right_products(self.shape, self.order, self.matrix, np.array(self.generators))
        nodes = np.tile(np.arange(size), len(self.generators))
        axis = np.zeros(len(nodes), np.int64)
        return Digraph(size, nodes, heads.ravel(), axis, transitive=True)


def powers(shape: tuple[int, ...], order: int, matrix: tuple[int, ...]) -> Ints:
    """Return M^0 .. M^(k - 1), (k, r, r), row i modulo the i-th order."""
    rank = len(shape)
    step = np.array(matrix, np.int64).reshape(rank, rank)
    found = [np.eye(rank, dtype=np.int64) % np.array(shape)[:, None]]
    for _ in range(order):
        found.append(step @ found[-1] % np.array(shape)[:, None])
    return np.array(found)


def is_action(shape: tuple[int, ...], order: int, matrix: tuple[int, ...]) -> bool:
    """Whether M is an automorphism of A with M^k = 1."""
    moduli = np.array(shape, np.int64)
    step = np.array(matrix, np.int64).reshape(len(shape), len(shape))
    if (step * moduli[None, :] % moduli[:, None]).any():
        return False  # it does not map A into A
    one = np.eye(len(shape), dtype=np.int64) % moduli[:, None]
    found, square, rest = one, step % moduli[:, None], order
    while rest:
        if rest % 2:
            found = found @ square % moduli[:, None]
        square = square @ square % moduli[:, None]
        rest //= 2
    return bool((found == one).all())


def elements(shape: tuple[int, ...], order: int) -> Ints:
    """Return the coordinates of all elements in order of their numbers, (n, r + 1)."""
    sizes = (*shape, order)
    return np.stack(np.unravel_index(np.arange(prod(sizes)), sizes), 1).astype(np.int64)


def right_products(
    shape: tuple[int, ...], order: int, matrix: tuple[int, ...], generators: Ints
) -> Ints:
    """Return the number of x g for every generator g and element x, (d, n)."""
    places = elements(shape, order)
    moved = powers(shape, order, matrix)[places[:, -1]]  # (n, r, r)
    sums = (moved @ generators[:, None, :-1, None])[..., 0] + places[None, :, :-1]
    sums %= np.array(shape)
    exponent = (places[None, :, -1] + generators[:, None, -1]) % order
    flat = np.ravel_multi_index(np.moveaxis(sums, -1, 0), shape) * order + exponent
    return np.asarray(flat, np.int64)


def read_cayley(text: str) -> Cayley:
    """Return what the arguments of ``cayley:`` mean; ValueError says what is wrong."""
    first, second, third, fourth = text.split(":")
    shape = tuple(int(word) for word in first.split("x") if word)
    order = int(second)
    matrix = tuple(int(word) for word in third.split(".") if word)
    generators = tuple(tuple(int(x) for x in g.split(".") if x) for g in fourth.split(","))
    if not shape or 0 in shape or not order or len(shape) > 4 or max(*shape, order) > 2**17:
        raise ValueError("the orders of the factors must be 1 to 131072, at most four of them")
    if len(matrix) != len(shape) ** 2 or max(matrix) > 2**17:
        raise ValueError(f"the matrix has {len(matrix)} entries, expected {len(shape) ** 2}")
    bounds = (*shape, order)
    for g in generators:
        if len(g) != len(bounds) or any(x >= most for x, most in zip(g, bounds, strict=True)):
            limits = ", ".join(f"0 to {most - 1}" for most in bounds)
            raise ValueError(f"generator {'.'.join(map(str, g))}: expected numbers {limits}")
    if not is_action(shape, order, matrix):
        raise ValueError(f"the matrix is no automorphism whose power {order} is one")
    return Cayley(shape, order, matrix, generators)


def automorphisms(
    shape: tuple[int, ...], order: int, most: int, rng: np.random.Generator
) -> list[tuple[int, ...]]:
    """Return up to `most` matrices whose power `order` is one, the identity first."""
    rank = len(shape)
    identity = tuple(int(i == j) % shape[i] for i, j in product(range(rank), repeat=2))
    found = dict.fromkeys([identity])
    if rank == 1:
        every = ((m,) for m in range(2, shape[0]) if pow(m, order, shape[0]) == 1)
        found.update(dict.fromkeys(every))
        units = list(found)
        return units if len(units) <= most else [units[0], *units[-(most - 1) :]]
    for _ in range(40 * most):
        drawn = tuple(int(rng.integers(shape[i])) for i, _ in product(range(rank), repeat=2))
        if len(found) < most and is_action(shape, order, drawn):
            found[drawn] = None
    return list(found)
