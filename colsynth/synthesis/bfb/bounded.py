"""Trees of bounded height with the least congestion: column generation over trees.

A linear program mixes trees so that the largest load is least; its prices give every root a
cheapest tree of the height (a small program over levels), until the mix meets the bound of
`bounds/levels.py`. Then whole numbers of these trees are chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import lcm

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.direct import Fabric
from colsynth.bounds.levels import Program, bounded_fabric, height_bound, level_program
from colsynth.bounds.trees import bound
from colsynth.errors import Diagnostic, InputError
from colsynth.kernels.shortest import whole_chunks
from colsynth.model import Direction, Forest, Phase, Problem, Tree, TreeEdge
from colsynth.runtimes.target import Context
from colsynth.synthesis.forest.trees import merge_equal

_ROUNDS = 80
"""Rounds of column generation: Kautz graphs of 24 GPUs took 12."""
_MORE = 8
"""Further rounds where whole numbers of the trees do not meet the bound: another mix may."""
_CHUNKS = 6
"""Chunks per root up to which whole numbers of trees are looked for that meet the bound."""
_NEAR = 1e-7

Arcs = tuple[int, ...]
"""By rank, the arc by which a tree enters it; -1 at its root."""


class _Pricing:
    """Cheapest trees of a height, by the prices of arcs.

    A little noise tells equally cheap trees apart, so that rounds bring different ones.
    """

    def __init__(self, fabric: Fabric, height: int) -> None:
        self._fabric, self._rng = fabric, np.random.default_rng(0)
        self._roots = np.nonzero(fabric.weight)[0].tolist()
        self._programs = {root: level_program(fabric, height, [root]) for root in self._roots}
        self._solvers = {
            root: program.solver([0.0] * len(program.uses), whole=len(program.uses), most=1.0)
            for root, program in self._programs.items()
        }

    def cheapest(self, prices: NDArray[np.float64]) -> Iterator[tuple[int, Arcs]]:
        """Yield a tree of every root, for prices (arcs,)."""
        noisy = prices + 1e-3 * prices.max() * self._rng.random(len(prices))
        for root in self._roots:
            uses, highs = self._programs[root].uses, self._solvers[root]
            cost = np.array([noisy[arc] for _, arc, _ in uses])
            highs.changeColsCost(len(uses), np.arange(len(uses), dtype=np.int32), cost)
            highs.run()
            taken = np.array(highs.getSolution().col_value) > 0.5
            arcs = [-1] * self._fabric.size
            for use in np.nonzero(taken)[0].tolist():
                arcs[_head(self._fabric, uses[use][1])] = uses[use][1]
            yield root, tuple(arcs)


@dataclass
class _Pool:
    """Trees found so far."""

    fabric: Fabric
    limit: Fraction
    """Least load of trees of the height, seconds for each byte of a part."""
    pricing: _Pricing
    trees: dict[tuple[int, Arcs], None] = field(default_factory=dict)

    @property
    def step(self) -> int:
        """Chunks of which only multiples can meet the limit, where all links are equal."""
        return (self.limit * self.fabric.unit * int(self.fabric.capacity.max())).denominator

    def phase(self, direction: Direction, chunks: int, *, meets: bool) -> Phase | None:
        """Return a phase of whole trees, `chunks` for each part of a root; None if not found."""
        amounts = self.mix(chunks, meets=meets)[1]
        pairs = zip(self.trees, amounts.tolist(), strict=True)
        found = [(root, arcs, round(x)) for (root, arcs), x in pairs]
        if not _is_whole(self.fabric, found, chunks):
            return None
        return Phase(direction, merge_equal(_trees(self.fabric, found)), _unit(self.fabric, found))

    def fill(self) -> None:
        """Add trees until their mix meets the limit, or no tree helps."""
        goal = float(self.limit * self.fabric.unit)
        for _ in range(_ROUNDS):
            load, _, prices = self.mix()
            if load <= goal + _NEAR or not self._add(prices):
                return

    def widen(self) -> bool:
        """Add trees that are as cheap as those of the mix; return whether there were any."""
        before = len(self.trees)
        for _ in range(_MORE):
            if not self._add(self.mix()[2]):
                break
        return len(self.trees) > before

    def _add(self, prices: NDArray[np.float64]) -> bool:
        """Add a cheapest tree of every root; return whether one was new."""
        before = len(self.trees)
        for tree in self.pricing.cheapest(prices):
            self.trees[tree] = None
        return len(self.trees) > before

    def mix(
        self, chunks: int = 0, *, meets: bool = False
    ) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
        """Return (load, amount of every tree, price of every arc); whole amounts with `chunks`.

        With `meets`, the load is not minimised but held within the limit.
        """
        program, load = Program(), len(self.trees)
        by_root: dict[int, list[int]] = {}
        carried: list[list[int]] = [[] for _ in self.fabric.tail]
        for column, (root, arcs) in enumerate(self.trees):
            by_root.setdefault(root, []).append(column)
            for arc in arcs:
                if arc >= 0:
                    carried[arc].append(column)
        for root, columns in by_root.items():
            amount = float(self.fabric.weight[root]) * max(chunks, 1)
            program.add(amount, amount, columns, [1.0] * len(columns))
        for columns, capacity in zip(carried, self.fabric.capacity.tolist(), strict=True):
            most = float(capacity * chunks * self.limit * self.fabric.unit // 1) if meets else 0.0
            entries = [*[1.0] * len(columns), 0.0 if meets else -float(capacity)]
            program.add(-np.inf, most, [*columns, load], entries)
        highs = program.solver([0.0] * load + [1.0], whole=load if chunks else 0)
        highs.run()
        solution = highs.getSolution()
        values = [*solution.col_value[:load]] or [0.0] * load  # none where nothing was found
        amounts = np.array(values)
        duals = np.array(solution.row_dual[len(by_root) :]) if not chunks else np.zeros(0)
        return float(highs.getInfo().objective_function_value), amounts, np.maximum(-duals, 0)


def bounded_forest(problem: Problem, trees: str, height: int, target: Context) -> Forest:
    """Return the best trees that are no higher than `height`, for every phase.

    Parameters
    ----------
    trees : str
        A number per root; otherwise the fewest, up to `_CHUNKS`, that are found to meet the bound
        of the height, else those of so many that come nearest.
    target : Context
        Told of progress.

    Raises
    ------
    InputError
        CS310: there are no such trees, or the fabric is too large. CS309: it has switches.
    """
    optimum = bound(problem)
    height = min(height, problem.topology.size - 1)  # no tree is higher
    pools: list[_Pool] = []
    for number, cut in enumerate(optimum.cuts):
        target.progress("packing trees of bounded height", number, len(optimum.cuts))
        pools.append(_filled(problem, cut.direction, height))

    def forest(count: int, *, meets: bool) -> Forest | None:
        pairs = zip(optimum.cuts, pools, strict=True)
        phases = [_phase(pool, cut.direction, count, meets=meets) for cut, pool in pairs]
        whole = tuple(phase for phase in phases if phase is not None)
        shares = tuple(part * count for part in problem.shards)
        full = len(whole) == len(phases)
        return Forest(problem, optimum, 0 if shares else count, whole, shares) if full else None

    if trees.isdigit():
        counts: Sequence[int] = (int(trees),)
    else:
        step = lcm(*(pool.step for pool in pools))
        for count in range(step, _CHUNKS + 1, step):
            if (found := forest(count, meets=True)) is not None:
                return found
        counts = range(1, _CHUNKS + 1)
    made = [found for count in counts if (found := forest(count, meets=False)) is not None]
    if made:
        return max(made, key=lambda one: one.algbw)  # the fewest trees among equals
    raise InputError(Diagnostic("CS310", "no whole trees were found", help="allow more height"))


def _filled(problem: Problem, direction: Direction, height: int) -> _Pool:
    """Return trees of a phase whose mix meets the bound of the height, as far as they are found."""
    fabric = bounded_fabric(problem, direction, height)
    limit = height_bound(problem, direction, height).load
    pool = _Pool(fabric, limit, _Pricing(fabric, height))
    pool.trees.update(dict.fromkeys(_shortest(fabric)))
    pool.fill()
    return pool


def _phase(pool: _Pool, direction: Direction, chunks: int, *, meets: bool) -> Phase | None:
    """Return a phase of whole trees; where the pool has none, more trees are found once."""
    found = pool.phase(direction, chunks, meets=meets)
    if found is None and pool.widen():
        found = pool.phase(direction, chunks, meets=meets)
    return found


def _is_whole(fabric: Fabric, found: Sequence[tuple[int, Arcs, int]], chunks: int) -> bool:
    """Whether every root has its number of trees."""
    sums = np.zeros(fabric.size, np.int64)
    for root, _, amount in found:
        sums[root] += amount
    return bool((sums == fabric.weight * chunks).all())


def _shortest(fabric: Fabric) -> Iterator[tuple[int, Arcs]]:
    """Yield some trees of shortest paths for every root."""
    start = np.concatenate(([0], np.cumsum((fabric.weight > 0) * 4))).astype(np.int64)
    arcs = whole_chunks(fabric.first, fabric.tail, fabric.capacity, fabric.distance, start, False)
    roots = np.repeat(np.arange(fabric.size), np.diff(start)).tolist()
    for root, row in zip(roots, arcs.tolist(), strict=True):
        yield root, tuple(row)


def _head(fabric: Fabric, arc: int) -> int:
    return int(np.searchsorted(fabric.first, arc, side="right")) - 1


def _unit(fabric: Fabric, found: Sequence[tuple[int, Arcs, int]]) -> Fraction:
    """Return the bytes per second that the narrowest link leaves each chunk."""
    loads = [0] * len(fabric.tail)
    for _, arcs, amount in found:
        for arc in arcs:
            loads[arc] += amount if arc >= 0 else 0
    return min(b / load for b, load in zip(fabric.bandwidth, loads, strict=True) if load)


def _trees(fabric: Fabric, found: Sequence[tuple[int, Arcs, int]]) -> Iterator[Tree]:
    edges = [
        TreeEdge(int(tail), _head(fabric, arc), fabric.routes[arc])
        for arc, tail in enumerate(fabric.tail)
    ]
    for root, arcs, amount in found:
        if amount:
            yield Tree(root, amount, tuple(_from_root(edges, arcs, root)))


def _from_root(edges: list[TreeEdge], arcs: Arcs, root: int) -> Iterator[TreeEdge]:
    """Yield the edges of a tree, every one after that which reaches its parent."""
    below: dict[int, list[TreeEdge]] = {}
    for arc in arcs:
        if arc >= 0:
            below.setdefault(edges[arc].parent, []).append(edges[arc])
    queue = [root]
    for at in queue:
        for edge in below.get(at, ()):
            yield edge
            queue.append(edge.child)
