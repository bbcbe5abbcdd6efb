"""How much each root should add up and send out: a linear program over cuts.

Variables are the share x_v that root v aggregates and the bandwidth c_e that each half of
the allreduce takes of link e. Trees of shares x fit into capacities c iff every set S
that leaves out a GPU satisfies c(leaving S) >= x(S) (Edmonds 1972; Frank: weights of the
roots are free), once switches, which only forward, have as much ingress as egress (edge
splitting: Bang-Jensen, Frank, Jackson 1995). The halves share the links, the sum of x is
the rate. Such programs over roots are proposed for allreduce by Zhao et al., ForestColl
(arXiv 2402.06787).

There are exponentially many sets, so those that a solution violates are added until none
is, each found by a maximum flow to a GPU. HiGHS works in doubles: its answers are
proposals, for `rooted` to prove and for `synthesis` to make whole trees of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from colsynth.bounds.allreduce.halves import Halves, Side
from colsynth.bounds.network import Ints
from colsynth.bounds.solver import silent
from colsynth.kernels.maxflow import (
    max_flow,
    reset,
    residual_index,
    send_on,
    source_side,
    with_returns,
)

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_STEPS = 2**28
"""Whole steps that the largest capacity is cut into when cuts are sought."""
_SLACK = 2**8
"""Steps by which a cut must fall short to be added: the solver's own tolerance."""
_MOST_ROUNDS = 200
_WORTH = 1e-3
"""What a unit of capacity is worth beside the height of a root."""
_WHOLE = 1e-6
"""How near to a whole number the solver's numbers must be."""
_MOST_NODES = 30
"""Nodes of the search for whole numbers; where they do not suffice it has no answer."""


@dataclass(frozen=True, eq=False)
class Solution:
    """What the solver says.

    Parameters
    ----------
    shares : float64 (n,)
        Of every node; zero where it is no root.
    used : tuple of float64 (m,)
        Of every side, per link.
    cuts : tuple of (int, bool (n,), float)
        Side, source set, and dual price; prices of a mixed-integer program are zero.
    potentials : tuple of float64 (n,)
        Of every side: dual prices of what nodes forward.
    settled : bool
        Whether no cut is violated; else the rounds were used up.
    """

    shares: Floats
    used: tuple[Floats, ...]
    cuts: tuple[tuple[int, Flags, float], ...]
    potentials: tuple[Floats, ...]
    settled: bool


