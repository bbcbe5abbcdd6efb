"""Fewer trees: give the weight of one tree to another of the same root.

Where two trees of a root differ, the other takes on what the first one carried: over an arc
with room, or over one from which a third tree goes away, as a whole, to another arc into the
same GPU, often the one that has just become free. Each GPU is a choice of its own but for
third trees, which have to remain trees. Either all GPUs are served and a tree is gone, or
nothing changes. Finding the fewest trees is hard (it holds bin packing: weights that fill
arcs); tests/reference does it for small graphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from colsynth.synthesis.forest.digraph import Digraph, Packed, outwards


def merged(graph: Digraph, found: Sequence[Packed], most_height: int) -> list[Packed]:
    """Return the same packing of fewer trees, none of them higher than `most_height`.

    Parameters
    ----------
    graph : Digraph
    found : sequence of Packed
        None of them higher either.
    most_height : int
    """
    trees = _Trees(graph, found, most_height)
    while trees.give_all():
        pass
    return trees.packed()


class _Trees:
    """Trees as the arc by which each reaches each node, -1 for the root."""

    def __init__(self, graph: Digraph, found: Sequence[Packed], most_height: int) -> None:
        self._tail, self._head = graph.tail.tolist(), graph.head.tolist()
        self._left: list[int] = graph.units.tolist()
        self._most = most_height
        self._into: list[list[int]] = [[] for _ in range(graph.size)]
        for arc, head in enumerate(self._head):
            self._into[head].append(arc)
        weights: dict[tuple[int, ...], int] = {}
        for packed in found:
            by = [-1] * graph.size
            for arc in packed.arcs:
                by[self._head[arc]] = arc
                self._left[arc] -= packed.weight
            weights[tuple(by)] = weights.get(tuple(by), 0) + packed.weight
        self._arcs = [list(by) for by in weights]
        self._root = [by.index(-1) for by in self._arcs]
        self._weight = list(weights.values())

    def packed(self) -> list[Packed]:
        """Return the trees that are left."""
        rows = zip(self._arcs, self._weight, strict=True)
        return [
            Packed(
                by.index(-1),
                weight,
                outwards([self._tail[arc] if arc >= 0 else -1 for arc in by], by),
            )
            for by, weight in rows
            if weight
        ]

    def give_all(self) -> bool:
        """Let trees take on the weight of others of their root, light givers first.

        Whether any did.
        """
        given = False
        rows = sorted(range(len(self._weight)), key=lambda row: (self._weight[row], row))
        for giver in rows:
            takers = (
                row
                for row, weight in enumerate(self._weight)
                if weight and row != giver and self._root[row] == self._root[giver]
            )
            if self._weight[giver] and any(self._give(giver, taker) for taker in takers):
                given = True
        return given

    def _give(self, giver: int, taker: int) -> bool:
        """Let one tree take on the weight of another if that can be; whether it did."""
        left = self._left.copy()
        changed: dict[int, list[int]] = {}
        weight = self._weight[giver]
        for node, (old, new) in enumerate(zip(self._arcs[giver], self._arcs[taker], strict=True)):
            if old == new:
                continue
            left[old] += weight
            while left[new] < weight:
                third = self._third(node, new, weight - left[new], left, changed, giver, taker)
                if third is None:
                    return False
                row, arc = third
                left[arc] -= self._weight[row]
                left[new] += self._weight[row]
                changed[row] = self._with(changed.get(row, self._arcs[row]), node, arc)
            left[new] -= weight
        self._left = left
        for row, by in changed.items():
            self._arcs[row] = by
        self._weight[taker] += weight
        self._weight[giver] = 0
        return True

    def _third(
        self,
        node: int,
        arc: int,
        lacking: int,
        left: list[int],
        changed: dict[int, list[int]],
        *busy: int,
    ) -> tuple[int, int] | None:
        """Return a tree that can leave an arc into a node for another, and that other arc.

        If possible one that carries all that is `lacking`, the one that grows least, the
        lightest of those.
        """
        best: tuple[int, int, int, int, int] | None = None
        for row, weight in enumerate(self._weight):
            by = changed.get(row, self._arcs[row])
            if by[node] != arc or not weight or row in busy:
                continue
            for other in self._into[node]:
                if (
                    other == arc
                    or left[other] < weight
                    or self._is_below(by, self._tail[other], node)
                ):
                    continue
                trial = self._with(by, node, other)
                if max(self._depths(trial)) <= self._most:
                    deeper = self._depth(trial, node) - self._depth(by, node)
                    choice = (max(lacking - weight, 0), deeper, weight, row, other)
                    best = choice if best is None else min(best, choice)
        return best and best[3:]

    def _with(self, by: list[int], node: int, arc: int) -> list[int]:
        return [*by[:node], arc, *by[node + 1 :]]

    def _is_below(self, by: list[int], node: int, top: int) -> bool:
        """Whether a node is in the subtree of another."""
        while node != top:
            if by[node] < 0:
                return False
            node = self._tail[by[node]]
        return True

    def _depth(self, by: list[int], node: int) -> int:
        depth = 0
        while by[node] >= 0:
            node = self._tail[by[node]]
            depth += 1
        return depth

    def _depths(self, by: list[int]) -> Iterator[int]:
        return (self._depth(by, node) for node in range(len(by)))
