"""Trees along which every rank is as few hops from the root as can be."""

from __future__ import annotations

from collections.abc import Sequence

from colsynth.bounds.network import refuse_pair
from colsynth.model import Direction, Tree, TreeEdge
from colsynth.synthesis.baselines.loaded_routes import LoadedRoutes


def near_tree(
    ways: LoadedRoutes,
    root: int,
    direction: Direction,
    ranks: Sequence[int] | None = None,
    *,
    even: bool = False,
) -> Tree:
    """Return a tree of fewest hops, a star where the root has a way to everyone.

    Among parents equally near, each rank takes the one to which its way is least busy, and
    ranks are served from the one behind the root around, so that the trees of all roots
    spread over the links.

    Parameters
    ----------
    ways : LoadedRoutes
        Gets the loads of the tree.
    root : int
    direction : Direction
    ranks : sequence of int, optional
        Those to reach; all unless given.
    even : bool
        Whether pairs with fewest loads come first, however busy their links are: then messages of
        many trees do not queue up at one.

    Raises
    ------
    InfeasibleError
        CS302: some rank cannot be reached.
    """
    size = ways.topology.size
    missing = sorted(set(range(size) if ranks is None else ranks) - {root})
    missing.sort(key=lambda rank: (rank - root) % size)
    edges: list[TreeEdge] = []
    level = [root]
    while missing:
        reached = []
        for child in missing:
            pairs = [flow(parent, child, direction) for parent in level]
            pairs = [pair for pair in pairs if ways.joins(*pair)]
            if pairs:
                best = min(pairs, key=lambda pair: (even and ways.taken[pair], ways.cost(*pair)))
                edges.append(edge(ways, *flow(*best, direction), direction))
                reached.append(child)
        if not reached:
            refuse_pair(ways.topology, *flow(root, missing[0], direction))
        missing = [rank for rank in missing if rank not in reached]
        level = reached
    return Tree(root, 1, tuple(edges))


def flow(parent: int, child: int, direction: Direction) -> tuple[int, int]:
    """Return where data comes from and where it goes; its own inverse."""
    return (parent, child) if direction is Direction.OUT else (child, parent)


def edge(ways: LoadedRoutes, parent: int, child: int, direction: Direction) -> TreeEdge:
    """Return an edge of a tree along the least busy way, which gets its load."""
    (route,) = ways.take([flow(parent, child, direction)])
    return TreeEdge(parent, child, route)


def paths_of(tree: Tree) -> dict[int, tuple[int, ...]]:
    """Return the ranks from the root to each rank, both included."""
    found: dict[int, tuple[int, ...]] = {tree.root: (tree.root,)}
    for edge in tree.edges:
        found[edge.child] = (*found[edge.parent], edge.child)
    return found