class RootProgram:
    """The program for given capacities; cuts found once are kept.

    Parameters
    ----------
    halves : Halves
    capacity : float64 (m,)
        Of every link. Whole numbers where `whole` is set, else about one.
    whole : bool
        Whether shares and capacities must be whole numbers.
    """

    def __init__(self, halves: Halves, capacity: Floats, *, whole: bool = False) -> None:
        import highspy

        self._halves, self._capacity, self._whole = halves, capacity, whole
        self._roots = halves.sides[0].network.roots
        self._links = len(capacity)
        self._cuts: list[tuple[int, Flags, int]] = []
        self._known: set[tuple[int, bytes]] = set()
        self._infinity = highspy.kHighsInf
        # A limit on work, not on time: equal inputs give equal answers.
        self._highs = silent(random_seed=0, mip_rel_gap=0.0, mip_max_nodes=_MOST_NODES)
        self._add_columns(highspy)
        self._balances = [list(self._add_balances(i)) for i in range(len(halves.sides))]
        self._pairs = list(self._add_sharing())
        self._sum = len(self._roots) + len(halves.sides) * self._links
        roots = np.arange(len(self._roots))
        self._row(0, 0, np.append(roots, self._sum), np.append(np.ones(len(roots)), -1.0))
        for number, side in enumerate(halves.sides):
            for inside in _first_cuts(side):
                self._add_cut(number, inside)

    def demand(self, capacity: Floats, count: int, depth: Floats) -> None:
        """Change the capacities; ask for shares that add up to `count`, and for low trees.

        Parameters
        ----------
        capacity : float64 (m,)
        count : int
        depth : float64 (n,)
            How far each node is from the GPUs. Roots are wanted where that is little, and
            capacity, also what is left over, in the direction in which it grows.
        """
        self._capacity = capacity
        self.stay_near(None)
        for row, link in self._pairs:
            self._highs.changeRowBounds(row, -self._infinity, capacity[link])
        self._highs.changeColBounds(self._sum, count, count)
        costs = [-depth[self._roots]]
        for side in self._halves.sides:
            growth = depth[side.network.head] - depth[side.network.tail]
            costs.append(_WORTH * (1 + np.clip(growth, -1, 1) / 2))
        every = np.concatenate(costs)
        self._highs.changeColsCost(len(every), np.arange(len(every), dtype=np.int32), every)

    def share_out(self, weight: Ints) -> None:
        """Require shares in proportion to the weights, int64 (n,), of the roots."""
        first, *others = weight[self._roots].tolist()
        for column, part in enumerate(others, start=1):
            self._row(0, 0, np.array((0, column), np.int64), np.array((part, -first), np.float64))

    def stay_near(self, solution: Solution | None) -> None:
        """Allow only the whole numbers on either side of a solution; None allows all again."""
        sides = len(self._halves.sides)
        low = np.zeros(len(self._roots) + sides * self._links)
        high = np.full(len(low), self._infinity)
        high[len(self._roots) :] = np.tile(self._capacity, sides)
        if solution is not None:
            values = np.concatenate((solution.shares[self._roots], *solution.used))
            low, high = np.floor(values + _WHOLE), np.ceil(values - _WHOLE)
        index = np.arange(len(low), dtype=np.int32)
        self._highs.changeColsBounds(len(low), index, low, high)

    def adopt(self, solution: Solution) -> None:
        """Start from the cuts that another program for the same halves has found."""
        for number, inside, _ in solution.cuts:
            self._add_cut(number, inside)

    def solve(self, rounds: int = _MOST_ROUNDS) -> Solution | None:
        """Return the best solution; None where the solver gave up.

        `rounds` limits how often violated cuts are sought.
        """
        import highspy

        shares: Floats = np.zeros(0)
        used: tuple[Floats, ...] = ()
        for _ in range(rounds):
            self._highs.run()
            if self._highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                return None
            shares, used = self._values()
            added = False
            for number, side in enumerate(self._halves.sides):
                for inside in _violated(side, shares, used[number], self._whole):
                    added |= self._add_cut(number, inside)
            if not added:
                return self._solution(shares, used, True)
        return self._solution(shares, used, False)

    def _add_columns(self, highspy: Any) -> None:
        sides = len(self._halves.sides)
        count = len(self._roots) + sides * self._links + 1
        upper = np.concatenate(
            (np.full(len(self._roots), self._infinity), np.tile(self._capacity, sides))
        )
        upper = np.append(upper, self._infinity)
        self._highs.addVars(count, np.zeros(count), upper)
        roots = np.arange(len(self._roots), dtype=np.int32)
        self._highs.changeColsCost(len(roots), roots, np.ones(len(roots)))
        self._highs.changeObjectiveSense(highspy.ObjSense.kMaximize)
        if self._whole:
            kinds = np.full(count, highspy.HighsVarType.kInteger)
            self._highs.changeColsIntegrality(count, np.arange(count, dtype=np.int32), kinds)

    def _row(self, lower: float, upper: float, columns: Ints, entries: Floats | None) -> None:
        index = np.asarray(columns, np.int32)
        entries = np.ones(len(index)) if entries is None else entries
        self._highs.addRow(lower, upper, len(index), index, np.asarray(entries, np.float64))

    def _column(self, side: int) -> int:
        """Return the column of a side's first link."""
        return len(self._roots) + side * self._links

    def _add_balances(self, number: int) -> Iterator[int]:
        """Add a row for every node that forwards; yield the nodes."""
        side = self._halves.sides[number]
        base = self._column(number)
        for node in side.forwards:
            into = np.nonzero(side.network.head == node)[0]
            out = np.nonzero(side.network.tail == node)[0]
            signs = np.concatenate((np.ones(len(into)), -np.ones(len(out))))
            self._row(0, 0, base + np.concatenate((into, out)), signs)
            yield int(node)

    def _add_sharing(self) -> Iterator[tuple[int, int]]:
        """Let both halves have a link together; yield rows and links."""
        partner = self._halves.partner
        base, other = self._column(0), self._column(1)
        for link in range(self._links):
            mate = other + link if partner is None else base + int(partner[link])
            if mate > base + link:
                columns = np.array((base + link, mate), np.int64)
                yield self._highs.getNumRow(), link
                self._row(-self._infinity, self._capacity[link], columns, None)

    def _add_cut(self, number: int, inside: Flags) -> bool:
        """Require that what leaves a set carries the shares inside; False where known."""
        key = (number, inside.tobytes())
        if key in self._known:
            return False
        self._known.add(key)
        self._cuts.append((number, inside, self._highs.getNumRow()))
        network = self._halves.sides[number].network
        leaving = np.nonzero(inside[network.tail] & ~inside[network.head])[0]
        within = inside[self._roots]
        # Most sets leave few roots out. All shares together, less theirs, is the shorter row.
        if 2 * np.count_nonzero(within) > len(within):
            shares = np.append(np.nonzero(~within)[0], self._sum)
            signs = np.append(np.ones(len(shares) - 1), -1.0)
        else:
            shares = np.nonzero(within)[0]
            signs = -np.ones(len(shares))
        columns = np.concatenate((shares, self._column(number) + leaving))
        entries = np.concatenate((signs, np.ones(len(leaving))))
        self._row(0, self._infinity, columns, entries)
        return True

    def _values(self) -> tuple[Floats, tuple[Floats, ...]]:
        values = np.array(self._highs.getSolution().col_value)
        shares = np.zeros(self._halves.sides[0].network.size)
        shares[self._roots] = values[: len(self._roots)]
        starts = [self._column(i) for i in range(len(self._halves.sides))]
        return shares, tuple(values[at : at + self._links] for at in starts)

    def _solution(self, shares: Floats, used: tuple[Floats, ...], settled: bool) -> Solution:
        duals = np.array(self._highs.getSolution().row_dual)
        if self._whole:
            duals = np.zeros(self._highs.getNumRow())
        # A maximised program has prices of the opposite sign.
        cuts = tuple((side, inside, max(0.0, -duals[row])) for side, inside, row in self._cuts)
        potentials, row = [], 0
        for nodes in self._balances:
            prices = np.zeros(len(shares))
            prices[nodes] = -duals[row : row + len(nodes)]
            potentials.append(prices)
            row += len(nodes)
        return Solution(shares, used, cuts, tuple(potentials), settled)


