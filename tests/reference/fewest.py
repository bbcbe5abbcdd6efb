"""The fewest and the lowest trees at a rate, by an integer program over every tree.

Slow and obvious: each spanning arborescence of each root is a column with a whole weight, and
a flow per pair of GPUs leads what its trees carry through switches. Trees count once however
their routes part. HiGHS answers; for five GPUs or so.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import highspy
import numpy as np

from colsynth.model import Direction, Forest, Kind, Phase

MOST_COLUMNS = 1500
"""Trees beyond which there is no answer in reasonable time."""

Pair = tuple[int, int]


@dataclass(frozen=True)
class Column:
    """A spanning tree: its root and, for every other rank, the rank it hangs on."""

    root: int
    pairs: tuple[Pair, ...]
    height: int


class TooManyTreesError(Exception):
    """The program would be too large."""


class TreeProgram:
    """The program for the rate and the number of trees of one phase of a forest."""

    def __init__(self, forest: Forest, phase: Phase) -> None:
        topology = forest.problem.topology
        out = phase.direction is Direction.OUT
        self._ends = [(x.source, x.target) if out else (x.target, x.source) for x in topology.links]
        self._units = [int(x.bandwidth / phase.unit_bandwidth) for x in topology.links]
        self._ranks = {node: rank for rank, node in enumerate(topology.ranks)}
        self._gpus = list(topology.ranks)
        self._switches = [i for i, x in enumerate(topology.nodes) if x.kind is not Kind.GPU]
        self._trees = dict(zip(forest.problem.roots, forest.weights, strict=True))
        self._pairs = sorted(self._reachable())
        self._columns = [column for root in self._trees for column in self._spanning(root)]

    def fewest(self) -> int:
        """Return the least number of different trees."""
        found = self._solve(self._columns, count=True)
        if found is None:
            raise ValueError("the trees do not fit")
        return found

    def lowest(self) -> int:
        """Return the least height of the tallest tree."""
        for most in range(1, len(self._gpus)):
            some = [column for column in self._columns if column.height <= most]
            if self._solve(some, count=False) is not None:
                return most
        raise ValueError("the trees do not fit")

    def _reachable(self) -> Iterator[Pair]:
        """Yield the pairs of ranks that are joined through no other GPU."""
        for gpu in self._gpus:
            seen, level = {gpu}, [gpu]
            while level:
                heads = {b for a, b in self._ends if a in level} - seen
                seen |= heads
                yield from ((self._ranks[gpu], self._ranks[v]) for v in heads if v in self._ranks)
                level = [v for v in heads if v not in self._ranks]

    def _spanning(self, root: int) -> Iterator[Column]:
        others = [rank for rank in range(len(self._gpus)) if rank != root]
        parents = [[a for a, b in self._pairs if b == rank] for rank in others]
        if np.prod([float(len(choice)) for choice in parents]) > 200 * MOST_COLUMNS:
            raise TooManyTreesError
        found = 0
        for choice in product(*parents):
            above = dict(zip(others, choice, strict=True))
            depths = [_depth(above, rank, root) for rank in others]
            if None not in depths:
                found += 1
                if found > MOST_COLUMNS // len(self._trees):
                    raise TooManyTreesError
                height = max(depth for depth in depths if depth is not None)
                yield Column(root, tuple((a, b) for b, a in above.items()), height)

    def _solve(self, columns: list[Column], *, count: bool) -> int | None:
        """Return the fewest columns that hold all trees, or None where they cannot."""
        highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("mip_rel_gap", 0.0)):
            highs.setOptionValue(option, value)
        weight = [highs.addIntegral(0, self._trees[c.root]) for c in columns]
        if count:
            used = [highs.addBinary() for _ in columns]
            for column, w, y in zip(columns, weight, used, strict=True):
                highs.addConstr(w <= self._trees[column.root] * y)
        for root, trees in self._trees.items():
            own = [w for c, w in zip(columns, weight, strict=True) if c.root == root]
            if not own:
                return None
            highs.addConstr(highs.qsum(own) == trees)
        self._route(highs, columns, weight)
        highs.minimize(highs.qsum(used) if count else 0 * weight[0])
        status = highs.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        if status != highspy.HighsModelStatus.kOptimal:
            raise ValueError(f"no answer: {status}")
        return round(highs.getInfo().objective_function_value)

    def _route(self, highs: highspy.Highs, columns: list[Column], weight: list[object]) -> None:
        """Lead what the trees carry between each pair through switches, within capacities."""
        load: list[list[object]] = [[] for _ in self._ends]
        for pair in self._pairs:
            taken = [w for c, w in zip(columns, weight, strict=True) if pair in c.pairs]
            source, target = (self._gpus[rank] for rank in pair)
            flow = {
                i: highs.addIntegral(0, self._units[i])
                for i, (a, b) in enumerate(self._ends)
                if (a == source or a not in self._ranks) and (b == target or b not in self._ranks)
            }
            for i, variable in flow.items():
                load[i].append(variable)
            for node in (source, *self._switches):
                leaving = [flow[i] for i in flow if self._ends[i][0] == node]
                entering = [flow[i] for i in flow if self._ends[i][1] == node]
                if node == source:
                    highs.addConstr(highs.qsum(leaving) == highs.qsum(taken))
                elif leaving or entering:
                    highs.addConstr(highs.qsum(leaving) == highs.qsum(entering))
        for i, flows in enumerate(load):
            if flows:
                highs.addConstr(highs.qsum(flows) <= self._units[i])


def _depth(above: dict[int, int], rank: int, root: int) -> int | None:
    """Return how deep a rank hangs, None where the way up ends in a circle."""
    for depth in range(len(above) + 1):
        if rank == root:
            return depth
        rank = above[rank]
    return None
