"""The generators: a name, the form of its arguments, and the graph that they mean.

Nodes of grids are numbered with the last axis fastest. Sources: Imase and Itoh, IEEE Trans.
Computers 30 (1981) and 32 (1983); W. Kautz, 1968; N. de Bruijn, 1946.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import comb, prod

import numpy as np

from colsynth.topology.builder import MAX_NODES
from colsynth.topology.graphs.catalogue import GRAPHS, of_networkx
from colsynth.topology.graphs.cayley import read_cayley
from colsynth.topology.graphs.digraph import Digraph, both_ways, digraph

_SHAPE = r"[0-9]{1,9}(?:x[0-9]{1,9})*"
_NUMBERS = r"-?[0-9]{1,9}(?:,-?[0-9]{1,9})*"
_ONE, _TWO = r"[0-9]{1,9}", r"[0-9]{1,9},[0-9]{1,9}"


@dataclass(frozen=True)
class Atom:
    """A generator.

    Parameters
    ----------
    form : str
        Regular expression of its arguments.
    size : callable
        Arguments as text -> (nodes, arcs), which may be a little more than there are. Raises
        ValueError for arguments that mean no graph.
    make : callable
        Arguments as text -> graph.
    """

    form: str
    size: Callable[[str], tuple[int, int]]
    make: Callable[[str], Digraph]


def _ints(text: str) -> list[int]:
    return [int(word) for word in text.replace("x", ",").split(",")]


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise ValueError(text)


# Grids


def grid(shape: Sequence[int], *, closed: bool) -> Digraph:
    """Return a mesh, or a torus; a dimension of two has no second link."""
    size = prod(shape)
    place = np.arange(size).reshape(shape)
    ends = []
    for axis, length in enumerate(shape):
        rows = np.moveaxis(place, axis, 0)
        pairs = [np.stack((rows[:-1].ravel(), rows[1:].ravel()), 1)]
        if closed and length > 2:
            pairs.append(np.stack((rows[-1].ravel(), rows[0].ravel()), 1))
        edges = np.concatenate(pairs)
        both = np.concatenate((edges, edges[:, ::-1]))
        ends.append(np.column_stack((both, np.full(len(both), axis))))
    arcs = np.concatenate(ends).astype(np.int64)
    columns = (arcs[:, 0].copy(), arcs[:, 1].copy(), arcs[:, 2].copy())
    return Digraph(size, *columns, len(shape), transitive=closed)


def _grid_size(text: str) -> tuple[int, int]:
    shape = _ints(text)
    _require(0 not in shape, "every dimension must be at least 1")
    nodes = prod(shape) if len(shape) <= 16 else MAX_NODES + 1
    return nodes, 2 * len(shape) * nodes


def twisted_torus(text: str) -> Digraph:
    """Return a two-dimensional torus; wrapping in the first dimension shifts the second."""
    rows, columns, shift = _twist(text)
    place = np.arange(rows * columns).reshape(rows, columns)
    down = np.concatenate((place[1:], np.roll(place[:1], -shift, 1)))
    right = np.roll(place, -1, 1)
    edges = [*zip(place.ravel().tolist(), down.ravel().tolist(), strict=True)]
    edges += zip(place.ravel().tolist(), right.ravel().tolist(), strict=True)
    return both_ways(rows * columns, edges, transitive=True)


def _twist(text: str) -> tuple[int, int, int]:
    shape, _, shift = text.partition(",")
    rows, columns = _ints(shape)
    _require(min(rows, columns) > 2, "both dimensions must be at least 3")
    return rows, columns, int(shift) if shift else columns // 2


def hamming(text: str) -> Digraph:
    """Return the Hamming graph of words: neighbours differ in one letter."""
    words, letters = _ints(text)
    place = np.arange(letters**words).reshape((letters,) * words)
    edges: list[tuple[int, int]] = []
    for axis in range(words):
        for row in np.moveaxis(place, axis, -1).reshape(-1, letters).tolist():
            edges += ((a, b) for i, a in enumerate(row) for b in row[i + 1 :])
    return both_ways(letters**words, edges, transitive=True)


# Circulants


def _jumps(text: str) -> tuple[int, list[int]]:
    size, *jumps = _ints(text)
    _require(bool(jumps) and size > 1, "give the number of GPUs, then the jumps")
    _require(all(jump % size for jump in jumps), "a jump leads back to the same GPU")
    return size, jumps


def circulant(text: str) -> Digraph:
    """Return i -> i +- a for every jump; half-way around there is one arc."""
    size, jumps = _jumps(text)
    signed = [s for a in jumps for s in ((a, -a) if 2 * a % size else (a,))]
    return _circulant(size, signed)


def _circulant(size: int, jumps: Iterable[int]) -> Digraph:
    nodes = range(size)
    arcs = [(i, (i + jump) % size) for jump in jumps for i in nodes]
    return digraph(size, arcs, transitive=True)


# Words and their arithmetic


def kautz(text: str) -> Digraph:
    """Return the graph of words without equal neighbours, d + 1 letters, shifted."""
    degree, length = _ints(text)
    words = np.arange(degree + 1).reshape(-1, 1)
    for _ in range(length - 1):
        words = np.array([[*w, a] for w in words.tolist() for a in range(degree + 1) if a != w[-1]])
    number = {tuple(word): i for i, word in enumerate(words.tolist())}
    arcs = [
        (i, number[(*word[1:], a)])
        for word, i in number.items()
        for a in range(degree + 1)
        if a != word[-1]
    ]
    return digraph(len(number), arcs, transitive=length == 1)


def _kautz_size(text: str) -> tuple[int, int]:
    degree, length = _ints(text)
    _require(degree > 0 < length, "degree and diameter must be at least 1")
    size = (degree + 1) * degree ** min(length - 1, 40)
    return size, degree * size


def debruijn(text: str) -> Digraph:
    """Return the graph of all words over d letters, shifted."""
    degree, length = _ints(text)
    return replace(_linear(f"{degree},{degree**length}", 1))


def _linear(text: str, sign: int) -> Digraph:
    """Return x -> sign (d x + a) modulo the number of nodes."""
    degree, size = _ints(text)
    shifts = range(degree) if sign > 0 else range(1, degree + 1)
    arcs = [(x, sign * (degree * x + a) % size) for x in range(size) for a in shifts]
    return digraph(size, arcs)


def _degree_and_size(text: str) -> tuple[int, int]:
    degree, size = _ints(text)
    _require(degree > 0 < size, "degree and number of GPUs must be at least 1")
    return size, degree * size


def _debruijn_size(text: str) -> tuple[int, int]:
    degree, length = _ints(text)
    _require(degree > 0 < length, "degree and length must be at least 1")
    size = degree ** min(length, 40)
    return size, degree * size


# Subsets, cycles with chords, and single graphs


def kneser(text: str) -> Digraph:
    """Return the graph of subsets; neighbours have no common element."""
    import networkx as nx

    return replace(of_networkx(nx.kneser_graph(*_ints(text))), transitive=True)


def _kneser_size(text: str) -> tuple[int, int]:
    whole, part = _ints(text)
    _require(0 < 2 * part < whole <= 64, "a Kneser graph n,k needs 2 k < n, and n is at most 64")
    return comb(whole, part), comb(whole, part) * comb(whole - part, part)


def _odd(text: str) -> str:
    _require(1 < int(text) < 32, "an odd graph has degree 2 to 31")
    return f"{2 * int(text) - 1},{int(text) - 1}"


def lcf(text: str) -> Digraph:
    """Return a cycle with chords: the number of repeats, then the jumps of the chords."""
    import networkx as nx

    repeats, *jumps = _ints(text)
    return of_networkx(nx.LCF_graph(repeats * len(jumps), jumps, repeats))


def _lcf_size(text: str) -> tuple[int, int]:
    repeats, *jumps = _ints(text)
    _require(repeats > 0 and bool(jumps), "give the number of repeats, then the jumps")
    return repeats * len(jumps), 4 * repeats * len(jumps)


def _named_size(text: str) -> tuple[int, int]:
    _require(text in GRAPHS, f"there are {', '.join(GRAPHS)}")
    return 200, 2000  # about the largest


def _one(text: str) -> int:
    _require(int(text) > 0, "the size must be at least 1")
    return int(text)


def _cube(text: str) -> list[int]:
    return [2] * min(_one(text), 40)


def _circulant_size(text: str) -> tuple[int, int]:
    size, jumps = _jumps(text)
    return size, 2 * size * len(jumps)


def _twisted_size(text: str) -> tuple[int, int]:
    rows, columns, _ = _twist(text)
    return rows * columns, 4 * rows * columns


def _hamming_size(text: str) -> tuple[int, int]:
    words, letters = _ints(text)
    _require(words > 0 < letters, "length of words and number of letters must be at least 1")
    size = letters ** min(words, 40)
    return size, words * letters * size


def bipartite(text: str) -> Digraph:
    """Return the complete bipartite graph with equal sides."""
    side = int(text)
    edges = ((a, side + b) for a in range(side) for b in range(side))
    return both_ways(2 * side, edges, transitive=True)


def _cube_size(text: str) -> tuple[int, int]:
    shape = _cube(text)
    return prod(shape), len(shape) * prod(shape)


ATOMS: dict[str, Atom] = {
    "ring": Atom(_ONE, _grid_size, lambda t: grid(_ints(t), closed=True)),
    "mesh": Atom(_SHAPE, _grid_size, lambda t: grid(_ints(t), closed=False)),
    "torus": Atom(_SHAPE, _grid_size, lambda t: grid(_ints(t), closed=True)),
    "hypercube": Atom(_ONE, _cube_size, lambda t: grid(_cube(t), closed=True)),
    "clique": Atom(_ONE, lambda t: (_one(t), _one(t) ** 2), lambda t: hamming(f"1,{t}")),
    "uniring": Atom(_ONE, lambda t: (_one(t), _one(t)), lambda t: _circulant(int(t), [1])),
    "circulant": Atom(_NUMBERS, _circulant_size, circulant),
    "dicirculant": Atom(_NUMBERS, _circulant_size, lambda t: _circulant(*_jumps(t))),
    "twisted": Atom(r"[0-9]{1,9}x[0-9]{1,9}(?:,[0-9]{1,9})?", _twisted_size, twisted_torus),
    "hamming": Atom(_TWO, _hamming_size, hamming),
    "bipartite": Atom(_ONE, lambda t: (2 * _one(t), 2 * _one(t) ** 2), bipartite),
    "kautz": Atom(_TWO, _kautz_size, kautz),
    "debruijn": Atom(_TWO, _debruijn_size, debruijn),
    "genkautz": Atom(_TWO, _degree_and_size, lambda t: _linear(t, -1)),
    "gendebruijn": Atom(_TWO, _degree_and_size, lambda t: _linear(t, 1)),
    "kneser": Atom(_TWO, _kneser_size, kneser),
    "odd": Atom(_ONE, lambda t: _kneser_size(_odd(t)), lambda t: kneser(_odd(t))),
    "lcf": Atom(_NUMBERS, _lcf_size, lcf),
    "distance-regular": Atom("[a-z0-9-]+", _named_size, lambda t: GRAPHS[t]()),
    "cayley": Atom(
        r"[0-9x]+:[0-9]+:[0-9.]+:[0-9.,]+",
        lambda t: read_cayley(t).extent,
        lambda t: read_cayley(t).graph(),
    ),
}
"""The generators, by name. Arguments have been matched against `Atom.form` before any is called."""
