"""Paths that visit every GPU of a box once, along the least busy ways."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes

_BUDGET = 20_000
"""Steps of one search: without luck it is exponential, as Hamiltonian paths are."""


def visit_all(
    ways: LoadedRoutes, ranks: Sequence[int], first: int, last: int | None = None
) -> tuple[int, ...] | None:
    """Return a path from `first` to `last`, or to anywhere, through all of `ranks`, or None.

    Its most expensive hop (`LoadedRoutes.cost`) is as cheap as a bounded depth-first search finds:
    first among the cheapest hops alone, then among more and more of them. Equal ends ask
    for a circle, whose way back to `first` is not repeated.
    """
    within = set(ranks)
    hops = {
        source: {t: ways.cost(source, t) for t in ways.targets(source) if t in within}
        for source in ranks
    }
    for most in sorted({cost for ends in hops.values() for cost in ends.values()}):
        path = _search(hops, most, first, last)
        if path is not None:
            return path
    return (first,) if len(ranks) == 1 and last in (first, None) else None


def _search(
    hops: dict[int, dict[int, int]], most: int, first: int, last: int | None
) -> tuple[int, ...] | None:
    """Search among hops that cost at most `most`, from ranks with few ways on first."""
    size = len(hops)
    near = {rank: [t for t, cost in ends.items() if cost <= most] for rank, ends in hops.items()}
    path, seen, left = [first], {first}, _BUDGET

    def onward(rank: int) -> list[int]:
        free = [t for t in near[rank] if t not in seen and (t != last or len(path) == size - 1)]
        order = {t: sum(u not in seen for u in near[t]) for t in free}
        return sorted(
            free, key=lambda t: (hops[rank][t], order[t], (t - rank) % size), reverse=True
        )

    def arrived() -> bool:
        return last in (None, path[-1]) or (first == last and last in near[path[-1]])

    branches = [onward(first)]
    while branches and left:
        if len(path) == size and arrived():
            return tuple(path)
        if branches[-1]:
            rank = branches[-1].pop()
            path.append(rank)
            seen.add(rank)
            branches.append(onward(rank))
            left -= 1
        else:
            branches.pop()
            seen.discard(path.pop())
    return None
