"""Trees of bounded height as a linear program over levels.

Variable x[r, e, l]: how much of the tree of root r takes link e = (w, v) with v at level l. Every
GPU is reached once; a link is taken at level l no more than its tail is reached at level l - 1; the
largest load over bandwidth is the least. Whole trees are such solutions, so the optimum is a bound
on trees. It was reached by trees wherever that was tried (facts, direct_connect.md, section 6).

HiGHS works in doubles. Its dual prices are rounded to whole numbers, which prove a bound exactly;
`verify/heights.py` adds it up.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from colsynth.bounds.direct import Fabric, fabric_of
from colsynth.bounds.solver import silent
from colsynth.errors import Diagnostic, InputError
from colsynth.model import Direction, Problem
from colsynth.model.heights import HeightBound

MOST_COLUMNS = 30_000
"""GPUs times links times levels: 24 GPUs with 2 ports and height 5 (5,800) take half a second."""

_NODES = 300
"""Nodes of a search for whole numbers; a limit in seconds would not repeat."""

_MULTIPLES = (*range(1, 61), 120, 360, 2520, 10**6)
"""Multiples of the least price at which prices are rounded."""


@dataclass
class Program:
    """Columns and rows of a linear program, for HiGHS.

    Parameters
    ----------
    uses : list of tuple of int
        (root, arc, level) of every column but the last, which is the load.
    """

    uses: list[tuple[int, int, int]] = field(default_factory=list)
    rows: list[tuple[float, float, list[int], list[float]]] = field(default_factory=list)
    joints: dict[tuple[int, int, int], int] = field(default_factory=dict)
    """Row of each use's tail, as (root, arc, level)."""

    def add(self, low: float, high: float, columns: list[int], entries: list[float]) -> None:
        """Add a row: low <= sum of entries <= high."""
        self.rows.append((low, high, columns, entries))

    def solver(self, cost: list[float], *, whole: int = 0, most: float = np.inf) -> Any:
        """Return HiGHS with the program; the first `whole` columns take whole numbers."""
        import highspy

        highs = silent(mip_max_nodes=_NODES)
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = len(cost), len(self.rows)
        lp.col_cost_ = np.array(cost)
        lp.col_lower_ = np.zeros(len(cost))
        lp.col_upper_ = np.full(len(cost), most)
        lp.row_lower_ = np.array([row[0] for row in self.rows])
        lp.row_upper_ = np.array([row[1] for row in self.rows])
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        ends = np.cumsum([0, *(len(row[2]) for row in self.rows)])
        lp.a_matrix_.start_ = ends.astype(np.int32)
        lp.a_matrix_.index_ = np.array([c for row in self.rows for c in row[2]], np.int32)
        lp.a_matrix_.value_ = np.array([x for row in self.rows for x in row[3]])
        if whole:
            kinds = [highspy.HighsVarType.kInteger] * whole
            rest = [highspy.HighsVarType.kContinuous] * (len(cost) - whole)
            lp.integrality_ = kinds + rest
        highs.passModel(lp)
        return highs


def level_program(fabric: Fabric, height: int, roots: list[int]) -> Program:
    """Return the levels of the trees of some roots, without any congestion."""
    program = Program()
    for root in roots:
        _add_root(program, fabric, height, root)
    return program


def _add_root(program: Program, fabric: Fabric, height: int, root: int) -> None:
    near = fabric.distance[:, root].tolist()
    tails = fabric.tail.tolist()
    start = len(program.uses)
    into: dict[tuple[int, int], list[int]] = {}
    for head in range(fabric.size):
        for arc in range(int(fabric.first[head]), int(fabric.first[head + 1])):
            tail = tails[arc]
            levels = (1,) if tail == root else range(max(2, near[tail] + 1), height + 1)
            for level in levels if head != root else ():
                into.setdefault((head, level), []).append(len(program.uses))
                program.uses.append((root, arc, level))
    for head in range(fabric.size):
        if head != root:
            columns = [c for (v, _), found in into.items() if v == head for c in found]
            program.add(1, 1, columns, [1.0] * len(columns))
    for column in range(start, len(program.uses)):
        _, arc, level = program.uses[column]
        if level > 1:
            before = into.get((tails[arc], level - 1), [])
            program.joints[program.uses[column]] = len(program.rows)
            program.add(-np.inf, 0, [column, *before], [1.0, *[-1.0] * len(before)])


