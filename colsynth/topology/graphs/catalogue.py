"""Single graphs by name, most of them distance-regular of degree four.

Sources: Brouwer, Cohen, Neumaier, Distance-Regular Graphs (1989), and networkx.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, product
from typing import Any

from colsynth.topology.graphs.digraph import Digraph, both_ways

_TUTTE8 = (-13, -9, 7, -7, 9, 13)
_TUTTE12 = (17, 27, -13, -59, -35, 35, -11, 13, -53, 53, -27, 21, 57, 11, -21, -57, 59, -17)


def of_networkx(graph: Any) -> Digraph:
    """Return an undirected graph of networkx; nodes keep its order."""
    number = {label: i for i, label in enumerate(sorted(graph.nodes))}
    ends = ((number[a], number[b]) for a, b in graph.edges)
    edges = sorted((min(pair), max(pair)) for pair in ends)
    return both_ways(len(number), edges)


def _nx(name: str, *arguments: Any) -> Any:
    import networkx as nx

    return getattr(nx, name)(*arguments)


def _incidence(points: list[Any], lines: list[Any], on: Callable[[Any, Any], bool]) -> Digraph:
    """Return the graph of points and lines; neighbours lie on each other."""
    size = len(points)
    edges = ((i, size + j) for i, p in enumerate(points) for j, q in enumerate(lines) if on(p, q))
    return both_ways(size + len(lines), edges)


def _projective(dimension: int) -> list[tuple[int, ...]]:
    """Return the points of a projective space over three elements: their first nonzero is one."""
    every = product(range(3), repeat=dimension + 1)
    return [v for v in every if any(v) and next(x for x in v if x) == 1]


def projective_plane() -> Digraph:
    """Return the incidence graph of PG(2,3)."""
    points = _projective(2)
    return _incidence(
        points, points, lambda p, q: sum(a * b for a, b in zip(p, q, strict=True)) % 3 == 0
    )


def affine_plane() -> Digraph:
    """Return the incidence graph of AG(2,4) without one class of parallel lines."""
    power, log = (1, 2, 3), {1: 0, 2: 1, 3: 2}  # four elements: sums are exclusive or

    def times(a: int, b: int) -> int:
        return power[(log[a] + log[b]) % 3] if a and b else 0

    places = [*product(range(4), repeat=2)]
    return _incidence(places, places, lambda p, q: p[1] == times(q[0], p[0]) ^ q[1])


def generalised_quadrangle() -> Digraph:
    """Return the incidence graph of GQ(3,3): points of PG(3,3), lines of a symplectic form."""
    points = _projective(3)

    def form(p: tuple[int, ...], q: tuple[int, ...]) -> int:
        return (p[0] * q[1] - p[1] * q[0] + p[2] * q[3] - p[3] * q[2]) % 3

    lines = set()
    for p, q in combinations(points, 2):
        if form(p, q) == 0:
            sums = (
                tuple((a * x + b * y) % 3 for x, y in zip(p, q, strict=True))
                for a, b in ((1, 0), (0, 1), (1, 1), (1, 2))
            )
            lines.add(
                frozenset(
                    v if next(x for x in v if x) == 1 else tuple(-x % 3 for x in v) for v in sums
                )
            )
    return _incidence(points, sorted(map(sorted, lines)), lambda p, line: p in line)


def _distance_three_of_heawood() -> Digraph:
    heawood = _nx("heawood_graph")
    distance = dict(_nx("all_pairs_shortest_path_length", heawood))
    pairs = combinations(sorted(heawood), 2)
    return both_ways(14, ((a, b) for a, b in pairs if distance[a][b] == 3))


def _doubled_odd() -> Digraph:
    small = [*combinations(range(7), 3)]
    large = [*combinations(range(7), 4)]
    return _incidence(small, large, lambda a, b: set(a) <= set(b))


def _line_of(name: str, *arguments: Any) -> Digraph:
    graph = _nx(name, *arguments)
    lines = _nx("line_graph", graph)
    plain = _nx("relabel_nodes", lines, {edge: tuple(sorted(edge)) for edge in lines.nodes})
    return of_networkx(plain)


GRAPHS: dict[str, Callable[[], Digraph]] = {
    "petersen": lambda: of_networkx(_nx("petersen_graph")),
    "heawood": lambda: of_networkx(_nx("heawood_graph")),
    "octahedron": lambda: of_networkx(_nx("octahedral_graph")),
    "crown-5": lambda: _incidence([*range(5)], [*range(5)], lambda a, b: a != b),
    "heawood-distance-3": _distance_three_of_heawood,
    "line-petersen": lambda: _line_of("petersen_graph"),
    "line-heawood": lambda: _line_of("heawood_graph"),
    "pg-2-3": projective_plane,
    "ag-2-4": affine_plane,
    "gq-3-3": generalised_quadrangle,
    "doubled-odd-4": _doubled_odd,
    "tutte-8": lambda: of_networkx(_nx("LCF_graph", 30, [*_TUTTE8], 5)),
    "line-tutte-8": lambda: _line_of("LCF_graph", 30, [*_TUTTE8], 5),
    "tutte-12": lambda: of_networkx(_nx("LCF_graph", 126, [*_TUTTE12], 7)),
    "line-tutte-12": lambda: _line_of("LCF_graph", 126, [*_TUTTE12], 7),
}
"""Named graphs; each has at most 200 nodes."""