def _first_cuts(side: Side) -> Iterator[Flags]:
    """Yield the sets of all nodes but one GPU, and of one root alone."""
    nodes = np.arange(side.network.size)
    for gpu in side.network.gpus:
        yield nodes != gpu
        yield nodes == gpu


def _violated(side: Side, shares: Floats, used: Floats, whole: bool) -> Iterator[Flags]:
    """Yield for every GPU the cuts nearest to the roots and to it that fall short."""
    network, source = side.network, side.network.size
    if whole:
        steps, slack = 1.0, 0
    else:
        steps, slack = _STEPS / max(used.max(), shares.max(), 1e-9), _SLACK
    roots = network.roots
    supply = np.rint(shares[roots] * steps).astype(np.int64)
    room = np.rint(used * steps).astype(np.int64)
    tail = np.concatenate((network.tail, np.full(len(roots), source)))
    head = np.concatenate((network.head, roots))
    capacity = np.concatenate((room, supply))
    demand = int(supply.sum())
    returning, returned = with_returns(tail, head, source, network.gpus)
    forwards = residual_index(source + 1, returning, returned)
    backwards = residual_index(source + 1, returned, returning)
    residual = np.zeros(2 * len(returning), np.int64)
    reset(residual, capacity)
    for arc, gpu in enumerate(network.gpus, len(tail)):
        flow = max_flow(*forwards, residual, source, gpu, demand)
        if flow < demand - slack:
            yield source_side(*forwards, residual, source)[:source]
            yield ~source_side(*backwards, residual, gpu)[:source]
        send_on(residual, arc, flow)