def height_bound(problem: Problem, direction: Direction, height: int) -> HeightBound:
    """Return the bound on trees of a height, with its proof.

    Raises
    ------
    InputError
        CS310: the program is too large, or some GPU is farther away. CS309: there are switches.
    """
    fabric = bounded_fabric(problem, direction, height)
    roots = np.nonzero(fabric.weight)[0].tolist()
    program = level_program(fabric, height, roots)
    load = len(program.uses)
    carried: dict[int, list[int]] = {}
    for column, (_, arc, _) in enumerate(program.uses):
        carried.setdefault(arc, []).append(column)
    first = len(program.rows)
    for arc, capacity in enumerate(fabric.capacity.tolist()):
        columns = carried.get(arc, [])
        weights = [float(fabric.weight[program.uses[c][0]]) for c in columns]
        program.add(-np.inf, 0, [*columns, load], [*weights, -float(capacity)])
    highs = program.solver([0.0] * load + [1.0])
    highs.run()
    duals = np.array(highs.getSolution().row_dual)
    prices = np.maximum(-duals[first:], 0)
    joints = {use: max(-duals[row], 0.0) for use, row in program.joints.items()}
    best = max(_rounded(fabric, height, prices, joints), key=lambda found: found[0])
    value, whole, uses = best
    by_link = [0] * len(problem.topology.links)
    for arc, price in enumerate(whole):
        by_link[fabric.routes[arc][0]] = price
    links = tuple(
        sorted((r, fabric.routes[e][0], level, p) for (r, e, level), p in uses.items() if p)
    )
    return HeightBound(direction, height, value / fabric.unit, tuple(by_link), links)


def bounded_fabric(problem: Problem, direction: Direction, height: int) -> Fabric:
    """Return the fabric of a phase, if trees of the height can be found in it."""
    if not problem.topology.is_direct:
        fabric_of(problem, direction)  # names a switch with more than two neighbours
        phrase = "trees of bounded height need links that lead from GPU to GPU"
        raise InputError(Diagnostic("CS309", phrase))
    fabric = fabric_of(problem, direction)
    farthest = int(fabric.distance[:, fabric.weight > 0].max())
    if height < farthest:
        phrase = f"no trees are {height} high: some GPU is {farthest} links away"
        raise InputError(Diagnostic("CS310", phrase, help=f"allow at least {farthest}"))
    columns = int((fabric.weight > 0).sum()) * len(fabric.tail) * height
    if columns > MOST_COLUMNS:
        phrase = f"{problem.topology.name} is too large for trees of bounded height"
        note = f"GPUs x links x height {height} are {columns}, at most {MOST_COLUMNS}"
        advice = "allow less height, or take -a bfb, whose trees are the lowest at any size"
        raise InputError(Diagnostic("CS310", phrase, notes=(note,), help=advice))
    return fabric


_Uses = dict[tuple[int, int, int], int]


def _rounded(
    fabric: Fabric, height: int, prices: Any, joints: dict[tuple[int, int, int], float]
) -> Iterator[tuple[Fraction, list[int], _Uses]]:
    """Yield (bound, prices, joints) at several roundings; each is proven."""
    least = min((x for x in prices.tolist() if x > 1e-9), default=1.0)
    for multiple in _MULTIPLES:
        scale = multiple / least
        whole = [round(x * scale) for x in prices.tolist()]
        uses = {use: round(x * scale) for use, x in joints.items()}
        paid = sum(c * p for c, p in zip(fabric.capacity.tolist(), whole, strict=True))
        if paid:
            yield Fraction(_given(fabric, height, whole, uses), paid), whole, uses


def _given(fabric: Fabric, height: int, prices: list[int], joints: _Uses) -> int:
    """Return what all GPUs of all trees are given at least, times the weights of the roots."""
    tails, total = fabric.tail.tolist(), 0
    onward: dict[tuple[int, int, int], int] = {}
    for (root, arc, level), price in joints.items():
        key = root, tails[arc], level - 1
        onward[key] = onward.get(key, 0) + price
    for root in np.nonzero(fabric.weight)[0].tolist():
        near = fabric.distance[:, root].tolist()
        for head in range(fabric.size):
            costs = []
            for arc in range(int(fabric.first[head]), int(fabric.first[head + 1])):
                tail = tails[arc]
                levels = (1,) if tail == root else range(max(2, near[tail] + 1), height + 1)
                costs += [
                    prices[arc] + joints.get((root, arc, k), 0) - onward.get((root, head, k), 0)
                    for k in levels
                ]
            if head != root:
                total += min(costs) * int(fabric.weight[root])
    return total
