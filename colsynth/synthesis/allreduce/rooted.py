"""What an allreduce can reach with shares of its own for every root, proven exactly.

The linear program's prices are rounded to whole numbers and its bound is worked out from
those in exact arithmetic, which proves it whatever the solver did (`verify.allreduce`
says how). Rounded coarsely first: prices are small whole multiples of each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from colsynth.errors import Diagnostic, InputError
from colsynth.model import (
    AllreduceBound,
    Collective,
    Direction,
    PricedCut,
    Problem,
    RootedBound,
)
from colsynth.synthesis.allreduce.limits import first_limit, priced_limit
from colsynth.synthesis.allreduce.program import RootProgram, Solution
from colsynth.synthesis.allreduce.sides import Halves, halves_of
from colsynth.synthesis.bound import bound

Ints = NDArray[np.int64]

MOST_GPUS = 256
"""GPUs up to which the linear program is solved."""
_MULTIPLES = (*range(1, 41), 60, 84, 120, 360, 840, 2520, 10**6, 10**8)
"""The highest price, as a whole number, when prices are rounded to whole numbers."""
_REACHED = 1e-9
"""Relative tolerance at which rounded prices count as those of the solver."""


def allreduce_bound(problem: Problem) -> AllreduceBound:
    """Return what reduce-scatter and allgather reach, what free roots can, and what none can.

    Raises
    ------
    InfeasibleError
        Some GPU cannot be reached (CS302).
    InputError
        CS321: not an allreduce; and as `synthesis.bound.bound`.
    """
    if problem.collective is not Collective.ALLREDUCE:
        phrase = f"free roots are for allreduce, not for {problem.collective}"
        raise InputError(Diagnostic("CS321", phrase, help="take -a forest"))
    composition = bound(problem)
    limit = first_limit(problem, composition.cuts)
    if limit.algbw == composition.algbw or problem.topology.size > MOST_GPUS:
        return AllreduceBound(composition, None, limit)
    halves = halves_of(problem)
    widest = max(link.bandwidth for link in problem.topology.links)
    capacity = np.array([float(x.bandwidth / widest) for x in problem.topology.links])
    solution = RootProgram(halves, capacity).solve()
    if solution is None:
        return AllreduceBound(composition, None, limit)
    reached = float(solution.shares.sum()) * float(widest)
    rooted = _best(problem, halves, solution, reached)
    prices = _prices(halves, [y for _, _, y in solution.cuts], solution)
    limit = priced_limit(problem, prices.astype(np.float64), limit)
    return AllreduceBound(composition, rooted, limit)


def prices_of(problem: Problem, rooted: RootedBound) -> tuple[Ints, int]:
    """Return what each link is paid, (m,), and what a chunk pays at least, in whole prices."""
    topology = problem.topology
    tail = np.array([link.source for link in topology.links], np.int64)
    head = np.array([link.target for link in topology.links], np.int64)
    paid = np.zeros(len(topology.nodes), np.int64)
    highest = np.zeros(len(tail), np.int64)
    for way in Direction:
        near, far = (tail, head) if way is Direction.OUT else (head, tail)
        refunds = np.zeros(len(topology.nodes), np.int64)
        for _, node, value in (x for x in rooted.potentials if x[0] is way):
            refunds[node] = value
        prices = refunds[far] - refunds[near]
        for cut in (x for x in rooted.cuts if x.direction is way):
            inside = np.isin(np.arange(len(topology.nodes)), cut.nodes)
            prices[inside[near] & ~inside[far]] += cut.price
            paid[inside] += cut.price
        highest = np.maximum(highest, prices)
    return highest, int(paid[list(topology.ranks)].min())


def _best(problem: Problem, halves: Halves, solution: Solution, reached: float) -> RootedBound:
    """Return the bound of the coarsest prices that prove what the solver found."""
    found: RootedBound | None = None
    for rounded in _rounded(solution):
        proven = _proven(problem, halves, rounded, reached)
        if proven is not None and (found is None or proven.algbw < found.algbw):
            found = proven
            if float(found.algbw) <= reached * (1 + _REACHED):
                break
    if found is None:
        raise ValueError("no prices were tried")
    return found


def _rounded(solution: Solution) -> Iterator[Solution]:
    """Yield solutions whose prices are whole numbers, coarse ones first."""
    highest = max(price for _, _, price in solution.cuts)
    for most in _MULTIPLES:
        scale = most / highest
        cuts = tuple((side, inside, round(y * scale)) for side, inside, y in solution.cuts)
        potentials = tuple(np.rint(refunds * scale) for refunds in solution.potentials)
        yield Solution(solution.shares, solution.used, cuts, potentials, solution.settled)


def _proven(
    problem: Problem, halves: Halves, rounded: Solution, reached: float
) -> RootedBound | None:
    """Return the bound that whole prices prove; None where some root pays nothing."""
    topology = problem.topology
    paid = np.zeros(len(topology.nodes), np.int64)
    for _, inside, price in rounded.cuts:
        paid[inside] += int(price)
    least = int(paid[list(topology.ranks)].min())
    if least == 0:
        return None
    prices = _prices(halves, [int(y) for _, _, y in rounded.cuts], rounded)
    worth = sum(
        (x.bandwidth * int(p) for x, p in zip(topology.links, prices, strict=True) if p),
        Fraction(0),
    )
    if halves.partner is not None:
        # One half stands for both: each pays what it costs, a link is paid by each.
        least *= 2
    return RootedBound(worth / least, *_spelt(halves, rounded), reached)


def _prices(halves: Halves, prices: list[float], solution: Solution) -> NDArray[np.float64]:
    """Return what a link is paid: the most that any half pays for it."""
    highest = np.zeros(len(halves.sides[0].network.tail))
    for number, side in enumerate(halves.sides):
        tail, head = side.network.tail, side.network.head
        refunds = solution.potentials[number]
        paid = refunds[head] - refunds[tail]
        for (of, inside, _), price in zip(solution.cuts, prices, strict=True):
            if of == number and price:
                paid[inside[tail] & ~inside[head]] += price
        highest = np.maximum(highest, paid)
    return highest if halves.partner is None else np.maximum(highest, highest[halves.partner])


def _spelt(
    halves: Halves, rounded: Solution
) -> tuple[tuple[PricedCut, ...], tuple[tuple[Direction, int, int], ...]]:
    """Return cuts and refunds of both directions, also where one half stands for both."""
    cuts: list[PricedCut] = []
    refunds: list[tuple[Direction, int, int]] = []
    for number, side in enumerate(halves.sides):
        ways = (side.direction,) if halves.partner is None else tuple(Direction)
        for way in ways:
            cuts += [
                PricedCut(way, tuple(int(v) for v in np.nonzero(inside)[0]), int(price))
                for of, inside, price in rounded.cuts
                if of == number and price
            ]
            refunds += [
                (way, node, int(value))
                for node, value in enumerate(rounded.potentials[number])
                if value
            ]
    return tuple(cuts), tuple(refunds)
